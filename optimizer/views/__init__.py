"""Printing and drawing of values, for the terminal and as pictures."""
