"""Paper 5: Figures 3 and 4 on synthetic clients; settings, assumptions and findings are in `paper_5_simulation`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from specopt.reproductions.artefact import Artefact, Claim, table, within
from specopt.reproductions.paper_5_simulation import ROUNDS, SETTINGS, Reproduction, run_settings
from specopt.reproductions.selection import Say
from specopt.views.canvas import COLOURS
from specopt.views.panels import Bars, Line, Panel, draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPLICATIONS = 10
"""Runs per seed."""

FLAT_AFTER, EXPLORED_AFTER = 400, 20
"""Rounds after which the utility is flat, as printed, and after which curves are compared."""

FLAT = 0.03
"""Change of the utility, a sum of logarithms, that counts as none."""

FIGURES = ("figure-3", "figure-4")
_COLOURS = {"Algorithm 1": COLOURS[0], "robust": COLOURS[2], "Fixed-S": COLOURS[6], "Random-S": COLOURS[1]}
_PARTS = {"receiving": COLOURS[0], "verification": COLOURS[6], "sending": COLOURS[1]}


def reproduce(names: Sequence[str], *, seeds: int, quick: bool, say: Say) -> Iterator[Artefact]:
    """Compute figures again, both from the same simulations; a seed is ten replications.

    Quick versions have one replication and two settings.
    """
    say("simulating all settings and policies")
    settings = SETTINGS[:2] if quick else SETTINGS
    found = run_settings(settings=settings, replications=1 if quick else REPLICATIONS * seeds)
    for one in names:
        yield _figure_3(found) if one == "figure-3" else _figure_4(found)


def _figure_3(found: Reproduction) -> Artefact:
    eight = [setting.name for setting in SETTINGS if setting.clients == 8 and setting.name in found.optimum]
    whole = {
        reading: {
            policy: [sum(data[name][policy].values()) / sum(data[name]["Fixed-S"].values()) for name in eight]
            for policy in data[eight[0]]
        }
        for reading, data in (("round", found.seconds_per_round), ("token", found.seconds_per_token))
    }
    ours, random = (whole["round"][policy] + whole["token"][policy] for policy in ("Algorithm 1", "Random-S"))
    sending = [
        parts["sending"] / sum(parts.values()) for name in eight for parts in found.seconds_per_round[name].values()
    ]
    verification = [
        found.seconds_per_token[name]["Algorithm 1"]["verification"]
        / found.seconds_per_token[name]["Fixed-S"]["verification"]
        - 1.0
        for name in eight
    ]
    receiving = [
        found.seconds_per_round[name][policy]["receiving"] / found.seconds_per_round[name]["Fixed-S"]["receiving"]
        for name in eight
        for policy in ("Algorithm 1", "Random-S")
    ]
    claims = (
        Claim(
            "Algorithm 1 takes about as long as Fixed-S",
            any(all(within(ratio, 1.0) for ratio in data["Algorithm 1"]) for data in whole.values()),
            f"{_range(whole['round']['Algorithm 1'])} times per round, "
            f"{_range(whole['token']['Algorithm 1'])} per token", "comparable",
        ),
        Claim("Random-S takes longer than Fixed-S", min(random) > 1.0, f"{_range(random)} times"),
        Claim(
            "by as much as printed", all(0.05 <= ratio - 1.0 <= 0.25 for ratio in whole["round"]["Random-S"]),
            f"{_range([100.0 * (ratio - 1.0) for ratio in whole['round']['Random-S']])} % per round", "5 to 25 %",
            essential=False,
        ),
        Claim(
            "receiving takes longer under Algorithm 1 and Random-S than under Fixed-S", min(receiving) > 1.0,
            f"{_range(receiving)} times",
        ),
        Claim(
            "sending is a negligible part", max(sending) < 0.01, f"at most {100.0 * max(sending):.2g} %", "below 0.1 %",
        ),
        Claim(
            "Algorithm 1 spends less time on verification than Fixed-S", max(verification) < 0.0,
            f"{_range([-100.0 * change for change in verification])} % less per token", "5 % less",
        ),
    )  # fmt: skip
    rows = [
        {"setting": name, "policy": policy, "reading": reading, **parts, "total": sum(parts.values())}
        for reading, data in (("per round", found.seconds_per_round), ("per token", found.seconds_per_token))
        for name in data
        for policy, parts in data[name].items()
    ]
    share = max(ours) - 1.0
    return Artefact(
        name="figure-3", title="Where the time of a round goes", rows=rows, claims=claims,
        remark="Claims are checked on the settings of 8 clients, as in the figure. A fair schedule gives some client "
        f"far more than C / N drafts, and a round waits for it: up to {100 * share:.0f} % longer here. Equal times "
        "would need drafting to hardly matter in a round. All times are assumed, that of sending above all; times per "
        "token are divided by the tokens of all clients.",
        draw=lambda: draw_figure_3(found),
    )  # fmt: skip


def _figure_4(found: Reproduction) -> Artefact:
    ours = {name: curves["Algorithm 1"] for name, curves in found.utility.items()}
    changes = [float(np.ptp(curve[FLAT_AFTER:])) for curve in ours.values()]
    leads = [
        float((ours[name] - curves[baseline])[EXPLORED_AFTER:].min())
        for name, curves in found.utility.items()
        for baseline in ("Fixed-S", "Random-S")
    ]
    risen = [float((curve[50] - curve[0]) / (curve[-1] - curve[0])) for curve in ours.values()]
    gaps = {policy: [found.gaps[name][policy] for name in found.gaps] for policy in ("Algorithm 1", "robust")}
    claims = (
        Claim(
            f"the utility is stable from round {FLAT_AFTER} on", max(changes) < FLAT,
            f"moves by {max(changes):.3f} at most",
        ),
        Claim(
            f"Algorithm 1 is above Fixed-S and Random-S in every round from {EXPLORED_AFTER} on", min(leads) > 0.0,
            f"by {min(leads):.3f} at least",
        ),
        Claim(
            "its utility rises steadily until about then", max(risen) < 0.9,
            f"{_range([100.0 * share for share in risen])} % of the rise by round 50", essential=False,
        ),
        Claim(
            "it converges to the optimum", max(gaps["Algorithm 1"]) < 0.01,
            f"short of it by {_range(gaps['Algorithm 1'])}; 'robust' by {_range(gaps['robust'])}", essential=False,
        ),
    )  # fmt: skip
    rows = table(
        "setting policy round utility optimum",
        (
            (name, policy, t, float(curve[t - 1]), found.optimum[name])
            for name, curves in found.utility.items()
            for policy, curve in curves.items()
            for t in (1, 2, 5, *range(10, ROUNDS + 1, 10))
        ),
    )
    return Artefact(
        name="figure-4", title="Utility of the mean goodput over the rounds", rows=rows, claims=claims,
        remark="With beta = 0.5, as printed, the noise of single rounds stays in the gradient, which keeps Algorithm 1 "
        "short of the optimum for good; 'robust' takes expected goodput instead. Where rates hardly differ and N "
        "divides C, Fixed-S is better than Algorithm 1.",
        draw=lambda: draw_figure_4(found),
    )  # fmt: skip


def _range(values: list[float]) -> str:
    return f"{min(values):.3g} to {max(values):.3g}"


def draw_figure_4(found: Reproduction) -> Figure:
    """Return the utility over the rounds, one panel per setting."""
    panels: list[Panel] = []
    for setting, curves in found.utility.items():
        optimum, rounds = found.optimum[setting], np.arange(1, 1 + len(next(iter(curves.values()))))
        low = min(float(curve[len(curve) // 20 :].min()) for curve in curves.values())
        lines = [Line(x=rounds, y=one, style="-", colour=_COLOURS[name], label=name) for name, one in curves.items()]
        last, first = len(panels) + 1 == len(found.utility), not panels
        panels.append(
            Panel(
                title=setting, x="round T", y="utility of the mean goodput" if first else "",
                marks=[*lines, Line(x=rounds[[0, -1]], y=(optimum, optimum), style=":", label="optimum")],
                y_range=(low - 0.4 * (optimum - low), optimum + 0.1 * (optimum - low)),
                legend="beside" if last else "none",
            )
        )  # fmt: skip
    return draw(*panels, size=(1.0 + 2.9 * len(panels), 3.1))


def draw_figure_3(found: Reproduction) -> Figure:
    """Return where the time goes: per round on the left, per token on the right."""
    panels: list[Panel] = []
    for reading, data in (("per round", found.seconds_per_round), ("per token", found.seconds_per_token)):
        rows = [f"{setting}: {policy}" for setting in data for policy in data[setting]]
        shares = [
            {part: seconds / sum(policies["Fixed-S"].values()) for part, seconds in parts.items()}
            for policies in data.values()
            for parts in policies.values()
        ]
        start, marks = np.zeros(len(rows)), list[Bars | Line]()
        for part, colour in _PARTS.items():
            widths = np.array([share[part] for share in shares])
            marks.append(
                Bars(places=range(len(rows)), lengths=widths, start=start, colour=colour, label=part, across=True)
            )
            start = start + widths
        marks.append(Line(x=(1.0, 1.0), y=(-0.6, len(rows) - 0.4), style=":"))
        legend = "beside" if panels else "none"
        panels.append(Panel(title=f"Wall time {reading}", x="Fixed-S = 1", marks=marks, rows=rows, legend=legend))  # type: ignore[arg-type]
    return draw(*panels, size=(10.0, 0.9 + 1.1 * len(found.optimum)), share_y=True)
