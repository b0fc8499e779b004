"""`specopt fit`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specopt.commands.shared import AsJson, Output, Seed, check_picture, check_target, count, number, read_decoder
from specopt.console.stdout import stdout
from specopt.console.streams import say
from specopt.instances.runtimes.forms import FORMS
from specopt.models.errors import InvalidInput

if TYPE_CHECKING:
    from specopt.instances.runtimes.fit import RuntimeFit
    from specopt.instances.runtimes.measured import MeasuredRuntime

Where = Annotated[
    list[str] | None, typer.Option(metavar="COL=VALUE", help="Take only rows with this value; may be repeated.")
]
Config = Annotated[
    Path | None, typer.Option(metavar="CONFIG", help="A Hugging Face config.json: counts tokens as operations.")
]


def fit(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A CSV file of measured passes, with a header.")],
    x: Annotated[
        list[str],
        typer.Option(
            metavar="COL",
            help="Column of the work; for the additive form three of them: sums of new tokens, (cached + new) new, "
            "cached tokens.",
        ),
    ],
    y: Annotated[list[str], typer.Option(metavar="COL", help="Column of the time; several are summed.")],
    form: Annotated[
        str,
        typer.Option(
            metavar="F",
            help=f"{', '.join(FORMS)}, or auto: chosen by cross-validation; table: the measured passes themselves.",
        ),
    ] = "auto",
    x_unit: Annotated[str | None, typer.Option(metavar="UNIT", help="tokens (default) or flops.")] = None,
    y_unit: Annotated[str | None, typer.Option(metavar="UNIT", help="s (default), ms or us.")] = None,
    cached: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of tokens cached per request; x: new ones per request.")
    ] = None,
    batch: Annotated[str | None, typer.Option(metavar="COL", help="Column of requests in the pass.")] = None,
    spread: Annotated[
        str | None,
        typer.Option(metavar="LOW,HIGH", help="With --form table: columns of low and high quantiles of the time."),
    ] = None,
    where: Where = None,
    sum_over: Annotated[
        str | None, typer.Option(metavar="COL", help="Sum the times over the values of this column, such as layers.")
    ] = None,
    repeat: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]N", help="Count times N times: all, or those of a value of --sum-over or of a --y column."
        ),
    ] = None,
    model: Config = None,
    logits: Annotated[
        str, typer.Option(metavar="last|all", help="Positions that --model scores: all in a verification.")
    ] = "last",
    draft: Annotated[
        list[str] | None,
        typer.Option(metavar="COL=VALUE", help="Fit these rows as the draft model's, and those of --verify."),
    ] = None,
    verify: Annotated[
        list[str] | None, typer.Option(metavar="COL=VALUE", help="Fit these rows as the verify model's.")
    ] = None,
    draft_model: Config = None,
    verify_model: Config = None,
    flat: Annotated[bool, typer.Option("--flat", help="A roofline whose first piece is constant.")] = False,
    errors: Annotated[
        str, typer.Option(metavar="absolute|relative", help="Which errors' squares to minimise.")
    ] = "absolute",
    level: Annotated[float, typer.Option(metavar="P", parser=number, help="Confidence level of the limits.")] = 0.95,
    folds: Annotated[int, typer.Option(metavar="N", parser=count, help="Folds of the cross-validation.")] = 5,
    seed: Seed = 0,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw measurements, fit and residuals (png, pdf or svg).")
    ] = None,
    as_json: AsJson = False,
    output: Output = None,
) -> None:
    """Fit a runtime to a table of measured passes."""
    from specopt.api.arguments import pairs_of
    from specopt.instances.runtimes.fit import fit_runtime
    from specopt.instances.runtimes.measured import FORM, MeasuredRuntime
    from specopt.instances.runtimes.table import TableColumns, read_runtime_table
    from specopt.instances.runtimes.work import work_of
    from specopt.models.files import to_json, write_text

    for target in (output, picture):
        check_target(target, table)
    check_picture(picture)
    if x_unit not in (None, "tokens", "flops"):
        raise InvalidInput(f"--x-unit: expected tokens or flops, got {x_unit!r}")
    if logits not in ("last", "all"):
        raise InvalidInput(f"--logits: expected last or all, got {logits!r}")
    quantiles = [] if spread is None else [column.strip() for column in spread.split(",")]
    if form == FORM:
        given = {"--x-unit flops": x_unit == "flops", "--flat": flat, "--picture": picture is not None}
        given |= {"--errors relative": errors != "absolute", "--logits all": logits == "all"}
        given |= {"--level": level != 0.95, "--folds": folds != 5, "--seed": seed != 0}
        given |= {"--model": any(one is not None for one in (model, draft_model, verify_model))}
        if useless := next((option for option, is_given in given.items() if is_given), None):
            raise InvalidInput(f"{useless}: expected a form that is fitted, got --form {FORM}")
    if spread is not None and (form != FORM or len(quantiles) != 2):
        raise InvalidInput(f"--spread: expected LOW,HIGH with --form {FORM}, got {spread!r} with --form {form}")
    if logits == "all" and model is None and draft_model is None:  # of a verify model all count anyhow
        raise InvalidInput("--logits all: expected --model or --draft-model, too: nothing else counts positions")
    parts = _parts(draft, verify, model, draft_model, verify_model)
    times, named = _repeats(repeat or ())
    shared = pairs_of(where or (), "--where")
    fits: dict[str, RuntimeFit] = {}
    tables: dict[str, MeasuredRuntime] = {}
    for name, (rows, config) in parts.items():
        own = pairs_of(rows, f"--{name}")
        if twice := set(own) & set(shared):
            raise InvalidInput(f"--{name} {min(twice)}: given twice, in --where, too")
        columns = TableColumns(
            x=tuple(x),
            y=tuple(y),
            cached=cached,
            batch=batch,
            sum_over=sum_over,
            where=shared | own,
            repeat=times,
            repeats=named,
            y_unit=y_unit,
        )
        decoder = None if config is None else read_decoder(config)
        read = read_runtime_table(table, columns)
        if form == FORM:
            apart = [read_runtime_table(table, replace(columns, y=(column,))).seconds for column in quantiles]
            tables[name] = MeasuredRuntime.from_table(read, (apart[0], apart[1]) if apart else None)
            continue
        work = work_of(
            read,
            x_unit,  # type: ignore[arg-type]
            decoder=decoder,
            all_logits=logits == "all" or name == "verify",
        )
        fits[name] = fit_runtime(
            read,
            work,
            form,
            flat=flat,
            errors=errors,  # type: ignore[arg-type]
            decoder=decoder,
            level=level,
            folds=folds,
            seed=seed,
        )
    data: dict[str, Any] = {name: found.to_dict() for name, found in (fits | tables).items()}
    text = to_json(data.get("", data))
    if picture is not None:
        from specopt.views.canvas import save_figure
        from specopt.views.fit import fit_figure

        save_figure(fit_figure(fits), picture)
    if output is not None:
        write_text(output, text + "\n")
    if as_json:
        typer.echo(text, file=stdout())
    else:
        from specopt.views.fit import print_fit, print_measured
        from specopt.views.terminal import console

        for name, found in fits.items():
            print_fit(name, found, console())
        for name, kept in tables.items():
            print_measured(name, kept, console())
    for target in (output, picture):
        if target is not None:
            say(f"written to {target}")


def _parts(
    draft: list[str] | None,
    verify: list[str] | None,
    model: Path | None,
    draft_model: Path | None,
    verify_model: Path | None,
) -> dict[str, tuple[list[str], Path | None]]:
    """Return filter and model of each fit; one fit has no name."""
    if bool(draft) != bool(verify):
        raise InvalidInput("--draft, --verify: expected both or neither")
    if draft and verify:
        if model is not None:
            raise InvalidInput("--model: expected --draft-model and --verify-model beside --draft and --verify")
        return {"draft": (draft, draft_model), "verify": (verify, verify_model)}
    if draft_model is not None or verify_model is not None:
        raise InvalidInput("--draft-model, --verify-model: expected --draft and --verify, too; for one fit: --model")
    return {"": ([], model)}


def _repeats(values: list[str] | tuple[()]) -> tuple[int, dict[str, int]]:
    times: int | None = None
    named: dict[str, int] = {}
    for value in values:
        name, equals, text = value.rpartition("=")
        text = text.strip()
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise InvalidInput(f"--repeat: expected N or NAME=N, got {value!r}")
        if (name.strip() in named) if equals else (times is not None):
            raise InvalidInput(f"--repeat {name.strip() or text}: given twice")
        if equals:
            named[name.strip()] = int(text)
        else:
            times = int(text)
    return 1 if times is None else times, named
