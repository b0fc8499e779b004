"""The command `specopt warmup`, which compiles kernels in advance."""

from __future__ import annotations

from specopt.commands.shared import argument
from specopt.console.streams import say
from specopt.models.errors import InvalidInput


def warmup(
    kind: list[str] | None = argument(
        "[KIND...]", "Kinds of problems; default: all of them.", None
    ),
) -> None:
    """Compile the kernels of all methods in advance, in one process per processor."""
    import os
    import signal
    import time
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from specopt.console.progress import end_progress, print_step
    from specopt.kinds import KINDS, kind_of
    from specopt.solvers.kernels.cache import NO_CACHE, folder
    from specopt.solvers.kernels.compiling import kernels_of, prepare

    chosen = list(KINDS) if not kind else [kind_of(name) for name in dict.fromkeys(kind)]
    if folder() is None:
        raise InvalidInput(f"kernels would be compiled {NO_CACHE}")
    started = time.monotonic()
    kernels = [each for one in chosen for each in kernels_of(one.name.replace("-", "_"))]
    missing = [each for each in kernels if not each.is_ready]
    if missing:
        ignore = signal.signal, (signal.SIGINT, signal.SIG_IGN)  # this process handles Ctrl-C
        pool = ProcessPoolExecutor(
            min(os.cpu_count() or 1, len(missing)), get_context("spawn"), *ignore
        )
        try:
            # adjacent kernels in the list share helpers, which each process compiles only once
            names = pool.map(prepare, [each.name for each in missing], chunksize=5)
            for done, name in enumerate(names, 1):
                seconds = time.monotonic() - started
                print_step(
                    seconds,
                    f"{seconds:7.1f} s  {done} of {len(missing)} kernels compiled, the last:"
                    f" {name}",
                )
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            end_progress()
    kinds = ", ".join(one.name for one in chosen)
    say(
        f"{len(kernels)} kernels of {kinds}: {len(missing)} compiled in"
        f" {time.monotonic() - started:.1f} s"
    )
