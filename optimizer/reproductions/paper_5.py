"""Paper 5: Figures 3 and 4 on synthetic clients; settings, assumptions and findings are in `paper_5_simulation`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.reproductions.artefact import LEVEL, Artefact, Claim, Value
from specopt.reproductions.paper_5_pictures import figure_3, figure_4
from specopt.reproductions.paper_5_simulation import ROUNDS, SETTINGS, Reproduction, run_settings
from specopt.reproductions.selection import Say, select

REPLICATIONS = 10
"""Runs per seed."""

FLAT_AFTER, EXPLORED_AFTER = 400, 20
"""Rounds after which the utility is flat, as printed, and after which curves are compared."""

FLAT = 0.03
"""Change of the utility, a sum of logarithms, that counts as none."""

_NAMES = ("figure-3", "figure-4")


def figures() -> tuple[str, ...]:
    """Return the names of the figures."""
    return _NAMES


def reproduce(
    name: str | None = None, *, seeds: int = 5, quick: bool = False, say: Say = lambda _: None
) -> Iterator[Artefact]:
    """Compute figures again, both from the same simulations.

    Parameters
    ----------
    name
        A figure, or the beginning of its name; None: both.
    seeds
        Tens of replications that are averaged, at least 1.
    quick
        One replication and two settings.
    say
        Told what is going on.

    Raises
    ------
    InvalidInput
        If there is no such figure, or too few seeds.
    """
    if seeds < 1:
        raise InvalidInput(f"seeds: expected at least 1, got {seeds}")
    chosen = select(_NAMES, name)
    say("simulating all settings and policies")
    settings = SETTINGS[:2] if quick else SETTINGS
    found = run_settings(settings=settings, replications=1 if quick else REPLICATIONS * seeds)
    for one in chosen:
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
            text="Algorithm 1 takes about as long as Fixed-S", printed="comparable",
            measured=f"{_range(whole['round']['Algorithm 1'])} times per round, "
            f"{_range(whole['token']['Algorithm 1'])} per token",
            holds=all(abs(ratio - 1.0) <= LEVEL for ratio in whole["round"]["Algorithm 1"])
            or all(abs(ratio - 1.0) <= LEVEL for ratio in whole["token"]["Algorithm 1"]),
        ),
        Claim(
            text="Random-S takes longer than Fixed-S", measured=f"{_range(random)} times", holds=min(random) > 1.0
        ),
        Claim(
            text="by as much as printed", printed="5 to 25 %",
            measured=f"{_range([100.0 * (ratio - 1.0) for ratio in whole['round']['Random-S']])} % per round",
            holds=all(0.05 <= ratio - 1.0 <= 0.25 for ratio in whole["round"]["Random-S"]), essential=False,
        ),
        Claim(
            text="receiving takes longer under Algorithm 1 and Random-S than under Fixed-S",
            measured=f"{_range(receiving)} times", holds=min(receiving) > 1.0,
        ),
        Claim(
            text="sending is a negligible part", printed="below 0.1 %",
            measured=f"at most {100.0 * max(sending):.2g} %", holds=max(sending) < 0.01,
        ),
        Claim(
            text="Algorithm 1 spends less time on verification than Fixed-S", printed="5 % less",
            measured=f"{_range([-100.0 * change for change in verification])} % less per token",
            holds=max(verification) < 0.0,
        ),
    )  # fmt: skip
    rows: list[dict[str, Value]] = [
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
        draw=lambda: figure_3(found),
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
            text=f"the utility is stable from round {FLAT_AFTER} on", measured=f"moves by {max(changes):.3f} at most",
            holds=max(changes) < FLAT,
        ),
        Claim(
            text=f"Algorithm 1 is above Fixed-S and Random-S in every round from {EXPLORED_AFTER} on",
            measured=f"by {min(leads):.3f} at least", holds=min(leads) > 0.0,
        ),
        Claim(
            text="its utility rises steadily until about then",
            measured=f"{_range([100.0 * share for share in risen])} % of the rise by round 50",
            holds=max(risen) < 0.9, essential=False,
        ),
        Claim(
            text="it converges to the optimum",
            measured=f"short of it by {_range(gaps['Algorithm 1'])}; 'robust' by {_range(gaps['robust'])}",
            holds=max(gaps["Algorithm 1"]) < 0.01, essential=False,
        ),
    )  # fmt: skip
    rows: list[dict[str, Value]] = [
        {"setting": name, "policy": policy, "round": t, "utility": float(curve[t - 1]), "optimum": found.optimum[name]}
        for name, curves in found.utility.items()
        for policy, curve in curves.items()
        for t in (1, 2, 5, *range(10, ROUNDS + 1, 10))
    ]
    return Artefact(
        name="figure-4", title="Utility of the mean goodput over the rounds", rows=rows, claims=claims,
        remark="With beta = 0.5, as printed, the noise of single rounds stays in the gradient, which keeps Algorithm 1 "
        "short of the optimum for good; 'robust' takes expected goodput instead. Where rates hardly differ and N "
        "divides C, Fixed-S is better than Algorithm 1.",
        draw=lambda: figure_4(found),
    )  # fmt: skip


def _range(values: list[float]) -> str:
    return f"{min(values):.3g} to {max(values):.3g}"
