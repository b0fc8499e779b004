"""Problem, plan and judge of `serving-latency`."""
