"""Reports, which are self-contained pages for results, comparisons and sweeps."""
