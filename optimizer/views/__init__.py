"""Views that print values on the terminal or draw them as pictures."""
