"""Library problems of `prompt-chunking`."""

from __future__ import annotations

from specopt.instances.library.recipe import Recipe, recipes_of
from specopt.instances.prompt_chunking import FAMILIES

_recipe = recipes_of(FAMILIES)

RECIPES: tuple[Recipe, ...] = (
    _recipe("paper-4", "N14", "small", 0, prompt_tokens=14),
    _recipe("paper-4", "N351-vicuna-7b", "paper", 0, prompt_tokens=351, model="vicuna-7b"),
    *(
        _recipe(
            "paper-4", f"N1037-up{up:g}", "paper", 0,
            prompt_tokens=1037, uplink_megabytes_per_second=up, downlink_megabytes_per_second=up + 5.0,
        )
        for up in (5.0, 7.5, 10.0)
    ),
    _recipe("paper-4", "N1037-free-messages", "paper", 0, prompt_tokens=1037, message_milliseconds=0.0),
    _recipe("paper-4", "N1037-P1", "paper", 0, prompt_tokens=1037, pipeline_length=1),
    _recipe("paper-4", "N8000", "large", 0, prompt_tokens=8000),
    _recipe("paper-4", "N100000", "large", 0, prompt_tokens=100_000),
    *(_recipe("random", f"N14-s{seed}", "small", seed, prompt_tokens=14) for seed in (1, 2, 3)),
    *(_recipe("random", f"N1000-s{seed}", "paper", seed) for seed in (1, 2, 3)),
    *(_recipe("random", f"N1000-{wait}", "paper", 4, wait=wait) for wait in ("overlap", "none")),
    _recipe("random", "N1000-last", "paper", 5, download="last"),
    _recipe("random", "N5000", "large", 6, prompt_tokens=5000),
    _recipe("slow-message", "N14", "small", prompt_tokens=14),
    *(_recipe("slow-message", f"N1000-{cost}ms", "adversarial", message_milliseconds=float(cost)) for cost in (20, 50)),
    _recipe("single-stage", "N14", "small", prompt_tokens=14),
    _recipe("single-stage", "N1000", "adversarial"),
    _recipe("single-stage", "N1000-overlap", "adversarial", wait="overlap"),
    _recipe("steep-cloud", "N14", "small", prompt_tokens=14, step_tokens=4),
    _recipe("steep-cloud", "N1000", "adversarial"),
    _recipe("steep-cloud", "N1000-step17", "adversarial", step_tokens=17, step_milliseconds=4.0),
    _recipe("slow-link", "N14", "small", prompt_tokens=14),
    _recipe("slow-link", "N1000", "adversarial"),
    _recipe("slow-link", "N1000-last", "adversarial", download="last"),
)  # fmt: skip
