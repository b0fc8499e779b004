"""The command `specopt fit`, which fits runtime models to measured forward passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from specopt.commands.shared import (
    AsJson,
    Output,
    Seed,
    argument,
    check_picture,
    check_target,
    console,
    filled,
    flag,
    hand_over,
    option,
    option_info,
    read_decoder,
    required,
    say_written,
)
from specopt.instances.runtimes.forms import FORMS
from specopt.instances.runtimes.measured import FORM, MeasuredRuntime
from specopt.models.errors import InvalidInput

Config = Annotated[
    Path | None,
    option_info("CONFIG", "A Hugging Face config.json, to fit against operations."),
]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Values of the arguments and options of `specopt fit`."""

    table: Path = argument("TABLE", "A CSV file of measured passes, with a header.")
    x: list[str] = required(
        "COL",
        "Column of the work. The additive form needs three: sums of new tokens, of (cached + new)"
        " new, and of cached tokens.",
    )
    y: list[str] = required("COL", "Column of the time; several columns are summed.")
    form: str = option(
        "F",
        f"Form: {', '.join(FORMS)}, auto (selected by cross-validation) or table (the measured"
        " passes themselves).",
        default="auto",
    )
    x_unit: str | None = option("UNIT", "Unit of --x: tokens (default) or flops.")
    y_unit: str | None = option("UNIT", "Unit of --y: s (default), ms, us or ns.")
    cached: str | None = option(
        "COL", "Column of cached tokens per request; --x is then new tokens per request."
    )
    batch: str | None = option("COL", "Column of the number of requests in the pass.")
    spread: str | None = option(
        "LOW,HIGH", "With --form table: columns of low and high quantiles of the time."
    )
    where: list[str] | None = option(
        "COL=VALUE", "Use only rows in which COL has this value; may be repeated."
    )
    sum_over: str | None = option(
        "COL", "Sum the times over the values of this column, such as layers."
    )
    repeat: list[str] | None = option(
        "[NAME=]N",
        "Multiply by N all times, or those of one value of --sum-over or of one --y column.",
    )
    model: Config = None
    logits: str = option(
        "last|all", "Positions that --model scores; a verification scores all.", default="last"
    )
    draft: list[str] | None = option(
        "COL=VALUE", "Fit these rows as the draft model, and those of --verify as the verify model."
    )
    verify: list[str] | None = option("COL=VALUE", "Fit these rows as the verify model.")
    draft_model: Config = None
    verify_model: Config = None
    flat: bool = flag("Fit a roofline whose first piece is constant.")
    errors: str = option(
        "absolute|relative", "Kind of errors whose squares are minimised.", default="absolute"
    )
    level: float = option("P", "Confidence level of the limits.", default=0.95)
    folds: int = option("N", "Number of folds of the cross-validation.", default=5)
    seed: Seed = 0
    picture: Path | None = option("FILE", "Draw measurements, fit and residuals (png, pdf or svg).")
    as_json: AsJson = False
    output: Output = None


def fit(given: Fit) -> None:
    """Fit a runtime model to a table of measured forward passes."""
    from specopt.api.arguments import pairs_of
    from specopt.instances.runtimes.fit import fit_runtime
    from specopt.instances.runtimes.table import TableColumns, read_runtime_table
    from specopt.instances.runtimes.work import work_of
    from specopt.models.files import to_json, write_text

    targets = given.output, given.picture
    for target in targets:
        check_target(target, given.table)
    check_picture(given.picture)
    _check(given)
    parts = _parts(given)
    times, named = _repeats(given.repeat or ())
    where = pairs_of(given.where or (), "--where")
    found: dict[str, Any] = {}
    for name, (rows, config) in parts.items():
        own = pairs_of(rows, f"--{name}")
        if twice := set(own) & set(where):
            raise InvalidInput(f"--{name} {min(twice)}: also given in --where; give it once")
        columns = filled(
            TableColumns,
            given,
            x=tuple(given.x),
            y=tuple(given.y),
            where=where | own,
            repeat=times,
            repeats=named,
        )
        decoder = None if config is None else read_decoder(config)
        read = read_runtime_table(given.table, columns)
        if given.form == FORM:
            apart: Any = [
                read_runtime_table(given.table, replace(columns, y=(one,))).seconds
                for one in _quantiles(given)
            ]
            found[name] = MeasuredRuntime.from_table(read, apart or None)
            continue
        all_logits = given.logits == "all" or name == "verify"
        work = filled(work_of, given, table=read, decoder=decoder, all_logits=all_logits)
        found[name] = filled(fit_runtime, given, table=read, work=work, decoder=decoder)
    data = {name: one.to_dict() for name, one in found.items()}
    text = to_json(data.get("", data))
    if given.picture is not None:
        from specopt.views.fit import fit_figure

        fit_figure(found).save(given.picture)
    if given.output is not None:
        write_text(given.output, text + "\n")
    if given.as_json:
        hand_over(text)
    else:
        from specopt.views.fit import print_fit, print_measured

        for name, one in found.items():
            (print_measured if given.form == FORM else print_fit)(name, one, console())
    say_written(*targets)


def _quantiles(given: Fit) -> list[str]:
    return [] if given.spread is None else [column.strip() for column in given.spread.split(",")]


def _check(given: Fit) -> None:
    """Raise InvalidInput if options contradict each other or have no effect."""
    if given.x_unit not in (None, "tokens", "flops"):
        raise InvalidInput(f"--x-unit: expected tokens or flops, got {given.x_unit!r}")
    if given.logits not in ("last", "all"):
        raise InvalidInput(f"--logits: expected last or all, got {given.logits!r}")
    if given.form == FORM:
        no_effect = {
            "flat": "--flat",
            "picture": "--picture",
            "errors": "--errors relative",
            "logits": "--logits all",
            "level": "--level",
            "folds": "--folds",
            "seed": "--seed",
            "model": "--model",
            "draft_model": "--model",
            "verify_model": "--model",
        }
        useless = ["--x-unit flops"] if given.x_unit == "flops" else []
        useless += [
            option
            for name, option in no_effect.items()
            if getattr(given, name) != getattr(Fit, name)
        ]
        if useless:
            raise InvalidInput(f"{useless[0]} has no effect with --form {FORM}; omit it")
    if given.spread is not None and (given.form != FORM or len(_quantiles(given)) != 2):
        raise InvalidInput(
            f"--spread: expected LOW,HIGH with --form {FORM}, got {given.spread!r} with --form"
            f" {given.form}"
        )
    if (
        given.logits == "all" and given.model is None and given.draft_model is None
    ):  # a verify model always scores all positions
        raise InvalidInput(
            "--logits all: specify the model whose logits are counted with --model or --draft-model"
        )


def _parts(given: Fit) -> dict[str, tuple[list[str], Path | None]]:
    """Return the row filter and the model config of each fit, by name of the fit.

    If there is only one fit, its name is empty.
    """
    draft, verify = given.draft, given.verify
    if bool(draft) != bool(verify):
        raise InvalidInput("--draft and --verify belong together; give both or neither")
    if draft and verify:
        if given.model is not None:
            raise InvalidInput(
                "--model: cannot be combined with --draft and --verify; use --draft-model and"
                " --verify-model instead"
            )
        return {"draft": (draft, given.draft_model), "verify": (verify, given.verify_model)}
    if given.draft_model is not None or given.verify_model is not None:
        raise InvalidInput(
            "--draft-model, --verify-model: add --draft and --verify; for a single fit, use --model"
        )
    return {"": ([], given.model)}


def _repeats(values: Sequence[str]) -> tuple[int, dict[Any, int]]:
    """Parse the factors by which measured times are scaled.

    Return a pair: the factor common to all rows, and a dictionary of factors by name.
    """
    named: dict[Any, int] = {}
    for value in values:
        name, equals, text = (part.strip() for part in value.rpartition("="))
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise InvalidInput(f"--repeat: expected N or NAME=N, got {value!r}")
        key = name if equals else None
        if key in named:
            raise InvalidInput(f"--repeat {name or text}: given twice")
        named[key] = int(text)
    return named.pop(None, 1), named
