"""Distil the draft model: a few layers of the verify model learn its distributions on text that it
generated.

Imported only where torch is installed. `python -m testbed.training` is `make draft`.
"""

from __future__ import annotations

import datetime
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor

from specopt.models.files import to_json, write_text
from testbed.checkpoints import (
    DRAFT,
    SHARED,
    Checkpoint,
    load_draft,
    prompt_tokens,
    save_draft,
    shallow,
    tokenizer,
    verify_checkpoint,
)
from testbed.prompts import prompts
from testbed.sampling import Answer, sample_answers

ROWS = 64
"""Number of positions whose distributions are held at the same time, so that they fit into the
processor's cache.
"""

ALIKE = 8
"""Number of batches whose answers are sorted by length."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Parameters of the training of a draft model.

    Parameters
    ----------
    layers
        Layers of the verify model with which training starts.
    answers_per_prompt, most_tokens
        Number of answers per prompt, and their maximum length.
    passes
        Number of passes over all answers.
    learning_rate, decay
        Learning rate of AdamW, and the share of all steps at the end in which it decreases linearly
        to 0. During this decay, the loss changes from the cross-entropy with the verify model's
        distribution to the total variation.
    batch
        Number of answers per step.
    warm_up
        Number of steps in which the learning rate increases.
    frequent, whole_every
        Steps use only the logits of the most probable tokens overall, except for every n-th step,
        which uses the complete vocabulary.
    seed
        Seed of sampling and order.
    """

    layers: tuple[int, ...] = (0, 1, 29)
    answers_per_prompt: int = 4
    most_tokens: int = 96
    passes: int = 6
    learning_rate: float = 1.5e-3
    decay: float = 0.5
    batch: int = 8
    warm_up: int = 20
    frequent: int = 8192
    whole_every: int = 8
    seed: int = 0


def sample_text(
    verify: Checkpoint,
    prompts: Sequence[Sequence[int]],
    recipe: Recipe,
    *,
    stop: int,
    folder: Path,
    together: int = 16,
) -> list[Answer]:
    """Return answers of the verify model. Batches in the folder are read, and others are written to
    it.

    Parameters
    ----------
    verify
        The verify model.
    prompts
        Tokens of each prompt.
    recipe
        Number and length of the answers.
    stop
        Token that ends an answer.
    folder
        Folder of finished batches.
    together
        Number of prompts that are answered in one batch.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model, answers = None, []
    for first in range(0, len(prompts), together):
        path = folder / f"answers-{first:05d}.pt"
        if not path.exists():
            model = model or verify.model(torch.bfloat16)
            begun = time.perf_counter()
            batch = sample_answers(
                model,
                prompts[first : first + together],
                each=recipe.answers_per_prompt,
                temperature=1.0,
                most_tokens=recipe.most_tokens,
                stop=stop,
                seed=recipe.seed + first,
            )
            _write(path, [asdict(answer) for answer in batch])
            seconds, count = (
                time.perf_counter() - begun,
                sum(len(answer.states) for answer in batch),
            )
            _say(
                f"prompts answered: {first + together} of {len(prompts)}, {count} tokens,"
                f" {seconds:.1f} s"
            )
        answers += [Answer(**fields) for fields in torch.load(path)]
    return answers


def distil(
    verify: Checkpoint,
    answers: Sequence[Answer],
    unseen: Sequence[Answer],
    recipe: Recipe,
    *,
    folder: Path,
) -> tuple[Checkpoint, list[dict[str, Any]]]:
    """Train a draft model. Passes finished by an earlier call are read from the folder.

    Parameters
    ----------
    verify
        The verify model.
    answers, unseen
        Answers of the verify model for training, and for measuring.
    recipe
        Parameters of the training.
    folder
        Folder of the state after each pass.

    Returns
    -------
    draft, passes
        The draft model, and the results of each pass.
    """
    draft = shallow(verify, recipe.layers)
    student = _student(draft)
    head = verify.weights[SHARED].bfloat16()
    frequent = head[_frequent(answers, head, recipe.frequent)]
    trained = [value for name, value in student.named_parameters() if "embed" not in name]
    optimiser = torch.optim.AdamW(
        trained, lr=recipe.learning_rate, betas=(0.9, 0.95), weight_decay=0.01
    )
    steps = -(-len(answers) // recipe.batch)
    path, done = folder / "training.pt", []
    if path.exists():
        state = torch.load(path)
        student.load_state_dict(state["student"])
        optimiser.load_state_dict(state["optimiser"])
        done = state["passes"]
    for number in range(len(done), recipe.passes):
        begun, agreed, positions = time.perf_counter(), 0.0, 0
        for step, batch in enumerate(_batches(answers, recipe.batch, recipe.seed + number)):
            step_number = number * steps + step
            rate = _rate(step_number, recipe.passes * steps, recipe)
            for group in optimiser.param_groups:
                group["lr"] = rate
            hidden, states = _hidden(student, batch)
            whole = step % recipe.whole_every == 0
            share = 1.0 - rate / recipe.learning_rate if step_number > recipe.warm_up else 0.0
            gradient, accepted = gradients(
                hidden.detach(), states, head if whole else frequent, share
            )
            hidden.backward(gradient)
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimiser.step()
            optimiser.zero_grad()
            if whole:
                agreed, positions = agreed + float(accepted.sum()), positions + len(accepted)
                if step % 16 == 0:
                    _say(f"pass {number + 1}, step {step} of {steps}: {agreed / positions:.3f}")
        done.append(
            {
                "acceptance_in_training": round(agreed / positions, 4),
                "acceptance_unseen": round(_acceptance(student, unseen, head, recipe.batch), 4),
                "seconds": round(time.perf_counter() - begun, 1),
            }
        )
        _write(
            path,
            {"student": student.state_dict(), "optimiser": optimiser.state_dict(), "passes": done},
        )
        _say(f"pass {number + 1}: {json.dumps(done[-1])}")
    found = {f"model.{name}": value.detach() for name, value in student.state_dict().items()}
    return Checkpoint(draft.config, found | {SHARED: verify.weights[SHARED]}), done


def acceptance(
    draft: Checkpoint, verify: Checkpoint, answers: Sequence[Answer], *, batch: int = 12
) -> float:
    """Return the mean of 1 - TV at temperature 1 over all tokens of the verify model's answers."""
    return _acceptance(_student(draft), answers, verify.weights[SHARED].bfloat16(), batch)


def _acceptance(student: Any, answers: Sequence[Answer], head: Tensor, batch: int) -> float:
    found = []
    with torch.no_grad():
        for first in range(0, len(answers), batch):
            hidden, states = _hidden(student, answers[first : first + batch])
            found.append(gradients(hidden, states, head)[1])
    return float(torch.cat(found).mean())


def _student(draft: Checkpoint) -> Any:
    """Return the draft model as a differentiable module of `transformers`."""
    from transformers import LlamaConfig, LlamaModel

    config = {
        name: value
        for name, value in draft.config.items()
        if name not in ("model_type", "rope_theta")
    }
    rope = {"rope_theta": draft.config["rope_theta"], "rope_type": "default"}
    student = LlamaModel(LlamaConfig(**config, rope_parameters=rope))
    student.load_state_dict(
        {name.removeprefix("model."): value for name, value in draft.weights.items()}
    )
    student.embed_tokens.weight.requires_grad_(False)
    return student


def _hidden(student: Any, batch: Sequence[Answer]) -> tuple[Tensor, Tensor]:
    """Return the states of student and teacher at all answer tokens of a batch."""
    longest = max(len(answer.tokens) for answer in batch) - 1
    tokens = torch.zeros(len(batch), longest, dtype=torch.int64)
    learnt = torch.zeros(len(batch), longest, dtype=torch.bool)
    for row, answer in enumerate(batch):
        count = len(answer.tokens) - 1  # nothing follows the last token
        tokens[row, :count] = answer.tokens[:-1]
        learnt[row, answer.start - 1 : count] = True
    with torch.autocast(
        "cpu", torch.bfloat16
    ):  # rows end with padding, which does not affect causal layers
        hidden = student(input_ids=tokens, use_cache=False).last_hidden_state
    return hidden[learnt].float(), torch.cat([answer.states for answer in batch])


def gradients(
    hidden: Tensor, states: Tensor, head: Tensor, total_variation: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Return the gradient of the loss with respect to the draft model's states, and 1 - TV at each
    state, over the tokens of the head.

    Parameters
    ----------
    hidden, states
        States of the draft model and the verify model, shape (n, hidden).
    head
        Matrix that turns states into logits.
    total_variation
        Weight w of twice the total variation in the loss. The cross-entropy has the rest. The loss
        is a mean.
    """
    gradient, accepted = torch.empty_like(hidden), torch.empty(len(hidden))
    for first in range(0, len(hidden), ROWS):
        rows = slice(first, first + ROWS)
        draft = torch.softmax(functional.linear(hidden[rows].to(head.dtype), head).float(), dim=-1)
        verify = torch.softmax(functional.linear(states[rows].to(head.dtype), head).float(), dim=-1)
        excess = draft - verify
        accepted[rows] = 1.0 - 0.5 * excess.abs().sum(dim=-1)
        if total_variation > 0.0:
            signs = excess.sign()
            signs -= (draft * signs).sum(dim=-1, keepdim=True)
            excess = (1.0 - total_variation) * excess + total_variation * draft * signs
        gradient[rows] = (excess.to(head.dtype) @ head).float() / len(hidden)
    return gradient, accepted


def _frequent(answers: Sequence[Answer], head: Tensor, count: int) -> Tensor:
    """Return the most probable tokens of the verify model over a part of its answers."""
    states = torch.cat([answer.states for answer in answers])[
        :: max(1, len(answers) // ROWS)
    ].bfloat16()
    mass = torch.zeros(len(head))
    for part in states.split(ROWS):
        mass += torch.softmax(functional.linear(part, head).float(), dim=-1).sum(dim=0)
    return mass.topk(min(count, len(head))).indices


def _batches(answers: Sequence[Answer], size: int, seed: int) -> Iterator[list[Answer]]:
    """Yield all answers in random order, with those of similar length together, because rows are
    padded to the longest.
    """
    random = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(answers), generator=random).tolist()
    batches = []
    for first in range(0, len(order), ALIKE * size):
        some = sorted(
            order[first : first + ALIKE * size], key=lambda number: len(answers[number].tokens)
        )
        batches += [some[start : start + size] for start in range(0, len(some), size)]
    for number in torch.randperm(len(batches), generator=random).tolist():
        yield [answers[answer] for answer in batches[number]]


def _rate(step: int, steps: int, recipe: Recipe) -> float:
    left = (steps - step) / max(recipe.decay * steps, 1)
    return recipe.learning_rate * min(1.0, (step + 1) / recipe.warm_up, left)


def _write(path: Path, content: Any) -> None:
    """Write a file atomically."""
    part = path.with_suffix(".part")
    torch.save(content, part)
    part.replace(path)


def _say(text: str) -> None:
    print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)


def make_draft(
    work: Path, record: Path, recipe: Recipe, *, prompts_per_kind: int, unseen_per_kind: int
) -> None:
    """Make the draft model of the laboratory, or continue an interrupted run.

    Parameters
    ----------
    work
        Folder from which a later call continues.
    record
        Folder of the weights, `draft.safetensors`, and of the facts about them, `draft.json`.
    recipe
        Parameters of the training.
    prompts_per_kind, unseen_per_kind
        Prompts for training, and others for measuring.
    """
    verify, stop = verify_checkpoint(), int(tokenizer().eos_token_id)
    seen = [prompt_tokens(prompt.text) for prompt in prompts(prompts_per_kind, training=True)]
    others = [prompt_tokens(prompt.text) for prompt in prompts(unseen_per_kind, training=False)]
    once = replace(recipe, answers_per_prompt=1)
    unseen = sample_text(verify, others, once, stop=stop, folder=work / "unseen")
    answers = sample_text(verify, seen, recipe, stop=stop, folder=work / "answers")
    trained, passes = distil(verify, answers, unseen, recipe, folder=work)
    save_draft(trained, record / DRAFT.name, asdict(recipe))
    shipped = acceptance(load_draft(record / DRAFT.name, verify), verify, unseen)
    known = {
        "date": f"{datetime.date.today()}",
        "acceptance": round(shipped, 4),
        "acceptance_before_training": round(
            acceptance(shallow(verify, recipe.layers), verify, unseen), 4
        ),
        "positions": sum(len(answer.states) for answer in unseen),
        "recipe": asdict(recipe),
        "prompts": len(seen),
        "answers": len(answers),
        "passes": passes,
        "torch": str(torch.__version__),
    }
    write_text(record / "draft.json", to_json(known) + "\n")
    _say(f"acceptance {shipped:.4f} with the weights in {record / 'draft.safetensors'}")


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    make_draft(
        Path("build/laboratory"), DRAFT.parent, Recipe(), prompts_per_kind=32, unseen_per_kind=8
    )
