"""``palaestra eval``."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import palaestra
from palaestra.evaluation import EVALUATION_RUN
from palaestra.replay import load, verify

MELEE = "test/Melee-v0"
palaestra.register(MELEE, "games.two_team_homogeneous:game", family="test")


def push_right(observations: np.ndarray) -> np.ndarray:
    return (observations[..., 2] > 0).astype(np.int64)


def test_eval_prints_wins_and_intervals(run):
    printed = run("eval", MELEE, "--a", "chaser", "--b", "random", "--matches", 6, "--set", "horizon=50")
    assert printed.code == 0
    assert "test/Melee-v0: chaser against random, 6 matches" in printed.out
    assert "95 % interval" in printed.out


def test_eval_as_json_is_the_same_for_any_number_of_lanes(run):
    words = ("eval", MELEE, "--a", "chaser", "--b", "random", "--matches", 6, "--json", "--num-envs")
    printed = run(*words, 2).json()
    assert printed["wins"] + printed["losses"] + printed["draws"] == printed["matches"] == 6
    assert run(*words, 64).json() == printed


def test_eval_of_several_players_rates_them(run):
    players = ("chaser", "random", "mix")
    printed = run("eval", MELEE, "--players", *players, "--anchor", "random=100", "--matches", 2, "--json").json()
    assert set(printed["ratings"]) == set(players)
    assert printed["ratings"]["random"]["elo"] == 100
    assert len(printed["pairs"]) == 3


def test_a_player_may_be_a_function_of_a_module(run, monkeypatch: pytest.MonkeyPatch):
    module = ModuleType("somebodys_method")
    vars(module)["push"] = push_right
    monkeypatch.setitem(sys.modules, "somebodys_method", module)
    printed = run("eval", "CartPole", "--a", "somebodys_method:push", "--matches", 3, "--json").json()
    assert printed["a"] == "somebodys_method:push"
    assert printed["mean_return"] > 30


def test_eval_records_its_first_matches(run, tmp_path: Path):
    file = tmp_path / "first.npz"
    words = ("--a", "chaser", "--b", "random", "--matches", 6, "--set", "horizon=20", "--record", file, "--json")
    printed = run("eval", MELEE, *words).json()
    replay = load(file)
    assert (replay.num_envs, replay.players) == (3, {"red": "chaser", "blue": "random"})
    assert list(replay.seeds) == [(EVALUATION_RUN << 32) + k for k in range(3)]
    won = [match["winner"] == "red" for match in replay.matches]
    assert sum(won) == printed["sides"]["red"][0]
    assert verify(replay).ok


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--a", "chase", "--b", "random"), "'chase' is neither a script of Melee"),
        ((), "name the players"),
        (("--players", "chaser", "random", "--a", "chaser"), "name the players"),
        (("--a", "chaser", "--b", "random", "--anchor", "random=0"), "--anchor goes with --players"),
        (("--players", "chaser", "random", "--anchor", "random"), "--anchor takes PLAYER=ELO, a finite number, got"),
        (("--players", "chaser", "random", "--anchor", "random=nan"), "a finite number, got 'random=nan'"),
        (("--players", "chaser", "random", "--anchor", "random=-inf"), "a finite number, got 'random=-inf'"),
        (("--players", "chaser", "random", "--anchor", "rnadom=0"), "'rnadom' is none of the players"),
        (("--a", "chaser", "--b", "random", "--set", "damage=abc"), "damage must be a number in [0, 1], got 'abc'"),
        (("--a", "chaser", "--b", "random", "--set", "horizn=3"), "did you mean 'horizon'?"),
        (("--players", "chaser", "random", "--record", "x.npz"), "--record goes with --a and --b"),
        (("--a", "no_such_module:push", "--b", "random"), "there is no module 'no_such_module'"),
        (("--a", "math:sqroot", "--b", "random"), "the module math has no 'sqroot', did you mean 'sqrt'?"),
        (("--a", "absent.zip", "--b", "random"), "absent.zip: there is no such file"),
    ],
)
def test_eval_refuses_in_one_line(words: tuple, error: str, run, refused):
    assert error in refused(run("eval", MELEE, *words))


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("eval", MELEE, "--matches", "0"), "--matches: must be an integer of at least 1, got '0'"),
        (("eval", MELEE, "--matches", "2.5"), "--matches: must be an integer of at least 1, got '2.5'"),
        (("eval", MELEE, "--num-envs", "0"), "--num-envs: must be"),
        (("eval", MELEE, "--seed", "-1"), "--seed: must be an integer of at least 0, got '-1'"),
        (("eval", MELEE, "--workers", "-1"), "--workers: must be"),
        (("play", MELEE, "--fps", "nan"), "--fps: must be a finite number, got 'nan'"),
        (("play", MELEE, "--fps", "0"), "--fps: must be greater than 0, got '0'"),
        (("play", MELEE, "--seed", str(2**64)), "--seed: seed must be an integer from 0 to 2**64 - 1"),
        (("replay", "match.npz", "--speed", "nan"), "--speed: must be a finite number, got 'nan'"),
        (("replay", "match.npz", "--render-size", "640"), "'640' is no size: write WIDTHxHEIGHT, each from 64 to 2048"),
        (("replay", "match.npz", "--render-size", "640x9000"), "'640x9000' is no size"),
        (("replay", "match.npz", "--speed", "-1"), "--speed: must be greater than 0, got '-1'"),
        (("replay", "match.npz", "--every", "0"), "--every: must be"),
        (("replay", "match.npz", "--lane", "-1"), "--lane: must be"),
        (("bench", MELEE, "--threads", "0"), "--threads: must be"),
        (("bench", MELEE, "--rounds", "0"), "--rounds: must be"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused_by_its_option(words: tuple[str, ...], option: str, run, refused):
    assert option in refused(run(*words), 2)
