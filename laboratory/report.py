"""Write the results of the laboratory's raw files: ``python -P laboratory/report.py``, at the end
of ``make testbed``.

`results.md` contains every figure, and `predicted-measured.svg` has a point per plan. Tests write
the page again and compare it, and find the points of the picture in it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from specopt.instances.sweeps import read_sweeps
from specopt.kinds.chart import Chart, Picture
from specopt.models.load import name_of
from testbed.comparison import APART, quantities
from testbed.engine.loads import ALONE, SEED, all_loads
from testbed.engine.results import (
    LENGTHS,
    TABLE,
    acceptance_length,
    gain,
    gains_of_starts,
    mean_speed,
    mean_throughput,
    mixed,
    predictions,
    read_runs,
    regrets,
    speeds,
    spread,
)
from testbed.engine.validation import BELIEVED, CORRECTING, SECONDS, off_withheld
from testbed.prompts import KINDS, prompts
from testbed.recorded import RecordedDrafts, read_recorded
from testbed.records import newest
from testbed.studies.carried import Carried, carried, repeated
from testbed.studies.clients import clients
from testbed.studies.costs import Costs, round_costs
from testbed.studies.places import Choice, choices
from testbed.studies.quantising import quantising, slope
from testbed.studies.resampling import Interval
from testbed.studies.run_lengths import run_lengths
from testbed.studies.stopping import stopping
from testbed.undrafted import undrafted
from testbed.views.comparison import BAND, chart_of, comparison_of

HERE = Path(__file__).parent

SWEEPS = (
    HERE / "engine" / "ngram.csv",
    HERE.parent / "tests" / "data" / "sweeps" / "qwen3-235b-sglang.csv",
)
"""Sweeps with at least four concurrencies: that of our engine and a published one."""
SHARES = ("median_error", "right_order")
LOGGED = 51
"""Number of prompts of each kind in the logs."""
DRAWN = {"model": "", "passes": ", pass by pass"}
"""Predictors in the picture, and their descriptions in its titles."""
PLACEMENT, VERIFICATION = "placement", "verification-batch"
AGAIN = ("passes", "slowest-rounds", "pass-table", "fitted", "belief")
"""Predictors in addition to the model whose errors the pages state."""
AGAIN_OF = ("total_seconds", "tokens_on_time", "tokens_per_second")
"""The quantities that they predict."""
PLAIN = ("no-batching", "whole", "no-drafts")
"""Baselines that no paper proposes. Gains over them are counted separately."""

Row = dict[str, Any]


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a Markdown table, whose columns are the keys, and an empty line."""
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
    """Return the newest complete record of each kind."""
    return newest(HERE / "records")[0]


@cache
def comparisons() -> list[Row]:
    """Return the comparison of each record."""
    return [comparison_of(record) for record in records()]


def chosen_places() -> list[Choice]:
    """Return the places to draft that the model chose."""
    return [one for record in records() if record["kind"] == PLACEMENT for one in choices(record)]


def recorded() -> Iterator[str]:
    """Yield the sources of the tables, and the records that they exclude."""
    yield from ("## Records", "")
    yield from table(
        [
            {
                "kind": record["kind"],
                "played": record["date"],
                "plans": len(record["trials"]),
                "repetitions of each": record["settings"]["repeats"],
                "processor": record["machine"]["processor"],
                "torch": record["versions"]["torch"],
            }
            for record in records()
        ]
    )
    yield from ("All settings are in the records, and `make testbed` plays the same ones.", "")
    yield from (
        line for left_out in newest(HERE / "records")[1] for line in (f"Left out: {left_out}.", "")
    )


def plays() -> Iterator[str]:
    """Yield predicted and measured values, gains, and terms."""
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
                "separated by repetitions": row["separated"],
                "their order": share(row["separated_order"]),
                "errors by scene": ", ".join(map(percent, row["scene_errors"])),
            }
            for one in told
            for row in one["summaries"]
        ]
    )
    later = [
        f"`{name}` of `{record['kind']}`"
        for record in records()
        for name in record.get("predicted_after_the_plays", ())
    ]
    if later:
        yield from (
            f"Predicted after the plays, from passes that ran between them: {', '.join(later)}.",
            "",
        )
    yield from ("## Without drafts", "")
    yield from table(
        [
            {
                "kind": one.kind,
                "scene": "all" if one.scene is None else one.scene + 1,
                "quantity": one.quantity.replace("_", " "),
                "plans with drafts, worst to best": f"{one.drafted[0]:.2f} to {one.drafted[1]:.2f}",
                "without drafts": (
                    f"{one.undrafted.value:.2f}"
                    + (
                        f" [{one.undrafted.low:.2f}, {one.undrafted.high:.2f}]"
                        if one.undrafted.low > 0.0
                        else ""
                    )
                ),
                "from": one.source,
            }
            for record in records()
            for one in undrafted(record)
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
    chosen = [
        {
            "clients": one.clients,
            "round trip": f"{1000 * one.round_trip_seconds:g} ms",
            "chosen": one.chosen.methods[0],
            "predicted": f"{one.chosen.predicted:.1f}",
            "measured": f"{one.chosen.measured:.1f}",
            "best": one.best.methods[0],
            "its tokens per second": f"{one.best.measured:.1f}",
            "lost": percent(one.lost),
            "choice": one.verdict,
        }
        for one in chosen_places()
    ]
    if chosen:
        yield from ("## Where to draft, chosen by the model and best in fact", "")
        yield from table(chosen)
    terms = [
        {"plans": label} | {name: percent(value) for name, value in shares.items()}
        for one in told
        for label, shares in one["terms"].items()
    ]
    if terms:
        yield from (
            "## Where serving latency was missed, as shares of the measured total (medians)",
            "",
        )
        yield from table(terms)
    yield from ("## Outputs at temperature 0 against plain greedy decoding", "")
    yield from table(
        [
            {
                "kind": one["kind"],
                "outputs": one["differences"]["outputs"],
                "differing": one["differences"]["differing"],
                "widest margin of the two best logits": (
                    f"{one['differences']['widest_margin']:.2g}"
                ),
            }
            for one in told
            if one["differences"]
        ]
    )


def drafts(log: RecordedDrafts, costs: Costs) -> Iterator[str]:
    """Yield the studies of recorded drafts."""
    runs = np.unique(np.stack([log.prompt, 10 * log.temperature]), axis=1)
    known = (
        f"{len(log)} drafted positions of {len(np.unique(log.prompt))} prompts in {runs.shape[1]}"
        " runs."
    )
    yield from (
        "## Recorded drafts",
        "",
        known,
        "",
        "### Acceptance by kind of task, early and late in an answer",
        "",
    )
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
            {
                "temperature": one.temperature,
                "rounds": one.rounds,
                "acceptance": interval(one.acceptance_rate),
            }
            | {f"at {place}": f"{rate:.3f}" for place, rate in enumerate(one.by_position, 1)}
            | {"variance over the law's": f"{one.variance_ratio:.2f}"}
            for one in lengths
        ]
    )
    rounds = ", ".join(f"{1000 * seconds:.1f}" for seconds in costs.by_length)
    yield (
        "Tokens of a round by the law over those measured, less 1; best lengths at"
        f" {1000 * costs.draft_seconds:.1f} ms a draft and {rounds} ms a verification of 0, 1, ..."
        " drafts, as measured; beside them those of a model in which every verification takes what"
        " the longest does:"
    )
    yield ""
    alike = Costs(costs.draft_seconds, costs.round_seconds, (costs.round_seconds,))
    yield from table(
        [
            {"temperature": one.temperature}
            | {f"l = {length}": percent(error) for length, error in enumerate(one.errors, 1)}
            | {
                "best l": one.best_length(costs, geometric=False),
                "by the law": one.best_length(costs, geometric=True),
                "best l, all alike": one.best_length(alike, geometric=False),
                "by the law, all alike": one.best_length(alike, geometric=True),
                "lost by the law": percent(one.lost_by_the_law(alike)),
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
                "without drafts": f"{one.undrafted:.2f}",
                "gain": (
                    f"{percent(one.gain.value)} [{100 * one.gain.low:.1f},"
                    f" {100 * one.gain.high:.1f}]"
                ),
                "promised": percent(one.promised),
            }
            for history in (False, True)
            for one in stopping(log, costs, knows_history=history)
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
            f"At temperature {temperature:g} a unit of distance costs {line.loss:.3f} of"
            " acceptance, by a line through the resolutions from which nothing was left out."
        )
        yield ""


@cache
def engine_runs() -> dict[str, dict[str, Row]]:
    """Return the measurements of the engine by drafter and setting."""
    return {drafter: read_runs(HERE / "engine", drafter) for drafter in LENGTHS}


def ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the minimum and the maximum."""
    return min(values), max(values)


def engine_spread() -> float:
    """Return the differences between repetitions of a load. Runs without speculation, which every
    drafter has, are included once.
    """
    settings = {
        f"{drafter} {name}": run
        for drafter, of in engine_runs().items()
        for name, run in of.items()
    }
    del settings["draft-model none"]
    return spread(settings)


def engine() -> Iterator[str]:
    """Yield the measurements of the serving engine."""
    yield from ("## The engine's threads and prompts", "")
    every = engine_runs()
    yield (
        "Every run had one thread: each load looks at it when it ends. Repetitions of a load are"
        " engines of their own; its throughput differs between them with a standard deviation of"
        f" {percent(engine_spread())}."
    )
    yield ""
    logged = {prompt.text for prompt in prompts(LOGGED, training=False)}
    drawn = [prompt.text for prompt in prompts(2 * len(KINDS), training=False, seed=SEED)]
    asked = {text.text for load in all_loads(alone=True) for text in load.texts}
    yield (
        f"{sum(text in logged for text in drawn)} of the {len(drawn)} prompts that are drawn for it"
        f" are prompts of the logs, and {len(asked & logged)} of the {len(asked)} that it answers."
    )
    yield ""
    for drafter, lengths in LENGTHS.items():
        runs = every[drafter]
        fixed = [name for name in runs if name != TABLE]
        if len(fixed) < 1 + len(lengths):
            continue
        means, losses = mean_throughput(runs), regrets(runs)
        yield from (
            (
                f"## A serving engine, drafts by {drafter}: tokens per processor second on unseen"
                " prompts"
            ),
            "",
        )
        yield from table(
            [
                {"K": name}
                | {
                    f"concurrency {at}": f"{speed:.1f}"
                    for at, speed in speeds(run, "unseen").items()
                }
                | {
                    "geometric mean": f"{means[name]:.1f}",
                    "worst regret": percent(max(losses[name])),
                }
                | {"against none, all prompts": share(vars(gain(run, runs["none"])))}
                | {
                    "by pairs of starts": " to ".join(
                        map(percent, ends(gains_of_starts(run, runs["none"])))
                    )
                }
                for name, run in runs.items()
            ]
        )
        if TABLE in runs:
            config = runs[TABLE]["speculative_config"]["num_speculative_tokens_per_batch_size"]
            best = max(fixed, key=lambda name: means[name])
            yield (
                f"`specopt tune` made `{json.dumps(config)}` of a part. This table yields"
                f" {percent(means[TABLE] / means[best] - 1.0)} more than the best fixed setting, K"
                f" = {best}, and loses {percent(float(np.mean(losses[TABLE])))} on average against"
                " the best setting at each concurrency."
            )
        else:
            yield "`specopt tune` made of a part: no speculation."
        yield ""
        yield from (
            f"Each kind of task on its own, {ALONE} requests at a time, without drafts and with 3:",
            "",
        )
        yield from table(
            [
                {
                    "kind": kind,
                    "without": f"{mean_speed(mixed(runs['none'], 'tuning', kind)):.1f}",
                    "with 3": f"{mean_speed(drafted):.1f}",
                    "accepted of a step's drafts": (
                        f"{(acceptance_length(drafted[0]) or 1.0) - 1.0:.2f}"
                    ),
                }
                for kind in KINDS
                for drafted in [mixed(runs["3"], "tuning", kind)]
            ]
        )
        found = predictions(runs)
        for of in ("tuning", "unseen"):
            errors = np.array([abs(one.error) for one in found if one.prompts == of])
            held = float(np.mean([one.held for one in found if one.prompts == of]))
            yield (
                f"{len(errors)} points that tuning did not see, {of} prompts: median error of"
                f" throughput {percent(float(np.median(errors)))}, worst"
                f" {percent(float(errors.max()))}; {percent(held, 0)} lay within their bands."
            )
            yield ""


def validated() -> Iterator[str]:
    """Yield the errors of a sweep for the server of the engine, uncorrected and as corrected by
    `specopt validate`.
    """
    found = off_withheld(HERE / "engine")
    yield from ("## `specopt validate` against the engine's server", "")
    before, after = (percent(median(of)) for of in found.values())
    yield (
        f"{len(CORRECTING)} loads of {SECONDS} s corrected the sweep `{BELIEVED}`; the others were"
        f" withheld. Their median error is {after}, and {before} without the correction."
    )
    yield ""
    yield from table(
        [
            {
                "requests at a time": concurrency,
                "K": name_of(length),
                **{when: percent(of[concurrency, length]) for when, of in found.items()},
            }
            for concurrency, length in sorted(
                found["after"], key=lambda place: (place[1] or 0, place[0])
            )
        ]
    )


def median(off: dict[tuple[int, int | None], float]) -> float:
    """Return the median absolute value of errors."""
    return float(np.median(np.abs(list(off.values()))))


def capacity() -> Iterator[str]:
    """Yield the errors of the number of clients that a machine can serve, predicted from measured
    sweeps.
    """
    yield from ("## Clients carried, each concurrency withheld in turn", "")
    rows = []
    for name, found in sweeps_carried().items():
        errors, rates = np.abs([(one.error, one.rate_error) for one in found]).T
        rows.append(
            {
                "sweep": name,
                "concurrencies": len({one.point.condition.concurrency for one in found}),
                "points": len(found),
                "median error of clients": percent(float(np.median(errors))),
                "worst": percent(float(errors.max())),
                "median error of tokens per second": percent(float(np.median(rates))),
                "of clients by a repetition, nothing withheld": percent(repetition(name)),
            }
        )
    yield from table(rows)


def repetition(name: str) -> float | None:
    """Return the median error of clients if the same loads are known from another time, or None if
    no load was repeated.
    """
    (path,) = (one for one in SWEEPS if one.name == name)
    found = repeated(read_sweeps([path]))
    return float(np.median(np.abs(found))) if found else None


@cache
def sweeps_carried() -> dict[str, list[Carried]]:
    """Return the points of the sweeps with enough concurrencies, by file name."""
    return {path.name: carried(read_sweeps([path])) for path in SWEEPS}


def report() -> str:
    """Return the page."""
    latency = next(one for one in records() if one["kind"] == "serving-latency")
    lines = [
        "# Results",
        "",
        "Written by `laboratory/report.py` from the raw files beside it.",
        "",
        *recorded(),
        *plays(),
    ]
    lines += [
        *drafts(read_recorded(HERE / "logs"), round_costs(latency)),
        *engine(),
        *validated(),
        *capacity(),
    ]
    return "\n".join(lines).rstrip() + "\n"


def figures() -> dict[str, float]:
    """Return the values for plays and the engine in README and documentation, in percent, by the
    keys of `docs/figures.json`.
    """
    found: dict[str, float] = {}
    for told in comparisons():
        base = f"laboratory.{told['kind']}"
        for row in told["summaries"]:
            if row["predictor"] in AGAIN and row["quantity"] in AGAIN_OF:
                found[f"{base}.{row['predictor']}.error"] = row["median_error"]["value"]
        row = _main(told)
        if told["kind"] in (PLACEMENT, VERIFICATION):
            found[f"{base}.worst_scene"] = max(row["scene_errors"])
        if told["kind"] == VERIFICATION:
            found |= {
                f"{base}.separated_order.{part}": row["separated_order"][part]
                for part in ("value", "low")
            }
        for name in SHARES:
            for part, value in row[name].items():
                if value is not None:
                    found[f"{base}.{name}.{part}"] = value
        for plain, key in ((False, base), (True, f"{base}.plain")):
            gains = _gains(told, plain=plain)
            if gains:
                found[f"{key}.promised"], found[f"{key}.measured"] = np.median(gains, axis=0)
        if over := [one for one in told["gains"] if one["theirs"] == "algorithm-1"]:
            measured = [one["measured"]["value"] for one in over]
            found[f"{base}.algorithm-1.promised"] = max(one["predicted"] for one in over)
            found[f"{base}.algorithm-1.worst"], found[f"{base}.algorithm-1.best"] = (
                min(measured),
                max(measured),
            )
    if lost := [one.lost for one in chosen_places()]:
        found["laboratory.placement.lost"] = max(lost)
    runs = engine_runs()
    off = [abs(one.error) for of in runs.values() for one in predictions(of)]
    found["laboratory.engine.error"] = float(np.median(off))
    for key, drafter, name in (
        ("draft-model", "draft-model", "1"),
        ("ngram", "ngram", "3"),
        ("tuned", "ngram", TABLE),
    ):
        for part, value in vars(gain(runs[drafter][name], runs[drafter]["none"])).items():
            found[f"laboratory.engine.{key}.{part}"] = value
        least, most = ends(gains_of_starts(runs[drafter][name], runs[drafter]["none"]))
        found |= {f"laboratory.engine.{key}.least": least, f"laboratory.engine.{key}.most": most}
    found["laboratory.engine.spread"] = engine_spread()
    if (again := repetition(SWEEPS[0].name)) is not None:
        found["laboratory.carried.repetition"] = again
    found |= {
        f"laboratory.validated.{when}": median(of)
        for when, of in off_withheld(HERE / "engine").items()
    }
    for name, key in ((SWEEPS[0].name, "engine"), (SWEEPS[1].name, "published")):
        found[f"laboratory.carried.{key}"] = float(
            np.median([abs(one.error) for one in sweeps_carried()[name]])
        )
    shares = {key: round(100.0 * float(value), 1) for key, value in found.items()}
    (control,) = (
        one for record in records() for one in undrafted(record) if one.kind == "draft-control"
    )
    speeds = {"best": control.drafted[1], "without": control.undrafted.value}
    return shares | {
        f"laboratory.draft-control.speed.{name}": round(speed, 1) for name, speed in speeds.items()
    }


def summary() -> str:
    """Return the table of `docs/laboratory.md`: the accuracy of the model for each kind, and the
    gain of our plans.
    """
    known = figures()

    def marked(*keys: str) -> str:
        if keys[0] not in known:
            return "-"
        first, *ends = (f"{known[key]}" for key in keys)
        return f"{first} %" + (f" [{', '.join(ends)}]" if ends else "")

    rows = []
    for told in comparisons():
        base, row = f"laboratory.{told['kind']}", _main(told)
        error, order = (
            [f"{base}.{name}.{part}" for part in ("value", "low", "high")] for name in SHARES
        )
        rows.append(
            {
                "problem": f"`{told['kind']}`",
                "predicted quantity": row["quantity"].replace("_", " "),
                "plans": row["points"],
                "median error": marked(*error),
                "pairs in the right order": marked(*order),
                "predicted gain": marked(f"{base}.promised"),
                "measured gain": marked(f"{base}.measured"),
                "predicted gain over plain baselines": marked(f"{base}.plain.promised"),
                "measured gain over them": marked(f"{base}.plain.measured"),
            }
        )
    return "\n".join(table(rows))


def _gains(told: Row, *, plain: bool) -> list[tuple[float, float]]:
    """Return predicted and measured gains if the predicted gain is large, over plain baselines or
    over the others.
    """
    return [
        (one["predicted"], one["measured"]["value"])
        for one in told["gains"]
        if one["predicted"] >= APART and (one["theirs"] in PLAIN) == plain
    ]


def _main(told: Row) -> Row:
    """Return the first quantity that the model predicts."""
    found: Row = next(one for one in told["summaries"] if one["predictor"] == "model")
    return found


def digest() -> str:
    """Return a digest that identifies the points of the picture."""
    points = [[record["kind"], *of, chart.rows] for record, of, chart in panels()]
    return hashlib.sha256(json.dumps(points).encode()).hexdigest()


def panels() -> list[tuple[Row, tuple[str, str], Chart]]:
    """Return record, predictor and quantity of every panel of the picture, which shows the first
    quantity of each predictor.
    """
    found = []
    for record in records():
        known = [one for one in quantities(record) if one[0] in DRAWN]
        for predictor in dict.fromkeys(predictor for predictor, _ in known):
            of = next(one for one in known if one[0] == predictor)
            chart = chart_of(record, of[1], predictor, side=230)
            found.append(
                (record, of, dataclasses.replace(chart, title=record["kind"] + DRAWN[predictor]))
            )
    return found


def picture() -> Picture:
    """Return the picture of predicted and measured values, with one point per plan."""
    charts = [chart for *_, chart in panels()]
    first = f"{charts[0].title} (grey band: within {BAND:.0%})"
    return Picture([dataclasses.replace(charts[0], title=first), *charts[1:]], columns=3, width=230)


if __name__ == "__main__":
    (HERE / "results.md").write_text(report())
    drawing = HERE / "predicted-measured.svg"
    picture().save(drawing)
    drawing.write_text(f"{drawing.read_text()}<!-- points {digest()} -->\n")
    print(summary())
