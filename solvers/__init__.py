"""How problems are solved: one folder per problem, one file per method; `_kernels` holds the compiled code."""
