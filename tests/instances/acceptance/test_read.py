"""Reading acceptance: every source, its quirks, and arbitrary files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from specopt.instances.acceptance import read_acceptance
from specopt.models.acceptance_lengths import AcceptanceLengths
from specopt.models.errors import InvalidInput
from specopt.models.position_acceptance import PositionAcceptance


def scrape(
    drafts: int, tokens: int, accepted: list[int], engine: str = "0", model: str = 'm{}\\"x'
) -> str:
    """Return a scrape as an engine gives it, other counters around."""
    labels = f'engine="{engine}",model_name="{model}"'
    lines = [
        "# HELP vllm:spec_decode_num_drafts_total Number of spec decoding drafts.",
        "# TYPE vllm:spec_decode_num_drafts_total counter",
        f"vllm:spec_decode_num_drafts_total{{{labels}}} {drafts}.0",
        f"vllm:spec_decode_num_drafts_created{{{labels}}} 1.75e+09",
        f"vllm:spec_decode_num_draft_tokens_total{{{labels}}} {tokens}.0",
        f"vllm:spec_decode_num_accepted_tokens_total{{{labels}}} {sum(accepted)}.0",
        *(
            f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{{labels},position="{j}"}}'
            f" {count}.0"
            for j, count in enumerate(accepted)
        ),
        'vllm:num_requests_running{engine="0"} 3.0',
    ]
    return "\n".join(lines)


def written(tmp_path: Path, content: str | bytes, name: str = "file") -> Path:
    """Return a file with a content."""
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def by_position(
    path: Path, before: Path | None = None, *, model: str | None = None
) -> PositionAcceptance:
    """Return what is read, which must be by position."""
    found = read_acceptance(path, before, model=model)
    assert isinstance(found, PositionAcceptance)
    return found


def test_difference_of_two_scrapes(tmp_path: Path) -> None:
    """Tests that counts between two scrapes give conditional rates: 900 of 1000, then 600 of 900,
    then 150 of 600.
    """
    before = written(tmp_path, scrape(500, 1500, [400, 300, 200]), "before")
    after = written(tmp_path, scrape(1500, 4500, [1300, 900, 350]), "after")
    found = by_position(after, before)
    assert found.rates == pytest.approx([0.9, 600 / 900, 150 / 600])
    assert found.reached is not None
    assert found.reached.tolist() == [1000.0, 900.0, 600.0]
    assert found.notes == ()
    since_start = by_position(after)
    assert since_start.rates == pytest.approx([1300 / 1500, 900 / 1300, 350 / 900])


def test_engines_add_up_and_models_are_told_apart(tmp_path: Path) -> None:
    """Tests that the engines of a model count together, and that several models must be named."""
    two = scrape(100, 200, [80, 40]) + "\n" + scrape(300, 600, [200, 100], engine="1") + "\r\n"
    assert by_position(written(tmp_path, two)).rates == pytest.approx([280 / 400, 140 / 280])
    models = scrape(100, 200, [80, 40], model="a") + "\n" + scrape(100, 200, [50, 25], model="b")
    path = written(tmp_path, models)
    with pytest.raises(InvalidInput, match=r"expected exactly one model, got several \(a, b\)"):
        by_position(path)
    assert by_position(path, model="b").rates == pytest.approx([0.5, 0.5])
    with pytest.raises(InvalidInput, match="expected model_name 'c', got a, b"):
        by_position(path, model="c")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (None, "vllm:spec_decode_num_drafts_total{ 3", "line 1: expected name{labels} value"),
        (
            None,
            'vllm:spec_decode_num_drafts_total{a="b"} x',
            "line 1: expected a count >= 0, got 'x'",
        ),
        (None, 'vllm:spec_decode_num_drafts_total{a="b"} NaN', "expected a count"),
        (
            None,
            "vllm:spec_decode_num_drafts_total 3",
            "accepted_tokens_per_pos_total for the positions 0, 1",
        ),
        (None, scrape(10, 20, [5, 6]), "do not increase with position"),
        (
            None,
            scrape(10, 21, [5, 4]),
            "expected 10 to 20 tokens in 10 drafts of 1 to 2 tokens, got 21",
        ),
        (None, scrape(0, 0, [0, 0]), "expected drafts between the scrapes, got none"),
        (scrape(20, 40, [15, 5]), scrape(10, 20, [5, 5]), "decreased from 20 to 10"),
        (scrape(10, 30, [5, 4, 3]), scrape(20, 40, [9, 6]), "expected at least 3 positions, got 2"),
    ],
)
def test_bad_scrapes_are_named(
    tmp_path: Path, before: str | None, after: str, message: str
) -> None:
    """Tests that each impossible scrape is refused with its reason."""
    earlier = None if before is None else written(tmp_path, before, "before")
    with pytest.raises(InvalidInput, match=message):
        by_position(written(tmp_path, after, "after"), earlier)


def test_totals_must_agree(tmp_path: Path) -> None:
    """Tests that positions which do not sum to the total are refused."""
    text = scrape(10, 20, [8, 4], model="m").replace('model_name="m"} 12.0', 'model_name="m"} 11.0')
    with pytest.raises(InvalidInput, match="sum to 12, but 11 were accepted"):
        by_position(written(tmp_path, text))


def test_shorter_drafts_are_warned_of(tmp_path: Path) -> None:
    """Tests that drafts of different lengths leave a note."""
    found = by_position(written(tmp_path, scrape(10, 15, [8, 4])))
    assert "1.5 tokens on average, not all 2" in found.notes[0]


def test_two_scrapes_in_one_file_are_refused(tmp_path: Path) -> None:
    """Tests that a series that comes twice is not added up: that is for engines, which differ in
    their labels.
    """
    both = scrape(500, 1500, [400, 300, 200]) + "\n" + scrape(1500, 4500, [1300, 900, 350])
    with pytest.raises(
        InvalidInput, match=r"line 13: .*drafts.* appears twice with the same labels"
    ):
        by_position(written(tmp_path, both))


@pytest.mark.parametrize("stamp", ["1395066363000", "1395066363.5", "-1"])
def test_timestamps_are_passed_over(stamp: str, tmp_path: Path) -> None:
    """Tests that samples may end with a time, in milliseconds or, as in OpenMetrics, in seconds."""
    text = "\n".join(
        line if line.startswith("#") else f"{line} {stamp}"
        for line in scrape(100, 200, [80, 40]).split("\n")
    )
    assert by_position(written(tmp_path, text)).rates == pytest.approx([0.8, 0.5])


def test_histograms_of_requests(tmp_path: Path) -> None:
    """Tests that histograms are pooled, wherever in the responses they lie."""
    one = '{"acceptance_histogram": [8, 0, 6, 6], "num_draft_tokens": 60, "num_spec_tokens": 3}'
    two = """{"metrics": {"speculative_decoding":
        {"acceptance_histogram": [2, 8, 0, 0], "num_draft_tokens": 30}}}"""
    found = by_position(written(tmp_path, f"[{one}, {two}]"))
    assert found.rates == pytest.approx([20 / 30, 12 / 20, 6 / 12])
    lines = f"\ufeff{one}\r\n\r\n{two.replace(chr(10), '')}"
    assert by_position(written(tmp_path, lines)).rates == pytest.approx(found.rates)
    assert found.notes == ()


def test_steps_give_shorter_drafts_their_due(tmp_path: Path) -> None:
    """Tests that with drafts step by step a position counts only where it was drafted."""
    request = """{"acceptance_histogram": [1, 2, 1], "num_draft_tokens": 6,
        "per_step_drafted": [2, 1, 1, 2], "per_step_accepted": [2, 1, 0, 1]}"""
    found = by_position(written(tmp_path, request))
    assert found.rates == pytest.approx([3 / 4, 1 / 2])
    assert found.notes == ()
    total = by_position(written(tmp_path, request.replace("per_step_drafted", "other")))
    assert "drafts had 1.5 tokens on average, not all 2" in total.notes[0]


def test_lengths_apart_identify_every_position(tmp_path: Path) -> None:
    """Tests that with a histogram per draft length, as an object or as lists, positions count where
    at risk.
    """
    total = '"acceptance_histogram": [4, 9, 2, 5], "num_draft_tokens": 40'
    known = '"acceptance_histogram_by_draft_length": {"1": [3, 7], "3": [1, 2, 2, 5]}'
    two = """{"metrics":
        {"acceptance_histogram_by_draft_length": [[4], [1, 1], [0, 2, 6]]}}"""
    found = by_position(written(tmp_path, f"[{{{known}, {total}}}, {two}]"))
    assert found.reached is not None
    # 10 + 10, 2 + 8; two drafts or more, one accepted; three
    assert found.reached.tolist() == [30.0, 17.0, 7.0]
    assert found.rates.tolist() == [25.0 / 30.0, 13.0 / 17.0, 5.0 / 7.0]
    assert found.notes == ()
    assert "not all 3" in by_position(written(tmp_path, f"[{{{total}}}, {two}]")).notes[0]


def test_a_law_that_depends_on_the_length_is_noted(tmp_path: Path) -> None:
    """Tests that where a position is accepted less in longer drafts than chance explains, this is
    said.
    """
    text = '{"acceptance_histogram_by_draft_length": %s}'
    found = by_position(written(tmp_path, text % "[[100, 200, 700], [500, 300, 100, 100]]"))
    assert "position 1 has 0.900 in drafts of 2 and 0.500 in drafts of 3" in found.notes[0]
    same = '{"1": [10, 90], "2": [9, 20, 71]}'
    assert by_position(written(tmp_path, text % same)).notes == ()


GOLDEN = """# Acceptance Length (AL) reference values
# key = num_speculative_tokens; value = golden AL
some-model-0813:
  thinking_on:
    1: 1.84
    2: 2.51
    3: 2.47
  thinking_off:
    1: 1.92
    3: 3
"""


def test_golden_lengths(tmp_path: Path) -> None:
    """Tests that golden lengths are read by mode, answered from the table, and noted where they
    fall.
    """
    path = written(tmp_path, GOLDEN, "al.yaml")
    with pytest.raises(
        InvalidInput,
        match=r"mode of some-model-0813: expected exactly one, got several \(thinking_off, think",
    ):
        read_acceptance(path)
    found = read_acceptance(path, mode="thinking_on")
    assert isinstance(found, AcceptanceLengths)
    assert found.expected_tokens(3).tolist() == [1.0, 1.84, 2.51, 2.47]
    assert "2.51 tokens with 2 drafts and 2.47 with 3" in found.notes[0]
    with pytest.raises(
        InvalidInput, match="drafts of 1, 3 tokens were measured, but drafts of 2 were not"
    ):
        read_acceptance(path, mode="thinking_off").expected_tokens(3)
    wider = read_acceptance(path, mode="thinking_off", extrapolate=True)
    assert wider.expected_tokens(3) == pytest.approx([1.0, 1.92, 2.46, 3.0])
    with pytest.raises(InvalidInput, match="model: expected some-model-0813, got 'other'"):
        read_acceptance(path, model="other")
    as_json = written(tmp_path, '{"m": {"on": {"1": 1.5, "10": 3, "2": 2}}}')
    assert read_acceptance(as_json).expected_tokens(2).tolist() == [1.0, 1.5, 2.0]
    half = written(tmp_path, '{"m": {"on": {"1": 1.5}}, "other": {"on": "1.5"}}')
    with pytest.raises(InvalidInput):  # all models have tables, or it is another file
        read_acceptance(half, model="m")


def test_a_key_that_comes_twice_is_refused(tmp_path: Path) -> None:
    """Tests that YAML, JSON and lines of JSON with a key twice, and YAML with a key that is no
    text, are refused.
    """
    for name, text, words in (
        ("a.yaml", GOLDEN + "    3: 3\n", "field '3' appears twice"),
        (
            "a.json",
            '{"acceptance_rate": 0.5, "acceptance_rate": 0.6}',
            "field 'acceptance_rate' appears twice",
        ),
        ("a.jsonl", '{"a": 1}\n{"a": 1, "a": 2}', "line 2: expected JSON: field 'a' appears twice"),
        ("b.yaml", "acceptance_rate: 0.5\nnull: 1", "key None: expected a string"),
    ):
        with pytest.raises(InvalidInput, match=words):
            read_acceptance(written(tmp_path, text, name))


def test_lengths_of_ones_own(tmp_path: Path) -> None:
    """Tests that lengths that are written are read back, limits included."""
    own = AcceptanceLengths(
        lengths=(1, 2, 4),
        tokens=np.array([1.5, 1.8, 2.0]),
        lower=np.array([1.4, 1.7, 1.9]),
        upper=np.array([1.6, 1.9, 2.1]),
        notes=("measured",),
    )
    again = read_acceptance(written(tmp_path, json.dumps(own.to_dict())))
    assert isinstance(again, AcceptanceLengths)
    assert again.to_dict() == own.to_dict()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: {b: {1: 3}}", r"a.b.1: expected a number in \[1, 2\], got 3"),
        ("a: {b: {0: 1}}", "expected draft lengths from 1 to 1000, got 0"),
        ("a: {b: {1: yes}}", "a.b.1: expected a number"),
        ("a: {b: [1, 2]}", "expected a Prometheus scrape"),
        ("a: {b: {1: 1.5}", "expected YAML"),
        ("acceptance_lengths: {1: 1.5}\nlower: {2: 1.4}", "lower: expected the draft lengths 1"),
        ("acceptance_lengths: {1: 1.5}\nrates: 3", "unknown field 'rates'"),
        ("acceptance_lengths: 3", "expected mean numbers of tokens by draft length, got 3"),
        ("acceptance_lengths: {1: 1.5}\nlower: {1: 1.6}", "expected lower <= tokens <= upper"),
    ],
)
def test_bad_lengths_are_named(tmp_path: Path, content: str, message: str) -> None:
    """Tests that each unusable table of lengths is refused with its place."""
    with pytest.raises(InvalidInput, match=message):
        read_acceptance(written(tmp_path, content, "al.yml"))


BENCH = """{"spec_decode_acceptance_rate": 50.0, "spec_decode_acceptance_length": 2.8,
"spec_decode_num_drafts": 500, "spec_decode_draft_tokens": 1500, "spec_decode_accepted_tokens": 900,
"spec_decode_per_position_acceptance_rates": [1.0, 0.6, 0.2], "ttfts": [0.1]}"""


def test_bench_serve(tmp_path: Path) -> None:
    """Tests that the benchmark's cumulative rates become conditional, and its percentage is not
    taken for alpha.
    """
    found = by_position(written(tmp_path, BENCH))
    assert found.rates == pytest.approx([1.0, 0.6, 1 / 3])
    assert found.reached is not None
    assert found.reached.tolist() == [500.0, 500.0, 300.0]
    appended = by_position(written(tmp_path, f"[{BENCH}]"))
    assert appended.rates.tolist() == found.rates.tolist()
    only = '{"spec_decode_per_position_acceptance_rates": [0.5, 0.25]}'
    assert by_position(written(tmp_path, only)).reached is None


def test_rates_of_ones_own(tmp_path: Path) -> None:
    """Tests that what is written is read back, and that one rate holds for every position."""
    found = PositionAcceptance.from_counts([100.0, 60.0], [60.0, 30.0])
    again = by_position(written(tmp_path, json.dumps(found.to_dict())))
    assert again.rates.tolist() == found.rates.tolist()
    assert again.lower.tolist() == found.lower.tolist()
    varied = PositionAcceptance.from_totals(100.0, 150.0, [60.0, 30.0, 10.0])
    assert by_position(written(tmp_path, json.dumps(varied.to_dict()))).expected_tokens(
        3, "lower"
    ) == pytest.approx(varied.expected_tokens(3, "lower"))
    one = by_position(written(tmp_path, '{"acceptance_rate": 0.8, "lower": 0.7, "upper": 0.9}'))
    assert one.extends
    assert one.lower.tolist() == [0.7]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "got an empty file"),
        (b"\xff\xfe", "expected text in UTF-8"),
        ("[]", "expected a Prometheus scrape"),
        (
            '{"acceptance_rate": 0.5, "acceptance_rates": [0.5]}',
            "either acceptance_rate or acceptance_rates",
        ),
        ('{"acceptance_rate": 80}', r"acceptance_rate: expected numbers in \[0, 1\], got 80"),
        ('{"acceptance_rates": []}', r"acceptance_rates: expected numbers in \[0, 1\], got \[\]"),
        (
            '{"spec_decode_num_drafts": 1}\n{"spec_decode_num_drafts": 2}',
            "expected one run of vllm bench serve, got 2",
        ),
        (BENCH.replace("900", "800"), "spec_decode_accepted_tokens: expected 900"),
        (
            '{"spec_decode_acceptance_rate": 50.0}',
            "per_position_acceptance_rates: expected a list of rates, got None",
        ),
        ('{"acceptance_rate": true}', r"acceptance_rate: expected numbers in \[0, 1\]"),
        ('{"acceptance_rate": NaN}', "NaN is not a valid JSON number"),
        ('{"acceptance_rates": [0.5], "levels": 1}', "unknown field 'levels'"),
        (
            '{"acceptance_histogram_by_draft_length": 3}',
            "draft_length: expected counts by draft length, got 3",
        ),
        (
            '{"acceptance_histogram_by_draft_length": {"2": [1, 2]}}',
            "2: expected counts of steps with 0 to 2 accepted",
        ),
        ('{"acceptance_histogram_by_draft_length": [3]}', "0: expected a list of counts, got 3"),
        ('{"acceptance_histogram": [1]}', "acceptance_histogram: expected counts of steps"),
        (
            (
                '{"spec_decode_per_position_acceptance_rates": [0.5], "spec_decode_num_drafts":'
                f" 1{'0' * 400}}}"
            ),
            "spec_decode_num_drafts: expected a number in",
        ),
        (
            '{"acceptance_histogram": [1, 2.5]}',
            r"acceptance_histogram\[1\]: expected an integer >= 0",
        ),
        ('{"acceptance_rates": [0.5]}\n{"acceptance', "line 2: expected JSON"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, content: str | bytes, message: str) -> None:
    """Tests that each unusable file is refused with its reason."""
    with pytest.raises(InvalidInput, match=message):
        by_position(written(tmp_path, content))


def test_missing_file_is_named(tmp_path: Path) -> None:
    """Tests that a file that is not there is a message."""
    with pytest.raises(InvalidInput, match="cannot be read"):
        by_position(tmp_path / "none")
