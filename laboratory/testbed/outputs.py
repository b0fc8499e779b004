"""Record the effect of quantised drafts on the outputs of the real pair (paper 3): distributions at
many positions, and texts.

The distributions are those of both models along answers that the verify model samples. The texts
are written by speculative decoding with Q-S (quantise, then sample) and S-Q (sample, then
quantise), twice by the verify model alone, and once by it greedily. In S-Q, a draft whose quantised
probability is 0 is accepted, because min(1, p / 0) is 1.

Imported only where torch is installed. `python -m testbed.outputs` ends `make logs`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from papers.lattice_points import nearest_counts, quantised
from papers.quantised_outputs import quantised_outputs

from specopt.models.fields import Floats
from specopt.models.files import write_text
from testbed.checkpoints import DRAFT, load_draft, prompt_tokens, tokenizer, verify_checkpoint
from testbed.decoding import Drafter, Sampling, Verifier
from testbed.llama import Llama
from testbed.logs import origin, rounded, write_parquet
from testbed.prompts import KINDS, prompts
from testbed.sampling import sample_answers

SCHEMES = ("LLM", "Q-S", "S-Q")


@dataclass(frozen=True, kw_only=True)
class LawRecording:
    """The positions at which distributions are recorded.

    Parameters
    ----------
    temperatures
        Temperatures of the answers and of the distributions.
    resolutions
        Resolutions of the lattice.
    prompts_per_kind, most_tokens, every
        Prompts of each kind of task, the maximum length of an answer, and the distance of the
        recorded tokens.
    seed
        Seed of the answers.
    """

    temperatures: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5)
    resolutions: tuple[int, ...] = (10, 30, 100, 300, 1000)
    prompts_per_kind: int = 5
    most_tokens: int = 40
    every: int = 6
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class TextRecording:
    """The texts that are recorded.

    Parameters
    ----------
    temperatures, resolutions
        Temperatures and resolutions of the sampled texts.
    prompts_per_kind, most_tokens
        Prompts of each kind of task, and the maximum length of a text.
    draft_length
        Drafts per round.
    seed
        Seed of the sampling. Every text has its own stream.
    """

    temperatures: tuple[float, ...] = (0.4, 1.2)
    resolutions: tuple[int, ...] = (10, 100)
    prompts_per_kind: int = 2
    most_tokens: int = 24
    draft_length: int = 4
    seed: int = 0


def laws_along(
    draft: Llama, verify: Llama, tokens: Sequence[int], start: int, every: int
) -> tuple[Floats, Floats]:
    """Return the logits of both models at every n-th token of an answer, those of the draft model
    first.

    Parameters
    ----------
    draft, verify
        The pair.
    tokens
        Tokens of prompt and answer.
    start
        Index at which the answer starts.
    every
        Distance n of the tokens.
    """
    seen = np.array([tokens[:-1]])
    count = np.array([seen.shape[1]])
    laws = [
        one.logits(seen, count, one.new_cache(1, seen.shape[1]), len(tokens) - start)[0, ::every]
        for one in (draft, verify)
    ]
    return laws[0], laws[1]


def record_laws(
    draft: Llama,
    verify: Llama,
    asked: Sequence[Sequence[int]],
    temperature: float,
    stop: int,
    how: LawRecording,
) -> dict[str, Floats]:
    """Return the result of `quantised_outputs` for positions of the answers to some prompts, and
    the index of their prompt.
    """
    answers = sample_answers(
        verify,
        asked,
        temperature=temperature,
        most_tokens=how.most_tokens,
        stop=stop,
        seed=how.seed,
    )
    sampling, columns = Sampling(temperature=temperature), dict[str, list[Floats]]()
    for number, answer in enumerate(answers):
        q, p = map(
            sampling.laws,
            laws_along(draft, verify, answer.tokens.tolist(), answer.start, how.every),
        )
        found = {"prompt": np.full(len(p), number)} | quantised_outputs(p, q, how.resolutions)
        for name, values in found.items():
            columns.setdefault(name, []).append(values)
    return {name: np.concatenate(values) for name, values in columns.items()}


def write_texts(
    draft: Llama,
    verify: Llama,
    asked: Sequence[Sequence[int]],
    *,
    scheme: str,
    resolution: int,
    draft_length: int,
    sampling: Sampling,
    most_tokens: int,
    stop: int,
) -> list[list[int]]:
    """Return the answers to prompts under a scheme, as tokens up to the stop token.

    Parameters
    ----------
    draft, verify
        The pair.
    asked
        Tokens of each prompt.
    scheme
        One of `SCHEMES`.
    resolution, draft_length
        Resolution and number of the drafts. They have no effect on the verify model alone.
    sampling
        Rule for choosing tokens.
    most_tokens
        Maximum number of tokens of an answer.
    stop
        Token that ends an answer.
    """
    tasks, room = range(len(asked)), max(map(len, asked)) + most_tokens * (draft_length + 1) + 1
    drafter = Drafter(draft, tasks, asked, room=room, sampling=sampling)
    verifier = Verifier(verify, tasks, asked, room=room, sampling=sampling)

    def coarse(laws: Floats) -> Floats:
        found: Floats = quantised(nearest_counts(laws, resolution))
        return found

    def answer(task: int) -> list[int]:
        found = verifier.tokens[task][len(asked[task]) :][:most_tokens]
        return found[: found.index(stop) + 1] if stop in found else found

    while any(len(one) < most_tokens and stop not in one for one in map(answer, tasks)):
        if scheme == "LLM":
            verifier.step()
            continue
        drafts = drafter.draft(draft_length, coarse if scheme == "Q-S" else None)
        if scheme == "S-Q":
            assert drafts.laws is not None, "temperatures are above 0"
            drafts = dataclasses.replace(drafts, laws=coarse(drafts.laws))
        drafter.settle(drafts.tokens, verifier.verify(drafts))
    return [answer(task) for task in tasks]


def record_texts(draft: Llama, verify: Llama, how: TextRecording) -> Iterator[dict[str, Any]]:
    """Yield a line per text with its prompt, kind, temperature, scheme, resolution, seed and
    words.
    """
    asked = prompts(how.prompts_per_kind, training=False)
    tokens = [prompt_tokens(prompt.text) for prompt in asked]
    stop = int(tokenizer().eos_token_id)
    plans = [("LLM", 0.0, 0, how.seed)]
    for temperature in how.temperatures:
        plans += [("LLM", temperature, 0, how.seed), ("LLM", temperature, 0, how.seed + 1)]
        plans += [
            (scheme, temperature, one, how.seed + 2)
            for scheme in SCHEMES[1:]
            for one in how.resolutions
        ]
    for scheme, temperature, resolution, seed in plans:
        begun = time.process_time()
        answers = write_texts(
            draft,
            verify,
            tokens,
            scheme=scheme,
            resolution=resolution,
            draft_length=how.draft_length,
            sampling=Sampling(temperature=temperature, seed=seed),
            most_tokens=how.most_tokens,
            stop=stop,
        )
        print(
            f"{scheme}, {temperature:g}, {resolution}: {time.process_time() - begun:.0f} s",
            flush=True,
        )
        for number, (prompt, answer) in enumerate(zip(asked, answers, strict=True)):
            text = tokenizer().decode(answer, skip_special_tokens=True)
            yield {
                "prompt": number,
                "kind": prompt.kind,
                "temperature": temperature,
                "scheme": scheme,
                "resolution": resolution,
                "seed": seed,
                "text": text,
            }


def write_laws(columns: dict[str, Any], path: Path, notes: dict[str, Any]) -> None:
    """Write distributions as parquet with numbers of 12 bits, atomically. Notes are stored in its
    metadata as JSON.
    """
    import pyarrow

    arrays = {"prompt": pyarrow.array(columns["prompt"], pyarrow.int16())}
    for name, values in columns.items():
        if name != "prompt":
            flat = pyarrow.array(rounded(values).ravel(), pyarrow.float32())
            arrays[name] = (
                flat
                if values.ndim == 1
                else pyarrow.FixedSizeListArray.from_arrays(flat, values.shape[1])
            )
    write_parquet(arrays, path, notes)


def make_outputs(record_folder: Path, laws: LawRecording, texts: TextRecording) -> None:
    """Record the missing distributions and texts in the folder `outputs`."""
    folder, weights = record_folder / "outputs", record_folder / DRAFT.name
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = verify_checkpoint()
    verify, draft = checkpoint.model(), load_draft(weights, checkpoint).model()
    notes = origin(weights)
    stop = int(tokenizer().eos_token_id)
    asked = [
        prompt_tokens(prompt.text) for prompt in prompts(laws.prompts_per_kind, training=False)
    ]
    for temperature in laws.temperatures:
        path = folder / f"laws-{temperature:g}.parquet"
        if not path.exists():
            begun = time.process_time()
            columns = record_laws(draft, verify, asked, temperature, stop, laws)
            write_laws(columns, path, asdict(laws) | notes | {"temperature": temperature})
            print(
                f"{path.name}: {len(columns['prompt'])} positions,"
                f" {time.process_time() - begun:.0f} s",
                flush=True,
            )
    path = folder / "texts.json"
    if not path.exists():
        lines = ",\n".join(
            map(partial(json.dumps, ensure_ascii=False), record_texts(draft, verify, texts))
        )
        head = json.dumps(asdict(texts) | notes | {"kinds": KINDS})
        write_text(path, f'{{"recording": {head},\n"texts": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    make_outputs(DRAFT.parent, LawRecording(), TextRecording())
