"""Saved instances."""
