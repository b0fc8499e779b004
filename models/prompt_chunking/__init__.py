"""Problem, plan and judge of `prompt-chunking`."""
