"""The Python interface of specopt. The command line is built on this interface."""
