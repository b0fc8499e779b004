"""The problem class, plan class and judge for `draft-control`."""
