"""Reports: one self-contained page for a result, a comparison or a sweep."""
