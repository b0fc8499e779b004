"""Compiled code for serving latency (paper 1): stage times, the closed-form latency of plans,
shortest paths, bounds, and searches.
"""
