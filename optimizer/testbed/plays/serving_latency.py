"""Plans of serving-latency, carried out: uploads over shares of a band, then batches through both processes.

A batch keeps all of its tasks until the last one has its tokens (static batches, Eq. 8), decoding steps never overlap
(Eq. 22), and every task runs on until its batch ends; what it has beyond its length is cut off.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.fields import Floats
from specopt.models.serving_latency import ServingLatencyPlan, ServingLatencyProblem
from specopt.models.uplink import spectral_efficiency
from specopt.testbed.decoding import Drafter, Drafts, LanguageModel, Sampling, Verdict, Verifier, no_drafts
from specopt.testbed.processes import Laboratory, Session
from specopt.testbed.shaper import Link, Shaper


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """What happened; seconds since the first upload began.

    Parameters
    ----------
    seconds, communication_seconds
        Until the last batch's last verdict was back, and until the last upload had arrived.
    first_token_seconds
        Per task.
    outputs
        Tokens of each task, as many as it asked for.
    steps
        Decoding steps of each batch.
    accepted, drafted
        Drafts accepted, and drafts looked at until the first rejection, of all rounds together.
    draft, verify
        Stages in the order in which each process did them: columns step (from 1), batch, start, end, and the
        processor seconds between them, which are less where something else ran.
    """

    seconds: float
    communication_seconds: float
    first_token_seconds: Floats
    outputs: list[list[int]]
    steps: list[int]
    accepted: int
    drafted: int
    draft: Floats
    verify: Floats


def play(
    laboratory: Laboratory,
    problem: ServingLatencyProblem,
    plan: ServingLatencyPlan,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
) -> Run:
    """Carry out a plan; `prompts` are the tasks' tokens, as many as the problem's inputs."""
    mechanism = problem.mechanism_of(plan)
    laboratory.play(
        "serving_latency",
        prompts=[list(prompt) for prompt in prompts],
        outputs=problem.output_tokens.tolist(),
        batches=[list(batch) for batch in plan.batches],
        length=plan.speculation_length,
        overlapped=mechanism == "pipelined",
        sampling=vars(sampling),
    )
    assert laboratory.draft.answer() == laboratory.verify.answer() == "ready"
    bits = problem.bits_per_token(mechanism) * problem.input_tokens
    rates = plan.bandwidth_share * problem.bandwidth_hz * spectral_efficiency(problem.snr)
    begin = time.monotonic()
    for size, rate in zip(bits.tolist(), rates.tolist(), strict=True):
        flow = Shaper(Link(rates_bits_per_second=(rate,)), begin)
        laboratory.draft.channel.send({"embeddings": bytes(int(size) // 8)}, bits=size, shaper=flow)
    told, verified = laboratory.finish()
    draft, verify = (np.array(rows, dtype=np.float64).reshape(-1, 5) for rows in (told["stages"], verified["stages"]))
    for rows in (draft, verify):
        rows[:, 2:4] -= begin
    back = np.array(told["back"]) - begin
    steps = [int((verify[:, 1] == batch).sum()) for batch in range(len(plan.batches))]
    first = np.empty(problem.tasks)
    for (step, batch, *_), seconds in zip(verify, back, strict=True):
        if step == 1:
            first[list(plan.batches[int(batch)])] = seconds
    return Run(
        seconds=float(back.max()),
        communication_seconds=told["uploaded"] - begin,
        first_token_seconds=first,
        outputs=[told_one[:most] for told_one, most in zip(told["outputs"], problem.output_tokens, strict=True)],
        steps=steps,
        accepted=told["accepted"],
        drafted=told["drafted"],
        draft=draft,
        verify=verify,
    )


@dataclass
class _Batch:
    """A batch on one side."""

    tasks: list[int]
    side: Any
    begun: list[int]
    wanted: list[int]

    @property
    def done(self) -> bool:
        """Whether every task has its tokens."""
        rows = zip(self.side.tokens, self.begun, self.wanted, strict=True)
        return all(len(tokens) - prompt >= wanted for tokens, prompt, wanted in rows)

    @property
    def outputs(self) -> dict[int, list[int]]:
        """Tokens beyond the prompt, by task."""
        rows = zip(self.tasks, self.side.tokens, self.begun, strict=True)
        return {task: tokens[prompt:] for task, tokens, prompt in rows}


class _Clock:
    """Times one stage."""

    def __init__(self) -> None:
        self.start, self.busy = time.monotonic(), time.thread_time()

    def read(self) -> tuple[float, float, float]:
        """Return its start, its end, and processor seconds."""
        return self.start, time.monotonic(), time.thread_time() - self.busy


@dataclass
class _Order:
    """What both sides are told."""

    prompts: list[list[int]]
    outputs: list[int]
    batches: list[list[int]]
    length: int
    overlapped: bool
    sampling: dict[str, Any]

    def batches_of(self, side: type[Drafter | Verifier], model: LanguageModel) -> list[_Batch]:
        """Return the batches of one side."""
        law = Sampling(**self.sampling)
        found = []
        for tasks in self.batches:
            prompts, wanted = [self.prompts[task] for task in tasks], [self.outputs[task] for task in tasks]
            room = max(map(len, prompts)) + (max(wanted) + 1) * (self.length + 1)  # a step gives one token at least
            one = side(model, tasks, prompts, room=room, sampling=law)
            found.append(_Batch(tasks, one, [len(prompt) for prompt in prompts], wanted))
        return found


def draft(session: Session, **content: Any) -> dict[str, Any]:
    """Play the draft process: it takes the uploads, drafts, and learns the verdicts; it drafts nothing if l = 0."""
    order = _Order(**content)
    length, everyone = order.length, order.batches_of(Drafter, session.model)
    session.control.send({"answer": "ready"})
    for _ in order.prompts:
        session.control.receive()
    uploaded = time.monotonic()
    stages: list[tuple[float, ...]] = []
    back: list[float] = []
    counts = np.zeros(2, dtype=np.int64)
    running, step = dict(enumerate(everyone)), 0
    while running:
        step += 1
        sent: dict[int, Drafts] = {}

        def settle(number: int, sent: dict[int, Drafts] = sent) -> None:
            verdict = Verdict(**session.peer.receive())
            back.append(time.monotonic())
            drafts = sent[number].tokens
            everyone[number].side.settle(drafts, verdict)
            looked = np.minimum(verdict.accepted + 1, drafts.shape[1])
            counts[:] += int(verdict.accepted.sum()), int(looked.sum())

        for number, batch in running.items():
            clock = _Clock()
            sent[number] = batch.side.draft(length) if length else Drafts(tokens=no_drafts(len(batch.tasks)), laws=None)
            if length:
                stages.append((step, number, *clock.read()))
            session.peer.send({"step": step, "batch": number, **vars(sent[number])})
            if not order.overlapped:
                settle(number)
        if order.overlapped:
            for number in running:
                settle(number)
        running = {number: batch for number, batch in running.items() if not batch.done}
    session.peer.send({"end": True})
    told = {task: tokens for batch in everyone for task, tokens in batch.outputs.items()}
    return {
        "uploaded": uploaded,
        "stages": stages,
        "back": back,
        "outputs": [told[task] for task in range(len(order.prompts))],
        "accepted": int(counts[0]),
        "drafted": int(counts[1]),
    }


def verify(session: Session, **content: Any) -> dict[str, Any]:
    """Play the verify process: it verifies what comes, in the order in which it comes."""
    everyone = _Order(**content).batches_of(Verifier, session.model)
    session.control.send({"answer": "ready"})
    stages: list[tuple[float, ...]] = []
    while "end" not in (content := session.peer.receive()):
        clock = _Clock()
        verdict = everyone[content["batch"]].side.verify(Drafts(tokens=content["tokens"], laws=content["laws"]))
        stages.append((content["step"], content["batch"], *clock.read()))
        session.peer.send(vars(verdict))
    return {"stages": stages}
