"""`specopt demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from specopt.commands.shared import Seconds, count


def demo(
    picture: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path("build/pipeline.png"),
    tasks: Annotated[int, typer.Option(metavar="K", parser=count, help="Number of tasks.")] = 100,
    time_limit: Seconds = 60.0,
) -> int:
    """Solve the setting of paper 1 by every method."""
    from specopt.demo import run_demo

    return run_demo(picture, tasks, time_limit)
