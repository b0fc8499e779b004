"""A function that determines how much memory is available to this process."""

from __future__ import annotations

import math
import resource
from pathlib import Path


def free_memory() -> float:
    """Return how many bytes of main memory this process can still allocate.

    The result accounts for the free memory of the machine, the address-space limit of the process,
    and the limit of its control group. If no limit can be read, the result is infinity.
    """
    found = [math.inf]
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [
            1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")
        ]
        soft = resource.getrlimit(resource.RLIMIT_AS)[0]
        if soft != resource.RLIM_INFINITY:
            found.append(
                soft
                - float(
                    resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[0])
                )
            )
        limit = float(Path("/sys/fs/cgroup/memory.max").read_text())  # "max" if there is no limit
        counts = dict(
            line.split() for line in Path("/sys/fs/cgroup/memory.stat").read_text().splitlines()
        )
        held = int(Path("/sys/fs/cgroup/memory.current").read_text())
        found.append(
            limit - held + int(counts["inactive_file"]) + int(counts["active_file"])
        )  # caches can be freed
    except (OSError, ValueError, LookupError):
        pass
    return min(found)
