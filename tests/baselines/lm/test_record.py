"""Recorded tiny models: what is written is what the models and the texts say, and the game plays it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from ensemble.ensemble_matches import started

from palaestra.games.mathtext.math_language import TOKENS
from palaestra_baselines.common.lm import record as recorder
from palaestra_baselines.common.lm.base import ARITH, load_base
from palaestra_baselines.common.lm.math_tokens import MathTokens
from palaestra_baselines.common.lm.name_tokens import CONTEXT
from palaestra_baselines.common.lm.rollouts import make_batch
from palaestra_baselines.common.lm.tiny_model import TinyModel
from palaestra_baselines.common.policy_file import save_policy

C, T, SPANS = 70, 24, 6
"""More documents than are read at once."""
BEST = 1
"""Number of the model that multiplies."""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Three models: both bundled ones, and one that has learnt nothing, from a file."""
    path, model = tmp_path_factory.mktemp("weights") / "new.safetensors", TinyModel(MathTokens.vocabulary, CONTEXT)
    save_policy(path, model.arrays(), method="grpo", env_id=ARITH, args={})
    return "sums", "worked", str(path)


@pytest.fixture(scope="module")
def arrays(names: tuple[str, ...]) -> dict[str, Any]:
    return recorder.record(names, C, T, seed=3)


def questions_of(documents: int) -> tuple[torch.Tensor, MathTokens]:
    """Questions of the first documents, int64 ``[N, Q]``."""
    sim, words = make_batch(ARITH, documents, operations=4)
    assert isinstance(words, MathTokens)
    sim.reset(seed=np.random.default_rng(3).integers(2**62, size=documents, dtype=np.uint64))
    observations: Any = sim.observations
    return torch.from_numpy(words.questions(observations[:, 0], words.new_memory(documents))), words


def text_of(words: MathTokens, tokens: np.ndarray) -> str:
    return "".join(TOKENS[word] for word in words.word_of[tokens])


def test_probabilities_are_those_of_each_model_for_a_document_alone(names: Any, arrays: dict[str, Any]):
    assert arrays["probs"].shape == (C, T, 3, MathTokens.vocabulary)
    questions, _ = questions_of(C)
    for document in (0, 63, 64, C - 1):
        ids = torch.cat([questions[document], torch.from_numpy(arrays["right"][document]).long()])[None]
        at = torch.arange(ids.shape[1])[None] >= questions.shape[1]
        for k, name in enumerate(names):
            with torch.no_grad():
                alone = load_base(name).log_probs(ids, at).exp().numpy()
            np.testing.assert_allclose(arrays["probs"][document, :, k], alone, atol=1e-5)


def test_documents_are_right_solutions_and_domains_their_operations(arrays: dict[str, Any]):
    questions, words = questions_of(C)
    for question, right, domain in zip(questions.numpy(), arrays["right"], arrays["domain"], strict=True):
        asked, text = text_of(words, question).replace("end", ""), text_of(words, right)
        value = asked[0]
        for step in range(4):
            operation, number = asked[1 + 2 * step : 3 + 2 * step]
            answer = str(eval(f"{value} {operation} {number}") % 10)
            assert text[6 * step : 6 * step + 6] == f"{value}{operation}{number}={answer};"
            assert (domain[6 * step : 6 * step + 6] == "+-*".index(operation)).all()
            value = answer


@pytest.mark.parametrize("tokens", [1, 7, 22, 25])
def test_tokens_of_a_step_that_is_cut_have_its_domain_and_answers_their_own(tokens: int):
    few, whole = (recorder.record(("worked", "sums"), 8, number) for number in (tokens, 27))
    for name in few:
        np.testing.assert_allclose(few[name], whole[name][:, :tokens], atol=1e-5)
    assert (whole["domain"][:, 24:] == recorder.DOMAINS.index("answer")).all()
    assert set(whole["domain"][:, :24].flat) == {0, 1, 2}


@pytest.mark.check
def test_more_tokens_than_four_steps_have_are_of_longer_solutions():
    domain = recorder.record(("worked", "sums"), 2, 51)["domain"]
    assert (domain[:, :48] < recorder.DOMAINS.index("answer")).all()
    assert (domain[:, 48:] == recorder.DOMAINS.index("answer")).all()


def test_the_game_plays_the_file_and_the_oracle_is_the_best(tmp_path: Path, arrays: dict[str, Any]):
    np.savez(tmp_path / "experts.npz", **arrays)
    rewards = {}
    for script in ("uniform", "static_0", "static_1", "oracle"):
        sim = started(C, recorded=str(tmp_path / "experts.npz"), opponents={"agent": script})
        for _ in range(SPANS):
            sim.step()
        rewards[script] = float(sim.rewards.mean())
        assert np.array_equal(sim.info["domain"], arrays["domain"][sim.states["document"], T - 4])
    assert rewards["oracle"] >= max(rewards["uniform"], rewards["static_1"])
    assert rewards["static_1"] > rewards["static_0"]


def test_who_adds_errs_where_it_should_multiply(arrays: dict[str, Any]):
    is_right = arrays["probs"].argmax(3) == arrays["right"][..., None]
    results = np.zeros(T, bool)
    results[4::6] = True
    of_products = is_right[(arrays["domain"] == recorder.DOMAINS.index("*")) & results]
    of_sums = is_right[(arrays["domain"] == recorder.DOMAINS.index("+")) & results]
    assert of_products.mean(0)[0] < 0.5 < of_sums.mean(0)[0]
    assert of_products.mean(0)[BEST] > 0.95


def test_the_command_writes_a_file_once_and_prints_shares(
    tmp_path: Path, names: Any, arrays: dict[str, Any], capsys: Any, monkeypatch: Any
):
    path = tmp_path / "experts.npz"
    monkeypatch.setattr(recorder, "MATCHES", 16)
    words = [str(path), *names, "--documents", "8", "--seed", "3"]
    recorder.main(words)
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in printed] == [*names, "uniform", "oracle"]
    with np.load(path) as file:
        assert np.array_equal(file["right"], arrays["right"][:8])
        shares = (file["probs"].argmax(3) == file["right"][..., None]).mean((0, 1))
    assert [line.split()[1] for line in printed[:3]] == [f"{share:.3f}" for share in shares]
    with pytest.raises(SystemExit, match=r"experts\.npz exists: --overwrite replaces it"):
        recorder.main(words)
    recorder.main([*words, "--overwrite", "--seed", "4"])
    with np.load(path) as file:
        assert not np.array_equal(file["right"], arrays["right"][:8])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sums"], "the number of models must be an integer from 2 to 8, got 1"),
        (["sums"] * 9, "the number of models must be an integer from 2 to 8, got 9"),
        (["sums", "teacher"], "teacher: the weights are of a model with 231 tokens, the game has 30"),
        (["sums", "nothing"], "nothing: there is no such file"),
        (["sums", "worked", "--documents", "0"], "documents must be an integer from 1"),
        (["sums", "worked", "--spans", "13"], "tokens of a document, .* must be an integer from 1 to 51, got 52"),
        (["sums", "worked", "--spans", "1", "--span-tokens", "17"], "span_tokens must be an integer from 1 to 16"),
    ],
)
def test_what_cannot_be_recorded_is_refused_and_nothing_is_written(tmp_path: Path, words: list[str], message: str):
    with pytest.raises(SystemExit, match=message):
        recorder.main([str(tmp_path / "experts.npz"), *words])
    assert not list(tmp_path.iterdir())
