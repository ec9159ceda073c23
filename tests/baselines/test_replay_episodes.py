"""Replay buffers as data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import games.targets  # noqa: F401  (registers its id)
import numpy as np
import pytest

import palaestra
from palaestra.data import EpisodeWriter, read_data
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.replay_episodes import write_replay
from palaestra_baselines.common.rollout import Collector, Replay, random_actions

pytest.importorskip("minari", reason='needs the extra "palaestra[data]"')


@pytest.mark.check
@pytest.mark.parametrize(
    ("id", "team", "keywords"),
    [
        ("tests/Targets-v0", "walker", {}),
        ("tests/Targets-v0", "walker", {"real": True}),
        ("palaestra/TeamTag-v0", "red", {"horizon": 5}),
    ],
)
def test_the_complete_matches_of_a_ring_are_those_that_were_played_last(
    id: str, team: str, keywords: dict[str, Any], tmp_path: Path
):
    others = {"blue": "default"} if team == "red" else {}
    sim = palaestra.make_batch(id, 3, compiled=False, autoreset_mode="next_step", opponents=others, **keywords)
    roster, replay = Roster(sim.game, [team], numbers="real" in keywords), Replay(18, 3)
    with EpisodeWriter(sim, tmp_path / "all-v0", team=team) as writer:
        collector = Collector(sim, roster, replay, seed=4)
        for _ in range(30):
            collector.play(random_actions(collector))
    kept = write_replay(replay, roster, sim, tmp_path / "kept-v0", team=team)
    played = dict(
        zip(
            zip(writer.manifest.seeds, writer.manifest.matches, strict=True),
            read_data(tmp_path / "all-v0"),
            strict=True,
        )
    )
    found = dict(zip(zip(kept.seeds, kept.matches, strict=True), read_data(tmp_path / "kept-v0"), strict=True))
    assert 0 < len(found) < len(played)
    for lane, seed in enumerate(sim.lane_seeds.tolist()):
        numbers = sorted(match for of_seed, match in found if of_seed == seed)
        last = max(match for of_seed, match in played if of_seed == seed)
        for k, number in enumerate(reversed(numbers)):
            for one, other in zip(found[seed, number][:5], played[seed, last - k][:5], strict=True):
                np.testing.assert_array_equal(one, other, f"lane {lane}, match {last - k}")
