"""The measurements of Skirmish: each row can fail, what is played for it, and what the command prints and writes."""

import csv
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import open_loop
import palaestra_assets
import skirmish_claims as claims
from measurement import Measurement
from palaestra import registry
from palaestra.core.run.kernel import KernelSimulation
from palaestra.evaluation import MatchTable
from palaestra.evaluation.matches import MATCH
from palaestra.games.skirmish import games, maps
from palaestra.games.skirmish.orders import EAST, FIRST, STOP

pytestmark = pytest.mark.slow


def table(wins: int, losses: int, draws: int = 0) -> MatchTable:
    results = np.zeros(wins + losses + draws, MATCH)
    results["seed"] = np.arange(len(results))
    results["outcome"][:wins], results["outcome"][wins : wins + losses] = 1, -1
    game: Any = None
    return MatchTable("id", "a", "b", game, results)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> dict[str, MatchTable]:
    """What matches of a script, or of a script on a map's id, end in; all others: one win in a hundred."""
    known: dict[str, MatchTable] = {}

    def evaluate(id: str, a: str, b: str, *, matches: int, swap: bool, **keywords: Any) -> MatchTable:
        assert not swap
        return known.get(f"{a} {id}", known.get(a, table(1, 99)))

    monkeypatch.setattr(claims, "evaluate", evaluate)
    return known


def test_smacs_formulas_give_what_smac_returns():
    assert claims.smac_sizes(*claims.SMAC_MAPS["MMM2"]) == (176, 322, 18)
    assert claims.smac_sizes(*claims.SMAC_MAPS["2s3z"]) == (80, 120, 11)
    assert claims.smac_sizes(*claims.SMAC_MAPS["so_many_baneling"]) == (202, 397, 38)


def test_a_map_of_another_size_is_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(claims, "SMAC_MAPS", {"3m": ("T", "T", 0, 3, 3), "2s3z": ("P", "P", 0, 5, 5)})
    monkeypatch.setattr(maps, "names", lambda: ("3m", "2s3z"))
    (measurement,) = claims.sizes(claims.Plan())
    assert (measurement.value, measurement.holds) == (1.0, False)
    assert measurement.note == "2s3z (80, 120, 11), SMAC (60, 100, 11)"


def test_a_map_that_is_missing_is_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(claims, "SMAC_MAPS", {})
    monkeypatch.setattr(maps, "names", lambda: ("3m",))
    assert claims.sizes(claims.Plan())[0].note == "3m missing"


def test_a_random_player_that_wins_is_reported(played: dict[str, MatchTable]):
    played["random palaestra/Skirmish-MMM-v0"] = table(2, 97, 1)
    rows = {measurement.about: measurement for measurement in claims.random_play(claims.Plan())}
    assert len(rows) == 23
    assert sum(measurement.holds is None for measurement in rows.values()) == 2
    assert [about for about, measurement in rows.items() if measurement.holds is False] == ["MMM: random wins, %"]
    assert rows["MMM: random wins, %"].note == "2 of 100 (0.6 to 7.0 %), draws 1"


def test_scripts_are_held_to_what_they_win(played: dict[str, MatchTable]):
    played |= {"focus_fire": table(91, 9), "kite": table(70, 30), "nearest": table(12, 88)}
    focus, kite = claims.scripts(claims.Plan())
    assert (focus.value, focus.holds) == (91.0, True)
    assert (kite.value, kite.holds) == (pytest.approx(58.0), False)


def test_reds_share_counts_decided_matches_and_tells_draws():
    measurement = claims.mirrored_measurement("3m", "kite", table(53, 47, 100), claims.MIRRORED_BAR)
    assert (measurement.value, measurement.holds) == (pytest.approx(3.0), False)
    assert measurement.note == "53.0 % of 100 decided (43.3 to 62.5), draws 100, 51.5 % if a draw is half"
    assert claims.mirrored_measurement("3m", "kite", table(490, 510), claims.MIRRORED_BAR).holds
    assert claims.mirrored_measurement("3m", "kite", table(0, 0, 5), claims.MIRRORED_BAR).value is None


def test_the_same_script_plays_both_sides_of_all_maps(played: dict[str, MatchTable]):
    played["kite palaestra/SkirmishDuel-v0"] = table(52, 48)
    rows = claims.mirrored(claims.Plan())
    assert len(rows) == 25
    assert sum(measurement.holds is True for measurement in rows) == 5


def test_an_even_map_is_played_as_battle_and_as_duel(played: dict[str, MatchTable]):
    played["kite palaestra/Skirmish-bane_vs_bane-v0"] = table(53, 47)
    rows = claims.even(claims.Plan())
    assert len(rows) == 15 * 7
    assert [row.about[:12] for row in rows if row.holds] == ["bane_vs_bane"]


def test_units_that_stand_on_each_other_are_counted(tmp_path: Path):
    sim = registry.make_batch("palaestra/Skirmish-2m_vs_1z-v0", 1, compiled=False)
    sim.reset(seed=0)
    states: Any = sim.states
    assert claims.overlapping(sim.game.world.units, states[0]).tolist() == [False] * 3
    first, second = (np.flatnonzero(states[0]["alive"])[k] for k in (0, 1))
    radius = float(sim.game.world.units["separation_radius"][states[0]["kind"][first]])
    for way, expected in ((0.99, True), (1.01, False)):
        states[0]["position"][second] = states[0]["position"][first] + (way * radius, 0.0)
        assert claims.overlapping(sim.game.world.units, states[0]).tolist() == [expected, expected, False]
    sim.close()


def test_the_best_sequence_on_the_other_seeds_counts():
    measurement = claims.open_loop_measurement([0.5, 0.25], [100, 200], 1000)
    assert (measurement.value, measurement.holds) == (20.0, False)
    assert measurement.note.endswith("the best of the search 10.0 % there, 50 % on its 8 seeds")


def test_a_sequence_is_played_whatever_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(open_loop, "KernelSimulation", partial(KernelSimulation, compiled=False))
    stand = np.full((12, 2), STOP)
    late = stand.copy()
    late[6:] = FIRST
    short = json.loads(palaestra_assets.path("skirmish/maps/2m_vs_1z.json").read_text(encoding="utf-8")) | {"limit": 12}
    (tmp_path / "short.json").write_text(json.dumps(short), encoding="utf-8")
    game = games.battle(tmp_path / "short.json")
    won, paid = open_loop.play(game, np.array([stand, late]), [3])
    assert not won.any()
    assert paid[0, 0] == 0.0
    assert paid[1, 0] > 0.0


def test_a_search_finds_what_is_paid_and_puts_the_best_first(monkeypatch: pytest.MonkeyPatch):
    def play(game: Any, sequences: np.ndarray, seeds: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        paid = (sequences[:, :20] == EAST).mean(axis=(1, 2))[:, None] * np.ones(len(seeds))
        return paid > 0.9, paid

    monkeypatch.setattr(open_loop, "play", play)
    game = games.generated("a")
    first, last = (open_loop.search(game, range(2), generations=k) for k in (0, 15))
    assert not first.wins.any()
    assert last.wins[0] == 1.0
    assert (np.diff(last.wins) <= 0).all()
    assert last.sequences.shape == (open_loop.CANDIDATES, 200, 5)
    assert (last.sequences.min(), last.sequences.max()) == (STOP, FIRST + 4)


def test_the_command_prints_writes_and_says_what_was_missed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    asked = []

    def group(name: str, value: float) -> Any:
        return lambda plan: asked.append(plan.matches) or [Measurement(name, f"about {name}", value, 1.0, False)]

    monkeypatch.setattr(claims, "GROUPS", {"sizes": group("sizes", 1.0), "random": group("random", 2.0)})
    assert claims.main(["--only", "sizes", "--matches", "7"]) == 0
    assert claims.main(["--out", str(tmp_path / "new")]) == 1
    assert asked == [7, None, None]
    printed = capsys.readouterr().out
    assert "MISSED" in printed
    assert claims.LEARNING in printed
    with (tmp_path / "new" / "skirmish_measurements.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["group"], row["measured"], row["verdict"]) for row in rows] == [
        ("sizes", "1.0", "holds"),
        ("random", "2.0", "MISSED"),
    ]
