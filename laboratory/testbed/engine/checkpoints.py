"""The pair as folders that engines load: `config.json` and `model.safetensors`.

Imported only where torch is installed.
"""

from __future__ import annotations

import json
from pathlib import Path

from specopt.models.files import write_text
from testbed.checkpoints import DRAFT, Checkpoint, load_draft, verify_checkpoint


def write_folders(folder: Path, weights: Path = DRAFT) -> None:
    """Write `verify`, and `draft` from the weights of the draft model, unless they exist and are
    current.
    """
    for name in ("verify", "draft"):
        written = folder / name / "config.json"
        if not written.exists() or (
            name == "draft" and written.stat().st_mtime < weights.stat().st_mtime
        ):
            verify = verify_checkpoint()
            _write(verify if name == "verify" else load_draft(weights, verify), folder / name)


def _write(model: Checkpoint, folder: Path) -> None:
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value.float().contiguous() for name, value in model.weights.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        **model.config,
        "architectures": ["LlamaForCausalLM"],
        "torch_dtype": "float32",
        "hidden_act": "silu",
    }
    write_text(
        folder / "config.json", json.dumps(config | {"bos_token_id": 1, "eos_token_id": 2}) + "\n"
    )
