"""Figures 2-4 of paper 5 on synthetic clients: estimates, parts of the time of a round, and
convergence of the utility.

Synthetic clients have fixed, evenly spaced acceptance rates, where the paper uses prompts of eight
data sets. In addition, the laboratory's real pair generates texts of eight kinds of task. The way
in which Fixed-S and Random-S share the budget is an assumption. Wall times are reported per round,
and per token of all clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from papers.audit import follows
from papers.experiment import Curves, Experiment, Found, Point
from papers.laboratory import real
from papers.replay import Replay, replay, texts
from specopt.models.fair_goodput.workload import GoodputWorkload
from specopt.models.fields import Floats, Ints
from specopt.solvers.fair_goodput.policies import Gradient
from specopt.solvers.fair_goodput.simulate import simulate

ROUNDS, SETTLED, LONG = 600, 700, 6000
POLICIES = ("GoodSpeed", "Fixed-S", "Random-S")
BETA = 0.5
WINDOW = 10
"""Number of rounds of the moving average of Figure 2."""

_L4 = 300e9  # bytes per second


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A row of Table I.

    Parameters
    ----------
    name
        Name in the figures.
    clients
        Number N of clients.
    budget_tokens
        Budget C.
    draft_bytes
        Bytes of the weights of the draft models, which the clients use in turn.
    verify_scale
        Time of a pass of the target model relative to Qwen3-14B.
    """

    name: str
    clients: int
    budget_tokens: int
    draft_bytes: tuple[float, ...] = (1.5e9, 4.1e9)  # Qwen3-0.6B and 1.7B in 16 bits
    verify_scale: float = 1.0

    def rates(self, point: Point) -> Floats:
        """Return the acceptance rates of the clients."""
        return np.linspace(point["lowest_rate"], point["highest_rate"], self.clients)


SETTINGS = (
    Setting(name="Qwen3, N = 4, C = 24", clients=4, budget_tokens=24, draft_bytes=(1.5e9,)),
    Setting(name="Qwen3, N = 8, C = 16", clients=8, budget_tokens=16),
    Setting(name="Qwen3, N = 8, C = 20", clients=8, budget_tokens=20),
    Setting(
        name="Llama3, N = 8, C = 20",
        clients=8,
        budget_tokens=20,
        draft_bytes=(2.5e9, 6.4e9),
        verify_scale=2.0,
    ),
)
EIGHT = SETTINGS[1:]


def _policy(point: Point) -> Gradient:
    return Gradient(
        smoothing=BETA,
        estimate_smoothing=point["eta"],
        initial_estimate=point.get("initial_estimate", 0.5),
        initial_goodput=point.get("initial_goodput", 1.0),
    )


def baseline(
    name: str, clients: int, budget: int, point: Point, random: np.random.Generator
) -> Ints:
    """Return the drafts of Fixed-S or Random-S by round and client."""
    size = (ROUNDS, clients)
    if name == "Fixed-S":
        odd = budget % clients if point["fixed_s"] == "C / N in the mean" else 0
        turns = (
            np.arange(clients) + odd * np.arange(ROUNDS)[:, None]
        ) % clients  # the clients take turns with the remaining tokens
        return budget // clients + (turns < odd)
    if point["random_s"] == "every token to a random client":
        return random.multinomial(budget, np.full(clients, 1.0 / clients), size=ROUNDS)
    drafts = random.integers(0, 2 * budget // clients, size=size, endpoint=True)
    while len(over := np.flatnonzero(drafts.sum(axis=1) > budget)):
        drafts[over, (random.uniform(size=size) * (drafts > 0)).argmax(axis=1)[over]] -= 1
    return drafts


def _play(
    setting: Setting, name: str, point: Point, seeds: Sequence[int], rounds: int = ROUNDS
) -> Replay:
    """Simulate GoodSpeed, Fixed-S or Random-S."""
    clients, budget = setting.clients, setting.budget_tokens
    synthetic = "temperature" not in point
    rates = (
        list(setting.rates(point)[:, None]) if synthetic else texts(point["temperature"])[:clients]
    )
    policy: Gradient | Ints = _policy(point)
    if name != POLICIES[0]:
        policy = baseline(name, clients, budget, point, np.random.default_rng(seeds[0]))
    return replay(rates, budget, policy, seeds=seeds, rounds=rounds)


def printed(_: Point, __: Sequence[int]) -> Found:
    """Return the numbers that follow from other printed numbers."""
    return Found(
        {
            "table-1": follows(6.0, min(one.budget_tokens for one in EIGHT)),
            "sec-4.iterations": follows(600.0, 300 / BETA),
        }
    )


def figure_2(point: Point, seeds: Sequence[int]) -> Found:
    """Compare the smoothed with the real goodput of the whole system."""
    values: dict[str, list[float]] = {"aligned": [], "level": [], "band": []}
    curves = {}
    for setting in EIGHT[1:]:
        run = _play(setting, POLICIES[0], point, seeds)
        real = np.diff(run.realised.sum(axis=2), axis=1, prepend=0.0)
        smoothed = np.empty_like(real)
        state = np.full(len(real), float(setting.clients))  # X(0) = 1 for each client
        for t, now in enumerate(real.T):
            state = (1.0 - BETA) * state + BETA * now  # Eq. 4, summed over clients
            smoothed[:, t] = state
        average = partial(
            np.apply_along_axis, lambda row: np.convolve(row, np.ones(WINDOW) / WINDOW, "valid"), 1
        )
        one, other = average(smoothed), average(real)
        spread = np.sqrt(np.maximum(0.0, average(real**2) - other**2))
        values["aligned"].append(
            float(np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(one, other, strict=True)]))
        )
        values["level"].append(float(np.sqrt(np.mean((one - other) ** 2)) / other.mean()))
        values["band"].append(float(np.mean(np.abs(real[:, WINDOW - 1 :] - other) <= spread)))
        at = range(WINDOW, ROUNDS + 1)
        curves[f"figure-2 {setting.name}"] = Curves(
            "round",
            "tokens per round of all clients",
            at,
            {"estimated": one[0].tolist(), "real": other[0].tolist()},
        )
    worst = {"aligned": min, "level": max, "band": min}
    return Found({f"figure-2.{name}": worst[name](each) for name, each in values.items()}, curves)


def _round(setting: Setting, run: Replay, point: Point) -> tuple[Floats, float]:
    """Return the mean seconds of receiving, verification and sending in a round, and the tokens of
    all clients.
    """
    drafts = run.allocations
    each = point["draft_scale"] * np.resize(np.array(setting.draft_bytes) / _L4, setting.clients)
    receiving = (drafts * each).max(axis=2) + 1e-3 * point["network_ms"]
    verification = 1e-3 * (
        setting.verify_scale * point["verify_ms"] + point["verify_token_ms"] * drafts.sum(axis=2)
    )
    tokens = float(run.realised[:, -1].sum(axis=1).mean()) / drafts.shape[1]
    return np.array([receiving.mean(), verification.mean(), 1e-6 * point["send_us"]]), tokens


def figure_3(point: Point, seeds: Sequence[int]) -> Found:
    """Compare the parts of the time of a round in the settings with 8 clients."""
    rounds: dict[str, list[Floats]] = {name: [] for name in POLICIES}
    tokens: dict[str, list[float]] = {name: [] for name in POLICIES}
    for setting in EIGHT:
        for name in POLICIES:
            seconds, yielded = _round(setting, _play(setting, name, point, seeds), point)
            rounds[name].append(seconds)
            tokens[name].append(yielded)
    parts = {name: np.array(each) for name, each in rounds.items()}  # by setting and part
    per_token = {name: each / np.array(tokens[name])[:, None] for name, each in parts.items()}

    def over(data: dict[str, Floats], name: str, other: str) -> Floats:
        return np.asarray(data[name].sum(axis=1) / data[other].sum(axis=1))

    whole = over(parts, "GoodSpeed", "Fixed-S")
    random = 100.0 * (over(parts, "Random-S", "Fixed-S") - 1.0)
    slower = {name: float(over(per_token, "GoodSpeed", name).max()) for name in POLICIES[1:]}
    saved = 100.0 * (1.0 - per_token["GoodSpeed"][:, 1] / per_token["Fixed-S"][:, 1])
    values = {
        "figure-3.whole": float(whole[np.argmax(np.abs(whole - 1.0))]),
        "figure-3.token": slower["Fixed-S"],
        "sec-1.latency": 1.0 - max(slower.values()),
        "figure-3.random": float(random.min()),
        "figure-3.random-most": float(random.max()),
        "figure-3.sending": 100.0
        * max(float((each[:, 2] / each.sum(axis=1)).max()) for each in parts.values()),
        "figure-3.verification": float(saved.min()),
        "figure-3.verification-level": float(saved.mean()),
    }
    stages = ("receiving", "verification", "sending")
    return Found(
        values,
        {
            f"figure-3 {setting.name}": Curves(
                f"{', '.join(stages)}",
                "seconds of a round",
                range(len(stages)),
                {name: each[place].tolist() for name, each in parts.items()},
            )
            for place, setting in enumerate(EIGHT)
        },
    )


def figure_4(point: Point, seeds: Sequence[int]) -> Found:
    """Compare the utility of the mean goodput over the rounds."""
    values: dict[str, list[float]] = {
        name: [] for name in ("flat", "above", "rise", "start", "goodput", "fairness")
    }
    curves = {}
    for setting in SETTINGS:
        runs = {name: _play(setting, name, point, seeds) for name in POLICIES}
        lines = {name: run.utility_curve() for name, run in runs.items()}
        means = np.array([run.realised[:, -1].mean(axis=0) for run in runs.values()])
        fair = {
            "utility of (1)": np.log(means).sum(axis=1),
            "Jain's index": means.sum(axis=1) ** 2 / (means**2).sum(axis=1),
            "least goodput of a client": means.min(axis=1),
        }[point["fairness"]]
        ours, fixed, random = (lines[name] for name in POLICIES)
        values["flat"].append(float(np.ptp(ours[400:])))
        values["above"].append(min(float((ours - line)[400:].min()) for line in (fixed, random)))
        values["rise"].append(float((ours[-1] - ours[50]) / (ours[-1] - ours[0])))
        values["start"].append(float((fixed - ours)[:10].max()))
        values["goodput"].append(float(means[0].sum() / means[1:].sum(axis=1).max()) - 1.0)
        values["fairness"].append(float(fair[0] - fair[1:].max()))
        at = range(1, ROUNDS + 1)
        curves[f"figure-4 {setting.name}"] = Curves(
            "round",
            "utility of the mean goodput",
            at,
            {name: line.tolist() for name, line in lines.items()},
        )
    found = {name: (max if name == "flat" else min)(each) for name, each in values.items()}
    return Found(
        {"sec-1.goodput": found.pop("goodput"), "sec-5.fairness": found.pop("fairness")}
        | {f"figure-4.{name}": value for name, value in found.items()},
        curves,
    )


def convergence(point: Point, seeds: Sequence[int]) -> Found:
    """Return the gap of the mean utility in steady state."""
    beta = point["beta"]
    policy = replace(_policy({**point, "eta": beta * point["eta_over_beta"]}), smoothing=beta)
    runs = [
        simulate(
            GoodputWorkload(setting.rates(point), setting.budget_tokens),
            policy,
            rounds=LONG,
            replications=2,
            seed=seeds[0],
            checkpoints=[LONG // 2, LONG],
        )
        for setting in SETTINGS
    ]
    return Found({"abstract.optimal": max(run.gap(LONG // 2, LONG) for run in runs)})


def estimates(point: Point, seeds: Sequence[int]) -> Found:
    """Return the largest change of the time averages of the estimates from 700 to 1400 rounds."""
    moved = []
    for setting in SETTINGS:
        averages = _play(setting, POLICIES[0], point, seeds, 2 * SETTLED).estimates
        moved.append(np.abs(averages[:, :SETTLED].mean(axis=1) - averages.mean(axis=1)).max())
    return Found({"assumption-1": float(max(moved))})


EXPERIMENTS: dict[str, Experiment] = {
    "printed": printed,
    "figure-2": figure_2,
    "figure-3": figure_3,
    "figure-4": figure_4,
    "convergence": convergence,
    "assumption-1": estimates,
    "figure-2-real": real(figure_2),
    "figure-3-real": real(figure_3),
    "figure-4-real": real(figure_4),
    "assumption-1-real": real(estimates),
}
