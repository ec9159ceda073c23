"""SearchQA as choices: what was found is a table, which does not tell the ranks of passages."""

from typing import Any

import numpy as np
import pytest
from search.search_matches import batch, play

from palaestra import make_batch, registry
from palaestra.core.faces.agent_io import AgentIO
from palaestra.games.search import fresh_world
from palaestra.games.search.search_qa import game
from palaestra.games.search.turn_codec import TurnCodec

pytestmark = pytest.mark.jitless


def alternatives(sim: Any) -> int:
    return sim.game.roles[0].action[0].n


def test_choices_are_sized_to_the_world() -> None:
    """K entities, R relations: 1 + K R + K alternatives, two more where agents judge."""
    small = make_batch("palaestra/SearchQA-2Hop-v1", entities=9, relations=2)
    assert alternatives(small) == 1 + 9 * 2 + 9
    judge = make_batch("palaestra/SearchQA-Judge-v1")
    assert alternatives(judge) == 1 + 16 * 4 + 16 + 2


def test_a_search_may_be_judged_once_as_a_choice() -> None:
    """The last two choices are no and yes; the oracle says yes."""
    sim = batch(id="palaestra/SearchQA-Judge-v1", form="structured", opponents={"agent": "oracle"})
    allowed, pays = [], []
    for _ in range(3):
        mask = AgentIO(sim, (0,)).action_masks()
        allowed.append(mask.reshape(-1)[-2:].tolist())
        sim.step()
        pays.append(float(sim.rewards[0, 0]))
    assert allowed == [[0, 0], [1, 1], [0, 0]]
    assert pays == [0, 0, 0]
    assert play(sim).item() == pytest.approx(1.6)


def test_what_was_found_is_known() -> None:
    """``known`` has what the passages said, in full or as doubtful; the mask has what was mentioned."""
    env = registry.make_env("palaestra/SearchQA-2Hop-v1", observation="dict", stale=0.8, relations=5, compiled=False)
    kinds = set()
    for seed in range(10):
        seen, info = env.reset(seed=seed)
        assert seen["present"].sum() == 1
        assert info["action_mask"].sum() == 1 + 5 + 1
        relation = int(seen["asked"][0].argmax())
        seen, _, _, _, info = env.step(1 + relation)
        s = env.sim.states[0]
        mentioned, told = s["mentioned"][: s["mentions"]].tolist(), np.zeros_like(seen["known"])
        for passage in s["shown"][s["shown"] >= 0]:
            subject, thing = mentioned.index(s["subject"][passage]), mentioned.index(s["objects"][passage, 0])
            value = 1.0 if fresh_world.SAYS_OF[s["template"][passage]] < 2 else 0.5
            place = (subject, s["relation"][passage], thing)
            told[place] = max(told[place], value)
            kinds.add(value)
        assert np.array_equal(seen["known"], told)
        assert seen["present"].sum() == len(mentioned) == len(set(mentioned))
        entities = sum(thing >= 0 for thing in mentioned)
        assert info["action_mask"].sum() == 1 + 5 * entities + len(mentioned), "years have no relations"
    assert kinds == {0.5, 1.0}


def test_places_in_mind_do_not_tell_which_passage_was_the_first() -> None:
    """Whoever follows what each search mentions first is right in a part of the matches only."""
    sim = batch(48, form="structured")
    lanes, thing = np.arange(48), np.zeros(48, np.int64)
    for hop in range(2):
        mentions = sim.states["mentions"].copy()
        sim.step((1 + 4 * thing + sim.states["relations"][:, hop])[:, None])
        thing = np.minimum(mentions, sim.states["mentions"] - 1)
    sim.step((1 + 16 * 4 + thing)[:, None])
    assert sim.info["exact_match"][lanes].mean() < 0.5


def test_years_are_shares_of_the_century() -> None:
    env = registry.make_env("palaestra/SearchQA-1Hop-v1", observation="dict", relations=5)
    shown = 0
    for seed in range(40):
        seen, info = env.reset(seed=seed)
        relation = int(seen["asked"][0].argmax())
        if relation == 4:
            seen, *_ = env.step(1 + relation)
            state = env.sim.states[0]
            year = int(codec_words(state))
            assert round(float(seen["year"].max()) * 100) + 1899 >= year
            assert any(round(float(share) * 100) + 1899 == year for share in seen["year"])
            shown += 1
            assert info is not None
    assert shown > 2


def codec_words(state: Any) -> str:
    """The answer of a match in words."""
    codec = game(form="text").codecs["text"]
    assert isinstance(codec, TurnCodec)
    return codec.texts.words[int(state["answers"][0, 0])]
