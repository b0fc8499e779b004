"""The Python interface, on which the commands are built."""
