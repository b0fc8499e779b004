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

import numpy as np

from specopt.models.fields import Floats
from specopt.models.goodput_workload import GoodputWorkload
from specopt.solvers.fair_goodput.policies import Gradient, Policy, Robust
from specopt.solvers.fair_goodput.simulate import GoodputSimulation, simulate

ROUNDS = 600
ALGORITHM_1 = Gradient(smoothing=0.5, estimate_smoothing=0.1, initial_estimate=0.5, initial_goodput=1.0)
POLICIES: dict[str, Policy | str] = {
    "Algorithm 1": ALGORITHM_1,
    "robust": Robust(),
    "Fixed-S": "fixed",
    "Random-S": "random",
}


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


def run_settings(
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
                GoodputWorkload(setting.rates, setting.budget_tokens), policy, rounds=rounds, replications=replications,
                seed=seed, checkpoints=np.arange(1, rounds + 1), record=True,
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
        utility=utility, optimum=optimum, gaps=gaps, seconds_per_round=per_round, seconds_per_token=per_token
    )


def _times(setting: Setting, run: GoodputSimulation) -> tuple[dict[str, float], dict[str, float]]:
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
