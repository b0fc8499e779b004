"""The commands of `specopt`, with one file per command.

Each command imports other modules only when it runs.
"""
