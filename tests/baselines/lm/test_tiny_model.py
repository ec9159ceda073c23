"""The tiny model: a naive transformer agrees, a cache and paddings change nothing, files come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

import torch

from palaestra.games.search.name_tokens import CONTEXT, VOCABULARY
from palaestra_baselines.common.lm.tiny_model import HEADS, LAYERS, PAD, TinyModel, last_tokens, model_of
from palaestra_baselines.common.policy_file import read_policy, save_policy

pytestmark = pytest.mark.check

V, LENGTH = 11, 9


@pytest.fixture
def model() -> TinyModel:
    """A model whose weights are large enough for its outputs to differ."""
    model = TinyModel(V, 16, seed=3)
    generator = torch.Generator().manual_seed(0)
    for weight in model.parameters():
        weight.data += 0.2 * torch.randn(weight.shape, generator=generator)
    return model


def sequences(lanes: int = 3, length: int = LENGTH) -> torch.Tensor:
    return torch.randint(1, V, (lanes, length), generator=torch.Generator().manual_seed(1))


def all_but_first(ids: torch.Tensor) -> torch.Tensor:
    """Every token that is no padding and not the first of its lane."""
    return (ids != PAD) & ((ids != PAD).cumsum(1) > 1)


def naive_log_probs(model: TinyModel, ids: list[int]) -> np.ndarray:
    """Log-probabilities float64 ``[T, V]`` after each token of one lane, written with loops over tokens and heads."""
    w = {name: array.astype(np.float64) for name, array in model.arrays().items()}

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        return (x - x.mean()) / np.sqrt(x.var() + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        return w[f"{name}.weight"] @ x + w[f"{name}.bias"]

    def gelu(x: np.ndarray) -> np.ndarray:
        return 0.5 * x * (1.0 + torch.erf(torch.from_numpy(x) / 2**0.5).numpy())

    xs = [w["tokens.weight"][token] + w["positions.weight"][k] for k, token in enumerate(ids)]
    for layer in range(LAYERS):
        block = f"blocks.{layer}"
        parts = [np.split(linear(norm(x, f"{block}.attention_norm"), f"{block}.qkv"), 3) for x in xs]
        qs, ks, vs = ([np.split(part[i], HEADS) for part in parts] for i in range(3))
        for t in range(len(ids)):
            heads = []
            for h in range(HEADS):
                scores = np.array([qs[t][h] @ ks[s][h] / len(qs[t][h]) ** 0.5 for s in range(t + 1)])
                weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
                heads.append(sum(weights[s] * vs[s][h] for s in range(t + 1)))
            xs[t] = xs[t] + linear(np.concatenate(heads), f"{block}.out")
            hidden = gelu(linear(norm(xs[t], f"{block}.perceptron_norm"), f"{block}.up"))
            xs[t] = xs[t] + linear(hidden, f"{block}.down")
    logits = np.array([w["tokens.weight"] @ norm(x, "norm") for x in xs])
    logits[:, PAD] = -np.inf
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


def test_it_equals_a_transformer_written_with_loops_in_float64(model: TinyModel):
    ids = sequences(1)
    found = model.log_probs(ids, all_but_first(ids)).detach().numpy()
    wanted = naive_log_probs(model, ids[0].tolist())[:-1]
    np.testing.assert_allclose(found[:, 1:], wanted[:, 1:], atol=2e-5)
    assert (found[:, PAD] < -1e8).all()


def test_paddings_change_no_number_wherever_they_stand(model: TinyModel):
    whole = sequences(1)
    wanted = model.log_probs(whole, all_but_first(whole))
    rng = np.random.default_rng(0)
    for _ in range(4):
        padded = torch.zeros(1, LENGTH + 6, dtype=torch.int64)
        padded[0, np.sort(rng.permutation(LENGTH + 6)[:LENGTH])] = whole[0]
        torch.testing.assert_close(model.log_probs(padded, all_but_first(padded)), wanted, atol=1e-5, rtol=0.0)


def test_a_later_token_does_not_change_what_was_expected_before_it(model: TinyModel):
    ids = sequences(1)
    changed = ids.clone()
    changed[0, -2] = ids[0, -2] % (V - 1) + 1
    at = all_but_first(ids)
    before, after = model.log_probs(ids, at), model.log_probs(changed, at)
    torch.testing.assert_close(before[:-1], after[:-1])
    assert not torch.allclose(before[-1], after[-1], atol=1e-3)


@pytest.mark.parametrize("cuts", [[2, 3, 4, 5, 6, 7, 8], [4, 5], [3, 6, 7]])
def test_reading_in_pieces_with_a_cache_is_reading_the_whole(model: TinyModel, cuts: list[int]):
    ids = sequences()
    ids[0, 5:8] = PAD  # a lane that reads nothing for a while
    ids[1, 0] = PAD  # one that starts late
    at = all_but_first(ids)
    best = torch.zeros(ids.shape).masked_scatter(at, model.log_probs(ids, at).detach().amax(1))
    model.start(ids[:, : cuts[0]])
    for start, end in zip(cuts, [*cuts[1:], LENGTH], strict=True):
        _, logs = model.sample(torch.Generator(), temperature=0.0)
        torch.testing.assert_close(logs[at[:, start]], best[at[:, start], start], atol=2e-5, rtol=0.0)
        model.force(ids[:, start:end])


def test_draws_have_the_model_s_probabilities_and_are_never_padding(model: TinyModel):
    prompts, generator = sequences(1), torch.Generator().manual_seed(5)
    model.start(prompts.expand(200, -1))
    expected = naive_log_probs(model, prompts[0].tolist())[-1]
    for temperature in (1.0, 0.5):
        draws = [model.sample(generator, temperature) for _ in range(100)]
        ids, logs = (torch.cat(parts).numpy() for parts in zip(*draws, strict=True))
        sharpened = np.exp(expected / temperature) / np.exp(expected / temperature).sum()
        share = np.bincount(ids, minlength=V) / len(ids)
        np.testing.assert_allclose(share, sharpened, atol=0.012)
        assert share[PAD] == 0.0
        np.testing.assert_allclose(logs, expected[ids], atol=2e-5)
    assert set(model.sample(torch.Generator(), 0.0)[0].tolist()) == {int(expected.argmax())}


def test_the_last_token_up_to_each_column_skips_paddings():
    assert last_tokens(torch.tensor([[0, 5, 0, 0, 7, 0]])).tolist() == [[-1, 1, 1, 1, 4, 4]]


def test_a_saved_model_comes_back_and_is_small(tmp_path: Path):
    model, path = TinyModel(VOCABULARY, CONTEXT), tmp_path / "model.safetensors"
    save_policy(path, model.arrays(), method="grpo", env_id="palaestra/SearchQA-2Hop-v1", args={})
    assert 230_000 < sum(weight.numel() for weight in model.parameters()) < 270_000
    assert path.stat().st_size < 2_000_000
    loaded = model_of(read_policy(path)[0])
    ids = torch.randint(1, VOCABULARY, (2, 20))
    at = all_but_first(ids)
    torch.testing.assert_close(loaded.log_probs(ids, at), model.log_probs(ids, at), atol=0.0, rtol=0.0)


@pytest.mark.parametrize(
    "broken",
    [{}, {"tokens.weight": np.zeros(3)}, {"tokens.weight": np.zeros((3, 9)), "positions.weight": np.ones((2, 9))}],
)
def test_weights_of_something_else_are_refused(broken: dict[str, Any]):
    with pytest.raises(ValueError, match=r"no language model|do not fit"):
        model_of(broken)
