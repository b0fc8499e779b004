"""Places to draft, carried out by two processes with the tiny pair."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from testbed.experiments.placement import by_position, pace, pieces_of
from testbed.plays.placement import Way, _Order, _replay, play
from testbed.processes import Laboratory
from testbed.studies.places import choices

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
def test_every_place_gives_the_greedy_output(
    laboratory: Laboratory, way: Way, clients: int
) -> None:
    """Tests that each prompt gets the tokens of the verify model alone, and that a turn ends when
    one of its prompts is finished.

    Several devices are replayed from the recordings of each device alone.
    """
    replayed = None
    if clients > 1 and way.place == "device":
        rehearsal = Way(place="device", draft_tokens=way.draft_tokens, overlap=True, rehearsal=True)
        replayed = play(laboratory, rehearsal, PROMPTS, tokens=TOKENS, trips=[0.0]).rounds
    run = play(
        laboratory,
        way,
        PROMPTS,
        tokens=TOKENS,
        trips=[0.01, 0.02],
        clients=clients,
        replayed=replayed,
    )
    for prompt, output, accepted, (made, seconds) in zip(
        PROMPTS, run.outputs, run.accepted, run.served, strict=True
    ):
        assert output == laboratory.verify.greedy(prompt, len(output))[0]
        assert len(output) - 1 == made == sum(accepted) + len(accepted)
        assert seconds > 0.0
    turns = [run.served[at : at + clients] for at in range(0, len(PROMPTS), clients)]
    assert all(
        TOKENS <= max(made for made, _ in turn) <= TOKENS + way.draft_tokens for turn in turns
    )
    passes = np.array(run.passes)
    assert passes[:, 1].sum() == sum(map(len, run.accepted))
    assert (passes[:, 2] == passes[:, 1] * (way.draft_tokens + 1)).all()
    sizes = [len(turn) for turn in turns]
    of_turn = np.array(sizes)[passes[:, 0].astype(int)]
    assert (passes[:, 1] <= of_turn).all() and (
        (passes[:, 1] == of_turn).all() or way.place == "device"
    )
    assert (passes[:, 4] > passes[:, 5]).all() and (passes[:, 5].max() > 0.0) == (
        way.place == "beside"
    )


@pytest.mark.parametrize("clients", [1, 4])
def test_drafts_of_devices_wait_for_the_round_trip(laboratory: Laboratory, clients: int) -> None:
    """Tests that each round of a device takes at least its round trip, and that other places have
    none.
    """
    rehearsal = Way(place="device", draft_tokens=2, overlap=True, rehearsal=True)
    replayed = (
        play(laboratory, rehearsal, PROMPTS, tokens=TOKENS, trips=[0.0]).rounds
        if clients > 1
        else None
    )
    for overlap in (False, True):
        way = Way(place="device", draft_tokens=2, overlap=overlap)
        run = play(
            laboratory, way, PROMPTS, tokens=TOKENS, trips=[0.1], clients=clients, replayed=replayed
        )
        for (_, seconds), accepted in zip(run.served, run.accepted, strict=True):
            assert seconds >= 0.1 * len(accepted)
    beside = play(
        laboratory,
        Way(place="beside", draft_tokens=2),
        PROMPTS,
        tokens=TOKENS,
        trips=[0.1],
        clients=clients,
    )
    assert all(
        seconds < 0.1 * len(one)
        for (_, seconds), one in zip(beside.served, beside.accepted, strict=True)
    )


def test_what_was_drafted_ahead_is_used_where_it_holds(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a device with a correct guess sends the tokens drafted ahead, and that a rehearsal
    always drafts again.
    """
    ahead = Way(place="device", draft_tokens=1, overlap=True)
    run = play(laboratory, ahead, PROMPTS, tokens=30, trips=[0.05])
    pairs = [pair for rounds in run.rounds for pair in itertools.pairwise(rounds)]
    held = {
        hit: [after["draft_seconds"] for one, after in pairs if one["hit"] == hit]
        for hit in (False, True)
    }
    assert min(map(len, held.values())) >= 3, "the tiny pair agrees now and then"
    assert np.median(held[True]) < 0.5 * np.median(held[False])
    assert all(one["ahead"] == 2 for one, _ in pairs)
    rehearsal = Way(place="device", draft_tokens=1, overlap=True, rehearsal=True)
    again = play(laboratory, rehearsal, PROMPTS, tokens=30, trips=[0.0])
    assert again.accepted == run.accepted
    assert all(one["ahead"] == 2 for rounds in again.rounds for one in rounds)
    hits = [[one["hit"] for one in rounds if "hit" in one] for rounds in again.rounds]
    assert hits == [[one["hit"] for one in rounds if "hit" in one] for rounds in run.rounds]


class _Peer:
    """A peer that sends answers, and stores the received messages."""

    def __init__(self, answers: list[tuple[float, dict[str, Any]]]) -> None:
        self.answers, self.sent = answers, list[tuple[float, dict[str, Any]]]()

    def take(self) -> tuple[float, dict[str, Any]]:
        return self.answers.pop(0)

    def send(self, content: dict[str, Any], *, due: float) -> float:
        self.sent.append((due, content))
        return due


@pytest.mark.parametrize(("overlap", "second"), [(False, 10.6), (True, 10.55)])
def test_replayed_devices_send_when_they_would_have(overlap: bool, second: float) -> None:
    """Tests that drafts are due after drafting and half of the trip, or as soon as the tokens
    drafted ahead are ready.
    """
    known = [
        {"tokens": [number], "guess": [7], "draft_seconds": 0.2, "ahead_seconds": 0.35, "hit": True}
        for number in range(4)
    ]
    order = _Order(
        way=asdict(Way(place="device", draft_tokens=1, overlap=overlap)),
        prompts=[[1]],
        tokens=9,
        trips=[0.2],
        clients=1,
        replayed=[known],
    )
    answers: list[tuple[float, dict[str, Any]]] = [
        (
            9.9,
            {"task": 0, "accepted": 0, "token": 5, "drafted": 0},
        ),  # the first token: drafts leave at 10.1
        (
            10.3,
            {"task": 0, "accepted": 1, "token": 7, "drafted": 1},
        ),  # right: two more were ready at 10.45
        (
            11.0,
            {"task": 0, "accepted": 1, "token": 8, "drafted": 1},
        ),  # a token that differs from the guess
        (12.0, {"task": 0, "accepted": 0, "token": 7, "drafted": 1}),  # a draft was wrong
        (12.0, {"over": True}),
    ]
    session = SimpleNamespace(peer=_Peer(answers))
    _replay(session, order, [0])  # type: ignore[arg-type]
    dues, said = zip(*session.peer.sent, strict=True)
    assert dues == pytest.approx([10.2, second, 11.3, 12.3, 12.3])
    assert [one.get("tokens") for one in said] == [[0], [1], [2], [3], None]


def _record(rows: list[tuple[int, str, float, list[float]]]) -> dict[str, Any]:
    trials = [
        {
            "scene": scene,
            "label": "places",
            "methods": [label],
            "clients": 1,
            "round_trip_seconds": 0.1 * scene,
            "predicted": {"model": {"tokens_per_second": predicted}},
            "measured": [{"tokens_per_second": one} for one in measured],
        }
        for scene, label, predicted, measured in rows
    ]
    return {"kind": "placement", "pair": "x", "trials": trials}


@pytest.mark.parametrize(
    ("best", "said"),
    [
        (("device-1", 9.0, [8.0, 9.0]), "the best"),
        (("beside-1", 9.0, [10.1, 10.2]), "within 3%"),
        (("device-3", 9.0, [11.0, 11.0]), "best place, other length"),
        (("beside-3", 9.0, [10.2, 12.4]), "not told apart"),
        (("beside-3", 9.0, [11.0, 11.0]), "worse"),
    ],
)
def test_a_choice_is_judged_by_what_it_loses(
    best: tuple[str, float, list[float]], said: str
) -> None:
    """Tests that every verdict occurs, and that baselines of other scenes are those without
    devices.
    """
    rows = [
        (0, "none", 5.0, [5.0, 5.0]),
        (0, "device-5", 20.0, [20.0, 20.0]),
        (1, "device-1", 10.0, [9.9, 10.2]),
    ]
    _, found = choices(_record([*rows, (int(best[0].startswith("device")), *best)]))
    assert (found.verdict, found.chosen.methods) == (said, ("device-1",))
    assert found.round_trip_seconds == pytest.approx(0.1)


def test_acceptance_by_position_counts_guesses() -> None:
    """Tests that rounds of both lengths are counted at their verified positions, and that a guess
    is the position after the drafts.
    """
    devices = [
        {
            "draft_tokens": 1,
            "accepted": [[1, 0, 1]],
            "rounds": [[{"hit": True}, {"hit": False}, {"hit": False}]],
        },
        {"draft_tokens": 2, "accepted": [[2, 1]], "rounds": [[{"hit": True}, {"hit": False}, {}]]},
    ]
    assert by_position(devices, 2, alike=False) == pytest.approx([4 / 5, 2 / 4, 1.0])
    looked = [3 / 3 + 2 / 2, 2 / 3 + 2 / 2, 1 / 2]  # a round is weighted by the share of its prompt
    accepted = [2 / 3 + 2 / 2, 1 / 3 + 1 / 2, 1 / 2]
    assert by_position(devices, 2, alike=True) == pytest.approx(np.divide(accepted, looked))


def test_the_pace_is_what_passes_between_the_plays_are_off_by() -> None:
    """Tests that a machine that takes twice as long as before has a pace of 2, including drafts
    beside it.

    Passes of more sequences than clients are ignored.
    """

    def row(batch: float, length: int, factor: float) -> list[float]:
        drafting = length * (0.01 + 0.002 * batch)
        verify = 0.05 + 0.01 * batch + 0.004 * batch * (length + 1)
        return [
            0.0,
            batch,
            batch * (length + 1),
            50.0 * batch,
            factor * (verify + drafting),
            factor * drafting,
        ]

    grid = [(batch, length) for batch in (1.0, 2.0, 4.0) for length in (0, 1, 3)]
    passes: list[dict[str, Any]] = [
        {"draft_tokens": n, "passes": [row(batch, n, 1.0), row(batch, n, 1.0)]} for batch, n in grid
    ]
    verify, beside = pieces_of(passes, 4)
    assert verify.at(2, 6, 0) == pytest.approx(0.094) and beside.at(3, 3, 0) == pytest.approx(0.016)
    slow = [
        one if one["passes"][0][1] < 4 else {**one, "passes": [row(4.0, one["draft_tokens"], 9.0)]}
        for one in passes
    ]
    assert pieces_of(slow, 2)[0].at(2, 6, 0) == pytest.approx(0.094)
    between = [{"pace": [row(1.0, 3, 2.0)]}, {"pace": [row(1.0, 3, 2.0)]}]
    assert pace({"passes": passes, "trials": [{"measured": between}]}) == pytest.approx(
        2.0, rel=1e-6
    )
