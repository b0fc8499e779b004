"""Storage sizes of tensors that are either plain or quantised according to `quantization_config`.

The size includes the packed values and their metadata: scales per block of values, zero points,
and the order of columns. No method quantises routers, norms, biases, convolutions or embedding
tables. The output matrix is quantised only if the config says so. `fields.toml` contains the
formulas for each quantisation method.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from specopt.instances.checkpoints.config import (
    QUANTISATION,
    TABLE,
    Config,
    Formulas,
    Section,
    Weight,
)
from specopt.models.arguments import one_of, sequence
from specopt.models.errors import InvalidInput
from specopt.models.fields import describe


@dataclass(frozen=True, kw_only=True)
class Storage:
    """The storage formats of weights and cached values.

    Parameters
    ----------
    value_bytes
        Number of bytes per plain weight.
    kv_value_bytes
        Number of bytes per cached value.
    method
        Name of the quantisation method; None if nothing is quantised.
    schemes
        Pairs of a name pattern and the formulas by which a matrix is stored. The first pattern that
        matches a tensor's name determines the formulas. ``*`` matches all names, and None in place
        of the formulas leaves a tensor plain.
    """

    value_bytes: int = 2
    kv_value_bytes: int = 2
    method: str | None = None
    schemes: tuple[tuple[str, Formulas | None], ...] = ()

    def bytes(self, weight: Weight) -> int:
        """Return the size of all copies of a tensor, in bytes."""
        schemes = self.schemes if len(weight.shape) == 2 else ()
        scheme = next((scheme for pattern, scheme in schemes if _names(pattern, weight.name)), None)
        if scheme is None or weight.role not in scheme["roles"]:
            return weight.values * self.value_bytes
        height, width = weight.shape
        return weight.copies * int(scheme.having({"height": height, "width": width})["bytes"])

    def unmatched(self, weights: Iterable[Weight]) -> list[str]:
        """Return the patterns that match neither a weight nor the output matrix."""
        names = ["lm_head", *(weight.name for weight in weights)]
        return [
            pattern
            for pattern, _ in self.schemes
            if not any(_names(pattern, name) for name in names)
        ]


def _names(pattern: str, name: str) -> bool:
    """Return whether a pattern of a quantisation config matches the name of a module.

    A pattern is ``re:`` followed by a regular expression, a string with wildcards, or a part of the
    module's path.
    """
    pattern = pattern.replace("language_model.", "")
    if pattern.startswith("re:"):
        return re.match(pattern[3:], name) is not None
    return (
        f".{pattern}." in f".{name}."
        or fnmatchcase(name, pattern)
        or fnmatchcase(name, f"{pattern}.*")
    )


def read_storage(config: Config, given: Section) -> Storage:
    """Return the storage formats for a config and for its section on quantisation, which may be
    empty.

    Raises
    ------
    InvalidInput
        If the method or one of its options is unknown.
    """
    method = given.get("quant_method")
    groups: list[tuple[str, Section, str]] = []
    plain = "fp8"
    if given.data:
        one_of(given.path("quant_method"), method, QUANTISATION)
        groups += _groups(given, method)
        plain = config.type["expert_dtype"]
    if config.choice("expert_dtype", ("fp4", "fp8"), plain) == "fp4":
        groups.insert(0, ("*.experts.*", config, "mxfp4"))
        method = method or "mxfp4"
    if not method:
        return Storage()
    rules = [str(rule) for rule in given.inside("dynamic", {}).data]
    if not all(rule.startswith("-:") for rule in rules):
        raise InvalidInput(f"{given.path('dynamic')}: expected only rules that begin with '-:'")
    given.data = {**given.data, "dynamic": [f"re:{rule[2:]}" for rule in rules]}
    schemes: list[tuple[str, Formulas | None]] = [
        (name, None) for field in TABLE["plain"]["fields"] for name in _patterns(given, field)
    ]
    for pattern, section, name in sorted(groups, key=lambda group: group[0] == "*"):
        scheme = Formulas(section, QUANTISATION[name])
        _ = scheme["bytes"], scheme["roles"]  # rejects invalid fields, whatever the tensors are
        schemes.append((pattern, scheme))
    size = Formulas(given, QUANTISATION[method])["kv_value_bytes"]
    return Storage(method=method, schemes=tuple(schemes), kv_value_bytes=size)


def _groups(given: Section, method: str) -> Iterator[tuple[str, Section, str]]:
    """Yield tuples (pattern, section, method): tensors whose names match the pattern are stored by
    the method, with the options in the section.

    A config without groups or modules yields one tuple for all tensors.
    """
    is_mixed = given.get("quant_algo") == "MIXED_PRECISION"
    if not is_mixed and method != "compressed-tensors" and not given.given("config_groups"):
        yield "*", given, method
        return
    inside = given.inside("quantized_layers" if is_mixed else "config_groups")
    for key, value in inside.data.items():
        group = Section(value, inside.path(str(key)))
        if is_mixed:
            yield str(key), group, method
        elif group.given("weights"):
            targets = _patterns(group, "targets") or _patterns(group, "weights.targets")
            for target in targets or ["Linear"]:
                yield "*" if target == "Linear" else target, group, "compressed-tensors"


def _patterns(section: Section, name: str) -> list[str]:
    """Return a list field whose entries are names or regular expressions; the latter begin with
    ``re:``.
    """
    found = sequence(section.path(name), section.get(name) or [])
    for item in found:
        try:
            re.compile(item[3:] if item.startswith("re:") else "")
        except (AttributeError, re.error):
            raise InvalidInput(
                f"{section.path(name)}: expected names or patterns, got {describe(item)}"
            ) from None
    return found
