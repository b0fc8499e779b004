"""Families of `draft-control` problems."""
