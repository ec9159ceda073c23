"""Examiner: neither agent sees the other's turns; text and pictures show the match of the tokens."""

import numpy as np
import pytest
from search.examiner_matches import (
    ID,
    asked,
    decoded,
    end_of,
    exam,
    play,
    question,
    row,
    say,
    searches,
    shown,
    told,
    walk_of,
)

from palaestra import make_batch
from palaestra.core.faces.agent_io import AgentIO
from palaestra.games.search.examiner import game
from palaestra.games.search.examiner_turns import ASK, EXAMINER, STUDENT
from palaestra.games.search.turns import AT_START
from palaestra.games.search.turns import STATE as SEARCH_QA_STATE
from palaestra.testing import check

pytestmark = pytest.mark.jitless


# -- phases ------------------------------------------------------------------------------------------------------------


def test_the_student_plays_search_qa() -> None:
    """From the same world and question both show and pay the same, turn by turn."""
    sim = asked(2, turn_reward=0.125, malformed_cost=0.25, partial_credit=0.5)
    qa = make_batch("palaestra/SearchQA-2Hop-v1", 1, form="tokens", compiled=False, autoreset_mode="off")
    qa.reset(seed=7)
    qa.set_parameters(turn_reward=0.125, malformed_cost=0.25, partial_credit=0.5)
    for field, *_ in SEARCH_QA_STATE:
        qa.states[field] = sim.states[field]
    things, nouns = walk_of(sim, 2)
    half = things[-1].split()[0]
    for turn in (searches(things, nouns)[1], "hm", searches(things, nouns)[0], f"<answer>{half}</answer>"):
        action = decoded(sim, STUDENT, turn)
        (pays,) = say(sim, turn)
        qa.step(action[None, None])
        assert pays[STUDENT] == qa.rewards[0, 0]
        ours, theirs = row(sim, STUDENT), AgentIO(qa, (0,)).agent_view(0).row
        for field in ("passages", "documents", "verb", "turns_left", "words_left"):
            assert np.array_equal(ours[field], theirs[field]), (turn, field)
        for field in ("exact_match", "f1", "hops_found", "turn_label", "malformed"):
            assert sim.info[field][0] == qa.info[field][0], (turn, field)
    assert sim.terminated[0]
    assert qa.terminated[0]


def test_one_agent_moves_and_the_other_ones_action_is_ignored() -> None:
    rng, sims = np.random.default_rng(0), (exam(), exam())
    things, nouns = walk_of(sims[0], 2)
    turns = [*searches(things, nouns), question(things[0], nouns), *searches(things, nouns), "<answer>x</answer>"]
    for turn in turns:
        slot = STUDENT if sims[0].info["accepted"][0] else EXAMINER
        assert sims[0].acting[0].tolist() == [slot == EXAMINER, slot == STUDENT]
        noise = np.array([rng.integers(3), *rng.integers(393, size=16)])
        assert say(sims[0], turn) == say(sims[1], turn, other=noise)
        assert sims[0].states.tobytes() == sims[1].states.tobytes()
    assert end_of(sims[1]) == "answered"


def test_the_student_sees_nothing_of_the_examiners_turns() -> None:
    """Whatever these were: before the question it sees the same, and then the question alone."""
    rows, things, nouns = [], *walk_of(exam(), 2)
    wandering = ["<search>mayor</search>", "hm", *searches(things, nouns)]
    for before in (searches(things, nouns), wandering):
        sim = exam()
        waiting = row(sim, STUDENT).tobytes()
        for turn in before:
            say(sim, turn)
            assert row(sim, STUDENT).tobytes() == waiting
            assert shown(sim, STUDENT) == ""
            assert row(sim, EXAMINER)["passages"].any() == turn.startswith("<search>")
        say(sim, question(things[0], nouns))
        assert not row(sim, STUDENT)["passages"].any()
        assert (row(sim, STUDENT)["documents"] == -1).all()
        assert (int(row(sim, STUDENT)["verb"]), int(row(sim, STUDENT)["words_left"])) == (AT_START, 256)
        rows.append(row(sim, STUDENT).tobytes())
        for thing in things[1:]:
            assert thing not in shown(sim, STUDENT)
    assert rows[0] == rows[1]


def test_the_examiner_sees_nothing_of_the_students_turns() -> None:
    sim = asked(2)
    before = row(sim, EXAMINER).tobytes()
    assert [int(row(sim, EXAMINER)[field]) for field in ("verb", "turns_left")] == [ASK, 2]
    for turn in ("<search>mayor</search>", "hm", "<answer>x</answer>"):
        say(sim, turn)
        assert row(sim, EXAMINER).tobytes() == before
        assert shown(sim, EXAMINER) == ""


def test_the_walk_draws_nothing() -> None:
    sim = exam(opponents={"examiner": "oracle", "student": "oracle"})
    before = [int(sim.states[stream][0]) for stream in ("rng", "script_rng")]
    while not sim.info["accepted"][0]:
        sim.step()
    assert [int(sim.states[stream][0]) for stream in ("rng", "script_rng")] == before


@pytest.mark.parametrize("turns", [2, 3])
def test_a_walk_is_as_long_as_turns_allow(turns: int) -> None:
    sim = exam(60, examiner_turns=turns, opponents={"examiner": "oracle", "student": "oracle"}, compiled=True)
    play(sim)
    assert sim.info["accepted"].all()
    assert set(sim.info["hops"].tolist()) == set(range(1, turns))


# -- text --------------------------------------------------------------------------------------------------------------


def test_turns_in_text_play_the_match_of_tokens() -> None:
    """What scripts said as tokens is said in words; all that is seen, paid and told is the same."""
    tags = ({0: "", 1: "search", 2: "question"}, {0: "", 1: "search", 2: "answer"})
    tokens = exam(6, opponents={"examiner": "oracle", "student": "oracle"})
    text = [exam(1, seed=7 + lane, form="text") for lane in range(6)]
    while not (over := tokens.terminated | tokens.truncated).all():
        movers = tokens.info["accepted"].copy()
        tokens.step(lanes=~over)
        for lane in np.flatnonzero(~over).tolist():
            spoken, slot = tokens.game.captions.words, int(movers[lane])
            verb, *words = tokens.buffers.action_words[lane].reshape(2, 17)[slot].tolist()
            tag = tags[slot][verb]
            (pays,) = say(text[lane], f"Well. <{tag}>{' '.join(spoken[word] for word in words if word)}</{tag}>")
            assert pays == tokens.rewards[lane].tolist()
            for one in (EXAMINER, STUDENT):
                assert row(text[lane], one).tobytes() == row(tokens, one, lane).tobytes()
            assert told(text[lane]) == told(tokens, lane)
    assert tokens.info["exact_match"].all()


def test_prompts_name_start_and_question_and_passages_follow() -> None:
    sim = exam(form="text", prompt="{question} {turns} {words}")
    things, nouns = walk_of(sim, 2)
    assert shown(sim, EXAMINER).endswith(f"Start: {things[0]}\n")
    assert "5 turns and 256 words" in shown(sim, EXAMINER)
    say(sim, searches(things, nouns)[0])
    assert shown(sim, EXAMINER).startswith(f'\n\n<information>Doc 1(Title: "{things[0]}")')
    say(sim, "<answer>mayor</answer>")
    assert "between <question> and </question>" in shown(sim, EXAMINER)
    say(sim, searches(things, nouns)[1], question(things[0], nouns))
    assert shown(sim, STUDENT) == f"{told(sim)['question']} 4 256"
    say(sim, searches(things, nouns)[0])
    assert shown(sim, STUDENT).startswith("\n\n<information>Doc 1")
    say(sim, question(things[0], nouns))
    assert "between <answer> and </answer>" in shown(sim, STUDENT).replace("\n", " ")


def test_the_kit_passes_on_text() -> None:
    only = ["codec_results_are_in_spaces", "codec_lanes_are_independent", "faces_agree", "aec_matches_parallel"]
    report = check(ID, only=only, form="text")
    assert [result.status for result in report.results] == ["passed"] * len(only)


# -- pictures and keywords ---------------------------------------------------------------------------------------------


def test_a_match_is_told_in_both_phases() -> None:
    sim = exam()
    things, nouns = walk_of(sim, 2)
    before = sim.states.tobytes()
    assert f"Start: {things[0]}\nexaminer: turn 0 of 5, 256 of 256 words left\nlast turn: none" in sim.render_text()
    assert sim.states.tobytes() == before
    say(sim, searches(things, nouns)[0])
    assert f"last turn: search {things[0]} {nouns[0]}\n" in sim.render_text()
    assert f"\n  - {things[0]}: " in sim.render_text()
    say(sim, searches(things, nouns)[1], question(things[0], nouns))
    lines = sim.render_text().split("\n")
    assert lines[:2] == [told(sim)["question"], "student: turn 0 of 4, 256 of 256 words left"]
    assert f"  - {things[0]} - {nouns[0]} - {things[1]}" in lines
    assert f"right answer: {things[2]}" in lines
    assert "  - Nothing was found yet." in lines
    assert any(line.startswith("last turn: ask what is the ") for line in lines)
    say(sim, searches(things, nouns)[0])
    assert f"  * {things[0]} - {nouns[0]} - {things[1]}" in sim.render_text().split("\n")
    say(sim, "<answer>x</answer>")
    assert sim.render_text().endswith("result: wrong (answered), F1 0.00")
    refused = exam()
    say(refused, "<question>Who?</question>")
    assert "last turn: ask ?" in refused.render_text()
    assert refused.render_text().endswith("result: refused: no name")


def test_pictures_show_both_phases() -> None:
    pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")
    sim = exam(opponents={"examiner": "oracle", "student": "oracle"})
    before, pictures = sim.states.tobytes(), [np.asarray(sim.render())]
    assert sim.states.tobytes() == before
    while not sim.terminated[0]:
        sim.step()
        pictures.append(np.asarray(sim.render()))
    assert {picture.shape for picture in pictures} == {(600, 960, 3)}
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


def test_a_prompt_without_the_question_is_refused() -> None:
    with pytest.raises(ValueError, match="prompt='hello': give"):
        game(form="text", prompt="hello")
