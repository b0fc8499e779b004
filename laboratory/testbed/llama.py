"""A Llama decoder for sequences of different lengths. Each sequence has its own position in the
cache, and its last tokens can be removed.

`transformers` decodes batches of equal lengths, but speculation makes the lengths differ. Imported
only where torch is installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional
from torch import Tensor

from specopt.instances.checkpoints.model_config import ModelConfig, parse_model_config
from specopt.models.fields import Floats, Ints


@dataclass
class LlamaCache:
    """Keys and values of each layer, shape (batch, room, heads, head size), and the number of
    tokens of each sequence.
    """

    keys: list[Tensor]
    values: list[Tensor]
    lengths: Ints

    @classmethod
    def gathered(cls, rows: Sequence[tuple[LlamaCache, int]]) -> LlamaCache:
        """Return a cache with some sequences of others, which must have the same room."""
        layers = range(len(rows[0][0].keys))
        keys = [torch.stack([cache.keys[layer][row] for cache, row in rows]) for layer in layers]
        values = [
            torch.stack([cache.values[layer][row] for cache, row in rows]) for layer in layers
        ]
        return cls(keys, values, np.array([cache.lengths[row] for cache, row in rows]))


@dataclass(frozen=True)
class _Layer:
    norms: tuple[Tensor, Tensor]
    qkv: Tensor
    output: Tensor
    up: Tensor
    down: Tensor


class Llama:
    """A decoder with the weights of a checkpoint.

    Parameters
    ----------
    config
        As in a `config.json` of model type llama.
    weights
        Weights by their names in `transformers`. A missing `lm_head.weight` is the embedding.
    dtype
        Data type of the computation.
    """

    def __init__(
        self, config: Mapping[str, Any], weights: Mapping[str, Tensor], dtype: torch.dtype
    ) -> None:
        self.source = dict(config)
        self.config: ModelConfig = parse_model_config(self.source)
        self.dtype = dtype
        shape = self.shape = self.config.exact
        self.epsilon = float(config["rms_norm_eps"])
        self.theta = float(config["rope_theta"])
        self.places = int(config["max_position_embeddings"])

        def weight(*names: str) -> Tensor:
            return torch.cat([weights[name].detach().to(dtype) for name in names]).contiguous()

        self.embedding = weight("model.embed_tokens.weight")
        self.head = weight("lm_head.weight") if "lm_head.weight" in weights else self.embedding
        self.norm = weight("model.norm.weight")
        self.layers = []
        for index in range(shape.layers):
            name = f"model.layers.{index}."
            self.layers.append(
                _Layer(
                    norms=(
                        weight(f"{name}input_layernorm.weight"),
                        weight(f"{name}post_attention_layernorm.weight"),
                    ),
                    qkv=weight(*(f"{name}self_attn.{part}_proj.weight" for part in "qkv")),
                    output=weight(f"{name}self_attn.o_proj.weight"),
                    up=weight(f"{name}mlp.gate_proj.weight", f"{name}mlp.up_proj.weight"),
                    down=weight(f"{name}mlp.down_proj.weight"),
                )
            )
        half = shape.head_dim // 2
        speeds = self.theta ** (-torch.arange(half, dtype=torch.float64) / half)
        angles = torch.outer(torch.arange(self.places, dtype=torch.float64), speeds)
        self._cosines, self._sines = angles.cos().to(dtype), angles.sin().to(dtype)

    def new_cache(self, batch: int, room: int) -> LlamaCache:
        """Return an empty cache for a number of sequences, with room for a number of tokens of
        each.
        """
        size = (batch, room, self.shape.kv_heads, self.shape.head_dim)
        keys, values = (
            [torch.zeros(size, dtype=self.dtype) for _ in self.layers] for _ in range(2)
        )
        return LlamaCache(keys, values, np.zeros(batch, dtype=np.int64))

    def logits(self, tokens: Ints, counts: Ints, cache: LlamaCache, scored: int) -> Floats:
        """Run one pass over new tokens, which are added to the cache; see
        `testbed.decoding.LanguageModel`.
        """
        with torch.inference_mode():
            hidden = self.run(self.embed(tokens), cache, range(len(self.layers)))
            cache.lengths = cache.lengths + counts
            return self.score(hidden, counts, scored)

    def embed(self, tokens: Ints) -> Tensor:
        """Return the hidden states that enter the first layer."""
        return functional.embedding(
            torch.from_numpy(np.asarray(tokens, dtype=np.int64)), self.embedding
        )

    def run(self, hidden: Tensor, cache: LlamaCache, layers: range) -> Tensor:
        """Run layers over hidden states, shape (batch, m, hidden), that follow the content of the
        cache. Its lengths do not change.
        """
        batch, new = hidden.shape[:2]
        places = torch.from_numpy(cache.lengths)[:, None] + torch.arange(new)
        rows, total = torch.arange(batch)[:, None], int(cache.lengths.max()) + new
        cosine, sine = self._cosines[places][:, :, None], self._sines[places][:, :, None]
        mask = None
        if new > 1 or batch > 1:
            mask = (torch.arange(total) <= places[:, :, None])[:, None]
        sizes = [self.shape.heads, self.shape.kv_heads, self.shape.kv_heads]
        for index in layers:
            layer, keys, values = self.layers[index], cache.keys[index], cache.values[index]
            h = self._normed(hidden, layer.norms[0])
            qkv = _times(h, layer.qkv).view(batch, new, -1, self.shape.head_dim)
            q, k, v = qkv.split(sizes, dim=2)
            keys[rows, places] = _rotated(k, cosine, sine)
            values[rows, places] = v
            h = functional.scaled_dot_product_attention(
                _rotated(q, cosine, sine).transpose(1, 2),
                keys[:, :total].transpose(1, 2),
                values[:, :total].transpose(1, 2),
                attn_mask=mask,
                enable_gqa=self.shape.heads != self.shape.kv_heads,
            )
            hidden = hidden + _times(h.transpose(1, 2).reshape(batch, new, -1), layer.output)
            gate, up = _times(self._normed(hidden, layer.norms[1]), layer.up).chunk(2, dim=-1)
            hidden = hidden + _times(functional.silu(gate) * up, layer.down)
        return hidden

    def score(self, hidden: Tensor, counts: Ints, scored: int) -> Floats:
        """Return the logits of the last non-padding positions of each row."""
        places = torch.from_numpy(np.asarray(counts)[:, None] - scored + np.arange(scored))
        last = hidden[torch.arange(len(hidden))[:, None], places]
        logits: Floats = _times(self._normed(last, self.norm), self.head).numpy()
        return logits

    def _normed(self, x: Tensor, norm: Tensor) -> Tensor:
        return functional.rms_norm(x, x.shape[-1:], norm, self.epsilon)


FEW = 6
"""Up to this number of tokens, reading the weights dominates. `linear` copies them first and takes
up to twice as long.
"""


def _times(x: Tensor, weight: Tensor) -> Tensor:
    """Return x W^T, shape (batch, m, out)."""
    if x.shape[0] * x.shape[1] > FEW:
        return functional.linear(x, weight)
    return (weight @ x.flatten(0, 1).T).T.view(*x.shape[:2], -1)


def _rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotate the halves of each head by the angle of its position."""
    left, right = x.chunk(2, dim=-1)
    return torch.cat((left * cosine - right * sine, right * cosine + left * sine), dim=-1)
