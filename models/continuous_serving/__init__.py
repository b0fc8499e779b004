"""Problem, plan and judge of `continuous-serving`."""
