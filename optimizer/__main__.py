"""`python -m specopt` and the `specopt` command."""

from specopt.commands.cli import main

if __name__ == "__main__":
    main()
