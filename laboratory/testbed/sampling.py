"""Sample text from a model in batches, with the hidden states that determine its distributions.

Imported only where torch is installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as functional
from torch import Tensor

from testbed.decoding import padded
from testbed.llama import Llama


@dataclass(frozen=True)
class Answer:
    """An answer, and the state of the model at each of its tokens.

    Parameters
    ----------
    tokens
        Tokens of prompt and answer.
    start
        Index at which the answer starts.
    states
        Normed last hidden state from which each token of the answer was drawn, in half precision.
        The head of the model turns it into logits.
    """

    tokens: Tensor
    start: int
    states: Tensor


@torch.inference_mode()  # type: ignore[untyped-decorator]  # torch annotates none
def sample_answers(
    model: Llama,
    prompts: Sequence[Sequence[int]],
    *,
    each: int = 1,
    temperature: float,
    most_tokens: int,
    stop: int,
    seed: int,
) -> list[Answer]:
    """Sample answers of a model to a batch of prompts.

    Parameters
    ----------
    model
        Model that writes the answers.
    prompts
        Tokens of each prompt.
    each
        Number of answers to each prompt.
    temperature
        Temperature above 0.
    most_tokens
        Maximum number of tokens of an answer.
    stop
        Token that ends an answer, as its last token.
    seed
        Seed of the sampling.
    """
    random = torch.Generator().manual_seed(seed)
    asked, counts = padded(prompts)
    cache = model.new_cache(len(prompts), int(counts.max()) + most_tokens)
    layers = range(len(model.layers))
    hidden = model.run(model.embed(asked), cache, layers)[
        torch.arange(len(counts)), torch.from_numpy(counts - 1)
    ]
    hidden = hidden.repeat_interleave(each, dim=0)
    cache.keys, cache.values = (
        [part.repeat_interleave(each, dim=0) for part in parts]
        for parts in (cache.keys, cache.values)
    )
    cache.lengths = counts.repeat(each)
    alive = np.arange(each * len(prompts))
    tokens: list[list[int]] = [[] for _ in alive]
    states: list[list[Tensor]] = [[] for _ in alive]
    while True:
        normed = functional.rms_norm(hidden, hidden.shape[-1:], model.norm, model.epsilon)
        ends = torch.softmax(
            functional.linear(normed, model.head).float() / temperature, dim=-1
        ).cumsum_(dim=-1)
        drawn = torch.searchsorted(
            ends, torch.rand(len(ends), 1, generator=random) * ends[:, -1:], right=True
        )[:, 0].numpy()
        for number, token, state in zip(alive, drawn.tolist(), normed.half(), strict=True):
            tokens[number].append(token)
            states[number].append(state)
        goes_on = np.array(
            [
                token != stop and len(tokens[k]) < most_tokens
                for k, token in zip(alive, drawn, strict=True)
            ]
        )
        if not goes_on.any():
            break
        if not goes_on.all():
            keep = torch.from_numpy(goes_on)
            cache.keys, cache.values = (
                [part[keep] for part in parts] for parts in (cache.keys, cache.values)
            )
            cache.lengths, alive, drawn = cache.lengths[goes_on], alive[goes_on], drawn[goes_on]
        hidden = model.run(model.embed(drawn[:, None]), cache, layers)[:, 0]
        cache.lengths = cache.lengths + 1
    repeated = [prompt for prompt in prompts for _ in range(each)]
    return [
        Answer(torch.tensor([*prompt, *answer]), len(prompt), torch.stack(rows))
        for prompt, answer, rows in zip(repeated, tokens, states, strict=True)
    ]
