"""Solution methods, with one folder per problem kind and one file per method.

The subfolder `kernels` of a kind contains its compiled code.
"""
