"""Draft control: policies of several methods, and random ones, over a Markov channel at temperature
1.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.draft_control.problem import (
    ChannelState,
    DraftChoice,
    DraftControlPlan,
    DraftControlProblem,
)
from specopt.models.markov_chain import TransitionMatrix
from specopt.models.rates import SecondsByLength
from testbed.calibration import acceptance_rate
from testbed.decoding import Sampling
from testbed.experiments import plans_of_methods
from testbed.pairs import draw_prompts
from testbed.plays.draft_control import Round, play, rounds_of
from testbed.processes import Laboratory
from testbed.records import Keep

KIND = DraftControlProblem.kind
OURS, RIVALS = "policy-iteration", ("best-static", "decoupled", "myopic", "no-drafts")

METHODS = (OURS, *RIVALS)
"""Methods whose policies are played: ours, the static search of the paper, and three simpler
ones.
"""

WALKS = 200

LABELS = {"drafts or not": 0, "drafts always": 1}
"""Minimum draft length that policies may choose."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the plays.

    Parameters
    ----------
    uplink_bits_per_second
        Rates of the channel's states. Each scene multiplies them by its own factor.
    factors
        Factors, one per scene.
    stay
        Probability that the channel remains in its state for another round. Otherwise it changes to
        any other state.
    downlink_bits_per_second
        Rate in every state.
    resolutions, max_draft_length
        Choices of the device.
    rounds, per_prompt
        Rounds of a play, and of each prompt in it. All kinds of task occur equally often.
    known_rounds
        Rounds at each resolution and draft length that determine acceptance and times, on other
        prompts of all kinds.
    random_plans
        Random policies per scene and label, in addition to those of the methods.
    repeats
        Number of plays of each policy, with different random numbers.
    temperature
        Temperature of sampling, above 0.
    seed
        Seed of all random numbers.
    """

    uplink_bits_per_second: tuple[float, ...] = (2e5, 5e4, 1e4)
    factors: tuple[float, ...] = (1.0, 0.5)
    stay: float = 0.8
    downlink_bits_per_second: float = 1e6
    resolutions: tuple[int, ...] = (8, 32, 128)
    max_draft_length: int = 4
    rounds: int = 96
    per_prompt: int = 3
    known_rounds: int = 96
    random_plans: int = 2
    repeats: int = 2
    temperature: float = 1.0
    seed: int = 0


TINY = Settings(
    uplink_bits_per_second=(5e4, 1e4),
    resolutions=(4, 16),
    rounds=12,
    per_prompt=6,
    known_rounds=12,
    random_plans=1,
    repeats=2,
    max_draft_length=3,
)
"""Settings for tests, which are played in seconds."""


def prepare(laboratory: Laboratory, settings: Settings, keep: Keep) -> dict[str, Any]:
    """Play rounds on other prompts of every kind, and record problems, policies and predictions."""
    length = settings.max_draft_length
    per_prompt = settings.per_prompt
    known = draw_prompts(
        laboratory.pair, -(-settings.known_rounds // per_prompt), played=False, seed=settings.seed
    )

    def measure() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for resolution in settings.resolutions:
            for drafted in range(length + 1):
                free = [
                    Round(drafted, resolution, float("inf"), float("inf"))
                ] * settings.known_rounds
                luck = Sampling(
                    temperature=settings.temperature, seed=settings.seed + 1000 + len(found)
                )
                run = play(laboratory, free, known, per_prompt=per_prompt, sampling=luck)
                found.append({"length": drafted, "resolution": resolution, **vars(run)})
        return found

    rounds = keep("known", measure)
    data: dict[str, Any] = {
        "models": {
            worker.side: worker.config.name for worker in (laboratory.draft, laboratory.verify)
        },
        "known": rounds,
        "problems": [],
        "prompts": draw_prompts(laboratory.pair, -(-settings.rounds // per_prompt), played=True),
        "states": [],
        "trials": [],
    }
    random = np.random.default_rng(settings.seed)
    for scene, factor in enumerate(settings.factors):
        problem = problem_of(rounds, settings, factor, laboratory.verify.config.exact.vocabulary)
        data["states"].append(walk(problem, settings.rounds, random))
        for label, least in LABELS.items():
            place = len(data["problems"])
            problem = dataclasses.replace(problem, draft_lengths=(least, length))
            data["problems"].append(problem.to_dict())
            for names, plan in plans_of(problem, settings, random):
                predicted = predict(problem, plan, data["states"][scene])
                trial = {
                    "scene": scene,
                    "label": label,
                    "problem": place,
                    "methods": names,
                    "plan": plan.to_dict(),
                }
                data["trials"].append({**trial, "predicted": predicted, "measured": []})
    return data


def problem_of(
    known: list[dict[str, Any]], settings: Settings, factor: float, vocabulary: int
) -> DraftControlProblem:
    """Return the problem of a channel, based on the rounds on other prompts.

    Acceptance is that of all drafts at a resolution. The time of a draft is the mean over the
    longest rounds. The remaining time of a round over a free link, by the number of drafts, is
    treated as verification.
    """
    length, count = settings.max_draft_length, len(settings.uplink_bits_per_second)
    longest = [one for one in known if one["length"] == length]
    at = [
        [one for one in known if one["resolution"] == resolution]
        for resolution in settings.resolutions
    ]
    rates = np.array(
        [
            acceptance_rate([one["accepted"] for one in alike], [one["length"] for one in alike])
            for alike in at
        ]
    )
    by_length = [
        [one for one in known if one["length"] == drafted] for drafted in range(length + 1)
    ]
    verify = [
        np.mean([np.subtract(one["seconds"], one["draft_seconds"]) for one in alike])
        for alike in by_length
    ]
    leave = (1.0 - settings.stay) / max(count - 1, 1)
    chain = np.full((count, count), leave) + (settings.stay - leave) * np.eye(count)
    return DraftControlProblem(
        vocabulary_size=vocabulary,
        draft_seconds_per_token=float(np.mean([one["draft_seconds"] for one in longest])) / length,
        verify_seconds=SecondsByLength(np.array(verify)),
        draft_lengths=(0, settings.max_draft_length),
        resolutions=np.array(settings.resolutions),
        states=tuple(
            ChannelState(
                uplink_bits_per_second=factor * rate,
                acceptance_rates=rates,
                downlink_bits_per_second=settings.downlink_bits_per_second,
            )
            for rate in settings.uplink_bits_per_second
        ),
        transition=TransitionMatrix(chain),
    )


def walk(problem: DraftControlProblem, rounds: int, random: np.random.Generator) -> list[int]:
    """Return the states of the channel for each round: of many walks, the one whose shares are
    closest to those in the long run.
    """
    count, law = len(problem.states), problem.stationary_distribution

    def drawn() -> list[int]:
        states = [int(random.choice(count, p=law))]
        for _ in range(rounds - 1):
            states.append(int(random.choice(count, p=problem.transition.rows[states[-1]])))
        return states

    def distance(states: list[int]) -> float:
        return float(np.abs(np.bincount(states, minlength=count) / rounds - law).max())

    return min((drawn() for _ in range(WALKS)), key=distance)


def plans_of(
    problem: DraftControlProblem, settings: Settings, random: np.random.Generator
) -> list[tuple[list[str], DraftControlPlan]]:
    """Return the policies of the methods, each once, followed by random ones."""
    found = plans_of_methods((problem,), DraftControlPlan, METHODS, settings.seed)
    for number in range(settings.random_plans):
        choices = tuple(
            DraftChoice(
                draft_length=int(
                    random.integers(problem.draft_lengths[0], settings.max_draft_length + 1)
                ),
                resolution=int(random.choice(settings.resolutions)),
            )
            for _ in problem.states
        )
        found.append(([f"random-{number + 1}"], DraftControlPlan(policy=choices)))
    return found


def predict(
    problem: DraftControlProblem, plan: DraftControlPlan, states: list[int]
) -> dict[str, dict[str, float]]:
    """Return the rate in the long run, and the rate over the actual sequence of states of the
    channel.
    """
    tokens = sum(problem.iteration_tokens(state, plan.policy[state]) for state in states)
    seconds = sum(problem.iteration_seconds(state, plan.policy[state]) for state in states)
    return {
        "model": {"tokens_per_second": problem.evaluate(plan).objective},
        "trace": {"tokens_per_second": tokens / seconds},
    }


def carry_out(
    laboratory: Laboratory, data: dict[str, Any], trial: dict[str, Any]
) -> dict[str, Any]:
    """Play a policy over the scene's states."""
    settings = data["settings"]
    problem = DraftControlProblem.from_dict(data["problems"][trial["problem"]])
    plan = DraftControlPlan.from_dict(trial["plan"])
    sampling = Sampling(
        temperature=settings["temperature"], seed=settings["seed"] + len(trial["measured"])
    )
    rounds = rounds_of(problem, plan, data["states"][trial["scene"]])
    run = play(
        laboratory, rounds, data["prompts"], per_prompt=settings["per_prompt"], sampling=sampling
    )
    return {
        "tokens_per_second": float((run.accepted + 1).sum() / run.seconds.sum()),
        "seconds": run.seconds,
        "draft_seconds": run.draft_seconds,
        "verify_seconds": run.verify_seconds,
        "accepted": run.accepted,
    }
