"""Figures 3 and 4 of paper 3 on synthetic distributions: what quantising costs, and what adapting to the channel gains.

OPT-13B and OPT-125M do not run here: pairs of softmax distributions over 50272 tokens stand in for them
(`softmax_pairs`), at several temperatures. A third of the positions each makes the states "unsure", "usual" and
"sure", by the draft model's largest probability; a state's acceptance rate at a resolution is the mean of 1 - TV(p,
q-hat) over its positions. Printed: the mean uplink rates of the two regimes, the form of the channel, the models. Not
printed, and taken here: 32 ms per verification and 5 ms per draft, a fast link 10 times as fast as the slow one,
changing with probability 0.1 per iteration, confidence kept with probability 0.8, resolutions of 10 to 1000, drafts of
at most 32 tokens, and the temperatures of the axes. ROUGE scores need the text; the total variation between the law of
the output and the server's stands for them: it is what a loss of quality comes from, and 0 means that there is none.

Reproduced: all of Figure 3's points, and in Figure 4 that dynamic Q-S is above static Q-S (5-11 % for the seeds 0-2),
the heuristic (9-16 %) and the server alone (1.5-2.0 times) at every temperature and in both regimes. Levels depend on
the positions drawn: whether the surest are accepted with 0.95 or 0.99 decides how long drafts are (240 positions, seed
0: 10-28, 11-32 % and 1.5-2.5 times). Not reproduced: a smaller absolute gain of the dynamic policy at the high rate,
because most of the gain is made of adapting to the confidence (with one constant link 2.3-3.3 of 2.8-3.5 tokens/s
remain, at temperatures 0.4 and 1); and dynamic Q-S above static S-Q, which is faster at high temperatures, at the price
of a distribution that is up to 17 % off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specopt.instances.drafts.softmax_pairs import OPT_VOCABULARY_SIZE, softmax_pairs
from specopt.models.codes.lattice import nearest_counts, quantised
from specopt.models.draft_control import ChannelState, DraftControlPlan, DraftControlProblem
from specopt.models.fields import Floats
from specopt.models.markov_chain import TransitionMatrix
from specopt.models.speculative_sampling import acceptance_rate, output_law, total_variation
from specopt.reproductions.artefact import Value
from specopt.solve import solve
from specopt.solvers.draft_control.policies import AdaptiveHeuristic
from specopt.solvers.draft_control.simulate import simulate

UPLINKS = {"low": 350e3, "high": 4e6}
"""Bits per second on average in the two regimes."""

TEMPERATURES = (0.4, 0.6, 0.8, 1.0, 1.2)
RESOLUTIONS = (10, 30, 100, 300, 1000)
FIGURE_3_RESOLUTION = 100
DRAFT_SECONDS, VERIFY_SECONDS = 5e-3, 32e-3
LONGEST_DRAFT = 32
CONTRAST, CHANGE, KEEP = 10.0, 0.1, 0.8
CLASSES = ("unsure", "usual", "sure")


@dataclass(frozen=True, kw_only=True, eq=False)
class Laws:
    """What the distributions of one temperature say; arrays by resolution, then by class of confidence.

    Parameters
    ----------
    temperature
        Of both models.
    quantise_sample_rates, sample_quantise_rates
        Mean acceptance rate, shape (R, 3).
    quantise_sample_errors, sample_quantise_errors
        Mean total variation between the law of the output and the server's, shape (R, 3).
    draft_error
        The same of the draft model by itself, over all positions.
    entropies
        Nats per token over all positions: of "LLM", "SLM", and the output of "Q-S" and "S-Q" at
        `FIGURE_3_RESOLUTION`.
    """

    temperature: float
    quantise_sample_rates: Floats
    sample_quantise_rates: Floats
    quantise_sample_errors: Floats
    sample_quantise_errors: Floats
    draft_error: float
    entropies: dict[str, float]


def laws_at(
    temperature: float, *, positions: int = 90, vocabulary_size: int = OPT_VOCABULARY_SIZE, seed: int = 0
) -> Laws:
    """Return acceptance, errors and entropies of synthetic distributions at a temperature.

    Parameters
    ----------
    temperature
        Of both models.
    positions, vocabulary_size, seed
        Of `softmax_pairs`; one seed gives all temperatures the same logits.
    """
    pairs = softmax_pairs(positions, vocabulary_size=vocabulary_size, temperature=temperature, seed=seed)
    p, q = pairs.server_laws, pairs.draft_laws
    classes = np.array_split(np.argsort(q.max(axis=1)), len(CLASSES))
    found: Floats = np.empty((4, len(RESOLUTIONS), len(CLASSES)))
    entropies = {"LLM": _entropy(p), "SLM": _entropy(q)}
    for row, resolution in enumerate(RESOLUTIONS):
        q_hat = quantised(nearest_counts(q, resolution))
        kept, lost = output_law(p, q_hat, q_hat), output_law(p, q, q_hat)
        each = (
            acceptance_rate(p, q_hat), acceptance_rate(p, q, q_hat), total_variation(p, kept), total_variation(p, lost)
        )  # fmt: skip
        for number, values in enumerate(each):
            found[number, row] = [values[members].mean() for members in classes]
        if resolution == FIGURE_3_RESOLUTION:
            entropies |= {"Q-S": _entropy(kept), "S-Q": _entropy(lost)}
    return Laws(
        temperature=temperature,
        quantise_sample_rates=found[0],
        sample_quantise_rates=found[1],
        quantise_sample_errors=found[2],
        sample_quantise_errors=found[3],
        draft_error=float(total_variation(p, q).mean()),
        entropies=entropies,
    )


def problem_of(
    rates: Floats, regime: str, resolutions: Sequence[int], vocabulary_size: int = OPT_VOCABULARY_SIZE
) -> DraftControlProblem:
    """Return the problem of a regime: two states of the uplink times three of confidence, free downlink.

    Parameters
    ----------
    rates
        Acceptance rates by resolution and class, shape (R, 3).
    regime
        "low" or "high".
    resolutions
        Of the rows.
    vocabulary_size
        V.
    """
    slow = UPLINKS[regime] / (0.5 + 0.5 * CONTRAST)  # half of the iterations each
    channel = np.array([[1.0 - CHANGE, CHANGE], [CHANGE, 1.0 - CHANGE]])
    confidence = np.full((3, 3), (1.0 - KEEP) / 2.0)
    np.fill_diagonal(confidence, KEEP)
    return DraftControlProblem(
        name=f"paper 3, {regime} rate",
        vocabulary_size=vocabulary_size,
        draft_seconds_per_token=DRAFT_SECONDS,
        verify_seconds=VERIFY_SECONDS,
        draft_lengths=(1, LONGEST_DRAFT),
        resolutions=np.array(resolutions),
        states=tuple(
            ChannelState(uplink_bits_per_second=uplink, acceptance_rates=rates[:, column].copy())
            for uplink in (slow, CONTRAST * slow)
            for column in range(len(CLASSES))
        ),
        transition=TransitionMatrix(np.kron(channel, confidence)),
    )


def throughput(law: Laws, regime: str, vocabulary_size: int, replications: int, seed: int) -> dict[str, Value]:
    """Return a row of Figure 4: tokens per second by strategy."""
    problem = problem_of(law.quantise_sample_rates, regime, RESOLUTIONS, vocabulary_size)
    dynamic, myopic, static = (solve(problem, method) for method in ("policy-iteration", "myopic", "best-static"))
    assert isinstance(static.plan, DraftControlPlan)
    choice = static.plan.policy[0]
    place = RESOLUTIONS.index(choice.resolution)
    lossy = problem_of(law.sample_quantise_rates[[place]], regime, [choice.resolution], vocabulary_size)
    # the heuristic starts at the best static length and resolution
    policy = AdaptiveHeuristic(first_length=choice.draft_length, resolution=choice.resolution)
    heuristic = simulate(problem, policy, replications=replications, seed=seed)
    low, high = heuristic.confidence_interval
    return {
        "temperature": law.temperature,
        "LLM": 1.0 / VERIFY_SECONDS,
        "static S-Q": solve(lossy, "best-static").objective,
        "static Q-S": static.objective,
        "heuristic Q-S": heuristic.mean,
        "dynamic Q-S": dynamic.objective,
        "myopic Q-S": myopic.objective,
        "heuristic interval": f"{low:.2f} to {high:.2f}",
        "static length": choice.draft_length,
        "static resolution": choice.resolution,
        "error of S-Q": float(law.sample_quantise_errors[place].mean()),
    }


def _entropy(laws: Floats) -> float:
    logarithms = np.log(laws, out=np.zeros_like(laws), where=laws > 0)
    return float(-(laws * logarithms).sum(axis=1).mean())
