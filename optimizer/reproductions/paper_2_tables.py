"""What the printed numbers of paper 2 imply of each other: its logs are not public, so nothing else can be recomputed.

Tables 4 and 10 state one confusion matrix in two ways, Tables 5 and 6 state their own gains, Table 7 its own R2, and
Sec. 4.4 and Table 12 two sets of coefficients for one verifier (Qwen3-32B on an A100 80GB).

>>> [row for row in audit("5") if not row.agrees][0].ours
40.4
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from specopt.instances.verification_batch.workload import TABLE_12
from specopt.models.decoder import ExactDecoder
from specopt.models.drafting import per_token_rate, verified_tokens
from specopt.models.verification_time import VerificationTime
from specopt.reproductions.artefact import LEVEL, Artefact, Claim, table
from specopt.reproductions.statements import Finding, Statement, at

QWEN3_32B = ExactDecoder(
    layers=64, hidden=5120, ffn=25600, heads=64, kv_heads=8, head_dim=128, gated=True, vocabulary=151936, tied=False,
    name="Qwen3-32B",
)  # fmt: skip

_BATCHES = (
    ("1 cold request of 150 tokens", [150], [0]),
    ("1 cold request of 600 tokens", [600], [0]),
    ("1 cold request of 2000 tokens", [2000], [0]),
    ("1 warm request, 5 new on 500", [5], [500]),
    ("8 warm requests, 5 new on 500", [5] * 8, [500] * 8),
    ("8 warm requests, 5 new on 2000", [5] * 8, [2000] * 8),
)


def audit(number: str) -> Iterator[Finding]:
    """Yield what other printed numbers make of those of Table 4, 5, 6, 7 or 12."""
    return _AUDITS[number]()


def _row(said: Statement, low: float, high: float, digits: int, note: str = "") -> Finding:
    """Return a row from the interval that rounded inputs leave to a number."""
    half = 0.5 * 10.0**-digits * (1.0 + 1e-9)
    agrees = low - half <= said.printed <= high + half
    note = "agrees" if agrees else note or "does not follow from the numbers beside it"
    return Finding(said, round(0.5 * (low + high), digits), _word(agrees), note)


def _word(agrees: bool) -> str:
    return "agrees" if agrees else "differs"


def _derived(place: str, statement: str, printed: float, unit: str) -> Statement:
    """Return what is printed only between the lines."""
    return Statement(place=place, statement=statement, printed=printed, unit=unit)


def _table_4() -> Iterator[Finding]:
    """Table 4 from the counts of Table 10; both state the validation set of App. B."""
    counts = {said.given["predictor"]: said.printed for said in at("paper-2", "Table 10")}
    for said in at("paper-2", "Table 4"):
        tn, fp, fn, tp = counts[said.given["predictor"]]
        recall, specificity = tp / (tp + fn), tn / (tn + fp)
        ours = {
            "accuracy": (tp + tn) / (tn + fp + fn + tp),
            "recall of accepted tokens": recall,
            "specificity": specificity,
            "false-accept rate": 1.0 - specificity,
            "balanced accuracy": 0.5 * (recall + specificity),
        }[said.given["measure"]]
        slack = 5e-5 if said.given["measure"] == "balanced accuracy" else 0.0  # the mean of two rounded rates
        yield _row(said, ours - slack, ours + slack, 4)
    rejected = {tn + fp for tn, fp, _, _ in counts.values()}
    one_set = len(rejected) == len({sum(each) for each in counts.values()}) == 1
    yield Finding(
        _derived("Table 10", "first rejections among the MLP's tokens and the trees'", 160.0, "tokens"),
        float(max(rejected)), _word(one_set),
        "the MLP was judged on other tokens than the trees: 160 first rejections of 723, not 178 of 724",
    )  # fmt: skip


def _gain(said: Statement) -> tuple[float, float, float]:
    """Return the gain in percent that follows from two rounded numbers, and its ends."""
    off, on = said.given["off"], said.given["on"]
    low, high = (on - 0.005) / (off + 0.005), (on + 0.005) / (off - 0.005)
    return 100.0 * (low - 1.0), 100.0 * (on / off - 1.0), 100.0 * (high - 1.0)


def _table_5() -> Iterator[Finding]:
    for said in at("paper-2", "Table 5"):
        low, middle, high = _gain(said)
        agrees = low - 0.05 - 1e-9 <= said.printed <= high + 0.05 + 1e-9
        note = f"the rates beside it give {middle:.1f} %"
        note += ", within their rounding" if agrees else f"; their rounding allows {low:.1f} to {high:.1f} %"
        exact = agrees and abs(said.printed - middle) <= 1.0
        yield Finding(said, round(middle, 1), _word(agrees), "agrees" if exact else note)
    for said in at("paper-2", "Table 5"):
        off = said.given["off"]
        fraction, as_per_token = verified_tokens(off, 8, rate="fraction"), verified_tokens(off, 8)
        what = f"{said.given['draft']}: tokens per round if its rate is a fraction, window 8"
        yield Finding(
            _derived("Table 5", what, round(fraction, 2), "tokens"), round(as_per_token, 2), "differs",
            f"a fraction, not a per-token rate: as one it would give {as_per_token:.2f}; the per-token rate behind it "
            f"is {per_token_rate(off, 8):.2f} if the window is 8 (the paper gives none)",
        )  # fmt: skip


def _table_6() -> Iterator[Finding]:
    gains = list(at("paper-2", "Table 6"))
    for said in gains:
        low, _, high = _gain(said)
        yield _row(said, low, high, 2)
    (few, off), (many, more) = ((said.given["devices"], said.given["off"]) for said in gains[1:3])
    what = f"goodput without predictor, {many} devices over {few}"
    yield Finding(
        _derived("Table 6", what, many / few, "x"), round(more / off, 2), _word(more / off <= many / few),
        "goodput grows faster than the number of devices, although they share one verifier; not explained",
    )  # fmt: skip


def _table_7() -> Iterator[Finding]:
    for said in at("paper-2", "Table 7"):
        given = said.given
        if "r2" in given:
            n = given["samples"]
            low, high = (1.0 - (1.0 - (given["r2"] + step)) * (n - 1) / (n - 4) for step in (-5e-4, 5e-4))
            yield _row(said, low, high, 3)
        elif "mae" in given:
            ordered = given["mae"] <= said.printed <= given["worst"] <= said.printed * given["samples"] ** 0.5
            yield Finding(said, said.printed, _word(ordered), "possible" if ordered else "impossible")
        else:
            note = said.note or "the text gives another figure than the table"
            yield _row(said, given["text"], given["text"], given["digits"], note)


def _table_12() -> Iterator[Finding]:
    from specopt.instances.runtimes.hardware import A100_80GB, least_seconds, roofline

    coefficients = list(at("paper-2", "Table 12"))
    for said in coefficients:
        one, other = said.printed, said.given["text"]
        note = f"the two differ by a factor of {max(one, other) / min(one, other):.1f}"
        yield Finding(said, other, "differs", note)
    in_the_text = {said.given["field"]: said.given["text"] for said in coefficients}
    section_4 = VerificationTime(overhead_seconds=0.0, **in_the_text)  # Sec. 4.4 prints no constant
    for name, new, cached in _BATCHES:
        lengths = np.array(new, dtype=np.float64), np.array(cached, dtype=np.float64)
        one, other = TABLE_12.seconds(*lengths), section_4.seconds(*lengths)
        least = least_seconds(QWEN3_32B, A100_80GB, new, cached)
        beaten = [where for value, where in ((one, "Table 12"), (other, "Sec. 4.4")) if value < least]
        beats = f"; impossible: {' and '.join(beaten)}" if beaten else ""
        constant = " (no constant printed)" if "Sec. 4.4" in beaten else ""
        yield Finding(
            _derived("Table 12", f"{name}: time here and by Sec. 4.4", round(1e3 * one, 2), "ms"),
            round(1e3 * other, 2), "differs",
            f"Sec. 4.4 is {other / one:.2f} times Table 12; one A100 needs {1e3 * least:.1f} ms at least"
            f"{beats}{constant}",
        )  # fmt: skip
    for row in roofline(TABLE_12, QWEN3_32B, A100_80GB):
        yield Finding(
            _derived("Table 12", f"{row.name} and the least that one A100 reaches", row.fitted, "s"),
            float(f"{row.least:.3e}"), _word(row.reachable),
            "reachable" if row.reachable else f"{row.share_of_peak:.1f} times the hardware's peak",
        )  # fmt: skip


_AUDITS = {"4": _table_4, "5": _table_5, "6": _table_6, "7": _table_7, "12": _table_12}

# ---------------------------------------------------------------------------- claims and verdicts

TITLES = {
    "table-4": "Predictors of rejection, against the counts of Table 10",
    "table-5": "Gain in acceptance, against the rates beside it",
    "table-6": "Gain in goodput, against the figures beside it",
    "table-7": "Quality of the verification-time estimator, against the text",
    "table-12": "Coefficients of the estimator, against Sec. 4.4 and the hardware",
}
_REMARKS = {
    "5": " The acceptance rates can only be fractions of the drafted tokens, not rates per token.",
    "6": " Goodput more than doubles from 4 to 8 devices that share one verifier.",
    "12": " Coefficients are therefore inputs here, and a fit flags those that the hardware cannot reach.",
}


def recomputed(name: str) -> Artefact:
    """Return a table of `TITLES`: what its printed numbers make of each other."""
    number = name.removeprefix("table-")
    found = list(audit(number))
    return Artefact(
        name=name, title=TITLES[name],
        rows=table(
            "table quantity unit published recomputed agrees what_follows",
            (
                (said.place, said.statement, said.unit, said.printed, row.ours, "yes" if row.agrees else "no", row.note)
                for row in found
                for said in [row.said]
            ),
        ),
        claims=tuple(_CLAIMS.get(number, _all_follow)(found)),
        remark="Recomputed from the printed numbers alone; the measurements behind them are not public."
        + _REMARKS.get(number, ""),
    )  # fmt: skip


def _all_follow(rows: Sequence[Finding]) -> Iterator[Claim]:
    """Yield that most printed numbers follow from the others, and each one that does not."""
    printed = [row for row in rows if "if its rate is a fraction" not in row.said.statement]  # a reading, not printed
    wrong = [row for row in printed if not row.agrees]
    yield Claim(
        "at least half of the printed numbers follow from those beside them", 2 * len(wrong) <= len(printed),
        f"{len(printed) - len(wrong)} of {len(printed)}",
    )  # fmt: skip
    for row in wrong:
        said, unit = row.said, f" {row.said.unit}" if row.said.unit else ""
        yield Claim(
            f"{said.statement}: {row.note}", False, f"{row.ours:g}{unit}", f"{said.printed:g}{unit}", essential=False
        )


def _two_sets(rows: Sequence[Finding]) -> Iterator[Claim]:
    """Yield that Sec. 4.4 and Table 12 agree, and that the hardware can do what they say."""
    ratios = [row.ratio for row in rows if row.said.statement.endswith("by Sec. 4.4")]
    yield Claim(
        "Sec. 4.4 and Table 12 give the same time for a batch",
        max(ratios) <= 1.0 + LEVEL and min(ratios) >= 1.0 - LEVEL, f"{min(ratios):.2f} to {max(ratios):.2f} times",
    )  # fmt: skip
    impossible = [row for row in rows if "; impossible" in row.note]
    yield Claim(
        "no time is below what one A100 needs at least", not impossible,
        f"{len(impossible)} of {len(ratios)} batches are",
    )  # fmt: skip
    for row in rows:
        coefficient, reaches, _ = row.said.statement.partition(" and the least that one A100 reaches")
        if reaches:
            yield Claim(
                f"{coefficient} is within an A100's reach", row.agrees, f"at least {row.ours:.3g} s",
                f"{row.said.printed:.3g} s", essential=False,
            )  # fmt: skip


_CLAIMS: Mapping[str, Callable[[Sequence[Finding]], Iterator[Claim]]] = {"12": _two_sets}
