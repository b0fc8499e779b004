"""Numba kernels: arrays in, arrays out, no Python objects, nothing imported but numpy, numba and math.

Every public kernel states its signature, so that importing a module compiles all of it (or loads it from the
cache) and no later call ever does. Kernels that call each other share a file: Numba's cache does not notice an
edit in another one.
"""
