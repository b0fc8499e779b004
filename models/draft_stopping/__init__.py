"""Problem, plan and judge of `draft-stopping`."""
