"""The problem class, plan class and judge for `verification-batch`."""
