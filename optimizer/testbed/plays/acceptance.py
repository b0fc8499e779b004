"""Rounds of one length on prompt after prompt: how many drafts are accepted."""

from __future__ import annotations

from typing import Any

from specopt.testbed.decoding import Drafter, Drafts, Sampling, Verdict, Verifier
from specopt.testbed.lookup import LookupDrafter
from specopt.testbed.processes import Session


def draft(
    session: Session, prompts: list[list[int]], length: int, rounds: int, sampling: tuple[float, int], lookup: bool
) -> None:
    """Draft, by the model or by looking up repetitions, and learn the verdicts."""
    for task, prompt in enumerate(prompts):
        drafter: Any
        if lookup:
            law = Sampling(temperature=sampling[0], seed=sampling[1])
            drafter = LookupDrafter(session.model.shape.vocabulary, [prompt], law)
        else:
            drafter = _side(Drafter, session, task, prompt, length, rounds, sampling)
        for _ in range(rounds):
            drafts = drafter.draft(length)
            session.peer.send({"tokens": drafts.tokens, "laws": drafts.laws})
            reply = session.peer.receive()
            drafter.settle(drafts.tokens, Verdict(accepted=reply["accepted"], tokens=reply["tokens"]))


def verify(
    session: Session, prompts: list[list[int]], length: int, rounds: int, sampling: tuple[float, int], lookup: bool
) -> list[list[int]]:
    """Verify; return what was accepted, by prompt and round."""
    found = []
    for task, prompt in enumerate(prompts):
        verifier: Any = _side(Verifier, session, task, prompt, length, rounds, sampling)
        counts = []
        for _ in range(rounds):
            content = session.peer.receive()
            verdict = verifier.verify(Drafts(tokens=content["tokens"], laws=content["laws"]))
            session.peer.send({"accepted": verdict.accepted, "tokens": verdict.tokens})
            counts.append(int(verdict.accepted[0]))
        found.append(counts)
    return found


def _side(
    side: type[Drafter | Verifier],
    session: Session,
    task: int,
    prompt: list[int],
    length: int,
    rounds: int,
    sampling: tuple[float, int],
) -> Drafter | Verifier:
    room = len(prompt) + (rounds + 1) * (length + 1)
    law = Sampling(temperature=sampling[0], seed=sampling[1])
    return side(session.model, [task], [prompt], room=room, sampling=law)
