"""What the printed numbers of paper 2 imply of each other: its logs are not public, so nothing else can be recomputed.

Tables 4 and 10 state one confusion matrix in two ways, Tables 5 and 6 state their own gains, Table 7 its own R2, and
Sec. 4.4 and Table 12 two sets of coefficients for one verifier (Qwen3-32B on an A100 80GB).

>>> rows = tables()
>>> [row for row in rows if row.table == "Table 5" and not row.agrees][0].recomputed
40.4
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from specopt.models.decoder import ExactDecoder
from specopt.models.drafting import per_token_rate, verified_tokens
from specopt.models.verification_time import VerificationTime

QWEN3_32B = ExactDecoder(
    layers=64, hidden=5120, ffn=25600, heads=64, kv_heads=8, head_dim=128, gated=True, vocabulary=151936, tied=False,
    name="Qwen3-32B",
)  # fmt: skip

SECTION_4 = VerificationTime(
    seconds_per_new_token=143.39e-6,
    seconds_per_interaction=2.53e-9,
    seconds_per_cached_token=2.67e-6,
    overhead_seconds=0.0,
)
"""Sec. 4.4; it prints no constant."""

TABLE_12 = VerificationTime(
    seconds_per_new_token=3.314e-5,
    seconds_per_interaction=3.450e-8,
    seconds_per_cached_token=4.620e-6,
    overhead_seconds=1.486e-2,
)
"""Table 12."""

_DRAFTS = ("Qwen3-0.6B", "Qwen3-1.7B", "Qwen3-4B", "Qwen3-8B")
_TABLE_5 = ((0.31, 0.48, 54.0), (0.42, 0.63, 50.0), (0.47, 0.66, 44.7), (0.53, 0.71, 34.0))
_TABLE_6 = ((2, 14.23, 17.14, 20.45), (4, 21.12, 26.43, 25.14), (8, 56.12, 70.43, 25.49), (16, 102.13, 132.80, 30.03))
_TABLE_7 = (
    ("training", {"r2": 0.986, "adjusted": 0.985, "rmse": 5.35, "mae": 3.85, "worst": 22.31, "samples": 123}),
    ("test", {"r2": 0.992, "adjusted": 0.991, "rmse": 4.49, "mae": 3.38, "worst": 14.59, "samples": 50}),
)
_TABLE_4 = (
    ("MLP", (92, 68, 112, 451), (0.7510, 0.8011, 0.5750, 0.4250, 0.6881)),
    ("LightGBM", (25, 153, 33, 513), (0.7431, 0.9396, 0.1404, 0.8596, 0.5400)),
    ("Random Forest", (27, 151, 33, 513), (0.7459, 0.9396, 0.1517, 0.8483, 0.5457)),
    ("XGBoost", (36, 142, 37, 509), (0.7528, 0.9322, 0.2022, 0.7978, 0.5672)),
)
_BATCHES = (
    ("1 cold request of 150 tokens", [150], [0]),
    ("1 cold request of 600 tokens", [600], [0]),
    ("1 cold request of 2000 tokens", [2000], [0]),
    ("1 warm request, 5 new on 500", [5], [500]),
    ("8 warm requests, 5 new on 500", [5] * 8, [500] * 8),
    ("8 warm requests, 5 new on 2000", [5] * 8, [2000] * 8),
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A printed number, and what other printed numbers make of it.

    Parameters
    ----------
    table, quantity, unit
        Where it stands and what it is.
    published, recomputed
        The printed number, and the one implied.
    agrees
        Whether the two are one within the rounding of what was printed.
    verdict
        What follows.
    """

    table: str
    quantity: str
    unit: str
    published: float
    recomputed: float
    agrees: bool
    verdict: str


def tables() -> tuple[Row, ...]:
    """Return a row for every printed number of Tables 4-7 and 12 that other printed numbers determine."""
    return (*_table_4(), *_table_5(), *_table_6(), *_table_7(), *_coefficients())


def _row(
    table: str, quantity: str, unit: str, published: float, low: float, high: float, digits: int, **says: str
) -> Row:
    """Build a row from the interval that rounded inputs leave to a number."""
    half = 0.5 * 10.0**-digits * (1.0 + 1e-9)
    agrees = low - half <= published <= high + half
    verdict = says.get("verdict") or ("agrees" if agrees else "does not follow from the numbers beside it")
    middle = round(0.5 * (low + high), digits)
    return Row(
        table=table, quantity=quantity, unit=unit, published=published, recomputed=middle, agrees=agrees,
        verdict=verdict,
    )  # fmt: skip


def _table_4() -> Iterator[Row]:
    """Table 4 from the counts of Table 10; both state the validation set of App. B."""
    for name, (tn, fp, fn, tp), published in _TABLE_4:
        recall, specificity = tp / (tp + fn), tn / (tn + fp)
        found = (
            ("accuracy", (tp + tn) / (tn + fp + fn + tp)),
            ("recall of accepted tokens", recall),
            ("specificity", specificity),
            ("false-accept rate", 1.0 - specificity),
            ("balanced accuracy", 0.5 * (recall + specificity)),
        )
        for (quantity, value), printed in zip(found, published, strict=True):
            slack = 5e-5 if quantity == "balanced accuracy" else 0.0  # the mean of two rounded rates
            yield _row("Table 4", f"{name}: {quantity}", "", printed, value - slack, value + slack, 4)
    sizes = {sum(counts) for _, counts, _ in _TABLE_4}
    rejected = {counts[0] + counts[1] for _, counts, _ in _TABLE_4}
    yield Row(
        table="Table 10", quantity="first rejections among the MLP's tokens and the trees'", unit="tokens",
        published=160.0, recomputed=float(max(rejected)), agrees=len(rejected) == 1 and len(sizes) == 1,
        verdict="the MLP was judged on other tokens than the trees: 160 first rejections of 723, not 178 of 724",
    )  # fmt: skip


def _table_5() -> Iterator[Row]:
    for name, (off, on, gain) in zip(_DRAFTS, _TABLE_5, strict=True):
        middle = 100.0 * (on / off - 1.0)
        low, high = 100.0 * ((on - 0.005) / (off + 0.005) - 1.0), 100.0 * ((on + 0.005) / (off - 0.005) - 1.0)
        half = 0.05 + 1e-9
        agrees = low - half <= gain <= high + half
        exact = abs(gain - middle) <= 1.0
        verdict = (
            "agrees"
            if agrees and exact
            else f"the rates beside it give {middle:.1f} %"
            + (f"; their rounding allows {low:.1f} to {high:.1f} %" if not agrees else ", within their rounding")
        )
        yield Row(
            table="Table 5", quantity=f"{name}: gain in the fraction of drafted tokens accepted", unit="%",
            published=gain, recomputed=round(middle, 1), agrees=agrees, verdict=verdict,
        )  # fmt: skip
    for name, (off, _, _) in zip(_DRAFTS, _TABLE_5, strict=True):
        rate = per_token_rate(off, 8)
        as_per_token = verified_tokens(off, 8)
        yield Row(
            table="Table 5", quantity=f"{name}: tokens per round if its rate is a fraction, window 8", unit="tokens",
            published=round(verified_tokens(off, 8, rate="fraction"), 2), recomputed=round(as_per_token, 2),
            agrees=False,
            verdict=f"a fraction, not a per-token rate: as one it would give {as_per_token:.2f}; the per-token rate "
            f"behind it is {rate:.2f} if the window is 8 (the paper gives none)",
        )  # fmt: skip


def _table_6() -> Iterator[Row]:
    for devices, off, on, gain in _TABLE_6:
        low, high = 100.0 * ((on - 0.005) / (off + 0.005) - 1.0), 100.0 * ((on + 0.005) / (off - 0.005) - 1.0)
        yield _row("Table 6", f"{devices} devices: gain in goodput", "%", gain, low, high, 2)
    (few, off, _, _), (many, more, _, _) = _TABLE_6[1], _TABLE_6[2]
    factor = more / off
    yield Row(
        table="Table 6", quantity=f"goodput without predictor, {many} devices over {few}", unit="x",
        published=many / few, recomputed=round(factor, 2), agrees=factor <= many / few,
        verdict="goodput grows faster than the number of devices, although they share one verifier; not explained",
    )  # fmt: skip


def _table_7() -> Iterator[Row]:
    for name, one in _TABLE_7:
        n, r2 = one["samples"], one["r2"]
        low, high = (1.0 - (1.0 - (r2 + step)) * (n - 1) / (n - 4) for step in (-5e-4, 5e-4))
        yield _row("Table 7", f"{name} set: adjusted R2 of three features", "", one["adjusted"], low, high, 3)
        ordered = one["mae"] <= one["rmse"] <= one["worst"] <= one["rmse"] * n**0.5
        yield Row(
            table="Table 7", quantity=f"{name} set: RMSE between MAE and the largest error", unit="ms",
            published=one["rmse"], recomputed=one["rmse"], agrees=ordered,
            verdict="possible" if ordered else "impossible",
        )  # fmt: skip
    for quantity, published, other in (("training R2", 0.986, 0.9944), ("test R2", 0.992, 0.9924)):
        yield _row(
            "Table 7", f"{quantity} in Sec. 5.5 and App. C", "", published, other, other, 3,
            verdict="agrees" if abs(published - other) <= 5e-4 else "the text gives another figure than the table",
        )  # fmt: skip
    for quantity, published, other in (("training MAPE", 8.91, 5.12), ("test MAPE", 4.93, 6.45)):
        yield _row(
            "Table 7", f"{quantity} in Sec. 5.5 and App. C", "%", published, other, other, 2,
            verdict="the text gives another figure than the table",
        )  # fmt: skip
    yield Row(
        table="Table 7", quantity="test MAE in Sec. 4.4", unit="ms", published=3.38, recomputed=13.24, agrees=False,
        verdict="Sec. 4.4 describes another fit: 566 batches and 13.24 ms, against 173 configurations and 3.38 ms",
    )  # fmt: skip


def _coefficients() -> Iterator[Row]:
    from specopt.instances.runtimes.hardware import A100_80GB, least_seconds, roofline

    for label, short in (
        ("seconds_per_new_token", "a"),
        ("seconds_per_interaction", "b_compute"),
        ("seconds_per_cached_token", "b_read"),
    ):
        one, other = getattr(TABLE_12, label), getattr(SECTION_4, label)
        yield Row(
            table="Table 12", quantity=f"{short} here and in Sec. 4.4", unit="s", published=one, recomputed=other,
            agrees=False, verdict=f"the two differ by a factor of {max(one, other) / min(one, other):.1f}",
        )  # fmt: skip
    for name, new, cached in _BATCHES:
        one, other = TABLE_12.seconds(_array(new), _array(cached)), SECTION_4.seconds(_array(new), _array(cached))
        least = least_seconds(QWEN3_32B, A100_80GB, new, cached)
        beaten = [where for value, where in ((one, "Table 12"), (other, "Sec. 4.4")) if value < least]
        roof = f"one A100 needs {1e3 * least:.1f} ms at least"
        beats = f"; impossible: {' and '.join(beaten)}" if beaten else ""
        note = " (no constant printed)" if "Sec. 4.4" in beaten else ""
        yield Row(
            table="Table 12", quantity=f"{name}: time here and by Sec. 4.4", unit="ms", published=round(1e3 * one, 2),
            recomputed=round(1e3 * other, 2), agrees=False,
            verdict=f"Sec. 4.4 is {other / one:.2f} times Table 12; {roof}{beats}{note}",
        )  # fmt: skip
    for row in roofline(TABLE_12, QWEN3_32B, A100_80GB):
        yield Row(
            table="Table 12", quantity=f"{row.name} and the least that one A100 reaches", unit="s",
            published=row.fitted, recomputed=float(f"{row.least:.3e}"), agrees=row.reachable,
            verdict="reachable" if row.reachable else f"{row.share_of_peak:.1f} times the hardware's peak",
        )  # fmt: skip


def _array(values: list[int]) -> Any:
    import numpy as np

    return np.array(values, dtype=np.float64)
