"""Carry out plans of both serving kinds: uploads with bandwidth shares, then batches through both
processes.

A fixed batch keeps all of its tasks until the last one has its tokens (Eq. 8). Each step of
continuous serving serves the tasks that still lack tokens, in the batches of its phase, and the
last phase lasts until the end. A batch with other tasks than before gathers their rows of the
caches, which is part of its stage. Decoding steps never overlap (Eq. 22), and tokens beyond the
length of a task are cut off.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.continuous_serving.problem import (
    ContinuousServingPlan,
    ContinuousServingProblem,
    Phase,
)
from specopt.models.fields import Floats
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.models.uplink import spectral_efficiency
from testbed.decoding import (
    Drafter,
    Drafts,
    LanguageModel,
    Rows,
    Sampling,
    Verdict,
    Verifier,
    no_drafts,
)
from testbed.processes import Laboratory, Session
from testbed.shaper import Link, Shaper


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """The measurements of a run, in seconds since the first upload began.

    Parameters
    ----------
    seconds, communication_seconds
        Time of the last verdict of the last batch, and of the end of the last upload.
    first_token_seconds
        Time per task.
    outputs
        Requested tokens of each task.
    steps
        Decoding steps of each batch, or of each position in the order for continuous serving.
    accepted, drafted
        Accepted drafts, and drafts up to the first rejection, over all rounds.
    draft, verify
        Stages in the order in which each process ran them, with columns step (from 1), batch,
        start, end, and processor seconds, which are less than the difference if other work ran.
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
    problem: ServingLatencyProblem | ContinuousServingProblem,
    plan: ServingLatencyPlan | ContinuousServingPlan,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
) -> Run:
    """Carry out a plan. `prompts` are the tokens of the tasks, with the numbers of input tokens of
    the problem.
    """
    mechanism = problem.mechanism_of(plan)
    phases = (
        plan.phases
        if isinstance(plan, ContinuousServingPlan)
        else (Phase(first_step=1, batches=plan.batches),)
    )
    laboratory.play(
        "serving_latency",
        prompts=[list(prompt) for prompt in prompts],
        outputs=problem.output_tokens.tolist(),
        phases=[
            (
                phase.first_step,
                [list(batch) for batch in phase.batches],
                list(phase.lengths(plan.speculation_length)),
            )
            for phase in phases
        ],
        continuous=isinstance(plan, ContinuousServingPlan),
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
    draft, verify = (
        np.array(rows, dtype=np.float64).reshape(-1, 5)
        for rows in (told["stages"], verified["stages"])
    )
    for rows in (draft, verify):
        rows[:, 2:4] -= begin
    back = np.array(told["back"]) - begin
    steps = np.bincount(verify[:, 1].astype(np.int64)).tolist()
    first = np.empty(problem.tasks)
    for (step, batch, *_), seconds in zip(verify, back, strict=True):
        if step == 1:
            first[list(phases[0].batches[int(batch)])] = seconds
    return Run(
        seconds=float(back.max()),
        communication_seconds=told["uploaded"] - begin,
        first_token_seconds=first,
        outputs=[
            told_one[:most]
            for told_one, most in zip(told["outputs"], problem.output_tokens, strict=True)
        ],
        steps=steps,
        accepted=told["accepted"],
        drafted=told["drafted"],
        draft=draft,
        verify=verify,
    )


class _Clock:
    """Times one stage."""

    def __init__(self) -> None:
        self.start, self.busy = time.monotonic(), time.thread_time()

    def read(self) -> tuple[float, float, float]:
        """Return the start, the end and the processor seconds of the stage."""
        return self.start, time.monotonic(), time.thread_time() - self.busy


@dataclass
class _Order:
    """Instructions for both sides. A phase consists of its first step, its batches, and the draft
    tokens of each batch.
    """

    prompts: list[list[int]]
    outputs: list[int]
    phases: list[tuple[int, list[list[int]], list[int]]]
    continuous: bool
    overlapped: bool
    sampling: dict[str, Any]


class _Tasks(Rows):
    """All tasks on one side."""

    def __init__(self, order: _Order, side: type[Drafter | Verifier], model: LanguageModel) -> None:
        super().__init__()
        self.order = order
        law = Sampling(**order.sampling)
        length = max(length for _, _, lengths in order.phases for length in lengths)
        room = max(map(len, order.prompts)) + (max(order.outputs) + 1) * (
            length + 1
        )  # a step yields at least one token
        for tasks in order.phases[0][1]:
            self.place(
                tasks,
                side(
                    model, tasks, [order.prompts[task] for task in tasks], room=room, sampling=law
                ),
            )

    def running(self, step: int) -> list[tuple[int, list[int], int]]:
        """Return the batches of a step: number, tasks, draft tokens."""
        _, batches, lengths = [phase for phase in self.order.phases if phase[0] <= step][-1]
        found = []
        for number, (tasks, length) in enumerate(zip(batches, lengths, strict=True)):
            left = [task for task in tasks if len(self.output(task)) < self.order.outputs[task]]
            if left:
                found.append((number, left if self.order.continuous else tasks, length))
        return found

    def output(self, task: int) -> list[int]:
        """Return the tokens of a task after its prompt."""
        return self.tokens(task)[len(self.order.prompts[task]) :]


def draft(session: Session, **content: Any) -> dict[str, Any]:
    """Play the draft process, which receives the uploads, drafts, and receives the verdicts. It
    drafts nothing if l = 0.
    """
    order = _Order(**content)
    everyone = _Tasks(order, Drafter, session.model)
    session.control.send({"answer": "ready"})
    for _ in order.prompts:
        session.control.receive()
    uploaded = time.monotonic()
    stages: list[tuple[float, ...]] = []
    back: list[float] = []
    counts = np.zeros(2, dtype=np.int64)
    sent: list[tuple[Any, Drafts]] = []
    step = 1

    def settle() -> None:
        verdict = Verdict(**session.peer.receive())
        back.append(time.monotonic())
        side, drafts = sent.pop(0)
        side.settle(drafts.tokens, verdict)
        looked = np.minimum(verdict.accepted + 1, drafts.tokens.shape[1])
        counts[:] += int(verdict.accepted.sum()), int(looked.sum())

    while running := everyone.running(step):
        for number, tasks, length in running:
            clock = _Clock()
            side = everyone.batch(tasks)
            drafts = (
                side.draft(length) if length else Drafts(tokens=no_drafts(len(tasks)), laws=None)
            )
            if length:
                stages.append((step, number, *clock.read()))
            sent.append((side, drafts))
            session.peer.send({"step": step, "batch": number, "tasks": tasks, **vars(drafts)})
            if not order.overlapped:
                settle()
        while sent:
            settle()
        step += 1
    session.peer.send({"end": True})
    return {
        "uploaded": uploaded,
        "stages": stages,
        "back": back,
        "outputs": [everyone.output(task) for task in range(len(order.prompts))],
        "accepted": int(counts[0]),
        "drafted": int(counts[1]),
    }


def verify(session: Session, **content: Any) -> dict[str, Any]:
    """Play the verify process, which verifies messages in the order of arrival."""
    everyone = _Tasks(_Order(**content), Verifier, session.model)
    session.control.send({"answer": "ready"})
    stages: list[tuple[float, ...]] = []
    while "end" not in (content := session.peer.receive()):
        clock = _Clock()
        verdict = everyone.batch(content["tasks"]).verify(
            Drafts(tokens=content["tokens"], laws=content["laws"])
        )
        stages.append((content["step"], content["batch"], *clock.read()))
        session.peer.send(vars(verdict))
    return {"stages": stages}
