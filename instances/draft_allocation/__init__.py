"""Families of `draft-allocation` problems."""
