"""Consistency of the printed numbers of paper 2, whose logs are not public.

Tables 4 and 10 print the same confusion matrices in two ways, Tables 5 and 6 gains and the rates
behind them, and Table 7 R2 and adjusted R2. Sec. 4.4 and Table 12 print two sets of coefficients
for one verifier (Qwen3-32B on an A100 of 80 GB).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from papers.audit import follows
from papers.ledger import Statement, paper
from specopt.instances.verification_batch.workload import TABLE_12
from specopt.models.decoder import ExactDecoder
from specopt.models.pass_time import VerificationTime

QWEN3_32B = ExactDecoder(
    layers=64,
    hidden=5120,
    ffn=25600,
    heads=64,
    kv_heads=8,
    head_dim=128,
    gated=True,
    vocabulary=151936,
    tied=False,
    name="Qwen3-32B",
)

A100_FLOPS_PER_SECOND, A100_BYTES_PER_SECOND = 312e12, 2.039e12
"""Dense BF16 and memory bandwidth of the A100 80GB SXM, from NVIDIA's data sheet."""

SECTION_4_4 = VerificationTime(
    seconds_per_new_token=143.39e-6,
    seconds_per_interaction=2.53e-9,
    seconds_per_cached_token=2.67e-6,
    overhead_seconds=TABLE_12.overhead_seconds,  # not printed there
)

_COLD = ([150], [0]), ([600], [0]), ([2000], [0])
_BATCHES = (*_COLD, ([5], [500]), ([5] * 8, [500] * 8), ([5] * 8, [2000] * 8))
_MEASURES = {
    "accuracy": lambda tn, fp, fn, tp: (tp + tn) / (tn + fp + fn + tp),
    "recall of accepted tokens": lambda tn, fp, fn, tp: tp / (tp + fn),
    "specificity": lambda tn, fp, fn, tp: tn / (tn + fp),
    "false-accept rate": lambda tn, fp, fn, tp: fp / (tn + fp),
    "balanced accuracy": lambda tn, fp, fn, tp: 0.5 * (tp / (tp + fn) + tn / (tn + fp)),
}


def audits() -> Iterator[tuple[str, float]]:
    """Yield the audited and recomputed statements, with values that follow from other numbers."""
    said = paper("paper-2").statements
    counts = {
        one.given["predictor"]: one.given["counts"]
        for one in said.values()
        if "counts" in one.given
    }
    for one in said.values():
        if one.by == "printed" and one.given:
            yield one.id, _own_numbers(one, counts)
    yield from _between_tables(said, counts)
    yield from _estimators()


def _own_numbers(one: Statement, counts: Mapping[str, list[int]]) -> float:
    """Return the value of a statement that follows from the numbers beside it."""
    given, printed = one.given, one.printed
    if one.place == "Table 10":
        return float(sum(given["counts"][:2]))
    if one.place == "Table 4":
        rate = _MEASURES[given["measure"]](*counts[given["predictor"]])
        slack = (
            5e-5 if given["measure"] == "balanced accuracy" else 0.0
        )  # mean of two rounded rates
        return follows(printed, rate - slack, rate + slack, digits=4)
    if "off" in given:  # Tables 5 and 6: gains of rounded rates; Table 5 has at most 3 digits
        low, high = (
            (given["on"] - 0.005) / (given["off"] + 0.005),
            (given["on"] + 0.005) / (given["off"] - 0.005),
        )
        return follows(
            printed,
            100.0 * (low - 1.0),
            100.0 * (high - 1.0),
            digits=1 if one.place == "Table 5" else 2,
        )
    if "r2" in given:
        n = given["samples"]
        ends = (1.0 - (1.0 - (given["r2"] + step)) * (n - 1) / (n - 4) for step in (-5e-4, 5e-4))
        return follows(printed, *ends, digits=3)
    if "mae" in given:  # at least the mean error, and at most the largest
        return follows(
            printed, max(given["mae"], given["worst"] / given["samples"] ** 0.5), given["worst"]
        )
    if "largest" in given:
        return float(max(given["largest"]))
    if "text" in given:
        return follows(printed, given["text"], digits=given.get("digits"))
    part = given.get("accepted", given.get("rejected"))
    assert part is not None, one.id
    return follows(printed, 100.0 * part / given["samples"], digits=2)


def _between_tables(
    said: Mapping[str, Statement], counts: Mapping[str, list[int]]
) -> Iterator[tuple[str, float]]:
    ratios = []
    for name, one in said.items():
        if found := re.fullmatch(r"(table-2.*)\.over-(\w+)\.(\d)", name):
            table, baseline, speed = found.groups()
            wisp, other = (
                said[f"{table}.{system}.{speed}"].printed for system in ("wisp", baseline)
            )
            ratios.append(follows(one.printed, wisp / other, digits=2) == one.printed)
    goodput = {name: said[f"table-3.{name}"].printed for name in ("wisp", "centralised", "sled")}
    shares = [
        follows(stated, 100.0 * count / sum(row[:2] if place < 2 else row[2:]), digits=2) == stated
        for row, shown in (
            (one.given["counts"], one.given["shares"])
            for one in said.values()
            if "counts" in one.given
        )
        for place, (count, stated) in enumerate(zip(row, shown, strict=True))
    ]
    false_accepts = {name: row[1] / sum(row[:2]) for name, row in counts.items()}
    trees = min(rate for name, rate in false_accepts.items() if name != "MLP")
    rejected = [sum(row[:2]) for row in counts.values()]
    gains = {
        table: [one for one in said.values() if one.place == table and "on" in one.given]
        for table in _GAINS
    }
    largest = {
        table: max(one.given["on"] / one.given["off"] for one in rows) - 1.0
        for table, rows in gains.items()
    }
    four, eight = (said[f"table-6.{count}"].given["off"] for count in (4, 8))
    yield "table-2.arithmetic", float(sum(ratios))
    yield "table-3.arithmetic", follows(1.94, goodput["wisp"] / goodput["centralised"], digits=2)
    yield "table-3.arithmetic-sled", follows(3.7, goodput["wisp"] / goodput["sled"], digits=1)
    yield "table-1.classes", 2.0  # Sec. 5.3
    yield "figure-10", float(sum(shares))
    yield "sec-5.fpr", follows(2.0, trees / false_accepts["MLP"], digits=0)
    yield "table-10.one-set", float(max(rejected))
    yield "table-5.range", follows(54.0, 100.0 * largest["Table 5"], digits=0)
    yield "table-6.range", follows(30.0, 100.0 * largest["Table 6"], digits=1)
    yield "table-6.scaling", eight / four
    yield "table-7.difference", follows(0.006, 0.992 - 0.986, digits=3)
    yield "table-8.features", 4.0  # App. B
    yield "eq-5", 0.73 * 8 / sum(0.73**k for k in range(1, 9))


_GAINS = ("Table 5", "Table 6")


def least_seconds(new_tokens: Sequence[int], cached_tokens: Sequence[int]) -> float:
    """Return the minimum time of a batch: its operations at the peak of an A100, or its bytes at
    full bandwidth.

    The operations are those of every new token, of half of the pairs of new tokens, and of all
    pairs of new and cached tokens. The bytes are those of the caches and of all weights without the
    input embeddings.
    """
    new, cached = np.array(new_tokens, np.float64), np.array(cached_tokens, np.float64)
    pairs = float((new * cached + 0.5 * new**2).sum())
    flops = QWEN3_32B.flops_per_token * float(new.sum()) + QWEN3_32B.flops_per_token_pair * pairs
    embeddings = QWEN3_32B.hidden * QWEN3_32B.vocabulary * QWEN3_32B.bytes_per_value
    moved = (
        QWEN3_32B.parameter_bytes - embeddings + QWEN3_32B.kv_bytes_per_token * float(cached.sum())
    )
    return max(flops / A100_FLOPS_PER_SECOND, moved / A100_BYTES_PER_SECOND)


def _estimators() -> Iterator[tuple[str, float]]:
    """Yield comparisons of Table 12 with Sec. 4.4, with an A100, and with the text of App. C."""

    def seconds(of: VerificationTime, new: list[int], cached: list[int]) -> float:
        return of.seconds(np.array(new), np.array(cached))

    ratios = [seconds(SECTION_4_4, *batch) / seconds(TABLE_12, *batch) for batch in _BATCHES]
    yield "table-12.batches", float(sum(abs(ratio - 1.0) <= 0.1 for ratio in ratios))
    cold = [seconds(TABLE_12, *batch) >= least_seconds(*batch) for batch in _COLD]
    yield "table-12.possible", float(sum(cold))
    compute = [
        100.0 * TABLE_12.seconds_per_interaction * tokens**2 / seconds(TABLE_12, [tokens], [0])
        for tokens in (1200, 1400, 1600, 1800, 2000)
    ]
    yield "app-c.compute", min(compute)
    memory = [
        100.0
        * TABLE_12.seconds_per_cached_token
        * size
        * (total - new)
        / seconds(TABLE_12, [new] * size, [total - new] * size)
        for new, total, size in product((1, 5, 10, 20, 50, 100), (500, 1000, 1500, 2000), (1, 4))
    ]
    yield "app-c.memory", min(memory)
    yield "app-c.memory-most", max(memory)
