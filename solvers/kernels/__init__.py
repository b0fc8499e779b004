"""Numba kernels: arrays in, arrays out, no Python objects, nothing imported but numpy, numba, math
and other kernels.

`kernel.py` says how they are declared, compiled and kept. Names say what is computed; arguments
come in one order: sizes, data arrays, parameters, work space, output. Parameters that travel
together are one record.
"""
