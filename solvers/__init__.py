"""How problems are solved: one folder per kind, one file per method; `kernels` of a folder holds
its compiled code.
"""
