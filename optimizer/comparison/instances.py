"""Instances of a comparison: problem files, folders, families with seeds, and the instance
library.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from specopt.api.arguments import pairs_of, parameters_of
from specopt.api.generate import families, family_named, generate
from specopt.api.library import load_saved, saved, saved_instance
from specopt.api.plugins import plugged_kinds
from specopt.kinds import KINDS
from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput, did_you_mean
from specopt.models.files import load
from specopt.models.problem import Problem


def instances_of(
    sources: Sequence[str],
    *,
    instances: int = 5,
    seed: int = 0,
    parameters: Sequence[str] = (),
    size: str | None = None,
) -> dict[str, Problem]:
    """Return problems by name.

    Instances of a family are named KIND/FAMILY/SEED, or KIND/FAMILY[NAME=VALUE,...]/SEED with given
    parameters.

    Parameters
    ----------
    sources
        Problem files, folders (all their ``*.json`` files), families KIND/FAMILY (some instances
        are generated), kinds (their instances in the library), or ``library`` for all its
        instances.
    instances
        Number of instances per family.
    seed
        Seed of the first instance of a family; the others have the following seeds.
    parameters
        Parameters of the families, as NAME=VALUE,VALUE,...: instances are generated for every
        combination of values.
    size
        Size of the library's instances to use; None for all sizes.

    Raises
    ------
    InvalidInput
        If a source is none of these, a file is not a problem, a family lacks a parameter, or
        parameters or size apply to none of the sources.
    """
    instances = integer("instances", instances, 1)
    kinds = [kind.name for kind in KINDS]
    sizes = {name: saved_instance(name).size for name in saved()}
    if size is not None and size not in sizes.values():
        raise InvalidInput(
            f"--size: expected one of {', '.join(sorted({*sizes.values()}))}, got {size!r}"
        )
    of_library = [source for source in sources if source == "library" or source in kinds]
    for option, given, fitting, expected in (
        ("--param", parameters, any(map(family_named, sources)), "a family"),
        ("--size", size, of_library, "library or a kind"),
    ):
        if given and not fitting:
            raise InvalidInput(
                f"{option}: expected {expected} among the instances, got {', '.join(sources)}"
            )
    found: dict[str, Problem] = {}
    for source in sources:
        path = Path(source)
        if family_named(source) is not None:
            for label, values in _combinations(source, parameters):
                for i in range(seed, seed + instances):
                    found[f"{source}{label}/{i}"] = generate(source, seed=i, **values)
        elif source in of_library or plugged_kinds(source):
            for name in saved():
                if (source == "library" or name.startswith(f"{source}/")) and size in (
                    None,
                    sizes[name],
                ):
                    found[name] = load_saved(name)
        elif path.is_dir():
            files = sorted(path.glob("*.json"))
            if not files:
                raise InvalidInput(f"{source}: expected problem files (*.json), got none")
            for file in files:
                name = _free(f"{path.absolute().name}/{file.stem}", file, found)
                found[name] = load(file, Problem)  # type: ignore[type-abstract]
        elif path.exists():
            found[_free(path.stem, path, found)] = load(path, Problem)  # type: ignore[type-abstract]
        else:
            names = [*kinds, *(one.name for one in families())]
            raise InvalidInput(
                f"{source}: expected a problem file, a folder, a family, a kind"
                f" ({', '.join(kinds)}) or library{did_you_mean(source, names)}"
            )
    return found


def _combinations(family: str, parameters: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every combination of the parameters' values, and its label in names of instances."""
    pairs = {name: text.split(",") for name, text in pairs_of(parameters, "--param").items()}
    for values in itertools.product(*pairs.values()):
        given = [f"{name}={value.strip()}" for name, value in zip(pairs, values, strict=True)]
        yield f"[{','.join(given)}]" if given else "", parameters_of(family, given)


def _free(name: str, path: Path, found: Mapping[str, Problem]) -> str:
    return (
        name
        if name not in found
        else f"{name} {hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:6]}"
    )
