"""The commands of `specopt`, one per file. Each imports other modules when it runs."""
