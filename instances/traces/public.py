"""Public traces that are one CSV table: Azure, BurstGPT, and the simulator Vidur.

Azure's dates have seven digits of a second and no time zone in 2023, six or none and +00:00 in
2024. Of BurstGPT, requests to ChatGPT and GPT-4, older files have six columns, newer ones `Session
ID` and `Elapsed time` too; a request that failed has no response tokens. Vidur's tables of lengths
alone have no arrivals.
"""

from __future__ import annotations

from specopt.instances.traces.clock import DATE
from specopt.instances.traces.table import Table

AZURE = Table(
    name="azure",
    arrival="TIMESTAMP",
    input="ContextTokens",
    output="GeneratedTokens",
    time_unit=DATE,
)
BURSTGPT = Table(
    name="burstgpt",
    arrival="Timestamp",
    input="Request tokens",
    output="Response tokens",
    time_unit="s",
)
VIDUR = Table(
    name="vidur",
    arrival="arrived_at",
    input="num_prefill_tokens",
    output="num_decode_tokens",
    time_unit="s",
)
