"""Entry point of `python -m specopt` and of the `specopt` command."""

from specopt.commands.cli import main

if __name__ == "__main__":
    main()
