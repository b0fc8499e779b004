"""The problem class, plan class and judge for `fair-goodput`."""
