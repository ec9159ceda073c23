"""Language models as policies of joint orders: the texts, their scores, and a tiny Llama as the student of DipLLM."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from reliability.model_folders import write_llama

from learning.tiny_text_model import read_words, write_model
from palaestra import registry
from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.files import FileError
from palaestra.core.run.simulation import Simulation
from palaestra_baselines import dipllm
from palaestra_baselines.common.joint_orders import Terrain, View, draw_plans, has_choice, join, log_probabilities
from palaestra_baselines.common.joint_text import TextPlanPlayer, TextPolicy, Tree, text_views_of
from palaestra_baselines.common.lm.hf_model import MODEL, HFModel, ancestors
from palaestra_baselines.common.value_anchor import Anchor

pytestmark = pytest.mark.check

ID = "palaestra/ConcertDuel-v0"
LANES = 6


@pytest.fixture(scope="module")
def sim() -> Simulation:
    """Lanes after some phases of the script against itself: moves, retreats and adjustments."""
    sim = registry.make_batch(ID, LANES, autoreset_mode="off")
    for team in sim.game.teams:
        sim.set_opponent(team, "province_value")
    sim.reset(seed=3)
    for phase in range(7):
        sim.step(lanes=np.arange(LANES) % 3 * 2 >= phase - 2)
    return sim


@pytest.fixture(scope="module")
def view(sim: Simulation) -> View:
    """Their positions in which there is a choice."""
    view = join(text_views_of(Terrain(sim.game), sim))
    return view.take(has_choice(view.lists).any(1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved Llama of random weights with a tokenizer of words."""
    pytest.importorskip("transformers", reason="pip install transformers==5.24.0")
    path = tmp_path_factory.mktemp("llama")
    write_model(path, read_words(ID, 4), width=16, layers=2, heads=2)
    return path


def test_without_the_library_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(ImportError, match=r'pip install "palaestra\[text\]"'):
        TextPolicy(write_llama(tmp_path))


def test_a_classifier_of_plans_is_no_language_model():
    with pytest.raises(ValueError, match="--student joint is a network"):
        dipllm.Args(model="folder", student="joint").check()


# -- texts -------------------------------------------------------------------------------------------------------------


def test_the_texts_of_a_list_are_orders_that_the_codec_reads_as_its_numbers(sim: Simulation):
    codec: Any = sim.game.codecs["text"]
    phases, mirrored = set[int](), 0
    for power, view in enumerate(text_views_of(Terrain(sim.game), sim)):
        io, texts = AgentIO(sim, (power,), codec="text"), view.texts
        assert texts is not None
        for lane in range(LANES):
            seen = io.agent_view(lane)
            if not has_choice(view.lists[lane]).any():
                assert texts[lane, 0] is None
                continue
            phases.add(int(view.phase[lane]))
            assert texts[lane, 0].endswith("\n<orders>\n")
            assert codec.encode(seen).startswith(texts[lane, 0].removesuffix("<orders>\n"))
            for slot in np.flatnonzero(has_choice(view.lists[lane])):
                listed = view.lists[lane, slot]
                listed = listed[listed >= 0]
                first = slot if view.phase[lane] < 2 else 0  # a build goes to the first list that is free
                read = [codec.decode(seen, text)[first] for text in texts[lane, 1 + slot]]
                assert read == listed.tolist()
                mirrored += power
    assert len(phases) >= 2
    assert mirrored > 0


def test_backwards_the_texts_are_those_of_the_lists(view: View):
    back: Any = view.backwards().texts
    texts: Any = view.texts
    slots = view.lists.shape[1]
    assert back[:, 0].tolist() == texts[:, 0].tolist()
    for slot in range(slots):
        assert back[:, 1 + slot].tolist() == texts[:, slots - slot].tolist()


class Recorded:
    """Draws first orders, and keeps what it is shown."""

    def __init__(self) -> None:
        self.views = list[View]()

    def draw(self, view: View, uniforms: np.ndarray) -> np.ndarray:
        self.views.append(view)
        return view.lists[:, :, 0].astype(np.int64)


@pytest.mark.parametrize("id", [ID, pytest.param("palaestra/Concert-v0", marks=pytest.mark.check)])
def test_a_player_reads_what_the_student_has_learnt_from(id: str):
    sim = registry.make_batch(id, 2, autoreset_mode="off")
    terrain, recorded = Terrain(sim.game), Recorded()
    for power, team in enumerate(sim.game.teams):
        sim.set_opponent(team, TextPlanPlayer(terrain, team, recorded) if power == 1 else "province_value")
    sim.reset(seed=0)
    choices = 0
    for _ in range(4):
        expected: Any = text_views_of(terrain, sim)[1].texts
        sim.step()
        found: Any = recorded.views[-1].texts
        assert found.tolist() == expected.tolist()
        choices += sum(text is not None for text in found[:, 0])
    assert choices > 0


# -- trees -------------------------------------------------------------------------------------------------------------


def test_texts_that_begin_alike_share_their_tokens():
    tree = Tree([5, 6])
    tree.score(1, [7, 8, 9], 0)
    tree.score(1, [7, 8, 4], 1)
    tree.score(1, [8, 3], 2)
    assert (tree.ids, tree.parents) == ([5, 6, 7, 8, 8], [-1, 0, 1, 2, 1])  # the last tokens are scored and not read
    assert tree.edges == [(1, 7, 0), (2, 8, 0), (3, 9, 0), (1, 7, 1), (2, 8, 1), (3, 4, 1), (1, 8, 2), (4, 3, 2)]
    assert tree.follow(1, [7, 8, 4]) == 5
    assert tree.parents[5] == 3


def test_a_token_sees_the_path_to_it_alone():
    sees = ancestors(torch.tensor([[-1, 0, 1, 0, 3], [-1, -1, 1, 1, -1]]))
    paths = [[[0], [0, 1], [0, 1, 2], [0, 3], [0, 3, 4]], [[0], [1], [1, 2], [1, 3], [4]]]
    assert [[row.nonzero()[:, 0].tolist() for row in lane] for lane in sees] == paths


@pytest.mark.peers
def test_a_model_that_takes_no_masks_is_told_apart(folder: Path):
    model = HFModel(folder)
    model.network.lm_head.weight.data *= 20.0
    assert model.reads_trees()
    network = model.network
    model.network = lambda **given: network(**{**given, "attention_mask": None})
    assert not model.reads_trees()


# -- a tiny Llama ------------------------------------------------------------------------------------------------------


def plans_of(sim: Simulation, view: View) -> np.ndarray:
    """A plan of the anchor for each position."""
    draws = np.random.default_rng(0).random((len(view), 1, view.lists.shape[1]))
    return draw_plans(Anchor(Terrain(sim.game)), view, draws)[:, 0]


@pytest.mark.peers
def test_probabilities_are_those_of_each_order_as_a_text_of_its_own(folder: Path, sim: Simulation, view: View):
    transformers: Any = pytest.importorskip("transformers")
    network = transformers.AutoModelForCausalLM.from_pretrained(folder)
    words = transformers.AutoTokenizer.from_pretrained(folder)
    policy, plans, texts = TextPolicy(folder), plans_of(sim, view), view.texts
    policy.temperature = 0.3
    for weight in (policy.network.lm_head.weight, network.lm_head.weight):
        weight.data *= 20.0  # so that orders differ
    assert texts is not None
    rows = np.arange(len(view))
    for slot in range(plans.shape[1]):
        found = policy.probabilities(policy.prepare(view), rows, slot, plans)
        for row in rows[has_choice(view.lists[:, slot])]:
            said = [
                texts[row, 1 + d][view.lists[row, d].tolist().index(plans[row, d])]
                for d in np.flatnonzero(has_choice(view.lists[row, :slot]))
            ]
            before = texts[row, 0] + "".join(f"{text}\n" for text in said)
            begin, scores = len(words(before)["input_ids"]), []
            for text in texts[row, 1 + slot]:
                ids = torch.tensor([words(f"{before}{text}\n")["input_ids"]])
                with torch.no_grad():
                    logs = network(ids).logits[0, :-1].log_softmax(-1)
                scores.append(logs[torch.arange(ids.shape[1] - 1), ids[0, 1:]][begin - 1 :].sum())
            expected = (torch.stack(scores) / 0.3).softmax(0).numpy()
            np.testing.assert_allclose(found[row, : len(expected)], expected, rtol=1e-3, atol=1e-6)
            assert (found[row, len(expected) :] == 0.0).all()
            assert found[row].sum() == pytest.approx(1.0)


@pytest.mark.peers
@pytest.mark.parametrize("is_backwards", [False, True])
def test_the_loss_is_the_mean_of_minus_log_pi_and_gradient_steps_lower_it(
    folder: Path, sim: Simulation, view: View, is_backwards: bool
):
    policy, plans = TextPolicy(folder), plans_of(sim, view)
    if is_backwards:
        view, plans = view.backwards(), plans[:, ::-1].copy()
    optimizer, losses = torch.optim.Adam(policy.parameters(), lr=3e-3), list[float]()
    for _ in range(10):
        loss = policy.loss(view, plans)
        losses.append(float(loss.detach()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < losses[0] - 0.1
    expected = -log_probabilities(policy, view, plans[:, None]).mean()
    with torch.no_grad():
        assert float(policy.loss(view, plans)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.peers
def test_a_run_that_is_resumed_ends_with_the_same_model_and_plays_legal_orders(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    words: dict[str, Any] = {"model": str(folder), "games": 4, "plans": 4, "rounds": 10, "batch_size": 8, "matches": 2}
    words |= {"evaluations": 2, "quiet": True, "learning_rate": (1e-3, 1e-3), "total_steps": 32}
    policy = dipllm.train(dipllm.Args(**words, directory=tmp_path / "whole")).weights
    whole, loss, calls = TextPolicy(policy.parent / MODEL).state_dict(), TextPolicy.loss, itertools.count(1)

    def interrupted(*given: Any) -> torch.Tensor:
        if next(calls) == 4:
            raise KeyboardInterrupt
        return loss(*given)

    words["directory"] = tmp_path / "resumed"
    with monkeypatch.context() as patch:
        patch.setattr(TextPolicy, "loss", interrupted)
        with pytest.raises(KeyboardInterrupt):
            dipllm.train(dipllm.Args(**words))
    resumed = dipllm.train(dipllm.Args(**words, resume=True)).weights
    before, after = TextPolicy(folder).state_dict(), TextPolicy(resumed.parent / MODEL).state_dict()
    assert all(torch.equal(whole[name], after[name]) for name in whole)
    assert max((before[name] - after[name]).abs().max().item() for name in before) > 1e-4
    sim = registry.make_batch(ID, 3, autoreset_mode="off", opponents={"red": policy, "blue": "province_value"})
    sim.reset(seed=0)
    while not sim.terminated.all():
        sim.step()
    assert (sim.info["illegal"] == 0).all()
    alone = tmp_path / "last.safetensors"
    alone.write_bytes(policy.read_bytes())
    with pytest.raises(FileError, match=f"{MODEL}"):
        registry.make_batch(ID, 1, opponents={"red": alone})
