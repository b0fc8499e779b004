"""Families of `fair-goodput` problems."""
