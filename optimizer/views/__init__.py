"""Views of values, printed on the terminal or drawn as pictures."""
