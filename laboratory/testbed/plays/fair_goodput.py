"""Carry out rounds of fair-goodput: clients draft the number of tokens of each round, and the
server verifies them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specopt.models.fields import Ints
from testbed.decoding import Drafter, Drafts, Sampling, Verdict, Verifier
from testbed.processes import Laboratory, Session


def play(
    laboratory: Laboratory,
    rounds: Sequence[Sequence[int]],
    prompts: Sequence[Sequence[Sequence[int]]],
    *,
    per_prompt: int,
    sampling: Sampling,
) -> Ints:
    """Play rounds and return the accepted drafts, shape (rounds, clients).

    Parameters
    ----------
    laboratory
        The processes.
    rounds
        Draft tokens of each client, by round.
    prompts
        Prompts of each client, which changes to its next one after `per_prompt` rounds.
    per_prompt, sampling
        Rounds per prompt, and the rule for choosing tokens.
    """
    laboratory.play(
        "fair_goodput",
        rounds=[list(one) for one in rounds],
        prompts=[[list(prompt) for prompt in own] for own in prompts],
        per_prompt=per_prompt,
        sampling=vars(sampling),
    )
    accepted, _ = laboratory.finish()
    return np.array(accepted, dtype=np.int64)


def draft(session: Session, **content: Any) -> list[list[int]]:
    """Play all clients. Each one drafts and sends, then all of them receive their verdicts."""
    order = _Order(**content)
    found = []
    for number, lengths in enumerate(order["rounds"]):
        if number % order["per_prompt"] == 0:
            clients = order.sides(Drafter, session.model, number)
        sent = []
        for client, length in zip(clients, lengths, strict=True):
            sent.append(client.draft(length))
            session.peer.send(vars(sent[-1]))
        accepted = []
        for client, drafts in zip(clients, sent, strict=True):
            verdict = Verdict(**session.peer.receive())
            client.settle(drafts.tokens, verdict)
            accepted.append(int(verdict.accepted[0]))
        found.append(accepted)
    return found


def verify(session: Session, **content: Any) -> None:
    """Play the server, which verifies one client after the other."""
    order = _Order(**content)
    for number in range(len(order["rounds"])):
        if number % order["per_prompt"] == 0:
            clients = order.sides(Verifier, session.model, number)
        for client in clients:
            session.peer.send(vars(client.verify(Drafts(**session.peer.receive()))))


class _Order(dict[str, Any]):
    """Instructions for both sides."""

    def sides(self, kind: type[Drafter | Verifier], model: Any, number: int) -> list[Any]:
        """Return one side of every client's prompt that begins in round `number`."""
        law = Sampling(**self["sampling"])
        turn = number // self["per_prompt"]
        longest = max(map(max, self["rounds"]))
        found = []
        for client, own in enumerate(self["prompts"]):
            prompt = own[turn % len(own)]
            room = len(prompt) + (self["per_prompt"] + 1) * (longest + 1)
            found.append(
                kind(
                    model, [client + turn * len(self["prompts"])], [prompt], room=room, sampling=law
                )
            )
        return found
