"""Pictures and texts of matches of a text search game: what is drawn where, and that nothing leaves its place."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")

from palaestra.core.compile.linker import record_view
from palaestra.core.run.recipes import ByValue
from palaestra.drawing.colors import BACKGROUND, PANEL
from palaestra.games.search import search_render
from palaestra.games.search.search_render import (
    FOUND,
    LOWER,
    MIDDLE,
    PANELS,
    RIGHT,
    UPPER,
    WRONG,
    card,
)
from palaestra.games.search.turns import ANSWER, NONE, SEARCH

pytestmark = pytest.mark.check

ID = "palaestra/SearchQA-2Hop-v1"
LONG = "a description without an end " * 60


@pytest.fixture
def match(rules: Callable[..., Any]) -> Callable[..., Any]:
    """``match(turns, id, **keywords)``: a match that the oracle, or another script, has played for some turns."""

    def match(
        turns: int, id: str = ID, form: str = "tokens", agent: str = "oracle", seed: int = 5, **keywords: Any
    ) -> Any:
        sim = rules(id, form=form, opponents={"agent": agent}, **keywords)
        sim.reset(seed=seed)
        for _ in range(turns):
            sim.step()
        return sim

    return match


@pytest.fixture
def long_files(tmp_path: Path) -> dict[str, str]:
    """Passages and a question that no picture has room for."""
    passages = [{"id": str(k), "title": f"{k} {LONG}", "text": f"{k} {LONG} {'x' * 900}"} for k in range(4)]
    question = {
        "question": f"{LONG}?",
        "answer": " ".join(["incomprehensibilities"] * 16),
        "gold": ["0", "1", "2", "3"],
    }
    for name, rows in (("passages", passages), ("questions", [question])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return {"world": str(tmp_path / "passages.jsonl"), "questions": str(tmp_path / "questions.jsonl")}


def texts(sim: Any) -> list[str]:
    return sim.render_text().split("\n")


def after(sim: Any, heading: str) -> list[str]:
    """The indented lines below a heading."""
    lines = texts(sim)
    start = lines.index(heading) + 1
    return [line[2:] for line in lines[start : next(k for k in range(start, 99) if lines[k][:2] != "  ")]]


def facts_of(sim: Any) -> list[tuple[bool, list[str]]]:
    """Whether each needed passage was found; subject, relation and object, or title."""
    return [(line[0] == "*", line[2:].split(" - ")) for line in after(sim, "path:")]


def is_running(sim: Any) -> bool:
    return bool(sim.states["info"]["end_reason"][0] == 0)


def finish(sim: Any) -> Any:
    while is_running(sim):
        sim.step()
    return sim


def count_of(image: np.ndarray, color: tuple[int, ...], area: tuple[float, ...] = (0, 0, 960, 600)) -> int:
    """Pixels of about a colour in an area."""
    left, top, right, bottom = map(round, area)
    return int((np.abs(image[top:bottom, left:right].astype(int) - np.array(color)).sum(-1) < 12).sum())


# ---------------------------------------------------------------------------------------------------------------- text


def test_what_was_found_of_the_path_has_a_star(match: Callable[..., Any]):
    sim = match(0)
    for seen in ([False, False], [False, True], [True, True]):
        sim.states["seen"][0, :2] = seen
        assert [is_found for is_found, _ in facts_of(sim)] == seen


def test_the_path_leads_from_the_questions_entity_to_the_answer(match: Callable[..., Any]):
    sim = finish(match(0))
    (_, first), (_, second) = facts_of(sim)
    assert texts(sim)[0][:-1].endswith(f"the {second[1]} of the {first[1]} of {first[0]}")
    assert first[2] == second[0]
    assert f"right answer: {second[2]}" in texts(sim)
    assert f"last turn: answer {second[2]}" in texts(sim)


def test_passages_of_the_last_search_are_told_and_needed_ones_marked(match: Callable[..., Any]):
    sim = match(1)
    (subject, _, thing), passages = facts_of(sim)[0][1], after(sim, "passages of the last search:")
    assert any(passage.startswith(f"* {subject}: ") and thing in passage for passage in passages)
    assert [passage[0] for passage in passages].count("-") == 3 - np.isin(
        sim.states["shown"][:, :3], sim.states["gold"]
    ).sum()


def test_passages_stay_after_the_answer(match: Callable[..., Any]):
    sim, found = match(1), list[str]()
    while is_running(sim):
        found = after(sim, "passages of the last search:")
        sim.step()
    assert after(sim, "passages of the last search:") == found


def test_without_passages_it_says_why(match: Callable[..., Any]):
    sim = match(0)
    assert after(sim, "passages of the last search:") == ["- Nothing was found yet."]
    assert "last turn: none" in texts(sim)
    sim.states["last_verb"] = SEARCH
    assert after(sim, "passages of the last search:") == ["- No passage was found."]
    sim.states["last_verb"] = NONE
    assert "last turn: nothing neither a query nor an answer" in texts(sim)


def test_turns_words_and_the_result_are_told(match: Callable[..., Any]):
    sim = match(1)
    assert texts(sim)[1] == "turn 1 of 4, 253 of 256 words left"
    assert texts(sim)[-1] == "result: running"
    assert texts(finish(sim))[-1] == "result: right (answered), F1 1.00"
    sim.states["info"]["exact_match"], sim.states["info"]["f1"] = 0, 0.5
    assert texts(sim)[-1] == "result: wrong (answered), F1 0.50"
    assert texts(match(1, token_budget=1))[-1] == "result: wrong (out of words), F1 0.00"


SIZES: dict[str, dict[str, Any]] = {"fresh": {}, "fixed": {"passages": 100}}


@pytest.mark.parametrize("form", ["structured", "text"])
@pytest.mark.parametrize("world", SIZES)
def test_a_match_is_told_alike_in_all_forms(match: Callable[..., Any], world: str, form: str):
    told = [match(2, form=one, world=world, **SIZES[world]).render_text() for one in (form, "tokens")]
    assert told[0] == told[1]
    assert "?" not in told[0].split("\n", 1)[1]


@pytest.mark.parametrize("world", ["fresh", "fixed"])
def test_words_of_turns_are_those_that_were_written(match: Callable[..., Any], world: str):
    sim = match(0, world=world, **SIZES[world])
    while is_running(sim):
        facts = facts_of(sim)
        turns = [f"search {subject} {relation}" for is_found, (subject, relation, _) in facts if not is_found]
        sim.step()
        assert f"last turn: {[*turns, f'answer {facts[-1][1][2]}'][0]}" in texts(sim)


def test_a_match_of_files_tells_titles_and_the_words_that_were_written(match: Callable[..., Any]):
    sim = match(1, "palaestra/SearchQA-Custom-v1")
    title = facts_of(sim)[0][1][0]
    assert any(line.startswith(f"last turn: search {title.lower()} ") for line in texts(sim))
    assert any(line.startswith(f"* {title}: ") for line in after(sim, "passages of the last search:"))


def test_a_needed_passage_without_a_title_is_told_by_its_text(match: Callable[..., Any], tmp_path: Path):
    (tmp_path / "passages.jsonl").write_text('{"id": "0", "text": "Cats sleep."}\n{"id": "1", "text": "Dogs bark."}')
    (tmp_path / "questions.jsonl").write_text('{"question": "Who barks?", "answer": "dogs", "gold": ["1"]}')
    files = {name: str(tmp_path / f"{name}.jsonl") for name in ("passages", "questions")}
    sim = match(0, "palaestra/SearchQA-Custom-v1", world=files["passages"], questions=files["questions"])
    assert after(sim, "path:") == ["- Dogs bark."]


def test_words_of_a_search_that_was_not_played_are_right_too(match: Callable[..., Any]):
    sim = match(1, world="fixed", passages=100, token_budget=1)
    subject, relation, _ = facts_of(sim)[0][1]
    assert f"last turn: search {subject} {relation}" in texts(sim)


@pytest.mark.parametrize("seed", range(4))
def test_comparisons_tell_both_facts(match: Callable[..., Any], seed: int):
    sim = match(0, compare=True, seed=seed)
    (_, first), (_, second) = facts_of(sim)
    assert first[0] in texts(sim)[0]
    assert second[0] in texts(sim)[0]
    answer = next(line for line in texts(sim) if line.startswith("right answer: "))[14:]
    earlier = first[0] if first[2] < second[2] else second[0]
    assert answer == (earlier if "earlier" in texts(sim)[0] else "yes" if first[2] == second[2] else "no")


def test_texts_of_files_are_cut_to_a_few_short_lines(match: Callable[..., Any], long_files: dict[str, str]):
    sim = match(1, "palaestra/SearchQA-Custom-v1", **long_files)
    assert len(texts(sim)) <= 15
    assert max(map(len, texts(sim))) == 120
    assert texts(sim)[0].endswith("...")


# ------------------------------------------------------------------------------------------------------------- picture


@pytest.mark.parametrize("id", ["2Hop", "Compare"])
def test_what_is_found_becomes_blue(match: Callable[..., Any], id: str):
    path, sim, blues = PANELS[0], match(0, f"palaestra/SearchQA-{id}-v1"), []
    heading = (path[2] - 100, path[1], path[2], path[1] + 30)
    for found in range(3):
        sim.states["seen"][0, :found] = 1
        blues.append(count_of(sim.render(), FOUND, path))
        assert (count_of(sim.render(), FOUND, heading) > 0) == (found > 0)
    assert blues[0] > 100
    assert blues[0] + 200 < blues[1] < blues[2] - 50
    assert id == "2Hop" or blues[1] + 200 < blues[2]


def test_the_answer_is_muted_then_green_or_red(match: Callable[..., Any]):
    path, sim = PANELS[0], match(1)
    assert count_of(sim.render(), RIGHT) == count_of(sim.render(), WRONG) == 0
    assert count_of(finish(sim).render(), RIGHT, path) > 200 > count_of(sim.render(), WRONG, path)
    sim.states["info"]["exact_match"] = 0
    assert count_of(sim.render(), WRONG, path) > 200 > count_of(sim.render(), RIGHT, path)


def test_below_it_is_blue_where_the_last_turn_was_of_use(match: Callable[..., Any]):
    sim = match(1)
    assert count_of(sim.render(), FOUND, PANELS[2]) > 0
    sim.states["info"]["turn_label"] = -1
    assert count_of(sim.render(), FOUND, PANELS[2]) == 0


def test_cards_of_needed_passages_have_a_blue_edge(match: Callable[..., Any]):
    sim = match(1)
    gold = sim.states["gold"][0, :2].tolist()
    others = [passage for passage in range(4) if passage not in gold][:2]
    for needed in range(3):
        sim.states["shown"][0, :3] = [*others[:needed], gold[1], *others[needed:]]
        image = sim.render()
        edges = [
            count_of(image, FOUND, (left, top, left + 5, bottom))
            for left, top, _, bottom in (card(k, 3) for k in range(3))
        ]
        assert [edge > 200 for edge in edges] == [k == needed for k in range(3)]


@pytest.mark.parametrize(
    ("id", "turns", "keywords"),
    [
        ("Bridge4", 1, {"hops": 4}),
        ("Compare", 2, {}),
        ("Custom", 0, {}),
        ("Custom", 1, {}),
    ],
)
def test_nothing_is_drawn_outside_of_its_panel(
    match: Callable[..., Any], id: str, turns: int, keywords: dict[str, int]
):
    for seed in range(2):
        check_margins(match(turns, f"palaestra/SearchQA-{id}-v1", seed=seed, **keywords).render())


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_texts_that_are_too_long_are_cut(match: Callable[..., Any], long_files: dict[str, str], turns: int):
    check_margins(match(turns, "palaestra/SearchQA-Custom-v1", max_turns=8, **long_files).render())


def check_margins(image: np.ndarray) -> None:
    """Asserts that nothing is drawn beside the panels, on their edges or beside the question."""
    assert image.shape == (600, 960, 3)
    gaps = [
        (0, 0, 24, 600),
        (937, 0, 960, 600),
        (0, UPPER - 8, 960, UPPER),
        (0, LOWER + 1, 960, LOWER + 16),
        (0, 585, 960, 600),
        (MIDDLE + 1, UPPER, MIDDLE + 16, LOWER),
    ]
    for area in gaps:
        left, top, right, bottom = area
        assert count_of(image, BACKGROUND, area) == (right - left) * (bottom - top), area
    for left, top, right, bottom in PANELS:
        for edge in ((left + 2, top + 12, left + 14, bottom - 12), (right - 14, top + 12, right - 2, bottom - 12)):
            assert count_of(image, PANEL, edge) == (edge[2] - edge[0]) * (edge[3] - edge[1]), edge


def test_a_copy_of_the_game_by_value_is_told_too(match: Callable[..., Any]):
    sim = match(1)
    game = pickle.loads(pickle.dumps(ByValue(sim.game)))
    assert search_render.write(game, game.world, record_view(sim.states)[0]) == sim.render_text()


def test_a_judgement_and_an_answer_without_passages_are_drawn(match: Callable[..., Any]):
    sim = match(2, "palaestra/SearchQA-Judge-v1")
    assert "last turn: judge yes" in texts(sim)
    still = sim.render()
    sim.states["shown"], sim.states["last_verb"] = -1, ANSWER
    assert count_of(sim.render(), FOUND, PANELS[1]) == 0 < count_of(still, FOUND, PANELS[1])
