"""Forward passes of a decoder, with the work and the memory that they require."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.instances.checkpoints.model_config import ModelConfig
from specopt.models.errors import SpecoptError


class OutOfMemory(SpecoptError):
    """Exception for a pass that runs out of memory although it should fit according to its
    estimate.
    """


@dataclass(frozen=True, kw_only=True)
class ForwardPass:
    """A forward pass over a batch of sequences.

    Parameters
    ----------
    batch
        Number of sequences.
    new_tokens
        Number of new tokens per sequence.
    cached_tokens
        Number of cached tokens per sequence.
    """

    batch: int
    new_tokens: int
    cached_tokens: int

    @property
    def phase(self) -> str:
        """Serving phase of the pass, "prefill", "decode" or "verify".

        A prefill pass has no cached tokens. If tokens are cached, a decode pass has one new token,
        and a verification pass has several new tokens.
        """
        if self.cached_tokens == 0:
            return "prefill"
        return "decode" if self.new_tokens == 1 else "verify"

    @property
    def logit_positions(self) -> int:
        """Number of positions per sequence at which logits are computed.

        A verification computes logits at all new positions. All other passes compute logits at one
        position.
        """
        return self.new_tokens if self.phase == "verify" else 1

    def flops_per_task(self, config: ModelConfig) -> int:
        """Return the number of operations per sequence according to the exact cost model."""
        shape, new = config.exact, self.new_tokens
        pairs = new * (self.cached_tokens + new)
        flops = shape.flops_per_token * new + shape.flops_per_token_pair * pairs
        return flops + shape.flops_per_logit * self.logit_positions

    def memory_bytes(self, config: ModelConfig, value_bytes: int) -> int:
        """Return a conservative estimate of the memory for cache and activations, in bytes.

        The estimate assumes plain attention kernels.
        """
        shape, new, total = config.exact, self.new_tokens, self.cached_tokens + self.new_tokens
        cache = 2 * shape.layers * shape.kv_heads * shape.head_dim * total
        attention = (2 * shape.heads + 4 * shape.kv_heads) * shape.head_dim
        wide = max(attention, (3 if shape.gated else 2) * shape.ffn)
        activations = new * (4 * shape.hidden + wide) + self.logit_positions * shape.vocabulary
        scores = shape.heads * new * total * 4  # without a fused kernel, in single precision
        return self.batch * ((cache + activations) * value_bytes + scores)

    def __str__(self) -> str:
        return (
            f"batch {self.batch}, new tokens {self.new_tokens}, cached tokens {self.cached_tokens}"
        )
