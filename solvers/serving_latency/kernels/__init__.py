"""Compiled code for serving latency (paper 1): stage times, plans rated in closed form, shortest
paths, bounds, and searches.
"""
