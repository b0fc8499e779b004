"""Problem, plan and judge of `draft-allocation`."""
