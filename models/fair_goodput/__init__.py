"""Problem, plan and judge of `fair-goodput`."""
