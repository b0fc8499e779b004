"""What optima of `prompt-chunking` keep."""

from __future__ import annotations

from specopt.models.prompt_chunking import PromptChunkingProblem
from specopt.testing.relations.base import (
    RELAXED,
    UNITS,
    Relation,
    raised,
    replaced,
    scaled,
)


def _relations() -> list[Relation]:
    kind = PromptChunkingProblem.kind
    seconds = ("local_overhead_seconds", "local_seconds_per_token", "message_overhead_seconds", "link_latency_seconds",
               "head_seconds", "seconds")  # fmt: skip
    links = ("uplink_bytes_per_second", "downlink_bytes_per_second")
    scale = dict.fromkeys(seconds, 2.0) | dict.fromkeys(links, 0.5) | {"cloud_delay": 1.0}
    sizes = dict.fromkeys((*links, "bytes_per_token"), 2.0)
    earlier = "every event of every plan is as early or earlier"
    return [
        Relation(kind=kind, name="time scaled", reason=UNITS, change=scaled(scale), equal=True,
                 implied=lambda problem, objective: 2.0 * objective),
        Relation(kind=kind, name="bytes scaled", reason="data and links grow alike", change=scaled(sizes), equal=True),
        *(Relation(kind=kind, name=f"faster {link.partition('_')[0]}", reason=earlier,
                   change=raised(link, lambda rate: 1.5 * rate)) for link in links),
        Relation(kind=kind, name="one more chunk", when="a cap is given", reason=RELAXED,
                 change=raised("max_chunks", lambda count: count + 1)),
        Relation(kind=kind, name="no grid", when="a grid is given", reason=RELAXED,
                 change=replaced("grid_tokens", None)),
        Relation(kind=kind, name="chunks overlap their wait", when="they wait one after the other", reason=earlier,
                 change=replaced("wait", "overlap", (None, "serial"))),
        Relation(kind=kind, name="chunks wait for nothing", when="they wait", reason=earlier,
                 change=replaced("wait", "none", (None, "serial", "overlap"))),
        Relation(kind=kind, name="the last token comes down alone", when="all do", reason=earlier,
                 change=replaced("download", "last", (None, "all"))),
    ]  # fmt: skip


RELATIONS = tuple(_relations())
