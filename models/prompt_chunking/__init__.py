"""The problem class, plan class and judge for `prompt-chunking`."""
