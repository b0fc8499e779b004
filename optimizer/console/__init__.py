"""What the command says while it works, where it says it, and how it ends on Ctrl-C."""
