"""Episodes of a loop of one's own: complete ones alone, keyed by the seed of the lane and the number of the match."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import games.targets
import numpy as np
import pytest

import palaestra
from palaestra.data import DataError, Episode, EpisodeWriter, read_data, read_manifest
from palaestra.game import Game

pytest.importorskip("minari", reason='needs the extra "palaestra[data]"')
pytestmark = pytest.mark.usefixtures("rules_do_not_change")

TARGETS = "tests/Targets-v0"
Loop = Callable[[Any], None]


def written(
    path: Path, loop: Loop, lanes: int = 3, mode: str = "off", **options: Any
) -> dict[tuple[int, int], Episode]:
    """Episodes of a loop, by seed and match."""
    sim = palaestra.make_batch(TARGETS, lanes, autoreset_mode=mode, compiled=False, opponents={"walker": "random"})
    with EpisodeWriter(sim, path, **options) as writer:
        loop(sim)
    manifest = writer.manifest
    assert manifest == read_manifest(path)
    assert sim.recorder is None
    return dict(zip(zip(manifest.seeds, manifest.matches, strict=True), read_data(path), strict=True))


def play(decisions: int, seed: int = 7) -> Loop:
    """Decisions in all lanes; a finished lane starts anew."""

    def loop(sim: Any) -> None:
        sim.reset(seed=seed)
        for _ in range(decisions):
            sim.step()
            over = sim.terminated | sim.truncated
            if sim.autoreset_mode == "off" and over.any():
                sim.reset(over)

    return loop


def assert_equal(some: dict[tuple[int, int], Episode], others: dict[tuple[int, int], Episode], count: int) -> None:
    shared = some.keys() & others.keys()
    assert len(shared) >= count
    for key in shared:
        for one, other in zip(some[key][:7], others[key][:7], strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_three_modes_of_autoreset_give_the_same_episodes(tmp_path: Path):
    off = written(tmp_path / "off-v0", play(12))
    same = written(tmp_path / "same-v0", play(12), mode="same_step")
    following = written(tmp_path / "next-v0", play(12), mode="next_step")
    assert_equal(off, same, len(off))
    assert_equal(off, following, 7)
    assert all(len(episode.observations) == len(episode.rewards) + 1 for episode in off.values())
    assert all(episode.terminated != episode.truncated for episode in off.values())


def test_the_last_observation_of_a_match_is_its_own_and_not_the_first_of_the_next(tmp_path: Path):
    for mode in ("off", "same_step", "next_step"):
        for episode in written(tmp_path / f"{mode}-v0", play(7), mode=mode).values():
            np.testing.assert_array_equal(episode.observations[:, 1], np.arange(len(episode.observations)))


def test_lane_i_under_a_seed_gives_the_episodes_of_one_lane_under_that_seed_plus_i(tmp_path: Path):
    three = written(tmp_path / "three-v0", play(9), lanes=3)
    one = written(tmp_path / "one-v0", play(9, seed=9), lanes=1)
    assert {seed for seed, _ in three} == {7, 8, 9}
    assert_equal(three, one, len(one))


def test_a_match_that_is_cut_or_loaded_is_left_out(tmp_path: Path):
    def loop(sim: Any) -> None:
        sim.reset(seed=34)
        sim.step()
        assert not sim.terminated.any()
        sim.reset(np.array([True, False, False]))  # cuts the first match of lane 0
        snapshot = sim.snapshot()
        sim.restore(snapshot)
        for _ in range(5):
            sim.step()
        sim.reset(seed=5)
        for _ in range(5):
            sim.step()

    assert written(tmp_path / "cut-v0", loop).keys() == {(5, 0), (6, 0), (7, 0)}


def test_a_decision_of_some_lanes_leaves_the_episodes_of_the_others_as_they_are(tmp_path: Path):
    def loop(sim: Any) -> None:
        sim.reset(seed=7)
        for _ in range(5):
            for lane in range(3):
                sim.step(lanes=np.arange(3) == lane)

    together = written(tmp_path / "together-v0", play(5))
    assert_equal(written(tmp_path / "alone-v0", loop), together, 3)


def test_matches_of_a_writer_that_came_later_are_not_the_first_of_their_seed(tmp_path: Path):
    sim = palaestra.make_batch(TARGETS, 2, compiled=False, opponents={"walker": "random"})
    sim.reset(seed=3)
    with EpisodeWriter(sim, tmp_path / "late-v0") as writer:
        for _ in range(14):
            sim.step()
    assert min(writer.manifest.matches) >= 1


def test_memory_is_given_free_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole = written(tmp_path / "a" / "w-v0", play(15))
    monkeypatch.setattr("palaestra.data.episode_writer.MOST_WAITING", 1)
    written(tmp_path / "b" / "w-v0", play(15))
    names = ("data/main_data.hdf5", "data/metadata.json", "palaestra.json")
    assert len(whole) > 7
    assert all((tmp_path / "a" / "w-v0" / n).read_bytes() == (tmp_path / "b" / "w-v0" / n).read_bytes() for n in names)


def test_after_an_exception_there_is_no_data_set_and_no_parts(tmp_path: Path):
    def loop(sim: Any) -> None:
        play(10)(sim)
        raise RuntimeError("over")

    with pytest.raises(RuntimeError, match="over"):
        written(tmp_path / "w-v0", loop)
    assert list(tmp_path.iterdir()) == []


def test_without_a_complete_episode_there_is_no_data_set(tmp_path: Path):
    with pytest.raises(DataError, match="no match has ended: a data set holds complete episodes alone"):
        written(tmp_path / "w-v0", lambda sim: sim.reset(seed=1))
    assert list(tmp_path.iterdir()) == []


def test_episodes_gathered_elsewhere_are_added(tmp_path: Path):
    taken = written(tmp_path / "a" / "w-v0", play(10), infos=["task"])

    def add(sim: Any) -> None:
        for (_, match), episode in taken.items():
            sim.recorder.add(episode, match)

    added = written(tmp_path / "b" / "w-v0", add, infos=["task"])
    assert added.keys() == taken.keys()
    assert_equal(added, taken, len(taken))
    assert all((added[key].infos["task"] == taken[key].infos["task"]).all() for key in taken)


def test_a_simulation_made_by_hand_is_refused(rules: Any, tmp_path: Path):
    made: Game = games.targets.game()
    with pytest.raises(DataError, match="this simulation was made by hand"):
        EpisodeWriter(rules(made), tmp_path / "w-v0")
