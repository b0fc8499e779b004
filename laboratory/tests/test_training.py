"""Training of the draft model, on a tiny verify model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from specopt.models.errors import InvalidInput  # noqa: E402
from testbed.checkpoints import SHARED, Checkpoint, load_draft, save_draft, shallow  # noqa: E402
from testbed.sampling import sample_answers  # noqa: E402
from testbed.tiny import CONFIG  # noqa: E402
from testbed.training import Recipe, acceptance, distil, gradients, sample_text  # noqa: E402

PROMPTS = [[1, 2, 3], [4, 5, 6, 7, 8], [9, 10]]
RECIPE = Recipe(
    layers=(0,),
    answers_per_prompt=20,
    most_tokens=12,
    passes=8,
    batch=4,
    learning_rate=3e-3,
    warm_up=2,
    frequent=40,
)


@pytest.fixture(scope="module")
def verify() -> Checkpoint:
    """A verify model whose distributions are neither uniform nor deterministic."""
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**CONFIG, initializer_range=0.35)
    )
    return Checkpoint(
        CONFIG,
        {name: value for name, value in model.state_dict().items() if name != "lm_head.weight"},
    )


def test_answers_are_drawn_from_the_states_that_they_carry(verify: Checkpoint) -> None:
    """Tests that the states of answers to prompts of several lengths give the logits of each
    sequence run alone.
    """
    model = verify.model()
    answers = sample_answers(
        model, PROMPTS, each=2, temperature=1.0, most_tokens=9, stop=60, seed=1
    )
    for prompt, answer in zip(
        [prompt for prompt in PROMPTS for _ in range(2)], answers, strict=True
    ):
        tokens = answer.tokens.tolist()
        assert tokens[: answer.start] == prompt
        assert 60 not in tokens[answer.start : -1]
        assert len(tokens) - answer.start == 9 or tokens[-1] == 60
        count = len(tokens) - 1
        scored = count - answer.start + 1
        alone = model.logits(
            np.array([tokens[:-1]]), np.array([count]), model.new_cache(1, count), scored
        )[0]
        found = (answer.states.float() @ model.head.T).numpy()
        assert abs(found - alone).max() < 1e-2 * abs(alone).max()


def test_answers_that_stop_leave_the_others_alone(verify: Checkpoint) -> None:
    """Tests that the tokens after another answer's end still come from the right sequence."""
    model = verify.model()
    answers = sample_answers(model, PROMPTS * 4, temperature=1.5, most_tokens=30, stop=7, seed=3)
    lengths = {len(answer.states) for answer in answers}
    assert len(lengths) > 2
    for answer in answers:
        tokens = answer.tokens.tolist()
        count = len(tokens) - 1
        alone = model.logits(
            np.array([tokens[:-1]]), np.array([count]), model.new_cache(1, count), 1
        )[0, 0]
        assert (
            abs((answer.states[-1].float() @ model.head.T).numpy() - alone).max()
            < 1e-2 * abs(alone).max()
        )


def test_training_raises_acceptance_and_resumes(verify: Checkpoint, tmp_path: Path) -> None:
    """Tests that distillation increases the acceptance on unseen text, and that an interrupted and
    resumed run has the same result.
    """
    answers = sample_text(verify, PROMPTS, RECIPE, stop=60, folder=tmp_path / "text", together=2)
    assert len(answers) == 60
    again = sample_text(verify, PROMPTS, RECIPE, stop=60, folder=tmp_path / "text", together=2)
    assert all(
        torch.equal(one.tokens, other.tokens) for one, other in zip(answers, again, strict=True)
    )
    unseen = sample_answers(
        verify.model(), PROMPTS * 4, temperature=1.0, most_tokens=12, stop=60, seed=9
    )
    before = acceptance(shallow(verify, RECIPE.layers), verify, unseen)
    whole, passes = distil(verify, answers, unseen, RECIPE, folder=tmp_path)
    assert len(passes) == RECIPE.passes
    assert acceptance(whole, verify, unseen) > before + 0.02
    assert passes[-1]["acceptance_unseen"] == pytest.approx(
        acceptance(whole, verify, unseen), abs=1e-3
    )


def test_weights_survive_their_file(verify: Checkpoint, tmp_path: Path) -> None:
    """Tests that the weights of a loaded draft model differ by at most half a step of one byte, and
    that its norms are exact.
    """
    draft = shallow(verify, (1,))
    save_draft(draft, tmp_path / "draft.safetensors", {"seed": 1})
    found = load_draft(tmp_path / "draft.safetensors", verify)
    assert found.config == draft.config
    assert found.weights[SHARED] is verify.weights[SHARED]
    for name, value in draft.weights.items():
        error = (found.weights[name] - value).abs()
        step = (
            value.abs().amax(dim=-1, keepdim=True) / 127
            if value.ndim == 2 and name != SHARED
            else torch.zeros(1)
        )
        assert (error <= 0.5001 * step).all()


def test_weights_of_another_shape_are_refused(verify: Checkpoint, tmp_path: Path) -> None:
    """Tests that a file that is missing, has no weights, or belongs to another verify model is
    rejected with its name.
    """
    path = tmp_path / "draft.safetensors"
    with pytest.raises(InvalidInput, match="expected weights of a draft model"):
        load_draft(path, verify)
    path.write_text("none")
    with pytest.raises(InvalidInput, match="expected weights of a draft model"):
        load_draft(path, verify)
    other = dict(verify.weights) | {"model.norm.weight": torch.ones(7)}
    save_draft(Checkpoint(verify.config, other), path, {})
    with pytest.raises(
        InvalidInput, match=r"model\.norm\.weight: expected shape \(32,\), got \(7,\)"
    ):
        load_draft(path, verify)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_gradients_are_those_of_the_loss(share: float) -> None:
    """Tests that the explicit gradient equals that of automatic differentiation, and that
    acceptance follows its definition.
    """
    torch.manual_seed(1)
    head, states = torch.randn(30, 8), torch.randn(70, 8)
    hidden = torch.randn(70, 8, requires_grad=True)
    draft, verify = torch.log_softmax(hidden @ head.T, -1), torch.softmax(states @ head.T, -1)
    distance = 0.5 * (draft.exp() - verify).abs().sum(-1)
    cross_entropy = -(verify * draft).sum(-1)
    ((1.0 - share) * cross_entropy + share * 2.0 * distance).mean().backward()
    gradient, accepted = gradients(hidden.detach(), states, head, share)
    torch.testing.assert_close(gradient, hidden.grad, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(accepted, 1.0 - distance.detach(), rtol=1e-5, atol=1e-6)
