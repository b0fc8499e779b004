"""Problem, plan and judge of `placement`."""
