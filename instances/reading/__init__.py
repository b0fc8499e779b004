"""Reading files of others: their lines, and the rows of their tables."""
