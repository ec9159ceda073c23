"""A folder of a family is all that the suite needs: commands, pages and programs find it without another edit."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pettingzoo
import pytest
from games import play

import family_speed
from palaestra import exact, games, pages, registry, zoo
from palaestra.cli import serve
from palaestra.cli.measure import Benchmark, Timing
from palaestra.game import Family
from palaestra.replay import Recorder
from palaestra.wrappers.transcript import text_env, text_ids

HOUSE = Path(__file__).parents[2]
COINS, THREE = "toy/Coins-v0", "toy/Coins-Three-v0"
WORDS = ("toy_family", "toy/Coins", "toy-engine")


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Family]:
    """The family of tests/games/toy_family, as if its folder lay in `palaestra.games`."""
    monkeypatch.setattr(games, "__path__", [*games.__path__, str(Path(play.__file__).parent)])
    for name in ("ROWS", "FAMILIES"):
        monkeypatch.setattr(registry, name, {})
    registry.register_all()
    yield registry.FAMILIES["toy_family"]
    for id in (COINS, THREE):
        del gymnasium.registry[id]
    for name in [name for name in sys.modules if "toy_family" in name or "zoo.coins" in name]:
        del sys.modules[name]


def test_no_file_outside_of_its_folders_names_the_family():
    folders = ("envs", "baselines", "assets", "benchmarks", "docs/tools", "examples", ".ci")
    files = [file for folder in folders for end in ("py", "md", "toml") for file in (HOUSE / folder).rglob(f"*.{end}")]
    files += [HOUSE / name for name in ("pyproject.toml", "Makefile", "README.md")]
    assert len(files) > 400
    assert [file for file in files if any(word in file.read_text(encoding="utf-8") for word in WORDS)] == []


def test_its_folder_comes_after_those_that_have_a_place(toy: Family):
    first, *_, last = registry.FAMILIES
    assert (first, last) == ("calibration", toy.name)
    assert list(registry.ROWS)[-2:] == [COINS, THREE]
    assert {row.family for row in toy.rows} == {"toy_family"}


def test_commands_show_it(run):
    listed = run("list", "--all", "--family", "toy_family").out
    assert COINS in listed
    assert THREE in listed
    assert run("info", COINS, "--json").json()["id"] == COINS


@pytest.mark.check
def test_doctor_says_what_to_install_for_it(run):
    assert run("doctor", "--json").json()["packages"]["toy-engine"] is None
    assert 'missing: pip install "toys[engine]"' in run("doctor").out


def test_libraries_and_pages_have_its_ids(toy: Family):
    page, rows = registry.page_of(THREE)
    assert (page.name, [row.id for row in rows]) == ("Coins", [COINS, THREE])
    assert THREE in pages.shared_page(page, rows)
    assert gymnasium.spec(THREE).id == THREE
    if hasattr(pettingzoo, "spec"):
        assert pettingzoo.spec("parallel", THREE).id == THREE
    assert zoo.coins_v0.parallel_env(compiled=False).reset(seed=1)[0].keys() == {"guesser_0"}


def test_its_text_form_is_found():
    assert {COINS, THREE} <= set(text_ids())
    env = text_env(THREE, compiled=False)
    assert env.reset(seed=1)[0] == "Which side is up? "
    assert [env.step("tails")[2] for _ in range(3)] == [False, False, True]


@pytest.mark.check
def test_its_exports_are_options_of_replay(run, tmp_path: Path):
    sim = registry.make_batch(THREE, 2, compiled=False, autoreset_mode="off")
    with Recorder(sim) as recorder:
        sim.reset(seed=4)
        for _ in range(2):
            sim.step()
        recorder.replay().save(tmp_path / "match.npz")
    printed = run("replay", tmp_path / "match.npz", "--coins", tmp_path / "sides.txt", "--lane", 1)
    assert printed.out.endswith(f"{tmp_path / 'sides.txt'}: the sides of the coins\n")
    title, *sides = (tmp_path / "sides.txt").read_text().split("\n")
    assert title.startswith(f"{THREE}, seed ")
    assert len(sides) == 3
    assert {*sides} <= {"heads", "tails"}


def test_its_questions_are_a_dataset(run):
    rows = [
        json.loads(row)
        for row in run("questions", COINS, "-n", 2, "--set", "compiled=False", "-o", "-").out.split("\n")[:-1]
    ]
    assert [(row["seed"], row["ability"], row["question"]) for row in rows] == [
        (0, "guessing", "Which side?"),
        (1, "guessing", "Which side?"),
    ]


def test_its_corpus_is_served_and_its_solver_is_one_of_exact(
    toy: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert exact.guessing_chance(3) == 0.125
    assert "guessing_chance" in dir(exact)
    (tmp_path / "corpus.txt").write_text("one\ntwo")
    monkeypatch.setattr(registry, "FAMILIES", {"toy_family": toy})
    assert serve.read_index(tmp_path / "corpus.txt").passages == ["one", "two"]
    with pytest.raises(AttributeError, match="has no attribute 'pursuit'"):
        exact.pursuit  # noqa: B018 (asking is what raises)
    monkeypatch.setattr(registry, "FAMILIES", {})
    with pytest.raises(ValueError, match="no family reads a corpus"):
        serve.read_index(tmp_path / "corpus.txt")


def test_its_speed_is_measured_and_it_has_an_example(toy: Family, monkeypatch: pytest.MonkeyPatch):
    played = list[str]()

    def timed(*benchmarks: Benchmark) -> list[Timing]:
        played.extend(benchmark.name for benchmark in benchmarks)
        return [Timing(0.0, 1e-3, 1000.0) for _ in benchmarks]

    monkeypatch.setattr(family_speed, "timed", timed)
    monkeypatch.setattr(family_speed, "random_play", lambda id, **_: Benchmark(id, print, 1, print))
    monkeypatch.setattr(registry, "FAMILIES", {"toy_family": toy})
    assert [(row.value, row.bar) for row in family_speed.decisions(print)] == [(1e6, 1e6)]
    assert played == [COINS]
    assert (toy.example, toy.demo) == (THREE, (THREE,))
