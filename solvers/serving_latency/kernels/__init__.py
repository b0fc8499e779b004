"""Compiled kernels for `serving-latency` problems (paper 1). They compute stage times, the latency
of plans in closed form, shortest paths and bounds, and run searches.
"""
