"""Record drafts of the real pair: speculative decoding of prompts of every kind, with the
distributions of both models.

Imported only where torch is installed. `python -m testbed.logs` is `make logs`.
"""

from __future__ import annotations

import copy
import datetime
import hashlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from papers.speculative_sampling import acceptance_rate

from specopt.models.drafting import ACCEPTED, AFTER, FIRST_REJECTION
from specopt.models.fields import Floats, Ints
from specopt.models.files import write_bytes
from testbed.checkpoints import DRAFT, load_draft, prompt_tokens, tokenizer, verify_checkpoint
from testbed.decoding import Drafter, Sampling, Verifier, padded
from testbed.llama import Llama, LlamaCache
from testbed.prompts import KINDS, Prompt, prompts

TOP = 64
"""Maximum number of tokens of each distribution that are recorded individually."""

BITS = 12
"""Number of bits of every recorded number."""

PROBABILITIES = ("draft_probabilities", "verify_probabilities")


@dataclass(frozen=True, kw_only=True)
class Recording:
    """The settings of a recording of drafts.

    Parameters
    ----------
    temperatures
        Temperatures of the runs of each prompt.
    draft_length, rounds
        Tokens drafted in a round, and maximum number of rounds of a run, which ends with its
        answer.
    mass
        Share of each distribution that is recorded token by token, with at most `TOP` tokens.
    seed
        Seed of the sampling.
    """

    temperatures: tuple[float, ...] = (0.0, 0.5, 1.0)
    draft_length: int = 5
    rounds: int = 10
    mass: float = 0.98
    seed: int = 0


class _Heard:
    """A model that stores the logits that it returned."""

    def __init__(self, model: Llama) -> None:
        self.model = model
        self.heard: list[Floats] = []
        self.new_cache = model.new_cache

    def logits(self, tokens: Ints, counts: Ints, cache: Any, scored: int) -> Floats:
        """Run a pass, see `testbed.decoding.LanguageModel`."""
        self.heard.append(self.model.logits(tokens, counts, cache, scored))
        return self.heard[-1]

    def take(self) -> Floats:
        """Return the logits stored since the last call, joined along positions."""
        heard, self.heard = self.heard, []
        return np.concatenate(heard, axis=1)


def record(
    draft: Llama,
    verify: Llama,
    asked: Sequence[Prompt],
    tokens: Sequence[Sequence[int]],
    first: int,
    stop: int,
    how: Recording,
) -> dict[str, list[Any]]:
    """Decode a batch of prompts at each temperature, and return every drafted position.

    Parameters
    ----------
    draft, verify
        The pair.
    asked, tokens
        The prompts, and the tokens of each.
    first
        Index of the first prompt. The others have the next indices.
    stop
        Token that ends an answer.
    how
        Settings of the recording.

    Returns
    -------
    Columns as `testbed.recorded.read_recorded` reads them.
    """
    columns: dict[str, list[Any]] = {}
    numbers = range(first, first + len(asked))
    room = max(map(len, tokens)) + (how.rounds + 1) * (how.draft_length + 1)
    drafting, verifying = _Heard(draft), _Heard(verify)
    caches = _prefilled(draft, tokens, room), _prefilled(verify, tokens, room)
    for temperature in how.temperatures:
        sampling = Sampling(temperature=temperature, seed=how.seed)
        drafter = Drafter(drafting, numbers, tokens, room=room, sampling=sampling)
        verifier = Verifier(verifying, numbers, tokens, room=room, sampling=sampling)
        drafter.cache, verifier.cache = (copy.deepcopy(cache) for cache in caches)
        alive = set(range(len(asked)))
        for number in range(how.rounds):
            drafts = drafter.draft(how.draft_length)
            verdict = verifier.verify(drafts)
            drafter.settle(drafts.tokens, verdict)
            q, p = drafting.take(), verifying.take()
            for row in sorted(alive):
                drafted, accepted = drafts.tokens[row], int(verdict.accepted[row])
                ends = np.flatnonzero(drafted[:accepted] == stop)
                length = int(ends[0]) + 1 if len(ends) else how.draft_length
                run = {
                    "prompt": numbers[row],
                    "kind": asked[row].kind,
                    "temperature": temperature,
                    "seed": how.seed,
                }
                found = {
                    name: [value] * length for name, value in (run | {"round": number}).items()
                }
                found |= _positions(
                    q[row, :length],
                    p[row, :length],
                    drafted[:length],
                    accepted,
                    temperature,
                    how.mass,
                )
                for name, values in found.items():
                    columns.setdefault(name, []).extend(values)
                if len(ends) or verdict.tokens[row] == stop:
                    alive.remove(row)
            if not alive:
                break
    return columns


def _prefilled(model: Llama, tokens: Sequence[Sequence[int]], room: int) -> LlamaCache:
    """Return a cache of all but the last token of each prompt. Every temperature starts from a
    copy.
    """
    known, counts = padded([row[:-1] for row in tokens])
    cache = model.new_cache(len(tokens), room)
    with torch.inference_mode():
        model.run(model.embed(known), cache, range(len(model.layers)))
    cache.lengths = counts
    return cache


def _positions(
    draft: Floats, verify: Floats, tokens: Ints, accepted: int, temperature: float, mass: float
) -> dict[str, list[Any]]:
    """Return the records of the drafted positions of a round, from the logits of both models at
    them.
    """
    law = Sampling(temperature=temperature or 1.0)
    q, p = law.laws(draft), law.laws(verify)
    places = np.arange(len(tokens))
    agreed = (
        draft.argmax(axis=-1) == verify.argmax(axis=-1)
        if temperature == 0.0
        else acceptance_rate(p, q)
    )
    top = np.partition(q, -2, axis=-1)
    reached = np.minimum(accepted + 1, len(tokens))
    return {
        "position": places.tolist(),
        "token": tokens.tolist(),
        "outcome": (
            np.where(
                places < accepted, ACCEPTED, np.where(places == accepted, FIRST_REJECTION, AFTER)
            ).tolist()
        ),
        "acceptance_rate": agreed.astype(np.float64).tolist(),
        "draft_probability": q[places, tokens].tolist(),
        "verify_probability": p[places, tokens].tolist(),
        "draft_entropy": _entropy(q).tolist(),
        "verify_entropy": _entropy(p).tolist(),
        "margin": (top[:, -1] - top[:, -2]).tolist(),
        "deviation": draft.std(axis=-1, dtype=np.float64).tolist(),
        **_top("draft", q, reached, mass),
        **_top("verify", p, reached, mass),
    }


def _top(side: str, laws: Floats, reached: int, mass: float) -> dict[str, list[Any]]:
    """Return the most probable tokens of the first distributions and the sum of the others. The
    later distributions have none.
    """
    count = min(TOP, laws.shape[1])
    found = np.argpartition(laws, -count, axis=-1)[:, -count:]
    chances = np.take_along_axis(laws, found, axis=-1)
    order = np.argsort(-chances, axis=-1, kind="stable")
    found, chances = (
        np.take_along_axis(found, order, axis=-1),
        np.take_along_axis(chances, order, axis=-1),
    )
    ends = chances.cumsum(axis=-1)
    kept = np.where(
        np.arange(len(laws)) < reached, np.minimum((ends < mass).sum(axis=-1) + 1, count), 0
    )
    rest = np.clip(1.0 - ends[np.arange(len(laws)), np.maximum(kept, 1) - 1], 0.0, 1.0)
    chances = rounded(chances)
    return {
        f"{side}_tokens": [row[:length].tolist() for row, length in zip(found, kept, strict=True)],
        f"{side}_probabilities": [
            row[:length].tolist() for row, length in zip(chances, kept, strict=True)
        ],
        f"{side}_rest": rest.tolist(),
    }


def rounded(values: Any) -> Floats:
    """Return numbers with `BITS` bits."""
    mantissa, exponent = np.frexp(values)
    found: Floats = np.ldexp(np.round(mantissa * 2.0**BITS), exponent - BITS)
    return found


def _entropy(laws: Floats) -> Floats:
    found: Floats = -(laws * np.log(np.maximum(laws, np.finfo(np.float64).tiny))).sum(axis=-1)
    return np.maximum(found, 0.0)


def write_log(columns: dict[str, list[Any]], path: Path, notes: dict[str, Any]) -> None:
    """Write recorded positions as parquet, atomically. Notes are stored in its metadata as JSON."""
    import pyarrow

    types = {
        "kind": pyarrow.string(),
        "temperature": pyarrow.float64(),
        **dict.fromkeys(("prompt", "seed", "token"), pyarrow.int32()),
        **dict.fromkeys(("round", "position", "outcome"), pyarrow.int16()),
        **dict.fromkeys(("draft_tokens", "verify_tokens"), pyarrow.list_(pyarrow.int32())),
        **dict.fromkeys(PROBABILITIES, pyarrow.list_(pyarrow.float32())),
    }
    arrays = {
        name: pyarrow.array(
            values if name in types else rounded(values), types.get(name, pyarrow.float32())
        )
        for name, values in columns.items()
    }
    split = [
        *(name for name in columns if name not in types),
        *(f"{name}.list.element" for name in PROBABILITIES),
    ]
    few = [name for name in columns if name in types and name not in PROBABILITIES]
    write_parquet(arrays, path, notes, use_dictionary=few, use_byte_stream_split=split)


def write_parquet(
    arrays: dict[str, Any], path: Path, notes: dict[str, Any], **options: Any
) -> None:
    """Write columns of Arrow as parquet, atomically. Notes are stored in its metadata as JSON."""
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table(arrays).replace_schema_metadata({"recording": json.dumps(notes)})
    stream = pyarrow.BufferOutputStream()
    parquet.write_table(table, stream, compression="zstd", compression_level=19, **options)
    write_bytes(path, stream.getvalue().to_pybytes())


def origin(weights: Path) -> dict[str, str]:
    """Return the conditions of a recording: the day, the digest of the draft model, and the version
    of torch.
    """
    return {
        "date": f"{datetime.date.today()}",
        "draft_sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
        "torch": str(torch.__version__),
    }


def make_logs(
    record_folder: Path, how: Recording, *, prompts_per_kind: int, together: int, minutes: float
) -> None:
    """Record the missing prompts in batches, each in its own file.

    Parameters
    ----------
    record_folder
        Folder of `draft.safetensors`, in which the folder `logs` is created.
    how
        Settings of the recording.
    prompts_per_kind
        Number of prompts per kind.
    together
        Prompts of each kind in a batch.
    minutes
        No batch starts later than this.
    """
    folder, weights = record_folder / "logs", record_folder / DRAFT.name
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint, begun = verify_checkpoint(), time.monotonic()
    verify, draft = checkpoint.model(), load_draft(weights, checkpoint).model()
    asked = prompts(prompts_per_kind, training=False)
    size = together * len(KINDS)
    for first in range(0, len(asked), size):
        path = folder / f"prompts-{first:04d}.parquet"
        if path.exists():
            continue
        if time.monotonic() - begun > 60.0 * minutes:
            break
        batch, start = asked[first : first + size], time.monotonic()
        tokens = [prompt_tokens(prompt.text) for prompt in batch]
        columns = record(draft, verify, batch, tokens, first, int(tokenizer().eos_token_id), how)
        seconds = round(time.monotonic() - start, 1)
        notes = asdict(how) | {"bits": BITS} | origin(weights) | {"seconds": seconds}
        write_log(columns, path, notes)
        print(
            f"{path.name}: {len(columns['token'])} positions, {path.stat().st_size} bytes,"
            f" {seconds} s",
            flush=True,
        )


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    limit = float(os.environ.get("MINUTES", "inf"))
    make_logs(DRAFT.parent, Recording(), prompts_per_kind=51, together=4, minutes=limit)
