"""Solution methods, organised in one folder per problem kind with one file per method.

A folder's subfolder `kernels` contains compiled code.
"""
