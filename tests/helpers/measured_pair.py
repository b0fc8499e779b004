"""Words of commands on the measured pair that comes with the package."""

from __future__ import annotations

from importlib.resources import files

SHIPPED = files("specopt.instances") / "data" / "measured"
FIT = f"fit {SHIPPED}/cpu-pair.csv --y seconds_median"
PAIR = "--draft model=draft-15m --verify model=verify-100m"
MODELS = (
    f"--draft-model={SHIPPED}/draft-15m.config.json"
    f" --verify-model={SHIPPED}/verify-100m.config.json"
)
TOKENS = "--x new_tokens --batch batch --cached cached_tokens"
FLOPS = "--x batch_flops --x-unit flops"
