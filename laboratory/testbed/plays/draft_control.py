"""Carry out policies of draft-control: quantised drafts over an uplink whose rate changes from
round to round.

The device drafts from distributions that are quantised to a lattice, and sends tokens and codewords
with the number of bits of the codes. The server decodes and verifies them. The first round of each
prompt, with its prefill, has no drafts and is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from papers.lattice_points import nearest_counts, quantised

from specopt.models.draft_control.problem import DraftControlPlan, DraftControlProblem
from specopt.models.fields import Floats, Ints
from testbed.codes.lattice_code import decode_lattice, encode_lattice
from testbed.decoding import Drafter, Drafts, Sampling, Verdict, Verifier, no_drafts
from testbed.processes import Laboratory, Session
from testbed.shaper import Link


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """The measurements of a run, with one entry per counted round.

    Parameters
    ----------
    seconds, draft_seconds, verify_seconds
        Seconds of the round, of drafting, quantising and encoding, and of decoding and verifying.
    accepted
        Accepted drafts.
    """

    seconds: Floats
    draft_seconds: Floats
    verify_seconds: Floats
    accepted: Ints


@dataclass(frozen=True)
class Round:
    """The action of the device in a round, and the links."""

    length: int
    resolution: int
    uplink_bits_per_second: float
    downlink_bits_per_second: float


def rounds_of(
    problem: DraftControlProblem, plan: DraftControlPlan, states: Sequence[int]
) -> list[Round]:
    """Return the rounds of a policy while the channel passes through states."""
    found = []
    for state in states:
        choice, channel = plan.policy[state], problem.states[state]
        downlink = channel.downlink_bits_per_second
        rates = (channel.uplink_bits_per_second, float("inf") if downlink is None else downlink)
        found.append(Round(choice.draft_length, choice.resolution, *rates))
    return found


def play(
    laboratory: Laboratory,
    rounds: Sequence[Round],
    prompts: Sequence[Sequence[int]],
    *,
    per_prompt: int,
    sampling: Sampling,
) -> Run:
    """Play rounds, with the same number on each prompt in turn."""
    laboratory.play(
        "draft_control",
        prompts=[list(prompt) for prompt in prompts],
        lengths=[one.length for one in rounds],
        resolutions=[one.resolution for one in rounds],
        uplinks=[one.uplink_bits_per_second for one in rounds],
        downlinks=[one.downlink_bits_per_second for one in rounds],
        per_prompt=per_prompt,
        sampling=vars(sampling),
    )
    told, verified = laboratory.finish()
    return Run(
        seconds=np.array(told["seconds"]),
        draft_seconds=np.array(told["draft_seconds"]),
        verify_seconds=np.array(verified),
        accepted=np.array(told["accepted"], dtype=np.int64),
    )


@dataclass
class _Order:
    """Instructions for both sides."""

    prompts: list[list[int]]
    lengths: list[int]
    resolutions: list[int]
    uplinks: list[float]
    downlinks: list[float]
    per_prompt: int
    sampling: dict[str, Any]

    def side(self, kind: type[Drafter | Verifier], model: Any, number: int) -> Any:
        """Return one side of the prompt that begins in round `number`."""
        task = number // self.per_prompt
        prompt = self.prompts[task % len(self.prompts)]
        room = len(prompt) + (self.per_prompt + 2) * (max(self.lengths) + 1)
        law = Sampling(**self.sampling)
        return kind(model, [task], [prompt], room=room, sampling=law)


def draft(session: Session, **content: Any) -> dict[str, Any]:
    """Play the device."""
    order = _Order(**content)
    vocabulary = session.model.shape.vocabulary
    token_bits = (vocabulary - 1).bit_length()
    found: dict[str, list[float]] = {"seconds": [], "draft_seconds": [], "accepted": []}
    drafter: Drafter
    for number, (length, resolution) in enumerate(
        zip(order.lengths, order.resolutions, strict=True)
    ):
        if number % order.per_prompt == 0:
            drafter = order.side(Drafter, session.model, number)
            drafter.logits(no_drafts(1), 1)
            session.peer.shape(Link())
            session.peer.send({})
            _learn(session, drafter, no_drafts(1))
        session.peer.shape(Link(rates_bits_per_second=(order.uplinks[number],)))
        begin = time.monotonic()
        words: list[str] = []

        def coarsen(laws: Floats, resolution: int = resolution, words: list[str] = words) -> Floats:
            counts = nearest_counts(laws, resolution)
            words.append(encode_lattice(counts[0]))
            found: Floats = quantised(counts)
            return found

        drafts = drafter.draft(length, coarsen)
        drafted = time.monotonic()
        packed = [int(word, 2).to_bytes(-(-len(word) // 8)) for word in words]
        bits = sum(token_bits + len(word) for word in words)
        session.peer.send({"tokens": drafts.tokens, "words": packed}, bits=bits)
        verdict = _learn(session, drafter, drafts.tokens)
        found["seconds"].append(time.monotonic() - begin)
        found["draft_seconds"].append(drafted - begin)
        found["accepted"].append(int(verdict.accepted[0]))
    return found


def verify(session: Session, **content: Any) -> list[float]:
    """Play the server, and return its seconds of each counted round."""
    from specopt.models.codes.lattice import distribution_bits

    order = _Order(**content)
    vocabulary = session.model.shape.vocabulary
    token_bits = (vocabulary - 1).bit_length()
    seconds = []
    verifier: Verifier
    for number, (length, resolution) in enumerate(
        zip(order.lengths, order.resolutions, strict=True)
    ):
        if number % order.per_prompt == 0:
            verifier = order.side(Verifier, session.model, number)
            session.peer.receive()
            session.peer.shape(Link())
            session.peer.send(vars(verifier.step()), bits=0.0)
        session.peer.shape(Link(rates_bits_per_second=(order.downlinks[number],)))
        received = session.peer.receive()
        begin = time.monotonic()
        laws = None
        if length:
            width = distribution_bits(resolution, vocabulary)
            words = [
                format(int.from_bytes(word), f"0{width}b") if width else ""
                for word in received["words"]
            ]
            counts = [decode_lattice(word, resolution, vocabulary)[0] for word in words]
            laws = quantised(np.array(counts))[None]
        verdict = verifier.verify(Drafts(tokens=received["tokens"], laws=laws))
        seconds.append(time.monotonic() - begin)
        session.peer.send(vars(verdict), bits=length.bit_length() + token_bits)
    return seconds


def _learn(session: Session, drafter: Drafter, drafts: Ints) -> Verdict:
    verdict = Verdict(**session.peer.receive())
    drafter.settle(drafts, verdict)
    return verdict
