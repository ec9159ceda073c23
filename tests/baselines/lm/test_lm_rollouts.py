"""Tokens and rollouts of SearchQA: what is read and written, groups, masks, both paces, and the demonstrator."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

import torch

from palaestra.core.contract.turn_tokens import BOS, DOT, END, INFO, INFO_END, PAD, TOLD
from palaestra.core.run.simulation import Simulation
from palaestra.games.search.name_tokens import (
    ANSWER,
    FIRST_NAME,
    FIRST_RELATION,
    SEARCH,
    TURN,
    UNUSED,
    VOCABULARY,
    NameTokens,
)
from palaestra.games.search.turn_codec import fresh_passage, fresh_path, question_of
from palaestra_baselines.common.lm.demonstrations import Demonstrator
from palaestra_baselines.common.lm.losses import chosen, loss_mask
from palaestra_baselines.common.lm.privileged import FORMS, prefixes
from palaestra_baselines.common.lm.rollouts import (
    UNSAID,
    Rollout,
    check_fits,
    demonstrate,
    make_batch,
    measure_all,
    play,
    play_at_own_pace,
    rows_of,
)
from palaestra_baselines.common.lm.tiny_model import TinyModel, load_base

pytestmark = pytest.mark.check

TWO_HOPS = "palaestra/SearchQA-2Hop-v1"
LANES, GROUP = 24, 4
NOUN, NAME = FIRST_RELATION, FIRST_NAME + 8
SEEDS = np.repeat(np.arange(LANES // GROUP, dtype=np.uint64), GROUP)


@pytest.fixture(scope="module")
def batch() -> tuple[Simulation, NameTokens]:
    return make_batch(TWO_HOPS, LANES)


@pytest.fixture(scope="module")
def base() -> TinyModel:
    return load_base("shortcut")


@pytest.fixture(scope="module")
def rollout(batch: tuple[Simulation, NameTokens], base: TinyModel) -> Rollout:
    return play(base, *batch, SEEDS, torch.Generator().manual_seed(2))


def shown(tokens: NameTokens, sim: Simulation, ids: Any) -> str:
    """Names and relations of a row of tokens as words."""
    words: Any = sim.game.captions
    return " ".join(words.words[tokens.word_of[token]] for token in ids if token >= FIRST_RELATION)


def test_questions_and_passages_are_the_names_and_relations_of_their_texts(batch: tuple[Simulation, NameTokens]):
    sim, tokens = batch
    sim.reset(seed=SEEDS)
    seconds = tokens.new_memory(LANES)
    questions = tokens.questions(rows_of(sim), seconds)
    texts: Any = sim.game.captions
    names: Any = sim.states["name_words"]
    for lane in range(LANES):
        text = question_of(texts, sim.states[lane]).rstrip("?.").split()
        kept = [word for word in text if word in shown(tokens, sim, questions[lane]).split()]
        assert questions[lane, 0] == BOS
        assert shown(tokens, sim, questions[lane]).split() == kept
        assert len(kept) == 3
    node = sim.states["nodes"][:, 0]
    turns = np.full((LANES, TURN), PAD)
    turns[:, :4] = np.stack([np.full(LANES, SEARCH), questions[:, 3], questions[:, 2], np.full(LANES, END)], 1)
    actions = tokens.actions(turns, seconds)
    assert (actions[:, 1:3] == names[np.arange(LANES), node]).all()  # both words of the name
    sim.step(actions[:, None])
    assert (sim.info["hops_found"] == 1).all()
    found = tokens.passages(rows_of(sim), seconds)
    assert (found[:, 0] == INFO).all()
    assert (found[:, -1] == INFO_END).all()
    rows: Any = rows_of(sim)
    for lane in range(LANES):
        for k, fact in enumerate(found[lane, 1:-1].reshape(3, 3)):
            title, sentence = fresh_passage(texts, rows[lane, 24 + 32 * k : 24 + 32 * (k + 1)])
            subject, relation, thing = (shown(tokens, sim, [token]) for token in fact)
            assert title.split()[0] == subject
            assert {relation, thing} <= set(sentence.rstrip(".").split())


@pytest.mark.parametrize(
    ("turn", "verb", "words"),
    [
        ([SEARCH, NAME, NOUN, END, PAD], 1, 3),
        ([ANSWER, NAME, END, PAD, PAD], 2, 2),
        ([SEARCH, NAME, NAME + 1, NOUN, END], 1, 5),
        ([SEARCH, NAME, NOUN, NOUN + 1, NOUN + 2], 0, 0),  # no end
        ([NAME, NOUN, END, PAD, PAD], 0, 0),  # no verb
        ([UNUSED, NOUN, NAME, END, PAD], 0, 0),  # no verb either
        ([SEARCH, SEARCH, NAME, END, PAD], 0, 0),
        ([ANSWER, INFO, NAME, END, PAD], 0, 0),
        ([ANSWER, END, PAD, PAD, PAD], 2, 0),  # the environment says that it says nothing
        ([END, PAD, PAD, PAD, PAD], 0, 0),
    ],
)
def test_a_turn_is_a_verb_names_and_relations_and_an_end(
    batch: tuple[Simulation, NameTokens], turn: list[int], verb: int, words: int
):
    tokens = batch[1]
    actions = tokens.actions(np.array([turn]), tokens.new_memory(1) + 150)
    assert actions[0, 0] == verb
    assert (actions[0, 1:] != 0).sum() == words


def test_a_second_word_that_was_never_read_is_not_written(batch: tuple[Simulation, NameTokens]):
    tokens = batch[1]
    assert (tokens.actions(np.array([[ANSWER, NAME, END, PAD, PAD]]), tokens.new_memory(1))[0, 1:] != 0).sum() == 1


@pytest.mark.parametrize(
    "keywords",
    [
        *({"form": "structured"}, {"stale": 0.2}, {"relations": 8}, {"judge": True}, {"topk": 5}),
        {"world": "fixed", "passages": 600},
    ],
)
def test_games_that_the_tokens_cannot_say_are_refused(keywords: dict[str, Any]):
    with pytest.raises(ValueError, match="SearchQA"):
        make_batch(TWO_HOPS, 1, **keywords)


def test_matches_longer_than_the_context_and_other_tokens_are_refused(batch: tuple[Simulation, NameTokens]):
    check_fits(TinyModel(VOCABULARY, 57), batch[1])
    with pytest.raises(ValueError, match="up to 57 tokens, the model reads 56"):
        check_fits(TinyModel(VOCABULARY, 56), batch[1])
    with pytest.raises(ValueError, match=f"a model with 30 tokens, the game has {VOCABULARY}"):
        check_fits(TinyModel(30, 57), batch[1])


def test_a_group_has_one_world_and_question_and_lanes_of_their_own(rollout: Rollout):
    prompts = rollout.ids[:, :4].view(-1, GROUP, 4)
    assert (prompts == prompts[:, :1]).all()
    assert len(prompts[:, 0].unique(dim=0)) == LANES // GROUP
    said = [tuple(ids[turn != UNSAID].tolist()) for ids, turn in zip(rollout.ids, rollout.turn, strict=True)]
    assert any(len(set(said[k : k + GROUP])) > 1 for k in range(0, LANES, GROUP))


def test_sampled_tokens_keep_the_probabilities_that_they_were_sampled_with(rollout: Rollout, base: TinyModel):
    mask = loss_mask(rollout)
    with torch.no_grad():
        again = chosen(base.log_probs(rollout.ids, mask), rollout.ids, mask)
    torch.testing.assert_close(again, rollout.log_probs, atol=2e-5, rtol=0.0)
    assert (rollout.log_probs[mask] <= 0.0).all()
    assert rollout.log_probs[mask].mean() < -1e-3
    assert (rollout.log_probs[~mask] == 0.0).all()


def test_each_turn_ends_and_what_was_found_follows_it(rollout: Rollout):
    for lane in range(LANES):
        kept = rollout.ids[lane] != PAD
        ids, turn, retrieved = (x[lane][kept].tolist() for x in (rollout.ids, rollout.turn, rollout.retrieved))
        assert sorted(set(turn) - {UNSAID}) == list(range(int(rollout.turns[lane])))
        for k, (token, number, was_read) in enumerate(zip(ids, turn, retrieved, strict=True)):
            assert not (was_read and number != UNSAID)
            assert was_read == (number == UNSAID and k >= 4)
            if token == END and k + 1 < len(ids):
                assert ids[k + 1] == INFO
        assert ids[-1] == END or turn.count(turn[-1]) == TURN  # nothing is read after the last turn


def test_both_paces_play_the_same_match(batch: tuple[Simulation, NameTokens], base: TinyModel):
    together = play(base, *batch, SEEDS, torch.Generator(), temperature=0.0)
    alone = play_at_own_pace(base, *batch, SEEDS, torch.Generator(), temperature=0.0)
    for lane in range(LANES):
        for name in ("ids", "turn", "retrieved", "log_probs"):
            a, b = (getattr(r, name)[lane][r.ids[lane] != PAD] for r in (together, alone))
            torch.testing.assert_close(a, b, atol=2e-5, rtol=0.0)
    for name in ("exact_match", "turns"):
        assert torch.equal(getattr(together, name), getattr(alone, name))
    assert torch.equal(together.labels, alone.labels[:, : together.labels.shape[1]])


def test_a_lane_at_its_own_pace_does_not_wait(batch: tuple[Simulation, NameTokens]):
    class Unequal:
        """Lane 0 writes turns of two tokens, the others of five."""

        columns = 0

        def start(self, prompts: torch.Tensor, columns: int = 0) -> None:
            self.said = torch.zeros(len(prompts), dtype=torch.int64)

        def force(self, ids: torch.Tensor) -> None:
            self.columns += ids.shape[1]

        def sample(self, generator: torch.Generator, temperature: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
            ids = torch.full((LANES,), SEARCH)
            ids[0] = END
            return ids, torch.zeros(LANES)

    rollout = play_at_own_pace(Unequal(), *batch, SEEDS, torch.Generator())
    assert rollout.turns.tolist() == [4] * LANES
    first, second = ((rollout.ids[lane] != PAD).nonzero()[-1].item() for lane in (0, 1))
    assert (first, second) == (4 + 4 * 1 + 3 * 2 - 1, 4 + 4 * TURN + 3 * 2 - 1)


def test_a_prefix_is_read_before_the_question(batch: tuple[Simulation, NameTokens], base: TinyModel, rollout: Rollout):
    prefix = torch.tensor([[TOLD, DOT, END]]).expand(LANES, 3)
    told = play(base, *batch, SEEDS, torch.Generator().manual_seed(2), prefix=lambda _: prefix)
    assert torch.equal(told.ids[:, :3], prefix)
    assert torch.equal(told.ids[:, 3:7], rollout.ids[:, :4])
    assert not loss_mask(told)[:, :7].any()
    assert not loss_mask(told, retrieved=True)[:, :7].any()


@pytest.mark.parametrize("id", ["1Hop", "2Hop", "3Hop", "Bridge4"])
def test_the_demonstrator_answers_right_by_reading_alone(id: str):
    sim, tokens = make_batch(f"palaestra/SearchQA-{id}-v1", LANES)
    rollout = play(Demonstrator(0), sim, tokens, np.arange(LANES, dtype=np.uint64), torch.Generator())
    assert rollout.exact_match.tolist() == [1.0] * LANES
    assert (rollout.labels[torch.arange(LANES), rollout.turns - 1] == 1).all()
    given = demonstrate(sim, tokens, np.arange(LANES, dtype=np.uint64))
    for name, value in vars(rollout).items():
        assert torch.equal(getattr(given, name), value), name


def test_the_demonstrator_errs_as_it_is_told(batch: tuple[Simulation, NameTokens]):
    shortcuts = play(Demonstrator(0, shortcut=1.0), *batch, SEEDS, torch.Generator())
    assert shortcuts.turns.tolist() == [2] * LANES
    assert shortcuts.exact_match.tolist() == [0.0] * LANES
    noisy = play(Demonstrator(0, noise=1.0), *batch, SEEDS, torch.Generator())
    assert noisy.exact_match.mean() < 0.3
    assert (noisy.labels[:, 1] == -1).float().mean() > 0.3


def test_the_demonstrator_makes_no_errors_behind_a_prefix(batch: tuple[Simulation, NameTokens]):
    script = Demonstrator(0, shortcut=0.5, noise=1.0)
    for form in FORMS[1:]:
        prefix = partial(prefixes, tokens=batch[1], forms=np.full(LANES, FORMS.index(form)))
        assert play(script, *batch, SEEDS, torch.Generator(), prefix=prefix).exact_match.tolist() == [1.0] * LANES


@pytest.mark.parametrize("id", ["1Hop", "2Hop", "Bridge4"])
def test_prefixes_tell_what_they_say(id: str):
    sim, tokens = make_batch(f"palaestra/SearchQA-{id}-v1", 64)
    sim.reset(seed=3)
    texts: Any = sim.game.captions
    forms = np.arange(64) % len(FORMS)
    rows = prefixes(sim, tokens, forms).tolist()
    assert {len(row) for row in rows} == {2 * (tokens.question_size - 2) + 2}
    for lane, (form, row) in enumerate(zip(forms, rows, strict=True)):
        path = fresh_path(texts, sim.states[lane])
        words = [path[0][0].split()[0], *(word for _, relation, thing in path for word in (relation, thing.split()[0]))]
        told = {"none": [], "path": words, "partial": words[:-2], "answer": words[-1:], "dot": []}[FORMS[form]]
        told = told if len(path) > 1 or FORMS[form] != "partial" else []
        if FORMS[form] == "none":
            assert set(row) == {PAD}
            continue
        assert row[0] == TOLD
        assert [texts.words[tokens.word_of[token]] for token in row[1:] if token != DOT] == told
        assert set(row[1 + len(told) :]) <= {DOT}


def test_exact_match_is_measured_on_the_same_questions(batch: tuple[Simulation, NameTokens], base: TinyModel):
    first = measure_all(base, *batch)
    assert list(first) == ["sampled", "temperature_0.5", "greedy"]
    assert measure_all(base, *batch) == first
    assert measure_all(Demonstrator(0), *batch) == dict.fromkeys(first, 1.0)
