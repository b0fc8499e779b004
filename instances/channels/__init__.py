"""Measured channels, and the Markov chains built from them."""
