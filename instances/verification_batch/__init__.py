"""Families of `verification-batch` problems."""
