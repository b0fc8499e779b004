"""The front door: what Python calls, and what the commands stand on."""
