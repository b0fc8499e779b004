"""BurstGPT: a CSV table of requests to ChatGPT and GPT-4, times in seconds.

The older files have six columns, the newer ones `Session ID` and `Elapsed time` too. A request that failed has no
response tokens.
"""

from __future__ import annotations

from specopt.instances.traces.table import Table

BURSTGPT = Table(
    name="burstgpt", arrival="Timestamp", input="Request tokens", output="Response tokens", time_unit="s", label="Model"
)
