"""The demo of battles: its table agrees with the matches, and it shows one of them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tyro")
pytest.importorskip("PIL")
pytest.importorskip("matplotlib")

from PIL import Image

from palaestra import registry
from palaestra.core.files import FileError
from palaestra.core.run.opponents import resolve
from palaestra.evaluation import evaluate
from palaestra_baselines import demo, skirmish_demo

pytestmark = pytest.mark.check

BATTLE = skirmish_demo.Battle("palaestra/Skirmish-3m-v0", "nearest")
WORDS = ("--game", "skirmish", "--matches", "8", "--seed", "5", "--quiet")


@pytest.fixture
def battles(monkeypatch: pytest.MonkeyPatch) -> None:
    """One battle, whose matches are short."""
    monkeypatch.setattr(skirmish_demo, "BATTLES", {"3m": BATTLE})


@pytest.mark.check
@pytest.mark.usefixtures("battles")
def test_the_table_counts_the_matches_and_a_film_shows_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    demo.main([*WORDS, "--red", "focus_fire", "--out", str(tmp_path)])
    text = capsys.readouterr().out
    table = evaluate(BATTLE.env_id, "focus_fire", "builtin", matches=8, seed=5, swap=False)
    row = re.search(r"^3m +(\S+) +(\d+) +(\d+) +([\d.]+)  ([\d.]+) to ([\d.]+)$", text, re.MULTILINE)
    assert row is not None
    low, high = table.win_interval
    assert row.groups() == ("focus_fire", "8", str(table.wins), f"{table.wins / 8:.2f}", f"{low:.2f}", f"{high:.2f}")
    assert "<title>Skirmish-3m: " in (tmp_path / "3m.html").read_text(encoding="utf-8")
    film = tmp_path / "3m.gif"
    assert str(film) in text
    with Image.open(film) as picture:
        assert picture.n_frames > 5  # type: ignore[attr-defined]


@pytest.mark.usefixtures("battles")
def test_the_match_that_is_shown_was_won_and_is_of_median_length():
    table = evaluate(BATTLE.env_id, "kite", "nearest", matches=33, seed=5, swap=False)
    assert 2 < table.wins < 33
    results = table.results[table.results["seed"] == skirmish_demo.seed_of_best_match(table)]
    won = np.sort(table.results["steps"][table.results["outcome"] == 1])
    assert results["outcome"].tolist() == [1]
    assert results["steps"].tolist() == [won[(len(won) - 1) // 2]]


@pytest.mark.usefixtures("battles")
def test_where_no_match_was_won_the_longest_is_shown():
    table = evaluate(BATTLE.env_id, "random", "builtin", matches=8, seed=5, swap=False)
    assert table.wins == 0
    results = table.results[table.results["seed"] == skirmish_demo.seed_of_best_match(table)]
    assert results["steps"] == table.results["steps"].max()


@pytest.mark.parametrize("name", skirmish_demo.BATTLES)
def test_who_plays_red_in_a_battle_is_there(name: str):
    battle = skirmish_demo.BATTLES[name]
    game, _ = registry.make_game(battle.env_id)
    resolve(game, "red", skirmish_demo.player_of(battle.red))


def test_weights_that_are_not_there_are_an_error_that_says_what_to_do(tmp_path: Path):
    with pytest.raises(FileError, match=r"no asset 'weights/lost.safetensors': .* --red nearest"):
        demo.main([*WORDS, "--red", "lost.safetensors", "--out", str(tmp_path)])
    with pytest.raises(ValueError, match="neither a script of Skirmish"):
        demo.main([*WORDS, "--red", "lost", "--out", str(tmp_path)])


@pytest.mark.parametrize(("words", "count"), [((), 16), (("--game", "skirmish"), 256), (("--matches", "3"), 3)])
def test_each_game_has_its_own_number_of_matches(words: tuple[str, ...], count: int, monkeypatch: pytest.MonkeyPatch):
    seen: list[int] = []
    monkeypatch.setattr(demo, "show_dogfights", lambda args: seen.append(args.count) or [])
    monkeypatch.setattr(skirmish_demo, "show", lambda out, matches, *_: seen.append(matches) or [])
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: None)
    demo.main([*words])
    assert seen == [count]


def test_no_matches_at_all_are_refused():
    with pytest.raises(SystemExit, match="--matches must be at least 1"):
        demo.main(["--matches", "0"])
