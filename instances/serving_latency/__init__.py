"""Families of `serving-latency` problems."""
