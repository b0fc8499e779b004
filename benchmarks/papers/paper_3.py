"""Figures 3 and 4 of paper 3 on synthetic and on recorded distributions: the cost of quantising and
the gain of adapting.

Pairs of softmax distributions over 50272 tokens (`softmax_pairs`), and the laboratory's real pair,
replace OPT-13B and OPT-125M, which were not run. The states "unsure", "usual" and "sure" are thirds
of the positions by the draft model's largest probability. The acceptance rate of a state at a
resolution is the mean of 1 - TV(p, q-hat) over its positions. "Dynamic" is the optimal policy; a
learned policy can only approach it. ROUGE needs texts, which the real pair generates. The total
variation between the distributions of the output and of the server measures the loss of quality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Self

import numpy as np

from papers.experiment import Curves, Experiment, Found, Point
from papers.laboratory import lines, real
from papers.quantised_outputs import quantised_outputs
from papers.softmax_pairs import OPT_VOCABULARY_SIZE, softmax_pairs
from specopt.api.solve import solve
from specopt.models.codes.lattice import distribution_bits
from specopt.models.draft_control.problem import ChannelState, DraftControlProblem
from specopt.models.fields import Floats
from specopt.models.markov_chain import TransitionMatrix
from specopt.solvers.draft_control.policies import AdaptiveHeuristic
from specopt.solvers.draft_control.simulate import simulate

UPLINKS = {"low": 350e3, "high": 4e6}
"""Bits per second on average in the two regimes."""

TEMPERATURES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5)
AXIS = (0.4, 0.6, 0.8, 1.0, 1.2)
RESOLUTIONS = (10, 30, 100, 300, 1000)
POSITIONS, SETS = 18, 5
"""Number of pairs of distributions per seed, and number of sets of them."""

CLASSES = 3
SMOLLM2_VOCABULARY_SIZE = 49_152


@dataclass(frozen=True, kw_only=True, eq=False)
class Laws:
    """Means over the distributions of one temperature; rates by resolution and class of confidence.

    Parameters
    ----------
    rates
        Mean acceptance rate with Q-S.
    lossy_rates
        Mean acceptance rate with S-Q if drafts with q-hat = 0 are accepted.
    zero_rates
        Mean acceptance rate with S-Q if drafts with q-hat = 0 are rejected.
    kept_error
        Mean total variation between the distributions of the output with Q-S and of the server, by
        resolution.
    lost_error
        The same with S-Q.
    entropies
        Nats per token of "LLM" and "SLM", and of the outputs of "Q-S" and "S-Q" by resolution.
    """

    rates: Floats
    lossy_rates: Floats
    zero_rates: Floats
    kept_error: Floats
    lost_error: Floats
    entropies: dict[str, Floats]

    @classmethod
    def of(cls, outputs: Mapping[str, Floats]) -> Self:
        """Return the means over the positions of `quantised_outputs`."""
        classes = np.array_split(np.argsort(outputs["draft_peak"], kind="stable"), CLASSES)

        def rates(each: Floats) -> Floats:
            return np.stack([each[members].mean(axis=0) for members in classes], axis=1)

        kinds = {"LLM": "verify", "SLM": "draft", "Q-S": "kept", "S-Q": "lost"}
        return cls(
            rates=rates(outputs["kept_rate"]),
            lossy_rates=rates(outputs["lost_rate"]),
            zero_rates=rates(
                outputs["lost_rate"] - outputs["impossible"]
            ),  # sampled from q, and accepted above
            kept_error=outputs["kept_error"].mean(axis=0),
            lost_error=outputs["lost_error"].mean(axis=0),
            entropies={
                name: outputs[f"{kind}_entropy"].mean(axis=0) for name, kind in kinds.items()
            },
        )


@cache
def laws_at(
    temperature: float,
    noise: float,
    seeds: tuple[int, ...],
    vocabulary_size: int = OPT_VOCABULARY_SIZE,
) -> Laws:
    """Return acceptance, errors and entropies of synthetic distributions at a temperature."""
    pairs = [
        softmax_pairs(
            POSITIONS,
            vocabulary_size=vocabulary_size,
            temperature=temperature,
            noise=noise,
            seed=seed,
        )
        for seed in seeds
    ]
    p, q = (
        np.concatenate(laws)
        for laws in zip(*((one.server_laws, one.draft_laws) for one in pairs), strict=True)
    )
    return Laws.of(quantised_outputs(p, q, RESOLUTIONS))


@cache
def recorded_laws(temperature: float, sets: tuple[int, ...]) -> Laws:
    """Return the same for the real pair: means over sets of prompts."""
    found = [line for line in lines("laws", temperature=temperature) if line["set"] in sets]

    def mean(name: str) -> Floats:
        return np.asarray(np.mean([line[name] for line in found], axis=0))

    entropies = {
        name: np.mean([line["entropies"][name] for line in found], axis=0)
        for name in found[0]["entropies"]
    }
    means = {field.name: mean(field.name) for field in fields(Laws) if field.name != "entropies"}
    return Laws(**means, entropies=entropies)


def _laws(temperature: float, point: Point, seeds: Sequence[int]) -> Laws:
    sets = tuple(sorted({seed % SETS for seed in seeds}))
    return (
        laws_at(temperature, point["noise"], sets)
        if "noise" in point
        else recorded_laws(temperature, sets)
    )


def _vocabulary(point: Point) -> int:
    return OPT_VOCABULARY_SIZE if "noise" in point else SMOLLM2_VOCABULARY_SIZE


def figure_3(point: Point, seeds: Sequence[int]) -> Found:
    """Compare the distributions of the outputs with that of the server."""
    row = RESOLUTIONS.index(point["resolution"])
    axis = [
        t for t in TEMPERATURES if point["lowest_temperature"] <= t <= point["highest_temperature"]
    ]
    laws = [_laws(t, point, seeds) for t in axis]
    lost = [float(one.lost_error[row]) for one in laws]
    entropies = {
        name: [float(np.broadcast_to(one.entropies[name], len(RESOLUTIONS))[row]) for one in laws]
        for name in ("LLM", "SLM", "Q-S", "S-Q")
    }
    values = {
        "figure-3a.lost": min(lost),
        "figure-3a.trend": lost[-1] - max(lost[:-1]),
    }
    errors = {"Q-S": [float(one.kept_error[row]) for one in laws], "S-Q": lost}
    return Found(
        values,
        {
            "figure-3a": Curves("temperature", "total variation from the LLM's law", axis, errors),
            "figure-3b": Curves("temperature", "nats per token", axis, entropies),
        },
    )


def problem_of(rates: Floats, regime: str, point: Point) -> DraftControlProblem:
    """Return the problem of a regime: two states of the uplink times three of confidence, without
    cost of the downlink.
    """
    contrast, change, keep = point["contrast"], point["change"], point["keep"]
    slow = UPLINKS[regime] / (0.5 + 0.5 * contrast)  # half of the iterations each
    confidence = np.full((CLASSES, CLASSES), (1.0 - keep) / (CLASSES - 1))
    np.fill_diagonal(confidence, keep)
    return DraftControlProblem(
        vocabulary_size=_vocabulary(point),
        draft_seconds_per_token=1e-3 * point["draft_ms"],
        verify_seconds=1e-3 * point["verify_ms"],
        draft_lengths=(1, point["longest_draft"]),
        resolutions=np.array(RESOLUTIONS),
        states=tuple(
            ChannelState(uplink_bits_per_second=uplink, acceptance_rates=rates[:, column].copy())
            for uplink in (slow, contrast * slow)
            for column in range(CLASSES)
        ),
        transition=TransitionMatrix(
            np.kron(np.array([[1.0 - change, change], [change, 1.0 - change]]), confidence)
        ),
    )


def static_rates(
    rates: Floats, regime: str, point: Point, resolutions: Sequence[int] = RESOLUTIONS
) -> Floats:
    """Return the tokens per second of each static setting by resolution and draft length.

    Classes and links occur equally often with all drafts, so that means over both suffice.
    """
    lengths = np.arange(1, point["longest_draft"] + 1)
    bits = 16 + np.array([distribution_bits(one, _vocabulary(point)) for one in resolutions])
    tokens = 1.0 + np.cumsum(rates[:, :, None] ** lengths, axis=2).mean(axis=1)
    slow = UPLINKS[regime] / (0.5 + 0.5 * point["contrast"])
    pace = 0.5 / slow + 0.5 / (slow * point["contrast"])  # seconds per bit
    seconds = (
        1e-3 * (lengths * point["draft_ms"] + point["verify_ms"]) + np.outer(bits, lengths) * pace
    )
    return np.asarray(tokens / seconds)


def _static(laws: Sequence[Laws], point: Point) -> dict[str, list[tuple[int, int]]]:
    """Return the index of the static setting, of resolution and draft length, by regime and
    temperature.
    """
    speed = {
        regime: np.array([static_rates(one.rates, regime, point) for one in laws])
        for regime in UPLINKS
    }
    each = {regime: np.log(one).mean(axis=0) for regime, one in speed.items()}
    tuned = {
        "one for all": dict.fromkeys(UPLINKS, each["low"] + each["high"]),
        "one, tuned at the high rate": dict.fromkeys(UPLINKS, each["high"]),
        "one, tuned at the low rate": dict.fromkeys(UPLINKS, each["low"]),
        "one per regime": each,
    }
    choice = point["static_setting"]
    grids = {
        regime: [tuned[choice][regime]] * len(laws) if choice in tuned else list(speed[regime])
        for regime in UPLINKS
    }
    return {
        regime: [divmod(int(np.argmax(one)), one.shape[1]) for one in every]
        for regime, every in grids.items()
    }


def figure_4(point: Point, seeds: Sequence[int]) -> Found:
    """Compare strategies by tokens per second at all temperatures in both regimes."""
    alone = 1e3 / point["verify_ms"]
    lines: dict[str, dict[str, list[float]]] = {regime: {} for regime in UPLINKS}
    laws = [_laws(temperature, point, seeds) for temperature in AXIS]
    static = _static(laws, point)
    for place, one in enumerate(laws):
        for regime in UPLINKS:
            row, column = static[regime][place]
            problem = problem_of(one.rates, regime, point)
            lossy = one.lossy_rates if point["impossible_drafts"] == "accept" else one.zero_rates
            heuristic = AdaptiveHeuristic(first_length=column + 1, resolution=RESOLUTIONS[row])
            rates = {
                "LLM": alone,
                "static Q-S": static_rates(one.rates, regime, point)[row, column],
                "static S-Q": static_rates(lossy, regime, point)[row, column],
                "heuristic Q-S": simulate(problem, heuristic, replications=50, seed=seeds[0]).mean,
                "dynamic Q-S": solve(problem, "policy-iteration").objective,
            }
            for name, rate in rates.items():
                lines[regime].setdefault(name, []).append(float(rate))
    found = {
        regime: {name: np.array(line) for name, line in each.items()}
        for regime, each in lines.items()
    }
    values = {}
    for letter, each in zip("ab", found.values(), strict=True):
        gains = {"static": "static Q-S", "heuristic": "heuristic Q-S", "lossy": "static S-Q"}
        for short, name in gains.items():
            values[f"figure-4{letter}.{short}"] = (
                float((each["dynamic Q-S"] / each[name]).min()) - 1.0
            )
        values[f"figure-4{letter}.llm"] = float(each["static Q-S"].min()) / alone - 1.0
    gained = {regime: each["dynamic Q-S"] - each["static Q-S"] for regime, each in found.items()}
    values |= {
        "figure-4b.smaller": float((gained["low"] - gained["high"]).min()),
        "abstract.gain": min(float(each["dynamic Q-S"].min()) for each in found.values()) / alone
        - 1.0,
    }
    return Found(
        values,
        {
            f"figure-4{letter}": Curves(
                "temperature", f"tokens per second, {regime} rate", AXIS, lines[regime]
            )
            for letter, regime in zip("ab", UPLINKS, strict=True)
        },
    )


def rouge(point: Point, _: Sequence[int]) -> Found:
    """Compare texts of the real pair by ROUGE-2, with the LLM's greedy answers as references."""
    found = lines("texts")
    axis = sorted({line["temperature"] for line in found})
    count = len(found[0]["rouge_2"])

    def scores(scheme: str, resolution: int) -> Floats:
        """Return the mean scores of a scheme by temperature and prompt."""
        return np.array(
            [
                np.mean(
                    [
                        line["rouge_2"]
                        for line in found
                        if (line["temperature"], line["scheme"], line["resolution"])
                        == (temperature, scheme, resolution)
                    ],
                    axis=0,
                )
                for temperature in axis
            ]
        )

    each = {"LLM": scores("LLM", 0)} | {
        scheme: scores(scheme, point["text_resolution"]) for scheme in ("Q-S", "S-Q")
    }
    kept, lost = ((each["LLM"] - each[scheme]) for scheme in ("Q-S", "S-Q"))
    by_prompt = kept.mean(axis=0)
    loss = lost.mean(axis=1)
    values = {
        "figure-3a.rouge.kept": float(by_prompt.mean() / (by_prompt.std(ddof=1) / np.sqrt(count))),
        "figure-3a.rouge.lost": float(loss[-1]),
        "figure-3a.rouge.trend": float(loss[-1] - loss[:-1].max()),
    }
    means = {name: one.mean(axis=1).tolist() for name, one in each.items()}
    return Found(values, {"figure-3a texts": Curves("temperature", "ROUGE-2", axis, means)})


EXPERIMENTS: dict[str, Experiment] = {
    "figure-3": figure_3,
    "figure-4": figure_4,
    "figure-3-real": real(figure_3),
    "figure-3-texts": real(rouge),
    "figure-4-real": real(figure_4),
}
