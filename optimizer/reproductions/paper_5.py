"""Figures 2-4 of paper 5 on synthetic clients: estimates, where the time of a round goes, how the utility converges.

Clients have fixed acceptance rates, evenly spaced; the paper draws prompts from eight data sets, and beside them the
laboratory's real pair writes texts of eight kinds of task. Random-S gives every token of the budget to a random client.
Wall times are read in two ways: per round, and per token of all clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from specopt.models.fields import Floats
from specopt.models.goodput_workload import GoodputWorkload
from specopt.online import GoodputScheduler
from specopt.reproductions.audit import follows
from specopt.reproductions.experiment import Curves, Experiment, Found, Point
from specopt.reproductions.laboratory import real
from specopt.reproductions.replay import Replay, replay
from specopt.solvers.fair_goodput.policies import Gradient
from specopt.solvers.fair_goodput.simulate import GoodputSimulation, simulate

ROUNDS, SETTLED, LONG = 600, 700, 6000
BETA = 0.5
WINDOW = 10
"""Rounds of the moving average of Figure 2."""

_L4 = 300e9  # bytes per second


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A row of Table I.

    Parameters
    ----------
    name
        As in the figures.
    clients, budget_tokens
        N and C.
    draft_bytes
        Weights of the draft models, which take turns.
    verify_scale
        Time of a pass of the target model over that of Qwen3-14B.
    """

    name: str
    clients: int
    budget_tokens: int
    draft_bytes: tuple[float, ...] = (1.5e9, 4.1e9)  # Qwen3-0.6B and 1.7B in 16 bits
    verify_scale: float = 1.0

    def workload(self, point: Point) -> GoodputWorkload:
        """Return its clients."""
        return GoodputWorkload(
            np.linspace(point["lowest_rate"], point["highest_rate"], self.clients), self.budget_tokens
        )


SETTINGS = (
    Setting(name="Qwen3, N = 4, C = 24", clients=4, budget_tokens=24, draft_bytes=(1.5e9,)),
    Setting(name="Qwen3, N = 8, C = 16", clients=8, budget_tokens=16),
    Setting(name="Qwen3, N = 8, C = 20", clients=8, budget_tokens=20),
    Setting(name="Llama3, N = 8, C = 20", clients=8, budget_tokens=20, draft_bytes=(2.5e9, 6.4e9), verify_scale=2.0),
)
EIGHT = SETTINGS[1:]


def _policy(point: Point) -> Gradient:
    return Gradient(
        smoothing=BETA, estimate_smoothing=point["eta"], initial_estimate=point.get("initial_estimate", 0.5),
        initial_goodput=point.get("initial_goodput", 1.0),
    )  # fmt: skip


def _play(
    setting: Setting, policy: Gradient | str, point: Point, seeds: Sequence[int], rounds: int
) -> GoodputSimulation | Replay:
    if "temperature" in point:
        return _replayed(setting, policy, point, seeds, rounds)
    return simulate(
        setting.workload(point), policy, rounds=rounds, replications=4 * len(seeds), seed=seeds[0], record=True,
        checkpoints=np.arange(1, rounds + 1),
    )  # fmt: skip


def _replayed(setting: Setting, policy: Gradient | str, point: Point, seeds: Sequence[int], rounds: int) -> Replay:
    return replay(
        setting.clients, setting.budget_tokens, policy, temperature=point["temperature"], seeds=seeds, rounds=rounds
    )


def printed(_: Point, __: Sequence[int]) -> Found:
    """Return what printed numbers make of each other."""
    return Found({
        "table-1": follows(6.0, min(one.budget_tokens for one in EIGHT)),
        "sec-4.iterations": follows(600.0, 300 / BETA),
    })  # fmt: skip


def figure_2(point: Point, seeds: Sequence[int]) -> Found:
    """Compare smoothed with real goodput of the whole system."""
    values: dict[str, list[float]] = {"aligned": [], "level": [], "band": []}
    curves = {}
    for setting in EIGHT[1:]:
        run = _play(setting, _policy(point), point, seeds, ROUNDS)
        real = np.diff(run.realised.sum(axis=2), axis=1, prepend=0.0)
        smoothed = np.empty_like(real)
        state = np.full(len(real), float(setting.clients))  # X(0) = 1 each
        for t, now in enumerate(real.T):
            state = (1.0 - BETA) * state + BETA * now  # Eq. 4, summed over clients
            smoothed[:, t] = state
        average = partial(np.apply_along_axis, lambda row: np.convolve(row, np.ones(WINDOW) / WINDOW, "valid"), 1)
        one, other = average(smoothed), average(real)
        spread = np.sqrt(np.maximum(0.0, average(real**2) - other**2))
        values["aligned"].append(float(np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(one, other, strict=True)])))
        values["level"].append(float(np.sqrt(np.mean((one - other) ** 2)) / other.mean()))
        values["band"].append(float(np.mean(np.abs(real[:, WINDOW - 1 :] - other) <= spread)))
        at = range(WINDOW, ROUNDS + 1)
        curves[f"figure-2 {setting.name}"] = Curves(
            "round", "tokens per round of all clients", at, {"estimated": one[0].tolist(), "real": other[0].tolist()}
        )
    worst = {"aligned": min, "level": max, "band": min}
    return Found({f"figure-2.{name}": worst[name](each) for name, each in values.items()}, curves)


def _round(setting: Setting, run: GoodputSimulation | Replay, point: Point) -> tuple[Floats, float]:
    """Return the mean seconds of receiving, verification and sending of a round, and the tokens of all clients."""
    drafts = run.allocations
    each = point["draft_scale"] * np.resize(np.array(setting.draft_bytes) / _L4, setting.clients)
    receiving = (drafts * each).max(axis=2) + 1e-3 * point["network_ms"]
    verification = 1e-3 * (setting.verify_scale * point["verify_ms"] + point["verify_token_ms"] * drafts.sum(axis=2))
    tokens = float(run.realised[:, -1].sum(axis=1).mean()) / drafts.shape[1]
    return np.array([receiving.mean(), verification.mean(), 1e-6 * point["send_us"]]), tokens


def figure_3(point: Point, seeds: Sequence[int]) -> Found:
    """Compare where the time of a round goes, in the settings of 8 clients."""
    policies: dict[str, Gradient | str] = {"GoodSpeed": _policy(point), "Fixed-S": "fixed", "Random-S": "random"}
    rounds: dict[str, list[Floats]] = {name: [] for name in policies}
    tokens: dict[str, list[float]] = {name: [] for name in policies}
    for setting in EIGHT:
        for name, policy in policies.items():
            seconds, yielded = _round(setting, _play(setting, policy, point, seeds, ROUNDS), point)
            rounds[name].append(seconds)
            tokens[name].append(yielded)
    parts = {name: np.array(each) for name, each in rounds.items()}  # by setting, then part
    per_token = {name: each / np.array(tokens[name])[:, None] for name, each in parts.items()}

    def over_fixed(data: dict[str, Floats], name: str) -> Floats:
        return np.asarray(data[name].sum(axis=1) / data["Fixed-S"].sum(axis=1))

    whole, random = over_fixed(parts, "GoodSpeed"), 100.0 * (over_fixed(parts, "Random-S") - 1.0)
    saved = 100.0 * (1.0 - per_token["GoodSpeed"][:, 1] / per_token["Fixed-S"][:, 1])
    values = {
        "figure-3.whole": float(whole[np.argmax(np.abs(whole - 1.0))]),
        "figure-3.token": float(over_fixed(per_token, "GoodSpeed").max()),
        "figure-3.random": float(random.min()),
        "figure-3.random-most": float(random.max()),
        "figure-3.receiving": min(
            float((parts[name][:, 0] / parts["Fixed-S"][:, 0]).min()) - 1.0 for name in ("GoodSpeed", "Random-S")
        ),
        "figure-3.sending": 100.0 * max(float((each[:, 2] / each.sum(axis=1)).max()) for each in parts.values()),
        "figure-3.verification": float(saved.min()),
        "figure-3.verification-level": float(saved.mean()),
    }
    stages = ("receiving", "verification", "sending")
    return Found(values, {
        f"figure-3 {setting.name}": Curves(
            f"{', '.join(stages)}", "seconds of a round", range(len(stages)),
            {name: each[place].tolist() for name, each in parts.items()},
        )
        for place, setting in enumerate(EIGHT)
    })  # fmt: skip


def figure_4(point: Point, seeds: Sequence[int]) -> Found:
    """Follow the utility of the mean goodput over the rounds."""
    policies: dict[str, Gradient | str] = {"GoodSpeed": _policy(point), "Fixed-S": "fixed", "Random-S": "random"}
    values: dict[str, list[float]] = {name: [] for name in ("flat", "above", "rise", "start")}
    curves = {}
    for setting in SETTINGS:
        lines = {
            name: _play(setting, policy, point, seeds, ROUNDS).utility_curve(realised="temperature" not in point)
            for name, policy in policies.items()
        }
        ours = lines["GoodSpeed"]
        baselines = [lines["Fixed-S"], lines["Random-S"]]
        values["flat"].append(float(np.ptp(ours[400:])))
        values["above"].append(min(float((ours - line)[400:].min()) for line in baselines))
        values["rise"].append(float((ours[-1] - ours[50]) / (ours[-1] - ours[0])))
        values["start"].append(float((lines["Fixed-S"] - ours)[:10].max()))
        at = range(1, ROUNDS + 1)
        curves[f"figure-4 {setting.name}"] = Curves(
            "round", "utility of the mean goodput", at, {name: line.tolist() for name, line in lines.items()}
        )
    worst = {"flat": max, "above": min, "rise": min, "start": min}
    return Found({f"figure-4.{name}": worst[name](each) for name, each in values.items()}, curves)


def convergence(point: Point, seeds: Sequence[int]) -> Found:
    """Return what the estimates tend to, and what the mean utility of many rounds lacks."""
    policy = _policy(point)
    gaps = [
        simulate(setting.workload(point), policy, rounds=LONG, replications=2, seed=seeds[0], checkpoints=[LONG]).gap()
        for setting in SETTINGS
    ]
    errors = [_estimate_error(setting, point, seeds[0]) for setting in SETTINGS]
    return Found({"abstract.optimal": max(gaps), "assumption-1": max(errors)})


def estimates(point: Point, seeds: Sequence[int]) -> Found:
    """Return what the estimates tend to on recorded texts."""
    runs = [_replayed(setting, _policy(point), point, seeds, SETTLED) for setting in SETTINGS]
    return Found({"assumption-1": max(float(run.errors.max()) for run in runs)})


def _estimate_error(setting: Setting, point: Point, seed: int) -> float:
    """Return the largest error of the time averages of Eq. 3 of Algorithm 1."""
    scheduler = GoodputScheduler(setting.clients, setting.budget_tokens, _policy(point))
    rates, random = setting.workload(point).moves.rates[0, 0], np.random.default_rng(seed)
    total = np.zeros(setting.clients)
    for _ in range(SETTLED):
        drafts = scheduler.allocate()
        fates = [random.uniform(size=count) < rate for count, rate in zip(drafts.tolist(), rates.tolist(), strict=True)]
        scheduler.observe(
            [int(np.cumprod(one).sum()) for one in fates],
            acceptance_ratios=[float(one.mean()) if len(one) else 0.0 for one in fates],
        )
        total += scheduler.estimates
    return float(np.abs(total / SETTLED - rates).max())


EXPERIMENTS: dict[str, Experiment] = {
    "printed": printed, "figure-2": figure_2, "figure-3": figure_3, "figure-4": figure_4, "convergence": convergence,
    "figure-2-real": real(figure_2), "figure-4-real": real(figure_4), "assumption-1-real": real(estimates),
    "figure-3-real": real(
        figure_3, *(f"figure-3.{name}" for name in ("whole", "token", "random", "random-most", "receiving",
                                                    "verification", "verification-level"))
    ),
}  # fmt: skip
