"""Comparison of methods on problem instances.

A comparison runs in parallel and can be resumed after an interruption.
"""
