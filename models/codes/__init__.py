"""Codes of token distributions: how many bits they take, and what quantising costs."""
