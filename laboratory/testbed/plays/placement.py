"""Carry out places to draft: nowhere, beside the verifier, or on devices behind a link, with or
without drafting ahead.

The verify process is one unit. A pass starts when the previous one has ended, and serves all
waiting clients. A device drafts in the draft process. Because several devices would share its core,
they are replayed: each one sends the drafts that it made alone at the time at which it would have
made them. Outputs are greedy. Half of a round trip precedes a message, and half follows the answer.
Rounds in progress at the end of a turn are not counted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from testbed.decoding import Drafter, Drafts, Rows, Sampling, Verdict, Verifier, no_drafts
from testbed.pairs import load_model
from testbed.processes import Laboratory, Session

Recorded = list[dict[str, Any]]
"""Rounds of a device: drafts, guess of the token after them, and seconds of drafting and of
drafting ahead.
"""


@dataclass(frozen=True, kw_only=True)
class Way:
    """The place of drafting.

    Parameters
    ----------
    place
        "none", "beside" or "device".
    draft_tokens
        Draft tokens per round, or 0 for none.
    overlap
        Whether a device drafts ahead.
    rehearsal
        Whether the drafts made ahead are then discarded, so that both are timed in every round.
    """

    place: str
    draft_tokens: int = 0
    overlap: bool = False
    rehearsal: bool = False


@dataclass(frozen=True, kw_only=True)
class Run:
    """The measurements of a run.

    Parameters
    ----------
    served
        For every prompt, the number of tokens up to its last verdict, and the seconds from the
        first token to that verdict.
    passes
        For every pass, the turn, sequences, new tokens, cached tokens, seconds until its verdicts
        were sent, and the part of these seconds in which drafts were made beside it.
    accepted
        Accepted drafts of the rounds of each client, by prompt.
    rounds
        Rounds of devices that were not replayed, by prompt.
    outputs
        Tokens of each prompt.
    """

    served: list[tuple[int, float]]
    passes: list[list[float]]
    accepted: list[list[int]]
    rounds: list[Recorded]
    outputs: list[list[int]]

    @property
    def tokens_per_second(self) -> float:
        """Tokens per second of one client."""
        tokens, seconds = np.sum(self.served, axis=0).tolist()
        return float(tokens / seconds)


def play(
    laboratory: Laboratory,
    way: Way,
    prompts: Sequence[Sequence[int]],
    *,
    tokens: int,
    trips: Sequence[float],
    clients: int = 1,
    replayed: Sequence[Recorded] | None = None,
) -> Run:
    """Serve a number of prompts at a time, until the first prompt of each turn has its tokens.

    Parameters
    ----------
    laboratory
        The processes.
    way, prompts, clients
        Place of drafting, prompts, and number of prompts at a time.
    tokens
        A turn ends when one of its clients has this number of tokens.
    trips
        Seconds of the round trips, in order.
    replayed
        Rounds of the device of each prompt. None means that the draft process is the device.
    """
    laboratory.play(
        "placement",
        way=asdict(way),
        prompts=[list(prompt) for prompt in prompts],
        tokens=tokens,
        trips=list(trips),
        clients=clients,
        replayed=None if replayed is None else list(replayed),
    )
    rounds, told = laboratory.finish()
    return Run(rounds=rounds, **told)


@dataclass
class _Order:
    """Instructions for both sides."""

    way: dict[str, Any]
    prompts: list[list[int]]
    tokens: int
    trips: list[float]
    clients: int
    replayed: list[Recorded] | None

    def __post_init__(self) -> None:
        self.drafting = Way(**self.way)

    @property
    def turns(self) -> list[list[int]]:
        """Prompts that are served at a time."""
        tasks = list(range(len(self.prompts)))
        return [tasks[at : at + self.clients] for at in range(0, len(tasks), self.clients)]

    def side(self, kind: type[Drafter | Verifier], model: Any, tasks: list[int]) -> Any:
        """Return one side of some prompts."""
        prompts = [self.prompts[task] for task in tasks]
        room = max(map(len, prompts)) + self.tokens + 3 * self.drafting.draft_tokens + 4
        return kind(model, tasks, prompts, room=room, sampling=Sampling())

    def half_trip(self, task: int, number: int) -> float:
        """Return half of the round trip of a prompt's round."""
        return 0.5 * self.trips[(task + len(self.prompts) * number) % len(self.trips)]


# ------------------------------------------------------------------ the unit


def verify(session: Session, **content: Any) -> dict[str, Any]:
    """Play the unit."""
    order = _Order(**content)
    turns = [_Turn(session, order, number, tasks) for number, tasks in enumerate(order.turns)]
    return {
        "served": [one for turn in turns for one in turn.serve()],
        "passes": [row for turn in turns for row in turn.passes],
        "accepted": [one for turn in turns for one in turn.accepted.values()],
        "outputs": [one for turn in turns for one in turn.outputs],
    }


@cache
def _beside(pair: str) -> Any:
    return load_model(pair, "draft")


class _Turn:
    """Clients that are served together, from their first tokens."""

    def __init__(self, session: Session, order: _Order, number: int, tasks: list[int]) -> None:
        self.session, self.order, self.number, self.tasks = session, order, number, tasks
        self.passes: list[list[float]] = []
        self.accepted: dict[int, list[int]] = {task: [] for task in tasks}
        self.outputs: list[list[int]] = []
        self.latest = 0.0

    def serve(self) -> list[tuple[int, float]]:
        """Return the tokens of each client, and the seconds until its last verdict."""
        order, rows = self.order, Rows()
        rows.place(self.tasks, order.side(Verifier, self.session.model, self.tasks))
        drafter = (
            order.side(Drafter, _beside(self.session.pair), self.tasks)
            if self._is("beside")
            else None
        )
        first = rows.batch(self.tasks).step()
        if drafter is not None:
            drafter.logits(no_drafts(len(self.tasks)), 1)
            drafter.settle(no_drafts(len(self.tasks)), first)
        begin = time.monotonic()
        last = dict.fromkeys(self.tasks, begin)
        self._tell(self.tasks, first, 0)
        made = {task: len(rows.tokens(task)) for task in self.tasks}
        goal = {task: most + order.tokens for task, most in made.items()}
        while all(len(rows.tokens(task)) < goal[task] for task in self.tasks):
            tasks, tokens = self._waiting()
            start, drafting = time.monotonic(), 0.0
            if drafter is not None:
                tokens = drafter.draft(order.drafting.draft_tokens).tokens
                drafting = time.monotonic() - start
            cached = sum(len(rows.tokens(task)) - 1 for task in tasks)
            verdict = rows.batch(tasks).verify(Drafts(tokens=tokens, laws=None))
            if drafter is not None:
                drafter.settle(tokens, verdict)
            for task, accepted in zip(tasks, verdict.accepted.tolist(), strict=True):
                self.accepted[task].append(accepted)
            self._tell(tasks, verdict, tokens.shape[1])
            end = time.monotonic()
            last |= dict.fromkeys(tasks, end)
            new = tokens.size + len(tasks)
            self.passes.append([self.number, len(tasks), new, cached, end - start, drafting])
        self.outputs = [rows.tokens(task)[len(order.prompts[task]) :] for task in self.tasks]
        if self._is("device"):
            self._end()
        return [(len(rows.tokens(task)) - made[task], last[task] - begin) for task in self.tasks]

    def _is(self, place: str) -> bool:
        return self.order.drafting.place == place

    def _waiting(self) -> tuple[list[int], Any]:
        """Wait for drafts, and return the clients whose drafts have arrived, with these drafts.
        Without devices, return all clients.
        """
        if not self._is("device"):
            return self.tasks, no_drafts(len(self.tasks))
        peer = self.session.peer
        found = [peer.receive()]
        while peer.ready():
            found.append(peer.receive())
        found.sort(key=lambda one: one["task"])
        return [one["task"] for one in found], np.array(
            [one["tokens"] for one in found], dtype=np.int64
        )

    def _tell(self, tasks: list[int], verdict: Verdict, length: int) -> None:
        if not self._is("device"):
            return
        now = time.monotonic()
        for row, task in enumerate(tasks):
            due = now + self.order.half_trip(task, len(self.accepted[task]))
            said = {
                "accepted": int(verdict.accepted[row]),
                "token": int(verdict.tokens[row]),
                "drafted": length,
            }
            self.latest = max(self.latest, self.session.peer.send({"task": task, **said}, due=due))

    def _end(self) -> None:
        """Send the last answers to the devices, and receive the drafts in progress."""
        self.session.peer.send({"over": True}, due=self.latest)
        while "over" not in self.session.peer.take()[1]:
            pass


# ------------------------------------------------------------------ devices


def draft(session: Session, **content: Any) -> list[Recorded]:
    """Play the devices."""
    order = _Order(**content)
    found: list[Recorded] = []
    if order.drafting.place == "device":
        for tasks in order.turns:
            if order.replayed is None:
                (task,) = tasks
                found.append(_Device(session, order, task).serve())
            else:
                _replay(session, order, tasks)
    return found


class _Device:
    """A device that drafts, and continues ahead of the answer if allowed."""

    def __init__(self, session: Session, order: _Order, task: int) -> None:
        self.peer, self.order, self.task = session.peer, order, task
        self.length = order.drafting.draft_tokens
        self.side: Drafter = order.side(Drafter, session.model, [task])
        self.side.logits(no_drafts(1), 1)
        self.drawn: list[int] = []

    def serve(self) -> Recorded:
        """Draft until the turn is over."""
        found: Recorded = []
        due = 0.0
        while "over" not in (said := self.peer.receive()):
            begin = time.monotonic()
            hit = self._settle(said)
            if found:
                found[-1]["hit"] = hit
            while len(self.drawn) < self.length:
                self._draw()
            now = time.monotonic()
            tokens = self.drawn[: self.length]
            due = now + self.order.half_trip(self.task, len(found))
            self.peer.send({"task": self.task, "tokens": tokens}, due=due)
            found.append({"tokens": tokens, "draft_seconds": now - begin})
            if self.order.drafting.overlap:
                found[-1] |= self._ahead(now)
        self.peer.send({"over": True}, due=due)
        return found

    def _ahead(self, begin: float) -> dict[str, Any]:
        """Draft a guess and a number of tokens after it, or until the answer arrives."""
        while len(self.drawn) < 2 * self.length + 1 and (
            self.order.drafting.rehearsal or not self.peer.ready()
        ):
            self._draw()
        ahead = self.drawn[self.length :]
        return {"ahead": len(ahead), "guess": ahead[:1], "ahead_seconds": time.monotonic() - begin}

    def _draw(self) -> None:
        logits = self.side.logits(np.array([self.drawn[-1:]], dtype=np.int64), 1)
        self.drawn.append(int(logits[0, 0].argmax()))

    def _settle(self, said: dict[str, Any]) -> bool:
        """Receive an answer, and return whether the drafts made ahead are valid."""
        length = said["drafted"]
        hit: bool = (
            said["accepted"] == length < len(self.drawn) and self.drawn[length] == said["token"]
        )
        if hit and not self.order.drafting.rehearsal:
            self.side.tokens[0] += self.drawn[: length + 1]
            self.drawn = self.drawn[length + 1 :]
        else:
            verdict = Verdict(
                accepted=np.array([said["accepted"]]), tokens=np.array([said["token"]])
            )
            self.side.settle(np.array([self.drawn[:length]], dtype=np.int64), verdict)
            self.drawn = []
        return hit


def _replay(session: Session, order: _Order, tasks: list[int]) -> None:
    """Play devices with known rounds. Each message is due when it would have arrived."""
    assert order.replayed is not None, "somebody recorded them"
    number, sent, due = dict.fromkeys(tasks, 0), dict.fromkeys(tasks, 0.0), 0.0
    while "over" not in (item := session.peer.take())[1]:
        told, said = item
        task = said["task"]
        at, known = number[task], order.replayed[task]
        one, before = (known[min(place, len(known) - 1)] for place in (at, max(at - 1, 0)))
        ready = told + one["draft_seconds"]
        held = [said["token"]] == before["guess"] and said["accepted"] == said["drafted"]
        if order.drafting.overlap and at and held:
            ready = max(told, sent[task] + before["ahead_seconds"])
        sent[task], number[task] = ready, at + 1
        arrives = ready + order.half_trip(task, at)
        due = max(due, session.peer.send({"task": task, "tokens": one["tokens"]}, due=arrives))
    session.peer.send({"over": True}, due=due)
