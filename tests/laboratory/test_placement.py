"""Places to draft, carried out by two processes with the tiny pair."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("torch")

from testbed.experiments.placement import by_position
from testbed.plays.placement import Way, play
from testbed.processes import Laboratory

RNG = np.random.default_rng(0)
PROMPTS = [RNG.integers(61, size=size).tolist() for size in (5, 12, 9, 7)]
TOKENS = 9
WAYS = [
    Way(place="none"),
    Way(place="beside", draft_tokens=2),
    Way(place="device", draft_tokens=1),
    Way(place="device", draft_tokens=3, overlap=True),
]


@pytest.fixture(scope="module")
def laboratory() -> Iterator[Laboratory]:
    """Both processes."""
    with Laboratory("tiny") as found:
        yield found


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("clients", [1, 3])
def test_every_place_gives_the_greedy_output(laboratory: Laboratory, way: Way, clients: int) -> None:
    """Tests that each prompt gets the tokens of the verify model alone, and that a turn ends with one of its prompts.

    Several devices are replayed from what each did alone.
    """
    replayed = None
    if clients > 1 and way.place == "device":
        rehearsal = Way(place="device", draft_tokens=way.draft_tokens, overlap=True, rehearsal=True)
        replayed = play(laboratory, rehearsal, PROMPTS, tokens=TOKENS, trips=[0.0]).rounds
    run = play(laboratory, way, PROMPTS, tokens=TOKENS, trips=[0.01, 0.02], clients=clients, replayed=replayed)
    for prompt, output, accepted, (made, seconds) in zip(PROMPTS, run.outputs, run.accepted, run.served, strict=True):
        assert output == laboratory.verify.greedy(prompt, len(output))[0]
        assert len(output) - 1 == made == sum(accepted) + len(accepted)
        assert seconds > 0.0
    turns = [run.served[at : at + clients] for at in range(0, len(PROMPTS), clients)]
    assert all(TOKENS <= max(made for made, _ in turn) <= TOKENS + way.draft_tokens for turn in turns)
    passes = np.array(run.passes)
    assert passes[:, 1].sum() == sum(map(len, run.accepted))
    assert (passes[:, 2] == passes[:, 1] * (way.draft_tokens + 1)).all()
    assert (passes[:, 1] == clients).all() or clients > 1
    assert (passes[:, 4] > passes[:, 5]).all() and (passes[:, 5].max() > 0.0) == (way.place == "beside")


@pytest.mark.parametrize("clients", [1, 4])
def test_drafts_of_devices_wait_for_the_round_trip(laboratory: Laboratory, clients: int) -> None:
    """Tests that each round of a device takes its trip at least, and that another place has none."""
    rehearsal = Way(place="device", draft_tokens=2, overlap=True, rehearsal=True)
    replayed = play(laboratory, rehearsal, PROMPTS, tokens=TOKENS, trips=[0.0]).rounds if clients > 1 else None
    for overlap in (False, True):
        way = Way(place="device", draft_tokens=2, overlap=overlap)
        run = play(laboratory, way, PROMPTS, tokens=TOKENS, trips=[0.1], clients=clients, replayed=replayed)
        for (_, seconds), accepted in zip(run.served, run.accepted, strict=True):
            assert seconds >= 0.1 * len(accepted)
    beside = play(laboratory, Way(place="beside", draft_tokens=2), PROMPTS, tokens=TOKENS, trips=[0.1], clients=clients)
    assert all(seconds < 0.1 * len(one) for (_, seconds), one in zip(beside.served, beside.accepted, strict=True))


def test_what_was_drafted_ahead_is_used_where_it_holds(laboratory: Laboratory) -> None:
    """Tests that a device that was right drafts no more than it drew ahead, and that a rehearsal always drafts anew."""
    ahead = Way(place="device", draft_tokens=1, overlap=True)
    run = play(laboratory, ahead, PROMPTS, tokens=30, trips=[0.05])
    pairs = [pair for rounds in run.rounds for pair in itertools.pairwise(rounds)]
    held = [(one, after) for one, after in pairs if one["hit"]]
    assert held, "the tiny pair agrees now and then"
    for one, after in held:
        assert one["ahead"] == 2
        assert after["draft_seconds"] < 0.02
    rehearsal = Way(place="device", draft_tokens=1, overlap=True, rehearsal=True)
    again = play(laboratory, rehearsal, PROMPTS, tokens=30, trips=[0.0])
    assert again.accepted == run.accepted
    assert all(one["ahead"] == 2 for rounds in again.rounds for one in rounds)
    hits = [[one["hit"] for one in rounds if "hit" in one] for rounds in again.rounds]
    assert hits == [[one["hit"] for one in rounds if "hit" in one] for rounds in run.rounds]


def test_acceptance_by_position_counts_guesses() -> None:
    """Tests that rounds of both lengths count where they looked, and that a guess is the position behind the drafts."""
    devices = [
        {"draft_tokens": 1, "accepted": [[1, 0, 1]], "rounds": [[{"hit": True}, {"hit": False}, {"hit": False}]]},
        {"draft_tokens": 2, "accepted": [[2, 1]], "rounds": [[{"hit": True}, {"hit": False}, {}]]},
    ]
    assert by_position(devices, 2) == pytest.approx([4 / 5, 2 / 4, 1.0])
