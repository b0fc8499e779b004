"""Reports: one self-contained page for a result, a comparison, a sweep or a reproduction."""
