"""The problem class, plan class and judge for `serving-latency`."""
