"""`specopt fit`, from tables to what problems and vLLM take."""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specopt.commands.cli import run
from specopt.measuring.measure import COLUMNS

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}
TOKENS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]
FEATURES = ("batch_new_tokens", "batch_interactions", "batch_cached_tokens")
SHIPPED = files("specopt.instances") / "data" / "measured"


def roofline_table(path: Path) -> str:
    """Write times in ms of two models against tokens: the maximum of two lines, with a little
    noise.
    """
    rng = np.random.default_rng(0)
    rows = ["model,tokens,cached,time_ms"]
    for model, scale in (("small", 1.0), ("large", 8.0)):
        for tokens in TOKENS:
            time = scale * max(4.0 + 0.002 * tokens, 1.5 + 0.06 * tokens) * rng.uniform(0.98, 1.02)
            rows.append(f"{model},{tokens},0,{time!r}")
    path.write_text("\n".join(rows))
    return str(path)


def fit(*arguments: str) -> int:
    """Run the command."""
    return run(["fit", *arguments])


def test_readable_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the table shows form, errors, residuals and warnings, and the JSON is the
    file's.
    """
    table, target = roofline_table(tmp_path / "t.csv"), tmp_path / "fit.json"
    command = [table, "--x", "tokens", "--y", "time_ms", "--y-unit", "ms", "--where", "model=large"]
    assert fit(*command, "-o", str(target)) == 0
    captured = capsys.readouterr()
    for text in (
        "roofline, T = max(a1 tokens + c1",
        "piece 2, overhead_seconds",
        "95% limits",
        "MAPE on held-out",
    ):
        assert text in captured.out
    assert "16 passes from 16 of 32 rows" in captured.out
    assert captured.err == f"written to {target}\n"
    assert fit(*command, "--json") == 0
    assert json.loads(capsys.readouterr().out) == json.loads(target.read_text())
    assert fit(*command, "--form", "linear") == 0
    shown = capsys.readouterr().out
    assert "linear, T = c1 tokens + c2" in shown
    assert "Warning: the linear form is off by more than 10% in" in shown
    assert fit(*command, "--form", "roofline", "--flat") == 0
    assert "T = max(c, a2 tokens + c2)" in capsys.readouterr().out


def test_vllm_takes_the_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that draft and verify fitted in one command give vLLM's table, against tokens and
    against operations.
    """
    table, runtimes, acceptance = (
        roofline_table(tmp_path / "t.csv"),
        tmp_path / "both.json",
        tmp_path / "a.json",
    )
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))
    acceptance.write_text(
        json.dumps({"acceptance_histogram": [100, 80, 60, 160], "num_draft_tokens": 1200})
    )
    command = [table, "--x", "tokens", "--y", "time_ms", "--y-unit", "ms", "-o", str(runtimes)]
    pair = ["--draft", "model=small", "--verify", "model=large"]
    models = ["--draft-model", str(config), "--verify-model", str(config)]
    for more, slope in (([], "seconds_per_token"), (models, "seconds_per_flop")):
        assert fit(*command, *pair, *more) == 0
        data = json.loads(runtimes.read_text())
        assert set(data) == {"draft", "verify"}
        assert slope in data["verify"]["runtime"]["pieces"][0]
        assert ("model" in data["draft"]) == bool(more)
        capsys.readouterr()
        export = [
            "export",
            "vllm",
            "--runtime",
            str(runtimes),
            "--acceptance",
            str(acceptance),
            "--max-batch",
            "64",
        ]
        assert run([*export, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["num_speculative_tokens_per_batch_size"][0][2] >= 1
        assert (
            found["ranges"][0]["speedup_low"]
            < found["ranges"][0]["speedup"]
            < found["ranges"][0]["speedup_high"]
        )


def test_serving_latency_stays_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a fitted maximum of lines goes into a problem, whose exact optimum is brute
    force's.
    """
    table = roofline_table(tmp_path / "t.csv")
    config, problem = tmp_path / "config.json", tmp_path / "problem.json"
    config.write_text(
        json.dumps(
            CONFIG | {"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 11008}
        )
    )
    command = [
        table,
        "--x",
        "tokens",
        "--y",
        "time_ms",
        "--y-unit",
        "ms",
        "--form",
        "roofline",
        "--json",
    ]
    assert fit(*command, "--where", "model=large", "--model", str(config)) == 0
    fitted = json.loads(capsys.readouterr().out)
    runtime = json.dumps(fitted["runtime"])
    assert len(fitted["runtime"]["pieces"]) == 2
    tasks = ["--param", "tasks=6", "--param", "max_output=12", "--set", "max_speculation_length=3"]
    given_ = [f"--set={stage}_runtime={runtime}" for stage in ("draft", "verify")]
    model = ["--set", f"verify={json.dumps(fitted['model'])}"]
    assert (
        run(["generate", "serving-latency/paper-1", *tasks, *given_, *model, "-o", str(problem)])
        == 0
    )
    assert json.loads(problem.read_text())["verify_runtime"] == fitted["runtime"]
    objectives = []
    for method in ("exact", "brute-force"):
        result = tmp_path / f"{method}.json"
        assert run(["solve", str(problem), "--method", method, "-o", str(result)]) == 0
        data = json.loads(result.read_text())
        assert data["status"] == "optimal"
        objectives.append(data["objective"])
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-9)


def test_verification_batch_takes_the_additive_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a fitted estimator goes into a verification problem, which is solved with it."""
    rng = np.random.default_rng(1)
    truth = {"a": 3e-5, "b": 3e-8, "r": 5e-6, "c": 0.015}
    rows = ["new,interactions,cached,seconds"]
    for new, old in zip(rng.integers(1, 900, 40), rng.integers(0, 3000, 40), strict=True):
        seconds = truth["a"] * new + truth["b"] * (new + old) * new + truth["r"] * old + truth["c"]
        rows.append(f"{new},{(new + old) * new},{old},{float(seconds)!r}")
    table, problem, target = tmp_path / "t.csv", tmp_path / "problem.json", tmp_path / "fit.json"
    table.write_text("\n".join(rows))
    command = [
        str(table),
        "--x",
        "new",
        "--x",
        "interactions",
        "--x",
        "cached",
        "--y",
        "seconds",
        "-o",
        str(target),
    ]
    assert fit(*command, "--form", "additive") == 0
    assert "additive, T = a new" in capsys.readouterr().out
    estimator = json.loads(target.read_text())["estimator"]
    assert list(estimator.values()) == pytest.approx(list(truth.values()), rel=1e-6)
    assert (
        fit(
            str(table),
            "--x",
            "new",
            "--cached",
            "cached",
            "--y",
            "seconds",
            "--form",
            "additive",
            "--json",
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["estimator"] == pytest.approx(estimator)
    many = ["--param", "requests=10", f"--set=estimator={json.dumps(estimator)}"]
    assert run(["generate", "verification-batch/mixed", *many, "-o", str(problem)]) == 0
    assert json.loads(problem.read_text())["estimator"] == estimator
    assert run(["solve", str(problem)]) == 0
    assert "optimal" in capsys.readouterr().out


def test_the_shipped_measurement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the shipped table gives runtimes of both models, of each phase, and the additive
    form.
    """
    table = str(SHIPPED / "cpu-pair.csv")
    flops = [table, "--x", "batch_flops", "--x-unit", "flops", "--y", "seconds_median"]
    pair = ["--draft", "model=draft-15m", "--verify", "model=verify-100m"]
    models = ["draft-15m", "verify-100m"]
    configs = [
        f"--{role}-model={SHIPPED / name}.config.json"
        for role, name in zip(("draft", "verify"), models, strict=True)
    ]
    assert fit(*flops, *pair, *configs, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    for role in ("draft", "verify"):
        assert data[role]["unit"] == "flops"
        assert data[role]["metrics"]["r2"] > 0.9
        assert data[role]["model"]["cost"] == "exact"
    for phase in ("prefill", "decode", "verify"):
        assert fit(*flops, *pair, "--where", f"phase={phase}") == 0
    features = [text for name in COLUMNS if name in FEATURES for text in ("--x", name)]
    assert (
        fit(table, *features, "--y", "seconds_median", "--where", "model=verify-100m", "--json")
        == 0
    )
    assert (
        json.loads(capsys.readouterr().out.rpartition('{\n "form"')[2].join(['{\n "form"', ""]))[
            "form"
        ]
        == "additive"
    )


FEATURES = ("batch_new_tokens", "batch_interactions", "batch_cached_tokens")


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_picture(tmp_path: Path, suffix: str) -> None:
    """Tests that a picture of one fit or of two is written."""
    table, target = roofline_table(tmp_path / "t.csv"), tmp_path / f"fit.{suffix}"
    command = [table, "--x", "tokens", "--y", "time_ms", "--y-unit", "ms", "--picture", str(target)]
    assert fit(*command, "--draft", "model=small", "--verify", "model=large") == 0
    assert target.stat().st_size > 5000


def test_picture_without_what_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a missing vl-convert is one message that names the extra."""
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    table = roofline_table(tmp_path / "t.csv")
    picture = str(tmp_path / "fit.png")
    assert (
        fit(table, "--x", "tokens", "--y", "time_ms", "--y-unit", "ms", "--picture", picture) == 2
    )
    assert "specopt[plot]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--y", "time_us"], "expected one column 'time_us'"),
        (["--form", "cubic"], "form: expected one of auto, linear, roofline, additive"),
        (["--form", "additive"], "form: additive: expected rows that tell"),
        (["--x-unit", "bytes"], "--x-unit: expected tokens or flops"),
        (["--y-unit", "h"], "y_unit: expected one of s, ms, us"),
        (["--logits", "some"], "--logits: expected last or all"),
        (["--where", "model"], "--where: expected name=value"),
        (["--where", "model=none"], "no row has model=none; there are model: small, large"),
        (["--repeat", "x"], "--repeat: expected N or NAME=N"),
        (["--repeat", "2", "--repeat", "3"], "--repeat 3: given twice"),
        (["--draft", "model=small"], "--draft, --verify: expected both or neither"),
        (
            ["--draft-model", "c.json"],
            "--draft-model, --verify-model: expected --draft and --verify",
        ),
        (
            ["--draft", "model=small", "--verify", "model=large", "--model", "c"],
            "--model: expected --draft-model",
        ),
        (
            ["--draft", "model=small", "--verify", "model=large", "--where", "model=small"],
            "--draft model: given twice",
        ),
        (["--model", "none.json"], "none.json: cannot be read"),
        (["--picture", "fit.bmp"], "--picture: expected a file named .png"),
        (["-o", "none/fit.json"], "no such directory"),
        (["--errors", "none"], "errors: expected one of absolute, relative"),
        (["--level", "2"], "level: expected a number"),
    ],
)
def test_bad_usage_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: list[str], message: str
) -> None:
    """Tests that what cannot work exits with 2 and one message."""
    table = roofline_table(tmp_path / "t.csv")
    assert run(["fit", table, "--x", "tokens", "--y", "time_ms", "--y-unit", "ms", *change]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_fuzzed_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: st.DataObject
) -> None:
    """Tests that mutated tables exit with 0 and finite JSON, or with 2 and one message."""
    path = tmp_path / "t.csv"
    source = Path(roofline_table(path)).read_bytes()
    at, cut = data.draw(st.integers(0, len(source))), data.draw(st.integers(0, 200))
    words = st.sampled_from(
        [b"", b",", b"\n", b'"', b"nan", b"-", b"1e300", b"e9", b"0", b"\xef\xbb\xbf", b"\r"]
    )
    path.write_bytes(
        source[:at] + data.draw(st.one_of(words, st.binary(max_size=10))) + source[at + cut :]
    )
    code = run(["fit", str(path), "--x", "tokens", "--y", "time_ms", "--y-unit", "ms", "--json"])
    captured = capsys.readouterr()
    if code == 0:
        json.loads(captured.out, parse_constant=pytest.fail)
    else:
        assert code == 2
        assert captured.err.count("\n") == 1
