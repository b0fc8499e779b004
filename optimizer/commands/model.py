"""The command `specopt model`, which shows the costs of a model."""

from __future__ import annotations

from pathlib import Path

from specopt.commands.shared import AsJson, argument, console, option, print_json


def model(
    config: Path = argument("CONFIG", "A Hugging Face config.json, or its folder."),
    dtype: str | None = option(
        "D", "Count bytes at this data type, such as float32; default: 2 bytes."
    ),
    as_json: AsJson = False,
) -> None:
    """Show the costs of a model, counted exactly and by the formulas in the papers.

    The costs are the numbers of parameters, bytes and FLOPs.
    """
    from specopt.instances.checkpoints.model_config import read_model_config

    found = read_model_config(config, dtype=dtype)
    from specopt.views.model_costs import model_costs, print_model_costs

    if as_json:
        print_json(model_costs(found))
    else:
        print_model_costs(found, dtype, console())
