"""Compiled loops of placement."""
