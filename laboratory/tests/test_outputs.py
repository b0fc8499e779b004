"""Recording the effect of quantised drafts on outputs, on a tiny pair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from pyarrow import parquet  # noqa: E402

from testbed.decoding import Sampling, greedy  # noqa: E402
from testbed.outputs import (  # noqa: E402
    LawRecording,
    laws_along,
    record_laws,
    write_laws,
    write_texts,
)
from testbed.tiny import tiny_draft_model, tiny_verify_model  # noqa: E402

PROMPTS = [[1, 2, 3], [4, 5, 6, 7, 8], [9, 10]]
HOW = LawRecording(
    temperatures=(1.0,), resolutions=(4, 32), prompts_per_kind=1, most_tokens=9, every=4, seed=1
)


def texts(scheme: str, **changes: object) -> list[list[int]]:
    """Write texts of up to 8 tokens."""
    options: dict[str, object] = {
        "resolution": 16,
        "draft_length": 3,
        "sampling": Sampling(temperature=0.0),
        "most_tokens": 8,
        "stop": -1,
    }
    models = tiny_draft_model(), tiny_verify_model()
    chosen: dict[str, Any] = options | changes
    return write_texts(*models, PROMPTS, scheme=scheme, **chosen)


def test_greedy_texts_are_those_of_greedy_decoding() -> None:
    """Tests that the verify model alone generates its greedy output, and that a text ends with the
    stop token.
    """
    plain = [greedy(tiny_verify_model(), prompt, 8)[0] for prompt in PROMPTS]
    assert texts("LLM") == plain
    stop = plain[0][2]
    assert [one[-1] == stop or len(one) == 8 for one in texts("LLM", stop=stop)] == [True] * 3
    assert texts("LLM", stop=stop)[0] == plain[0][: plain[0].index(stop) + 1]


@pytest.mark.parametrize("scheme", ["Q-S", "S-Q"])
def test_sampled_texts_are_whole_and_repeat(scheme: str) -> None:
    """Tests that texts have their length, that a seed reproduces them, and that another seed gives
    others.
    """
    warm = Sampling(temperature=1.0, seed=3)
    found = texts(scheme, sampling=warm)
    assert [len(one) for one in found] == [8, 8, 8]
    assert (
        texts(scheme, sampling=warm)
        == found
        != texts(scheme, sampling=Sampling(temperature=1.0, seed=4))
    )


def test_laws_are_those_of_the_tokens_before(tmp_path: Path) -> None:
    """Tests that logits along an answer equal those of single passes, and that a file contains the
    recorded values.
    """
    draft, verify = tiny_draft_model(), tiny_verify_model()
    tokens = [1, 2, 3, 4, 5, 6]
    for laws, model in zip(laws_along(draft, verify, tokens, 2, 2), (draft, verify), strict=True):
        for row, end in zip(laws, (2, 4), strict=True):
            before = np.array([tokens[:end]])
            alone = model.logits(before, np.array([end]), model.new_cache(1, end), 1)
            assert row == pytest.approx(alone[0, 0], abs=1e-9)
    columns = record_laws(draft, verify, PROMPTS, 1.0, -1, HOW)
    assert columns["prompt"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert columns["kept_error"].max() < 1e-12 < columns["lost_error"].max()
    write_laws(columns, tmp_path / "laws.parquet", {"seed": 1})
    table = parquet.read_table(tmp_path / "laws.parquet")
    assert json.loads(table.schema.metadata[b"recording"]) == {"seed": 1}
    assert np.array(table["kept_rate"].to_pylist()) == pytest.approx(
        columns["kept_rate"], rel=2.5e-4
    )
