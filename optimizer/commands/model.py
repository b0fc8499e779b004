"""The command `specopt model`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from specopt.commands.shared import AsJson, argument_info, console, option_info, print_json


def model(
    config: Annotated[Path, argument_info("CONFIG", "A Hugging Face config.json, or its folder.")],
    dtype: Annotated[
        str | None,
        option_info("D", "Count bytes at this data type, such as float32; default: 2 bytes."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the costs of a model, counted exactly and by the formulas of the papers.

    The costs are parameters, bytes and FLOPs.
    """
    from specopt.instances.checkpoints.model_config import read_model_config

    found = read_model_config(config, dtype=dtype)
    from specopt.views.model_costs import model_costs, print_model_costs

    if as_json:
        print_json(model_costs(found))
    else:
        print_model_costs(found, dtype, console())
