"""Write what the laboratory's raw files say: ``python -P laboratory/report.py``, at the end of ``make testbed``.

`results.md` has every figure, `predicted-measured.svg` a point per plan. Tests write the page again and compare, and
find the picture's points in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from specopt.views.chart import Chart, Picture, quantity
from testbed.comparison import APART, points_of, quantities
from testbed.engine.loads import ALONE, MIXED
from testbed.engine.results import (
    LENGTHS,
    TABLE,
    acceptance_length,
    mean_throughput,
    predictions,
    read_runs,
    regrets,
    throughput,
)
from testbed.recorded import RecordedDrafts, read_recorded
from testbed.records import read_record
from testbed.studies.clients import clients
from testbed.studies.costs import round_costs
from testbed.studies.quantising import quantising, slope
from testbed.studies.resampling import Interval
from testbed.studies.run_lengths import run_lengths
from testbed.studies.stopping import stopping
from testbed.views.comparison import comparison_of

HERE = Path(__file__).parent

SHARES = ("median_error", "right_order")

Row = dict[str, Any]


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a Markdown table, whose columns are the keys, and an empty one."""
    for line in (list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)):
        yield "| " + " | ".join(map(str, line)) + " |"
    yield ""


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share as text."""
    return "-" if value is None else f"{100 * value:.{digits}f} %"


def share(found: dict[str, Any]) -> str:
    """Return a share and its interval."""
    value, low, high = (found[name] for name in ("value", "low", "high"))
    return "-" if value is None else f"{percent(value)} [{100 * low:.1f}, {100 * high:.1f}]"


def interval(found: Interval) -> str:
    """Return a mean and its interval."""
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


@cache
def records() -> list[Row]:
    """Return the records of plays, in the order of their files."""
    found = [read_record(path) for path in sorted((HERE / "records").glob("*.json"))]
    return [record for record in found if any(trial["measured"] for trial in record["trials"])]


@cache
def comparisons() -> list[Row]:
    """Return what can be said of each record."""
    return [comparison_of(record) for record in records()]


def plays() -> Iterator[str]:
    """Yield predicted against measured, gains, and terms."""
    told = comparisons()
    yield from ("## Predicted against measured", "")
    yield from table(
        [
            {
                "kind": one["kind"],
                "predictor": row["predictor"],
                "quantity": row["quantity"].replace("_", " "),
                "plans": row["points"],
                "median error": share(row["median_error"]),
                "bias": percent(row["bias"]["value"]),
                "pairs apart": row["pairs"],
                "right order": share(row["right_order"]),
            }
            for one in told
            for row in one["summaries"]
        ]
    )
    yield from ("## Gained over the papers' methods", "")
    yield from table(
        [
            {
                "kind": one["kind"],
                "scene": gain["scene"] + 1,
                "plans": gain["label"],
                "ours": gain["ours"],
                "theirs": gain["theirs"],
                "promised": percent(gain["predicted"]),
                "measured, least and most of any two repetitions": share(gain["measured"]),
            }
            for one in told
            for gain in one["gains"]
        ]
    )
    terms = [
        {"plans": label} | {name: percent(value) for name, value in shares.items()}
        for one in told
        for label, shares in one["terms"].items()
    ]
    if terms:
        yield from ("## Where serving latency was missed, as shares of the measured total (medians)", "")
        yield from table(terms)
    yield from ("## Outputs at temperature 0 against plain greedy decoding", "")
    yield from table(
        [
            {
                "kind": one["kind"],
                "outputs": one["differences"]["outputs"],
                "differing": one["differences"]["differing"],
                "widest margin of the two best logits": f"{one['differences']['widest_margin']:.2g}",
            }
            for one in told
            if one["differences"]
        ]
    )


def drafts(log: RecordedDrafts, draft_seconds: float, round_seconds: float) -> Iterator[str]:
    """Yield the studies of recorded drafts."""
    runs = np.unique(np.stack([log.prompt, 10 * log.temperature]), axis=1)
    known = f"{len(log)} drafted positions of {len(np.unique(log.prompt))} prompts in {runs.shape[1]} runs."
    yield from ("## Recorded drafts", "", known, "", "### Acceptance by kind of task, early and late in an answer", "")
    yield from table(
        [
            {
                "kind": one.kind,
                "temperature": one.temperature,
                "acceptance": interval(one.acceptance_rate),
                "rounds 1 to 5": interval(one.early),
                "behind": interval(one.late),
                "drifts": "yes" if one.drifts else "no",
            }
            for one in clients(log)
        ]
    )
    lengths = run_lengths(log)
    yield from ("### Accepted drafts of a round against the geometric law", "")
    yield from table(
        [
            {"temperature": one.temperature, "rounds": one.rounds, "acceptance": interval(one.acceptance_rate)}
            | {f"at {place}": f"{rate:.3f}" for place, rate in enumerate(one.by_position, 1)}
            | {"variance over the law's": f"{one.variance_ratio:.2f}"}
            for one in lengths
        ]
    )
    costs = f"{1000 * draft_seconds:.1f} ms a draft and {1000 * round_seconds:.1f} ms a verification"
    yield from (f"Tokens of a round by the law over those measured, less 1; best lengths at {costs}:", "")
    yield from table(
        [
            {"temperature": one.temperature}
            | {f"l = {length}": percent(error) for length, error in enumerate(one.errors, 1)}
            | {
                "best l": one.best_length(draft_seconds, round_seconds, geometric=False),
                "by the law": one.best_length(draft_seconds, round_seconds, geometric=True),
                "lost by the law": percent(one.lost_by_the_law(draft_seconds, round_seconds)),
            }
            for one in lengths
        ]
    )
    yield from ("### Rejection predictors and stopping, on prompts that nothing was fitted to", "")
    yield from table(
        [
            {
                "temperature": one.temperature,
                "sees history": "yes" if one.knows_history else "no",
                "false alarm": percent(one.false_reject),
                "miss": percent(one.false_accept),
                "area": f"{one.area:.3f}",
                "window": one.window,
                "its tokens/s": f"{one.fixed:.2f}",
                "of the best": f"{one.best_fixed:.2f}",
                "of stopping": f"{one.stopping:.2f}",
                "gain": f"{percent(one.gain.value)} [{100 * one.gain.low:.1f}, {100 * one.gain.high:.1f}]",
                "promised": percent(one.promised),
            }
            for history in (False, True)
            for one in stopping(log, draft_seconds=draft_seconds, round_seconds=round_seconds, knows_history=history)
        ]
    )
    rows = quantising(log)
    yield from ("### Quantised distributions", "")
    yield from table(
        [
            {
                "temperature": one.temperature,
                "resolution": one.resolution,
                "distributions": one.distributions,
                "left out": one.left_out,
                "TV(q, q-hat)": f"{one.distance:.3f}",
                "acceptance": f"{one.acceptance_rate:.3f}",
                "unquantised": f"{one.unquantised_rate:.3f}",
                "our bits": f"{one.bits:.0f}",
                "Eq. 6": one.equation_6_bits,
                "ours shorter": percent(one.shorter, 0),
            }
            for one in rows
        ]
    )
    for temperature in dict.fromkeys(one.temperature for one in rows):
        line = slope([one for one in rows if one.temperature == temperature and one.left_out == 0])
        yield (
            f"At temperature {temperature:g} a unit of distance costs {line.loss:.3f} of acceptance, by a line through "
            "the resolutions from which nothing was left out."
        )
        yield ""


def engine() -> Iterator[str]:
    """Yield what the serving engine measured."""
    for drafter, lengths in LENGTHS.items():
        runs = read_runs(HERE / "engine", drafter)
        fixed = [name for name in runs if name != TABLE]
        if len(fixed) < 1 + len(lengths):
            continue
        means, losses = mean_throughput(runs), regrets(runs)
        yield from (f"## A serving engine, drafts by {drafter}: tokens per processor second on unseen prompts", "")
        yield from table(
            [
                {"K": name}
                | {
                    f"concurrency {load['concurrency']}": f"{throughput(load):.1f}"
                    for load in run["loads"]
                    if load["prompts"] == "unseen"
                }
                | {"geometric mean": f"{means[name]:.1f}", "worst regret": percent(max(losses[name]))}
                for name, run in runs.items()
            ]
        )
        if TABLE in runs:
            config = runs[TABLE]["speculative_config"]["num_speculative_tokens_per_batch_size"]
            best = max(fixed, key=lambda name: means[name])
            yield (
                f"`specopt tune` made `{json.dumps(config)}` of a part. This table yields "
                f"{percent(means[TABLE] / means[best] - 1.0)} more than the best fixed setting, K = {best}, and loses "
                f"{percent(float(np.mean(losses[TABLE])))} on average against the best setting at each concurrency."
            )
        else:
            yield "`specopt tune` made of a part: no speculation."
        yield ""
        yield from (f"Each kind of task on its own, {ALONE} requests at a time, without drafts and with 3:", "")
        yield from table(
            [
                {
                    "kind": plain["workload"],
                    "without": f"{throughput(plain):.1f}",
                    "with 3": f"{throughput(drafted):.1f}",
                    "accepted of a step's drafts": f"{(acceptance_length(drafted) or 1.0) - 1.0:.2f}",
                }
                for plain, drafted in zip(runs["none"]["loads"], runs["3"]["loads"], strict=True)
                if plain["workload"] != MIXED
            ]
        )
        found = predictions(runs)
        for prompts in ("tuning", "unseen"):
            errors = np.array([abs(one.error) for one in found if one.prompts == prompts])
            held = float(np.mean([one.held for one in found if one.prompts == prompts]))
            yield (
                f"{len(errors)} points that tuning did not see, {prompts} prompts: median error of throughput "
                f"{percent(float(np.median(errors)))}, worst {percent(float(errors.max()))}; {percent(held, 0)} lay "
                "within their bands."
            )
            yield ""


def report() -> str:
    """Return the page."""
    latency = next(one for one in records() if one["kind"] == "serving-latency")
    lines = ["# Results", "", "Written by `laboratory/report.py` from the raw files beside it.", "", *plays()]
    lines += [*drafts(read_recorded(HERE / "logs"), *round_costs(latency)), *engine()]
    return "\n".join(lines).rstrip() + "\n"


def figures() -> dict[str, float]:
    """Return what README and documentation say of plays and engine, in percent, by the keys of `docs/figures.json`."""
    found: dict[str, float] = {}
    for told in comparisons():
        base = f"laboratory.{told['kind']}"
        for row in told["summaries"]:
            if row["predictor"] == "passes" and row["quantity"] == "total_seconds":
                found[f"{base}.passes.error"] = row["median_error"]["value"]
        row = _main(told)
        for name in SHARES:
            for part, value in row[name].items():
                if value is not None:
                    found[f"{base}.{name}.{part}"] = value
        gains = [(one["predicted"], one["measured"]["value"]) for one in told["gains"] if one["predicted"] >= APART]
        if gains:
            found[f"{base}.promised"], found[f"{base}.measured"] = np.median(gains, axis=0)
        if over := [one for one in told["gains"] if one["theirs"] == "algorithm-1"]:
            measured = [one["measured"]["value"] for one in over]
            found[f"{base}.algorithm-1.promised"] = max(one["predicted"] for one in over)
            found[f"{base}.algorithm-1.worst"], found[f"{base}.algorithm-1.best"] = min(measured), max(measured)
    errors = [abs(one.error) for drafter in LENGTHS for one in predictions(read_runs(HERE / "engine", drafter))]
    found["laboratory.engine.error"] = float(np.median(errors))
    return {key: round(100.0 * float(value), 1) for key, value in found.items()}


def summary() -> str:
    """Return the table of `docs/laboratory.md`: what the model predicts of each kind, and what our plans gain."""
    known = figures()

    def marked(*keys: str) -> str:
        if keys[0] not in known:
            return "-"
        first, *ends = (f"{known[key]}<!-- ={key} -->" for key in keys)
        return f"{first} %" + (f" [{', '.join(ends)}]" if ends else "")

    rows = []
    for told in comparisons():
        base, row = f"laboratory.{told['kind']}", _main(told)
        error, order = ([f"{base}.{name}.{part}" for part in ("value", "low", "high")] for name in SHARES)
        rows.append(
            {
                "plans of": f"`{told['kind']}`",
                "predicted": row["quantity"].replace("_", " "),
                "plans": row["points"],
                "median error": marked(*error),
                "pairs in the right order": marked(*order),
                "gain promised (5 % or more)": marked(f"{base}.promised"),
                "measured": marked(f"{base}.measured"),
            }
        )
    return "\n".join(table(rows))


def _main(told: Row) -> Row:
    """Return the first quantity that the model predicts."""
    found: Row = next(one for one in told["summaries"] if one["predictor"] == "model")
    return found


def digest() -> str:
    """Return what tells the points of the picture from others."""
    points = [[record["kind"], *quantity, *point] for record, quantity, found in panels() for point in found]
    return hashlib.sha256(json.dumps(points).encode()).hexdigest()


def panels() -> list[tuple[Row, tuple[str, str], list[tuple[float, float]]]]:
    """Return record, predictor and quantity, and the points of every panel of the picture."""
    found = []
    for record in records():
        known = [one for one in quantities(record) if one[0] in ("model", "passes")]
        for predictor in dict.fromkeys(predictor for predictor, _ in known):
            quantity = next(one for one in known if one[0] == predictor)
            points = [(round(one.predicted, 6), round(one.measured, 6)) for one in points_of(record, *quantity)]
            found.append((record, quantity, points))
    return found


def picture() -> Picture:
    """Return predicted against measured, a point per plan."""
    return Picture([_chart(*one) for one in panels()], columns=3, width=260)


def _chart(record: Row, of: tuple[str, str], points: list[tuple[float, float]]) -> Chart:
    rows = [{"predicted": predicted, "measured": measured} for predicted, measured in points]
    values = [value for point in points for value in point]
    ends = [0.9 * min(values), 1.1 * max(values)]
    how = {"scale": {"type": "log", "domain": ends, "nice": False}, "axis": {"format": "~g", "tickCount": 4}}
    words = f"predicted {of[1].replace('_', ' ')}"
    encoding = {"x": quantity("predicted", title=words, **how), "y": quantity("measured", **how)}
    equal = {"values": [{"predicted": end, "measured": end} for end in ends]}
    return Chart(
        title=record["kind"] + (", pass by pass" if of[0] == "passes" else ""),
        rows=rows,
        spec={
            "height": 220,
            "encoding": encoding,
            "layer": [
                {"data": equal, "mark": {"type": "line", "color": "var(--soft)", "strokeDash": [4, 4]}},
                {"mark": {"type": "point", "filled": True, "size": 30}},
            ],
        },
    )


if __name__ == "__main__":
    (HERE / "results.md").write_text(report())
    drawing = HERE / "predicted-measured.svg"
    picture().save(drawing)
    drawing.write_text(f"{drawing.read_text()}<!-- points {digest()} -->\n")
    print(summary())
