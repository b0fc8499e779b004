"""A dense PyTorch decoder with random weights, which is used only for timing.

The shape comes from a model config of a dense decoder without projected embeddings. The decoder
performs the same operations as a trained decoder of that shape. This module requires torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional
from torch.nn.attention.bias import causal_lower_right

from specopt.instances.checkpoints.model_config import ModelConfig
from specopt.models.errors import Unsupported

WEIGHT_SPREAD = 0.02
ROTARY_BASE = 10_000.0
NORM_EPSILON = 1e-5

Tensor = Any  # the types of torch are unknown if torch is not installed


Weights = tuple[Tensor | None, Tensor | None]
"""Weight and bias of a normalisation or linear layer."""


@dataclass(frozen=True, kw_only=True)
class _Layer:
    """Weights of one decoder layer.

    As in serving engines, one matrix combines the projections of queries, keys and values, and
    another matrix combines the gate and up projections.
    """

    norms: tuple[Weights, ...]
    head_norms: tuple[Weights, ...]
    qkv: Weights
    output: Weights
    up: Weights
    down: Weights


class TorchDecoder:
    """A decoder with the shape that a model config specifies.

    Parameters
    ----------
    config
        Model config that specifies the shape.
    device
        Device of the weights, as a `torch.device`.
    dtype
        Data type of the weights, as a torch type.
    seed
        Seed of the weights.

    Raises
    ------
    Unsupported
        If the embeddings and the layers have different dimensions.
    """

    def __init__(self, config: ModelConfig, *, device: Any, dtype: Any, seed: int = 0) -> None:
        if config.projected:
            raise Unsupported(f"{config.name}: models with projected embeddings cannot be measured")
        shape, layout = self.shape, self.layout = config.exact, config.layout
        self.device, self.dtype = device, dtype
        self._random = torch.Generator(device=device)
        self._random.manual_seed(seed)
        self.embedding = self._matrix(shape.vocabulary, shape.hidden)
        self.head = self.embedding if shape.tied else self._matrix(shape.vocabulary, shape.hidden)
        self.positions = (
            self._matrix(layout["position_rows"], shape.hidden) if layout["position_rows"] else None
        )
        self.layers = [self._layer() for _ in range(shape.layers)]
        self.final_norm = self._norm(shape.hidden) if layout["final_norm"] else None
        self.activation = functional.silu if shape.gated else functional.gelu

    def new_cache(self, batch: int, length: int) -> list[tuple[Tensor, Tensor]]:
        """Return random keys and values per layer, with `length` cached tokens per sequence."""
        size = (batch, self.shape.kv_heads, length, self.shape.head_dim)
        return [(self._normal(size), self._normal(size)) for _ in self.layers]

    def rotation(self, length: int) -> tuple[Tensor, Tensor] | None:
        """Return the cosines and sines for the rotary positions below `length`.

        The result is None if positions are learned.
        """
        if self.positions is not None:
            return None
        half = self.shape.head_dim // 2
        speeds = ROTARY_BASE ** (
            -torch.arange(half, device=self.device, dtype=torch.float32) / max(half, 1)
        )
        angles = torch.outer(torch.arange(length, device=self.device, dtype=torch.float32), speeds)
        return angles.cos().to(self.dtype), angles.sin().to(self.dtype)

    def mask(self, new: int, cached: int, *, stored: bool | None = None) -> Tensor | None:
        """Return the attention mask for new tokens after a cache.

        The result is None if the causal kernels need no mask.

        Parameters
        ----------
        new
            Number of new tokens per sequence.
        cached
            Number of cached tokens per sequence.
        stored
            Whether to store the mask as a tensor, for which GPUs have no fast kernels. If False,
            torch's causal bias is used, which a CPU expands in every layer. None selects the faster
            choice for the device.
        """
        if new == 1 or cached == 0:
            return None
        if stored is None:
            stored = self.device.type == "cpu"
        if not stored:
            return causal_lower_right(new, cached + new)
        here = torch.ones(new, cached + new, dtype=torch.bool, device=self.device)
        return here.tril(diagonal=cached)

    def forward(
        self,
        tokens: Tensor,
        cache: list[tuple[Tensor, Tensor]],
        cached: int,
        logits: int,
        rotation: tuple[Tensor, Tensor] | None,
        mask: Tensor | None,
    ) -> Tensor:
        """Run a forward pass, and return the logits at the last `logits` positions.

        The result has shape (batch, `logits`, vocabulary), and the tokens have shape (batch, m).
        The cache must be large enough for the keys and values of `cached` + m tokens. The keys and
        values of the new tokens are written after the cached entries. `rotation` and `mask` are the
        results of the methods of the same names for this pass.
        """
        batch, new = tokens.shape
        shape, total = self.shape, cached + new
        x = functional.embedding(tokens, self.embedding)
        if self.positions is not None:
            first = self.layout["position_offset"] + cached
            x = x + self.positions[first : first + new]
        sizes = [shape.heads, shape.kv_heads, shape.kv_heads]
        for layer, (keys, values) in zip(self.layers, cache, strict=True):
            h = self._normed(x, layer.norms[0])
            qkv = functional.linear(h, *layer.qkv)
            q, k, v = qkv.view(batch, new, -1, shape.head_dim).transpose(1, 2).split(sizes, dim=1)
            if layer.head_norms:
                q, k = self._normed(q, layer.head_norms[0]), self._normed(k, layer.head_norms[1])
            if rotation is not None:
                q, k = _rotated(q, rotation, cached), _rotated(k, rotation, cached)
            keys[:, :, cached:total] = k
            values[:, :, cached:total] = v
            h = functional.scaled_dot_product_attention(
                q,
                keys[:, :, :total],
                values[:, :, :total],
                attn_mask=mask,
                is_causal=cached == 0 and new > 1,
                enable_gqa=shape.heads != shape.kv_heads,
            )
            h = functional.linear(h.transpose(1, 2).reshape(batch, new, -1), *layer.output)
            if len(layer.norms) == 4:
                h = self._normed(h, layer.norms[1])
            x = x + h
            h = functional.linear(self._normed(x, layer.norms[len(layer.norms) // 2]), *layer.up)
            if shape.gated:
                gate, h = h.split(shape.ffn, dim=-1)
                h = self.activation(gate) * h
            else:
                h = self.activation(h)
            h = functional.linear(h, *layer.down)
            if len(layer.norms) == 4:
                h = self._normed(h, layer.norms[3])
            x = x + h
        x = x[:, new - logits :]
        if self.final_norm is not None:
            x = self._normed(x, self.final_norm)
        return functional.linear(x, self.head)

    def _layer(self) -> _Layer:
        shape, layout = self.shape, self.layout
        query, key = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        ups = 2 * shape.ffn if shape.gated else shape.ffn
        return _Layer(
            norms=tuple(self._norm(shape.hidden) for _ in range(layout["norms_per_layer"])),
            head_norms=tuple(
                self._norm(shape.head_dim) for _ in range(2 if layout["query_key_norm"] else 0)
            ),
            qkv=self._linear(query + 2 * key, shape.hidden, layout["qkv_bias"]),
            output=self._linear(shape.hidden, query, layout["output_bias"]),
            up=self._linear(ups, shape.hidden, layout["mlp_bias"]),
            down=self._linear(shape.hidden, shape.ffn, layout["mlp_bias"]),
        )

    def _norm(self, size: int) -> Weights:
        values = self.layout["values_per_norm"]
        weight = self._vector(size, 1.0) if values >= 1 else None
        return weight, self._vector(size, 0.0) if values == 2 else None

    def _normed(self, x: Tensor, norm: Weights) -> Tensor:
        if self.layout["layer_norm"]:
            return functional.layer_norm(x, x.shape[-1:], *norm, NORM_EPSILON)
        return functional.rms_norm(x, x.shape[-1:], norm[0], NORM_EPSILON)

    def _linear(self, rows: int, columns: int, has_bias: bool) -> Weights:
        return self._matrix(rows, columns), self._vector(rows, 0.0) if has_bias else None

    def _matrix(self, rows: int, columns: int) -> Tensor:
        return self._normal((rows, columns)).mul_(WEIGHT_SPREAD)

    def _vector(self, size: int, value: float) -> Tensor:
        return torch.full((size,), value, device=self.device, dtype=self.dtype)

    def _normal(self, size: tuple[int, ...]) -> Tensor:
        return torch.empty(size, device=self.device, dtype=self.dtype).normal_(
            generator=self._random
        )


def _rotated(x: Tensor, rotation: tuple[Tensor, Tensor], first: int) -> Tensor:
    """Apply rotary position embeddings to the two halves of each head.

    `rotation` contains cosines and sines, and `first` is the position of the first token.
    """
    cosine, sine = (part[first : first + x.shape[2]] for part in rotation)
    half = cosine.shape[-1]
    left, right, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat((left * cosine - right * sine, right * cosine + left * sine, rest), dim=-1)
