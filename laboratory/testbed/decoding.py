"""Speculative decoding of a batch: draft, verify, and accept or resample. Plain decoding is a
verification without drafts.

Each side stores what it needs on its own machine: tokens, and a cache of its model. They exchange
drafts with their distributions, and verdicts. At temperature 0, the output is the greedy output of
the verify model.

A round of l drafts adds l + 1 tokens to the cache of the verify model and removes the rejected
ones. The draft model has never processed its last draft, and processes it in the next round if it
was accepted.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from specopt.models.arguments import number
from specopt.models.fields import Floats, Ints
from testbed.rounds import verify_round


class LanguageModel(Protocol):
    """Interface of a model for decoding."""

    def new_cache(self, batch: int, room: int) -> Any:
        """Return an empty cache for a number of sequences, with room for a number of tokens of
        each.

        Its `lengths` are the numbers of tokens of each sequence. Setting a smaller number discards
        the tokens after it.
        """

    def logits(self, tokens: Ints, counts: Ints, cache: Any, scored: int) -> Floats:
        """Run one pass over new tokens, which are added to the cache.

        Parameters
        ----------
        tokens
            Shape (batch, m). Row k has `counts[k]` tokens, followed by padding.
        counts
            Number of new tokens of each row, from `scored` to m.
        cache
            A cache from `new_cache`.
        scored
            Number of last tokens of each row whose logits are returned.

        Returns
        -------
        logits
            Shape (batch, scored, vocabulary).
        """


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The rule for choosing tokens.

    Parameters
    ----------
    temperature
        With 0, the token with the largest logit is chosen, or the first of several.
    seed
        Every task has its own stream of random numbers, so that its output does not depend on its
        batch.
    """

    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        number("temperature", self.temperature, 0, 100)

    def stream(self, task: int, side: int) -> np.random.Generator:
        """Return the random numbers of one task on one side."""
        return np.random.default_rng((self.seed, task, side))

    def laws(self, logits: Floats) -> Floats:
        """Return the distributions of tokens at a temperature above 0, in double precision."""
        scaled = np.asarray(logits, dtype=np.float64) / self.temperature
        scaled = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
        laws: Floats = scaled / scaled.sum(axis=-1, keepdims=True)
        return laws


@dataclass(frozen=True, kw_only=True, eq=False)
class Drafts:
    """The drafts of a batch in one round.

    Parameters
    ----------
    tokens
        Shape (batch, l).
    laws
        Distribution from which each draft was drawn, shape (batch, l, vocabulary), or None at
        temperature 0.
    """

    tokens: Ints
    laws: Floats | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Verdict:
    """The result of verifying a batch: the numbers of accepted drafts, and the next token of the
    verify model after them.
    """

    accepted: Ints
    tokens: Ints


class _Side:
    """A model, its cache, and the tokens of a batch."""

    def __init__(self, model: LanguageModel, prompts: Sequence[Sequence[int]], room: int) -> None:
        self.model = model
        self.tokens = [list(prompt) for prompt in prompts]
        self.cache = model.new_cache(len(prompts), room)

    def logits(self, drafts: Ints, scored: int) -> Floats:
        """Run a pass over the tokens missing in the cache, followed by drafts."""
        rows = [
            [*tokens[length:], *row]
            for tokens, length, row in zip(
                self.tokens, self.cache.lengths.tolist(), drafts.tolist(), strict=True
            )
        ]
        return self.model.logits(*padded(rows), self.cache, scored)

    def settle(self, drafts: Ints, verdict: Verdict) -> None:
        """Keep the accepted drafts and the verify model's next token, and remove the other tokens
        from the cache.
        """
        for tokens, row, accepted, own in zip(
            self.tokens, drafts, verdict.accepted, verdict.tokens, strict=True
        ):
            tokens += [*row[:accepted].tolist(), int(own)]
        known = np.array([len(tokens) - 1 for tokens in self.tokens])
        self.cache.lengths = np.minimum(self.cache.lengths, known)


class _Sampling(_Side):
    """A side that draws tokens.

    Parameters
    ----------
    model
        The model.
    tasks, prompts
        Index and prompt tokens of each task of the batch.
    room
        Maximum number of tokens of each task, including drafts.
    sampling
        Rule for choosing tokens.
    """

    stream: ClassVar[int]
    """Index of this side's stream of random numbers of a task."""

    def __init__(
        self,
        model: LanguageModel,
        tasks: Sequence[int],
        prompts: Sequence[Sequence[int]],
        *,
        room: int,
        sampling: Sampling,
    ) -> None:
        super().__init__(model, prompts, room)
        self.sampling = sampling
        self.streams = [sampling.stream(task, self.stream) for task in tasks]

    def gathered(self, rows: Sequence[tuple[Self, int]]) -> Self:
        """Return a side with some rows of others, which must have the same model and room."""
        found = copy.copy(self)
        found.tokens = [side.tokens[row] for side, row in rows]
        found.streams = [side.streams[row] for side, row in rows]
        found.cache = self.cache.gathered([(side.cache, row) for side, row in rows])
        return found


class Drafter(_Sampling):
    """The side of the draft model for a batch."""

    stream = 0

    def draft(self, length: int, coarsen: Callable[[Floats], Floats] | None = None) -> Drafts:
        """Draft a number of tokens for each sequence.

        Parameters
        ----------
        length
            Number of drafts.
        coarsen
            Maps distributions, shape (batch, vocabulary), to those that are sampled and sent
            instead.
        """
        drawn, laws = no_drafts(len(self.tokens)), []
        for _ in range(length):
            logits = self.logits(drawn[:, -1:], 1)[:, 0]
            if self.sampling.temperature == 0.0:
                chosen = logits.argmax(axis=-1)
            else:
                laws.append(self.sampling.laws(logits))
                if coarsen is not None:
                    laws[-1] = coarsen(laws[-1])
                chosen = np.array(
                    [_draw(law, rng) for law, rng in zip(laws[-1], self.streams, strict=True)]
                )
            drawn = np.column_stack([drawn, chosen])
        return Drafts(tokens=drawn, laws=np.stack(laws, axis=1) if laws else None)


class Verifier(_Sampling):
    """The side of the verify model for a batch."""

    stream = 1

    def verify(self, drafts: Drafts) -> Verdict:
        """Verify drafts, and settle."""
        length = drafts.tokens.shape[1]
        logits = self.logits(drafts.tokens, length + 1)
        if self.sampling.temperature == 0.0:
            chosen = logits.argmax(axis=-1)
            agreed = np.cumprod(chosen[:, :length] == drafts.tokens, axis=1).sum(axis=1)
            verdict = Verdict(accepted=agreed, tokens=chosen[np.arange(len(chosen)), agreed])
        else:
            laws = self.sampling.laws(logits)
            checked = laws[:, :0] if drafts.laws is None else drafts.laws
            rounds = [
                verify_round(*one)
                for one in zip(laws, checked, drafts.tokens, self.streams, strict=True)
            ]
            verdict = Verdict(
                accepted=np.array([n for n, _ in rounds]),
                tokens=np.array([own for _, own in rounds]),
            )
        self.settle(drafts.tokens, verdict)
        return verdict

    def step(self) -> Verdict:
        """Decode one token of each sequence without drafts."""
        return self.verify(Drafts(tokens=no_drafts(len(self.tokens)), laws=None))


class Rows:
    """The tasks on one side, in the batches in which they last ran."""

    def __init__(self) -> None:
        self._places: dict[
            int, tuple[Any, list[int], int]
        ] = {}  # by task: its batch, the tasks of that batch, and its row

    def place(self, tasks: list[int], side: Any) -> None:
        """Store the tasks as the rows of a side."""
        self._places |= {task: (side, tasks, row) for row, task in enumerate(tasks)}

    def batch(self, tasks: list[int]) -> Any:
        """Return a batch of exactly these tasks."""
        first, together, _ = self._places[tasks[0]]
        if together != tasks:
            self.place(tasks, first.gathered([self._places[task][::2] for task in tasks]))
        return self._places[tasks[0]][0]

    def tokens(self, task: int) -> list[int]:
        """Return the tokens of a task, including its prompt."""
        side, _, row = self._places[task]
        found: list[int] = side.tokens[row]
        return found


def padded(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return rows of tokens as an array, shape (batch, longest row), padded with zeros, and their
    lengths.
    """
    counts = np.array([len(row) for row in rows])
    table = np.zeros((len(rows), counts.max()), dtype=np.int64)
    table[np.arange(table.shape[1]) < counts[:, None]] = np.concatenate(rows)
    return table, counts


def no_drafts(batch: int) -> Ints:
    """Return the drafts of a batch without drafts, shape (batch, 0)."""
    return np.zeros((batch, 0), dtype=np.int64)


def greedy(
    model: LanguageModel, prompt: Sequence[int], count: int
) -> tuple[list[int], list[float]]:
    """Decode a number of tokens one by one, choosing the largest logit.

    Returns
    -------
    tokens, margins
        The output, and the difference between the two largest logits at each token.
    """
    side = _Side(model, [prompt], len(prompt) + count)
    margins = []
    for _ in range(count):
        logits = side.logits(no_drafts(1), 1)[0, 0]
        top = np.partition(logits, -2)[-2:]
        margins.append(float(top[1] - top[0]))
        side.tokens[0].append(int(logits.argmax()))
    return side.tokens[0][len(prompt) :], margins


def first_difference(first: Sequence[int], second: Sequence[int]) -> int | None:
    """Return the first index at which two outputs differ, or None if they agree up to the end of
    the shorter one.
    """
    return next(
        (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None
    )


def differences(outputs: Sequence[Sequence[int]], alone: Sequence[Any]) -> list[dict[str, float]]:
    """Return the index at which each output first differs from that of the verify model alone, and
    the margin of its largest logit there.
    """
    found = []
    for task, (output, (tokens, margins)) in enumerate(zip(outputs, alone, strict=True)):
        place = first_difference(output, tokens)
        if place is not None:
            found.append({"task": task, "place": place, "margin": margins[place]})
    return found


def _draw(law: Floats, rng: np.random.Generator) -> int:
    ends = np.cumsum(law)
    return int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
