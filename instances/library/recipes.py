"""All recipes of the library, by kind."""

from __future__ import annotations

from specopt.instances.library.draft_allocation import RECIPES as DRAFT_ALLOCATION
from specopt.instances.library.draft_control import RECIPES as DRAFT_CONTROL
from specopt.instances.library.fair_goodput import RECIPES as FAIR_GOODPUT
from specopt.instances.library.prompt_chunking import RECIPES as PROMPT_CHUNKING
from specopt.instances.library.recipe import Recipe
from specopt.instances.library.serving_latency import RECIPES as SERVING_LATENCY
from specopt.instances.library.verification_batch import RECIPES as VERIFICATION_BATCH

RECIPES: dict[str, tuple[Recipe, ...]] = {
    "serving-latency": SERVING_LATENCY,
    "verification-batch": VERIFICATION_BATCH,
    "draft-control": DRAFT_CONTROL,
    "prompt-chunking": PROMPT_CHUNKING,
    "draft-allocation": DRAFT_ALLOCATION,
    "fair-goodput": FAIR_GOODPUT,
}
"""In the order of the papers; a kind's recipes are in the order of its file."""
