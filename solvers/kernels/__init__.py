"""Infrastructure and shared code for Numba kernels, which operate on arrays and use no Python
objects. Kernels import only numpy, numba, math and other kernels.

The module `kernel.py` describes how kernels are declared, compiled and cached. Every kernel is
named after its result. Arguments follow a fixed order: sizes, data arrays, parameters, work space
and output. Parameters that are always passed together form one record.
"""
