"""Reports: self-contained pages for results, comparisons and sweeps."""
