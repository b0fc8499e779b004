"""Relations that hold between the optimal values of related `prompt-chunking` problems.

These relations are used to test solvers that claim optimality.
"""

from __future__ import annotations

from specopt.kinds.relation import RELAXED, UNITS, one_more, relations_of, replaced, scaled, times
from specopt.models.prompt_chunking.problem import PromptChunkingProblem

_LINKS = ("uplink_bytes_per_second", "downlink_bytes_per_second")
_SECONDS = (
    "local_overhead_seconds",
    "local_seconds_per_token",
    "message_overhead_seconds",
    "link_latency_seconds",
    "head_seconds",
    "seconds",
)
_EARLIER = "no event of any plan becomes later"

_keeps = relations_of(PromptChunkingProblem)

RELATIONS = (
    _keeps(
        "time scaled",
        UNITS,
        scaled(dict.fromkeys(_SECONDS, 2.0) | dict.fromkeys(_LINKS, 0.5)),
        implied=times(2.0),
        equal=True,
    ),
    _keeps(
        "bytes scaled",
        "data and links scale equally",
        scaled(dict.fromkeys((*_LINKS, "bytes_per_token"), 2.0)),
        equal=True,
    ),
    *(_keeps(f"faster {link.partition('_')[0]}", _EARLIER, scaled({link: 1.5})) for link in _LINKS),
    _keeps("one more chunk", RELAXED, one_more("max_chunks"), when="a cap is given"),
    _keeps("no grid", RELAXED, replaced("grid_tokens", None), when="a grid is given"),
    _keeps(
        "chunks overlap their waiting times",
        _EARLIER,
        replaced("wait", "overlap", (None, "serial")),
        when="chunks wait one after the other",
    ),
    _keeps(
        "chunks do not wait",
        _EARLIER,
        replaced("wait", "none", (None, "serial", "overlap")),
        when="chunks wait",
    ),
    _keeps(
        "only the last token is downloaded",
        _EARLIER,
        replaced("download", "last", (None, "all")),
        when="all tokens are downloaded",
    ),
)
