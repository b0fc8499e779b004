"""Problem, plan and judge of `draft-control`."""
