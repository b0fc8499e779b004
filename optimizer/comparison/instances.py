"""What a comparison runs on: problem files, folders of them, families with seeds, and the instance library."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from specopt.api.generate import family_named, family_names, generate
from specopt.api.library import load_saved, saved
from specopt.api.plugins import plugged_kinds
from specopt.kinds import KINDS
from specopt.models.arguments import integer
from specopt.models.errors import InvalidInput
from specopt.models.files import load
from specopt.models.problem import Problem


def instances_of(sources: Sequence[str], *, instances: int = 5, seed: int = 0) -> dict[str, Problem]:
    """Return problems by name.

    Parameters
    ----------
    sources
        Each a problem file; a folder, of which every ``*.json`` is a problem; a family, KIND/FAMILY, of which some
        instances are generated; a kind, of which the library's instances are taken; or ``library`` for all of it.
    instances
        How many of each family.
    seed
        Of the first instance of a family; the others follow.

    Raises
    ------
    InvalidInput
        If a source is none of these, or a file is no problem.
    """
    instances = integer("instances", instances, 1)
    kinds = [kind.name for kind in KINDS]
    found: dict[str, Problem] = {}
    for source in sources:
        path = Path(source)
        if family_named(source) is not None:
            for i in range(seed, seed + instances):
                found[f"{source}/{i}"] = generate(source, seed=i)
        elif source == "library" or source in kinds or plugged_kinds(source):
            for name in saved():
                if source == "library" or name.startswith(f"{source}/"):
                    found[name] = load_saved(name)
        elif path.is_dir():
            files = sorted(path.glob("*.json"))
            if not files:
                raise InvalidInput(f"{source}: expected problem files (*.json), got none")
            for file in files:
                found[_free(f"{path.absolute().name}/{file.stem}", file, found)] = load(file, Problem)  # type: ignore[type-abstract]
        elif path.exists():
            found[_free(path.stem, path, found)] = load(path, Problem)  # type: ignore[type-abstract]
        else:
            raise InvalidInput(
                f"{source}: expected a problem file, a folder, a family ({', '.join(family_names())}), "
                f"a kind ({', '.join(kinds)}) or library"
            )
    return found


def _free(name: str, path: Path, found: Mapping[str, Problem]) -> str:
    return name if name not in found else f"{name} {hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:6]}"
