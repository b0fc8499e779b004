"""`specopt warmup`: compile ahead what solving needs."""

from __future__ import annotations

from typing import Annotated

import typer

from specopt.console.streams import say
from specopt.models.errors import InvalidInput

POLL_SECONDS = 0.2


def warmup(
    kind: Annotated[
        list[str] | None, typer.Argument(metavar="[KIND...]", help="Kinds of problems; default: all of them.")
    ] = None,
) -> None:
    """Compile the kernels of all methods in advance.

    Separate processes compile, one per processor; they continue if this command is interrupted.
    """
    import time

    from specopt.console.progress import end_progress, print_step
    from specopt.kinds import KINDS, kind_of
    from specopt.solvers._kernels import prepare
    from specopt.solvers._kernels.cache import NO_CACHE, folder
    from specopt.solvers._kernels.kernel import is_cached, name_of
    from specopt.solvers._kernels.kernel import prepare as compile_now
    from specopt.solvers.compiler import processors

    chosen = list(KINDS) if not kind else [kind_of(name) for name in dict.fromkeys(kind)]
    if folder() is None:
        raise InvalidInput(f"kernels would be compiled {NO_CACHE}")
    started = time.monotonic()
    kernels = [each for one in chosen for each in prepare.kernels_of(one.name.replace("-", "_"))]
    missing = [each for each in kernels if not is_cached(each)]
    count = min(processors(), len(missing))
    # each begins elsewhere, and leaves out what another one is at
    names = [name_of(each) for each in missing]
    children = [prepare.start(*names[i::count], *names) for i in range(count)]
    while any(child.poll() is None for child in children):
        ready = len(kernels) - sum(not is_cached(each) for each in missing)
        seconds = time.monotonic() - started
        print_step(seconds, f"{seconds:7.1f} s  {ready} of {len(kernels)} kernels are ready")
        time.sleep(POLL_SECONDS)
    end_progress()
    for each in missing:
        if not is_cached(each):
            with prepare.marked(name_of(each)):
                compile_now(each)  # what no process could: its error shows here
    kinds = ", ".join(one.name for one in chosen)
    say(f"{len(kernels)} kernels of {kinds}: {len(missing)} compiled in {time.monotonic() - started:.1f} s")
