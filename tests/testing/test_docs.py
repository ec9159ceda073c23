"""Pages are made from the tables of the games, so they cannot say anything else."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.faults import DUEL, HALF_DOCUMENTED, games, no_games

from palaestra import docs, registry
from palaestra.core.fields import table_rows

HOUSE = Path(__file__).parents[2]
ID = "palaestra/CartPole-v0"

BEGIN, END = "<!-- begin: environments -->", "<!-- end: environments -->"


@pytest.fixture
def broken_games_are_registered() -> Iterator[None]:
    games()
    yield
    no_games()


def test_the_pages_in_the_tree_are_up_to_date():
    stale = [str(p.relative_to(HOUSE)) for p in docs.stale(HOUSE)]
    assert not stale, f"run: {docs.COMMAND} (stale: {', '.join(stale)})"


def test_every_game_that_draws_has_its_picture_in_the_tree():
    missing = [
        id
        for id in registry.ROWS
        if id.startswith("palaestra/")
        and docs.gallery.has_picture(id)
        and not (HOUSE / docs.gallery.FOLDER / docs.gallery.picture_name(id)).exists()
    ]
    assert not missing, f"run: python -m palaestra.gallery {' '.join(missing)}"


def test_a_page_shows_the_picture_that_is_there(tmp_path: Path):
    folder = tmp_path / docs.gallery.FOLDER
    folder.mkdir(parents=True)
    (folder / "CartPole-v0.png").touch()
    docs.write(tmp_path)
    text = (tmp_path / docs.PAGES / "CartPole-v0.md").read_text(encoding="utf-8")
    assert "![A match of palaestra/CartPole-v0](../images/environments/CartPole-v0.png)" in text


def test_a_page_has_a_row_for_every_quantity():
    page, game = docs.page(ID), registry.make_game(ID)[0]
    for fields in (game.roles[0].observation, game.roles[0].action, game.parameters):
        table = docs.markdown_table(table_rows(fields))
        assert table in page
        for f in fields:
            assert f"| `{f.name}` |" in table


def test_a_page_says_how_to_make_the_environment():
    page = docs.page(ID)
    assert page.startswith(f"# {ID}\n\nA pole stands on a cart")
    assert f'`gymnasium.make("{ID}")`' in page
    assert "`from palaestra.zoo import cart_pole_v0`" in page
    assert "End reasons: 1 `horizon`, 2 `off_track`, 3 `fell`." in page


@pytest.mark.usefixtures("broken_games_are_registered")
def test_a_game_of_two_teams_names_its_opponents():
    page = docs.page(DUEL)
    assert '`opponent=` takes `"striker"`, `"walker"`, `"random"`, `"mix"`' in page
    assert "| teams | red: `red_0`, `red_1`; blue: `blue_0`, `blue_1` |" in page
    assert "What everybody sees" in docs.observation_tables(registry.make_game(DUEL)[0])


@pytest.mark.usefixtures("broken_games_are_registered")
def test_a_page_may_stand_in_the_factory():
    assert docs.docstring(HALF_DOCUMENTED).startswith("A page without most of its sections.")


def test_structural_keywords_change_the_page():
    pytest.importorskip("jsbsim")
    assert "`flight_path`" in docs.page("palaestra/UcavDogfight-v0", commands="macro")
    assert "`elevator`" in docs.page("palaestra/UcavDogfight-v0")


def test_a_table_leaves_empty_columns_out_and_escapes():
    rows = [{"name": "a", "shape": "", "about": "x | y"}, {"name": "b", "shape": "", "about": ""}]
    assert docs.markdown_table(rows) == "| name | about |\n|---|---|\n| `a` | x \\| y |\n| `b` |  |"
    assert docs.markdown_table([]) == "None."


def test_writing_fills_the_readme_between_its_markers_and_nothing_else(tmp_path: Path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    assert readme in docs.stale(tmp_path)
    assert readme in docs.write(tmp_path)
    text = readme.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{BEGIN}\n| family |")
    assert text.endswith(f"|\n{END}\nafter\n")
    assert f"[`{ID}`](docs/environments/CartPole-v0.md)" in text
    assert docs.stale(tmp_path) == []
    assert docs.write(tmp_path) == []


def test_a_readme_without_markers_is_left_alone(tmp_path: Path):
    readme = tmp_path / "README.md"
    readme.write_text("mine\n", encoding="utf-8")
    docs.write(tmp_path)
    assert readme.read_text(encoding="utf-8") == "mine\n"


def test_a_page_of_an_id_that_is_no_more_is_removed(tmp_path: Path):
    docs.write(tmp_path)
    gone = tmp_path / docs.PAGES / "Gone-v0.md"
    shutil.copy(tmp_path / docs.PAGES / "CartPole-v0.md", gone)
    assert docs.stale(tmp_path) == [gone]
    docs.write(tmp_path)
    assert not gone.exists()


def test_the_command_writes_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert docs.main(["--check", "--root", str(tmp_path)]) == 1
    assert docs.COMMAND in capsys.readouterr().out
    assert docs.main(["--write", "--root", str(tmp_path)]) == 0
    assert docs.main(["--check", "--root", str(tmp_path)]) == 0
