"""Reports: one self-contained page for a result, a comparison, a sweep, a reproduction or laboratory records."""
