"""The commands of `specopt`, one per file. Each command imports other modules only when it runs."""
