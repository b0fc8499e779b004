"""All that prints or draws, for the terminal and as pictures."""
