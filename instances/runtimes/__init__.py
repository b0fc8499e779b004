"""Runtime models fitted to tables of measured times."""
