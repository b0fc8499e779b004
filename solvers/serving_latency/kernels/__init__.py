"""Compiled kernels of the methods for `serving-latency` problems (paper 1).

They compute stage times, the latency of plans, shortest paths and bounds, and they run searches.
"""
