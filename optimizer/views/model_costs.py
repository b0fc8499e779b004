"""Both cost models of a model config side by side: as JSON-like data, and as a table for the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from specopt.instances.checkpoints.model_config import ModelConfig
from specopt.models.fields import dump
from specopt.views.terminal import line, table, title

LABELS = {
    "parameters": "parameters",
    "weight_bytes": "weight bytes",
    "kv_bytes_per_token": "KV cache bytes per token",
    "flops_per_token": "FLOPs per new token",
    "flops_per_token_pair": "FLOPs per new token and token attended to",
    "flops_per_logit": "FLOPs per logit position",
}


def model_costs(config: ModelConfig) -> dict[str, Any]:
    """Return what both cost models say of a decoder.

    A forward pass of m new tokens over t in all costs
    flops_per_token m + flops_per_token_pair m t + flops_per_logit (positions whose logits are needed) operations.
    Bytes of both are at the same bytes per value; the papers' model itself is at 2. `model` is what
    `serving-latency` takes; null, with the FLOPs, where the cost model cannot describe the decoder.
    """
    exact, paper = config.exact, config.paper
    size = exact.bytes_per_value
    projected = config.projected
    return {
        "name": config.name,
        "model_type": config.model_type,
        "bytes_per_value": size,
        "config_dtype": config.dtype,
        "paper": {
            "parameters": paper.parameter_count,
            "kv_bytes_per_token": paper.kv_bytes_per_token // 2 * size,
            "weight_bytes": paper.parameter_count * size,
            "flops_per_token": paper.flops_per_token,
            "flops_per_token_pair": paper.flops_per_token_pair,
            "flops_per_logit": paper.flops_per_logit,
            "model": dump(paper),
        },
        "exact": {
            "parameters": config.parameters,
            "kv_bytes_per_token": config.kv_bytes_per_token,
            "weight_bytes": config.weight_bytes,
            "flops_per_token": None if projected else exact.flops_per_token,
            "flops_per_token_pair": None if projected else exact.flops_per_token_pair,
            "flops_per_logit": None if projected else exact.flops_per_logit,
            "model": None if projected else dump(exact),
        },
        "notes": list(config.notes),
    }


def print_model_costs(config: ModelConfig, dtype: str | None, out: Console) -> None:
    """Print both cost models side by side, with the difference of the papers' from the exact one."""
    costs = model_costs(config)
    title(out, f"{config.name}: ", f"{config.parameters:,} parameters")
    shape = config.exact
    grouped = f"{shape.heads} heads of {shape.head_dim}, {shape.kv_heads} of keys and values"
    network = f"{'gated' if shape.gated else 'plain'} network of {shape.ffn}"
    embeddings = f"{shape.vocabulary} tokens, {'tied' if shape.tied else 'untied'}"
    line(out, "shape", f"{config.model_type}, {shape.layers} layers of {shape.hidden}, {grouped}, {network}")
    line(out, "vocabulary", embeddings)
    line(out, "counted at", f"{shape.bytes_per_value} bytes per value ({dtype or 'the default'})")
    line(out, "config's dtype", config.dtype or "not given")
    view = table("  quantity", "papers' model", "exact", "difference", left=1)
    for key, label in LABELS.items():
        paper, exact = costs["paper"][key], costs["exact"][key]
        shown = "-" if exact is None else f"{exact:,}"
        view.add_row(f"  {label}", f"{paper:,}", shown, _difference(paper, exact))
    out.print(view)
    if not config.projected:
        less = config.parameters - shape.parameter_count
        line(out, "cost model", f"`exact` in a problem leaves out biases, norms and positions: {less:,} parameters")
    for note in config.notes:
        line(out, "note", note)


def _difference(paper: int, exact: int | None) -> str:
    return "-" if not exact else f"{(paper - exact) / exact:+.1%}"
