"""Problem, plan and judge of `toy`."""
