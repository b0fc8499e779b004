"""The costs of a model under the papers' cost model and under the exact cost model.

The costs are returned as JSON-compatible data or printed as a table.
"""

from __future__ import annotations

from typing import Any

from specopt.console.terminal import Console, line, table, title
from specopt.instances.checkpoints.model_config import ModelConfig
from specopt.instances.checkpoints.parts import Part
from specopt.models.fields import dump

LABELS = {
    "parameters": "parameters",
    "active_parameters": "active per token",
    "routed_expert_parameters": "in routed experts",
    "weight_bytes": "weight bytes",
    "kv_bytes_per_token": "KV cache bytes per token",
    "flops_per_token": "FLOPs per new token",
    "flops_per_token_pair": "FLOPs per new token and token attended to",
    "flops_per_logit": "FLOPs per logit position",
}


def model_costs(config: ModelConfig) -> dict[str, Any]:
    """Return the costs of a decoder under both cost models, or of a draft head under the exact
    model.

    A forward pass of m new tokens over t tokens in total costs flops_per_token m +
    flops_per_token_pair m t + flops_per_logit p operations, where p is the number of positions
    whose logits are needed. The pass reads `dense_bytes` of `reads` and, in each layer with
    experts, the experts to which its tokens are routed. Both cost models use the same number of
    bytes per value, except that the exact model counts quantised weights as they are stored. The
    entry `model` is the cost model in the form that `serving-latency` accepts. Like `paper`, it is
    null if the cost model cannot describe the decoder. The FLOPs entries are null if the embeddings
    are projected.
    """
    size = config.storage.value_bytes
    return {
        "name": config.name,
        "model_type": config.model_type,
        "head": config.kind,
        "bytes_per_value": size,
        "quantisation": config.storage.method,
        "config_dtype": config.dtype,
        "paper": None if config.dense is None else _paper_costs(config, size),
        "exact": (
            _exact_costs(config, flops=not config.projected)
            | {"model": None if config.dense is None or config.projected else dump(config.exact)}
        ),
        "heads": [
            {"kind": head.kind, "layers": head.layers} | _exact_costs(head) for head in config.heads
        ],
        "vision": (
            None if config.vision_parameters is None else {"parameters": config.vision_parameters}
        ),
        "notes": list(config.notes),
    }


def _paper_costs(config: ModelConfig, size: int) -> dict[str, Any]:
    paper = config.paper
    return {
        "parameters": paper.parameter_count,
        "kv_bytes_per_token": paper.kv_bytes_per_token // 2 * size,
        "weight_bytes": paper.parameter_count * size,
        "flops_per_token": paper.flops_per_token,
        "flops_per_token_pair": paper.flops_per_token_pair,
        "flops_per_logit": paper.flops_per_logit,
        "model": dump(paper),
    }


QUANTITIES = (
    "parameters",
    "active_parameters",
    "routed_expert_parameters",
    "borrowed_parameters",
    "kv_bytes_per_token",
    "window_kv_bytes",
    "window",
    "state_bytes_per_sequence",
    "weight_bytes",
    "reads",
    "flops_per_token",
    "flops_per_token_pair",
    "flops_per_logit",
)
NAMES = {"window_kv_bytes": "window_kv_bytes_per_token", "window": "sliding_window"}


def _exact_costs(part: Part, *, flops: bool = True) -> dict[str, Any]:
    """Return the exact costs of a part of a model. Unknown costs are None."""
    found = {
        NAMES.get(name, name): None
        if name in part.unknown or (name.startswith("flops") and not flops)
        else getattr(part, name)
        for name in QUANTITIES
    }
    reads = found["reads"]
    if reads is not None:
        experts = [dump(group) for group in reads.experts]
        found["reads"] = {"dense_bytes": reads.dense_bytes, "experts": experts}
    return found


def print_model_costs(config: ModelConfig, dtype: str | None, out: Console) -> None:
    """Print the costs of a model.

    For a dense decoder, the costs under both cost models are shown, with the differences between
    the papers' model and the exact model.
    """
    costs = model_costs(config)
    title(
        out,
        f"{config.name}: ",
        f"{config.parameters:,} parameters" + (", a draft head" if config.kind else ""),
    )
    line(out, "shape", _shape(config))
    at = dtype or config.storage.method or "the default"
    line(out, "counted at", f"{config.storage.value_bytes} bytes per value ({at})")
    line(out, "config's dtype", config.dtype or "not given")
    paper, exact = costs["paper"] or {}, costs["exact"]
    columns = ("papers' model", "exact", "difference") if paper else ("exact",)
    view = table("  quantity", *columns, left=1)
    for key, label in LABELS.items():
        if (
            key in ("active_parameters", "routed_expert_parameters")
            and not exact["routed_expert_parameters"]
        ):
            continue
        row = ["-" if exact[key] is None else f"{exact[key]:,}"]
        if key in paper:
            difference = f"{(paper[key] - exact[key]) / exact[key]:+.1%}" if exact[key] else "-"
            row = [f"{paper[key]:,}", *row, difference]
        view.add_row(f"  {label}", *row)
    out.print(view)
    for head in config.heads:
        size = (
            f"{head.parameters:,} parameters, {head.weight_bytes:,} bytes,"
            f" {head.kv_bytes_per_token:,} KV per token"
        )
        line(out, f"{head.kind} head", size)
    if config.vision_parameters is not None:
        line(out, "vision", f"{config.vision_parameters:,} parameters outside the decoder")
    for tokens in (1, 4, 16, 64) if exact["reads"] and config.reads.experts else ():
        low, high = config.reads.limits(tokens)
        read = (
            f"{config.reads.bytes(tokens):,.0f} bytes of weights with uniform routing, {low:,.0f}"
            f" to {high:,.0f} with any routing"
        )
        line(out, f"{tokens} tokens read", read)
    if config.dense is not None and not config.projected:
        less = config.parameters - config.exact.parameter_count
        line(
            out,
            "cost model",
            f"`exact` in a problem omits biases, norms and positions, {less:,} parameters",
        )
    for note in config.notes:
        line(out, "note", note)


def _shape(config: ModelConfig) -> str:
    found = f"{config.model_type}, {config.layers} layers"
    if config.dense is None:
        return found
    shape = config.exact
    grouped = f"{shape.heads} heads of {shape.head_dim}, {shape.kv_heads} of keys and values"
    network = f"{'gated' if shape.gated else 'plain'} network of {shape.ffn}"
    vocabulary = f"{shape.vocabulary} tokens, {'tied' if shape.tied else 'untied'}"
    return f"{found} of {shape.hidden}, {grouped}, {network}, {vocabulary}"
