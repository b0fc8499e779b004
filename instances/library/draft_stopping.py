"""Library problems of `draft-stopping`."""

from __future__ import annotations

from specopt.instances.draft_stopping import FAMILIES
from specopt.instances.library.recipe import Recipe, recipes_of

_recipe = recipes_of(FAMILIES)

RECIPES: tuple[Recipe, ...] = (
    _recipe("paper-2", "table-10", "paper", 0),
    _recipe("paper-2", "table-10-slow-drafts", "paper", 0, draft_seconds_per_token=0.06),
    _recipe("mixed", "L10", "paper", 0),
    _recipe("mixed", "L10-no-signal", "adversarial", 0, signal=0.0),
    _recipe("mixed", "L8-alike", "small", 0, easy=0.8, hard=0.8, max_draft=8),
    _recipe("mixed", "L12-B8", "large", 0, bins=8, max_draft=12),
    _recipe("random", "L4", "small", max_draft=4),
    _recipe("random", "L8", "small"),
    _recipe("random", "L16-B2", "small", bins=2, max_draft=16),
    _recipe("random", "L12-B6", "large", bins=6, max_draft=12),
    _recipe("random", "L8-C10", "adversarial", classes=10),
)
