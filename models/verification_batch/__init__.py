"""Problem, plan and judge of `verification-batch`."""
