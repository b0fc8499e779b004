"""Reading text files strictly: every refusal names the file, the line, the column, what was expected and what came."""
