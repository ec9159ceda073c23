"""Replays of games of many sizes, of other representations, and of bodies that an engine moves."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from games import body_game, size_game  # noqa: F401 (they register their ids)

import palaestra
from palaestra import registry
from palaestra.core.run.simulation import Simulation
from palaestra.replay import Recorder, Replay, ReplayError, frames, load, record, to_csv, to_gif, verify

COURIERS, LARGE = "tests/Couriers-v0", "tests/CouriersLarge-v0"
BODY, COMPILED = "tests/Body-v0", "tests/BodyCompiled-v0"


def play(id: str, steps: int = 40, num_envs: int = 3, **options) -> tuple[Replay, Simulation]:
    """All agents play at random, by actions from outside."""
    sim = palaestra.make_batch(id, num_envs, **options)
    rng = np.random.default_rng(3)
    with Recorder(sim) as recorder:
        sim.reset(seed=7)
        for _ in range(steps):
            for word in sim.action_table.words:
                column = sim.buffers.action_words[:, word["column"]]
                if word["n"]:
                    column[:] = rng.integers(0, word["n"], num_envs)
                else:
                    column.view("f8")[:] = rng.uniform(word["low"], word["high"], num_envs)
            sim.step()
    return recorder.replay(), sim


def altered(replay: Replay, **values) -> Replay:
    return Replay(**{**vars(replay), **values})


@pytest.mark.parametrize("mode", ["next_step", "same_step", "off"])
@pytest.mark.parametrize("id", [COURIERS, LARGE, BODY, COMPILED])
def test_actions_from_outside_repeat_from_the_file(id: str, mode: str, tmp_path):
    replay, sim = play(id, autoreset_mode=mode)
    replay.save(tmp_path / "match.npz")
    again = load(tmp_path / "match.npz")
    assert verify(again).ok
    *_, last = frames(again)
    assert last.states.tobytes() == sim.states.tobytes()


def test_a_file_holds_the_words_of_the_visible_agents_alone():
    replay, sim = play(COURIERS)
    assert replay.actions.shape == (40, 3, 6 * 2)
    assert sim.buffers.action_words.shape == (3, 40 * 2)
    assert sim.info["illegal"].sum() > 0, "illegal actions are repeated, not their no-ops"


@pytest.mark.parametrize("id", [COURIERS, BODY])
def test_scripts_and_python_players_repeat(id: str):
    team = next(iter(registry.make_game(id)[0].teams))
    assert verify(record(id, {team: resting}, num_envs=2)).ok
    assert verify(record(id, {team: "random"}, num_envs=2)).ok


def resting(observations) -> np.ndarray:
    rows = observations["courier"] if isinstance(observations, dict) else observations
    return np.zeros((*rows.shape[:2], 2), np.int64)


def test_a_replay_keeps_the_representation_that_was_played(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # no other test plays this representation
    env = gymnasium.make(COURIERS, observation="nearest:flat")
    with Recorder(env.unwrapped.sim) as recorder:  # type: ignore[attr-defined]
        env.reset(seed=1)
        for _ in range(5):
            env.step(env.action_space.sample())
    replay = recorder.replay()
    assert replay.keywords["observation"] == "nearest:flat"
    assert verify(replay).ok
    *_, last = frames(replay)
    assert last.observations.shape[-1] == 2
    with pytest.raises(ReplayError, match="the rules of tests/Couriers-v0 are other ones"):
        verify(altered(replay, keywords={"observation": "dict"}))
    with pytest.raises(ReplayError, match="unexpected keyword argument 'view': say observation=\"nearest\""):
        verify(altered(replay, keywords={"view": "nearest"}))


@pytest.mark.parametrize(
    ("played", "other", "keywords"),
    [
        (COURIERS, LARGE, {}),
        (COURIERS, COURIERS, {"parcels": 13}),
        (COURIERS, COURIERS, {"paces": 3}),
        (BODY, COMPILED, {}),
        (COMPILED, BODY, {}),
    ],
)
def test_another_preset_is_refused(played: str, other: str, keywords: dict[str, int]):
    replay = altered(record(played, num_envs=2), id=other, keywords=keywords)
    with pytest.raises(ReplayError, match=f"the rules of {other} are other ones"):
        verify(replay)


def test_words_of_other_sizes_are_refused():
    replay, _ = play(COURIERS)
    with pytest.raises(ReplayError, match=r"the replay has actions of shape \(3, 10\), the rules of \(3, 12\)"):
        verify(altered(replay, actions=replay.actions[:, :, :10]))


def test_parameters_and_those_that_wait_for_the_next_match_may_change():
    sim = palaestra.make_batch(BODY, 2, dense=0, opponents={"puck": "steer"}, horizon=20)
    with Recorder(sim) as recorder:
        sim.reset(seed=5)
        for step in range(50):
            if step == 5:
                sim.set_parameters(mass_spread_kg=0.9)
            if step == 8:
                sim.set_parameters(dense=1, drag_nspm=np.array([1.0, 2.0]))
            sim.step()
    replay = recorder.replay()
    assert replay.keywords == {"dense": 0, "horizon": 20}
    assert len(replay.matches) >= 4
    assert verify(replay).ok


def test_the_ends_by_truncation_have_their_names():
    replay = record(BODY, num_envs=8, speed_limit_mps=0.2)
    assert {match["end_reason"] for match in replay.matches} == {"diverged"}


@pytest.mark.parametrize("id", [COURIERS, BODY, COMPILED])
def test_pictures_and_tables_are_made_of_every_lane(id: str, tmp_path):
    pytest.importorskip("PIL")
    replay = record(id, num_envs=2, horizon=5)
    assert to_gif(replay, tmp_path / "match.gif", lane=1) == replay.steps + 1
    assert to_csv(replay, tmp_path / "match.csv", lane=1) == replay.steps + 1
    head = (tmp_path / "match.csv").read_text().partition("\n")[0].split(",")
    rewards = [name.removeprefix("reward.") for name in head if name.startswith("reward.")]
    assert rewards == list(registry.make_game(id)[0].agents)


def test_an_id_that_is_not_registered_here_names_what_to_do():
    replay = altered(record(COURIERS, horizon=2), id="elsewhere/Rope-v0")
    with pytest.raises(ReplayError, match="import the module that registers it first"):
        verify(replay)
