"""The commands of `specopt`, one a file; each imports what it needs when it runs."""
