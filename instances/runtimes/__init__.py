"""Runtimes from measurements: tables of timings, and the fits that turn them into models."""
