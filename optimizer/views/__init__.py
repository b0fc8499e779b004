"""Printing and drawing, for the terminal and as pictures."""
