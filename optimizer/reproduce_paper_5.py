"""Figures 3 and 4 of paper 5 on synthetic clients: convergence of the utility, and where the time of a round goes.

What the paper does not say, and what is taken here (`SETTINGS`): the clients' acceptance rates (it draws prompts from
eight data sets; here evenly spaced and fixed), which C of Table I belongs to which figure, eta of Eq. 3 (0.1), the
initial estimates (0.5) and X(0) (1), how Random-S draws (every token of the budget to a random client), the work behind
a wall time (two readings: per round, and per token of all clients together), and every time: drafting, network,
verification and sending are round numbers for the hardware that Table I names.

Figure 4, reproduced: under Algorithm 1 the utility of the mean goodput is flat after 400 rounds at the latest, and
above Fixed-S and Random-S from about the tenth round on. Not as printed: nearly all of the rise is over after 50
rounds; and what it converges to is not the optimum. With beta = 0.5 a gap remains that `robust` closes. Where rates
hardly differ and N divides C, Fixed-S is better than Algorithm 1 (N = 8, C = 16, rates of 0.5-0.85).

Figure 3, in part. Reproduced: Random-S has longer rounds than Fixed-S (27-53 %; printed 5-25 %), because its largest
draft is longer and a round waits for the slowest client; receiving and verification are nearly all of the time; per
token Algorithm 1 spends less time on verification than Fixed-S (5-13 %; printed 5 %), because its rounds yield more.
Not reproduced: that Algorithm 1 is as fast as Fixed-S. Its largest draft is far longer than C / N, as a fair schedule's
must be, so its rounds take 40-60 % longer, which the extra tokens do not make up for; it is about as slow as Random-S.
The paper's times can only be equal if drafting hardly matters in its rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specopt.models.errors import MissingDependency
from specopt.models.fields import Floats
from specopt.solvers.fair_goodput.policies import Gradient, Policy, Robust
from specopt.solvers.fair_goodput.simulate import OnlineSimulation, simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROUNDS = 600
ALGORITHM_1 = Gradient(smoothing=0.5, estimate_smoothing=0.1, initial_estimate=0.5, initial_goodput=1.0)
POLICIES: dict[str, Policy | str] = {
    "Algorithm 1": ALGORITHM_1,
    "robust": Robust(),
    "Fixed-S": "fixed",
    "Random-S": "random",
}
_COLOURS = {"Algorithm 1": "#33658a", "robust": "#2f7d4f", "Fixed-S": "#8a6d1b", "Random-S": "#b5495b"}
_PARTS = {"receiving": "#33658a", "verification": "#8a6d1b", "sending": "#b5495b"}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A row of Table I, with the clients that stand for its data sets.

    Parameters
    ----------
    name
        As in the figures.
    clients, budget_tokens
        N and C.
    lowest, highest
        Acceptance rates, evenly spaced between these.
    draft_seconds
        Per drafted token, transfer included; the models take turns.
    network_seconds, verify_overhead_seconds, verify_seconds_per_token, send_seconds
        The rest of a round: one way to the verifier, the pass of the target model, and the answer.
    """

    name: str
    clients: int
    budget_tokens: int
    lowest: float = 0.4
    highest: float = 0.9
    draft_seconds: tuple[float, ...] = (0.012,)
    network_seconds: float = 0.01
    verify_overhead_seconds: float = 0.03
    verify_seconds_per_token: float = 0.0002
    send_seconds: float = 0.0001

    @property
    def rates(self) -> Floats:
        """Acceptance rates of the clients."""
        return np.linspace(self.lowest, self.highest, self.clients)

    @property
    def drafting(self) -> Floats:
        """Seconds per drafted token of each client."""
        return np.resize(np.array(self.draft_seconds), self.clients)


SETTINGS = (
    Setting(name="Qwen3, N = 4, C = 24", clients=4, budget_tokens=24),
    Setting(name="Qwen3, N = 8, C = 16", clients=8, budget_tokens=16, draft_seconds=(0.012, 0.016)),
    Setting(name="Qwen3, N = 8, C = 20", clients=8, budget_tokens=20, draft_seconds=(0.012, 0.016)),
    Setting(
        name="Llama3, N = 8, C = 20", clients=8, budget_tokens=20, lowest=0.5, draft_seconds=(0.014, 0.022),
        verify_overhead_seconds=0.06,
    ),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """What came out, by setting and policy.

    Parameters
    ----------
    utility
        Figure 4: utility of the mean realised goodput up to every round, averaged over replications.
    optimum
        U(x*) of each setting.
    gaps
        By how much the mean expected rates over all rounds fall short of it.
    seconds_per_round, seconds_per_token
        Figure 3: mean seconds of receiving, verification and sending, in a round, and per token of all clients.
    """

    utility: dict[str, dict[str, Floats]]
    optimum: dict[str, float]
    gaps: dict[str, dict[str, float]]
    seconds_per_round: dict[str, dict[str, dict[str, float]]]
    seconds_per_token: dict[str, dict[str, dict[str, float]]]

    def figure_4(self) -> Figure:
        """Return the utility over the rounds, one panel per setting."""
        figure = _figure(1.0 + 2.9 * len(self.utility), 3.1)
        panels = figure.subplots(1, len(self.utility), squeeze=False)[0]
        for axes, (setting, curves) in zip(panels, self.utility.items(), strict=True):
            for policy, curve in curves.items():
                axes.plot(np.arange(1, len(curve) + 1), curve, color=_COLOURS[policy], label=policy)
            optimum = self.optimum[setting]
            axes.axhline(optimum, color="black", linewidth=0.8, linestyle=":", label="optimum")
            low = min(float(curve[len(curve) // 20 :].min()) for curve in curves.values())
            axes.set_ylim(low - 0.4 * (optimum - low), optimum + 0.1 * (optimum - low))
            _label(axes, setting, "round T", "utility of the mean goodput" if axes is panels[0] else "")
        panels[-1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return figure

    def figure_3(self) -> Figure:
        """Return where the time goes: per round on the left, per token on the right."""
        readings = (("per round", self.seconds_per_round), ("per token", self.seconds_per_token))
        figure = _figure(10.0, 0.9 + 1.1 * len(self.optimum))
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (reading, data) in zip(panels, readings, strict=True):
            rows = [(setting, policy) for setting in data for policy in data[setting]]
            for place, (setting, policy) in enumerate(rows):
                reference = sum(data[setting]["Fixed-S"].values())
                start = 0.0
                for part, colour in _PARTS.items():
                    width = data[setting][policy][part] / reference
                    axes.barh(place, width, left=start, color=colour, label=part if place == 0 else None)
                    start += width
            axes.axvline(1.0, color="black", linewidth=0.8, linestyle=":")
            axes.set_yticks(range(len(rows)), [f"{setting}: {policy}" for setting, policy in rows], fontsize=7)
            _label(axes, f"Wall time {reading}", "Fixed-S = 1", "")
        panels[0].invert_yaxis()
        panels[1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return figure


def reproduce(
    *, settings: tuple[Setting, ...] = SETTINGS, rounds: int = ROUNDS, replications: int = 50, seed: int = 0
) -> Reproduction:
    """Simulate every setting under Algorithm 1, `robust`, Fixed-S and Random-S.

    Parameters
    ----------
    settings
        What to simulate.
    rounds, replications, seed
        How long, how often, and with which luck.
    """
    utility: dict[str, dict[str, Floats]] = {}
    gaps: dict[str, dict[str, float]] = {}
    per_round: dict[str, dict[str, dict[str, float]]] = {}
    per_token: dict[str, dict[str, dict[str, float]]] = {}
    optimum = {}
    for setting in settings:
        runs = {
            name: simulate(
                setting.rates, setting.budget_tokens, policy, rounds=rounds, replications=replications, seed=seed,
                checkpoints=np.arange(1, rounds + 1), record=True,
            )
            for name, policy in POLICIES.items()
        }  # fmt: skip
        name = setting.name
        optimum[name] = runs["robust"].benchmark.utility
        utility[name] = {policy: run.utility_curve(realised=True) for policy, run in runs.items()}
        gaps[name] = {policy: run.gap() for policy, run in runs.items()}
        times = {policy: _times(setting, run) for policy, run in runs.items()}
        per_round[name] = {policy: time[0] for policy, time in times.items()}
        per_token[name] = {policy: time[1] for policy, time in times.items()}
    return Reproduction(
        utility=utility,
        optimum=optimum,
        gaps=gaps,
        seconds_per_round=per_round,
        seconds_per_token=per_token,
    )


def _times(setting: Setting, run: OnlineSimulation) -> tuple[dict[str, float], dict[str, float]]:
    """Return the mean seconds of each part of a round, and per token of all clients together."""
    drafts = run.allocations
    parts = {
        "receiving": (drafts * setting.drafting).max(axis=2) + setting.network_seconds,
        "verification": setting.verify_overhead_seconds + setting.verify_seconds_per_token * drafts.sum(axis=2),
        "sending": np.full(drafts.shape[:2], setting.send_seconds),
    }
    tokens = float(run.realised[:, -1].sum(axis=1).mean()) / drafts.shape[1]
    per_round = {part: float(seconds.mean()) for part, seconds in parts.items()}
    return per_round, {part: seconds / tokens for part, seconds in per_round.items()}


def _label(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        raise MissingDependency("pictures need matplotlib: pip install 'specopt[plot]'") from None
    figure = Figure(figsize=(width, height), dpi=150, layout=ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.1))
    FigureCanvasAgg(figure)
    return figure
