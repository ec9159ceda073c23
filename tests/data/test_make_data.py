"""A data set holds what was played, in Minari's files, and is the same to the byte whoever makes it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from palaestra.data import DataError, Episode, make_data, read_data, read_manifest, verify

minari: Any = pytest.importorskip("minari", reason='needs the extra "palaestra[data]"')
pytestmark = pytest.mark.usefixtures("rules_do_not_change")

TARGETS = "tests/Targets-v0"
FILES = ("data/main_data.hdf5", "data/metadata.json", "palaestra.json")


def made(path: Path, **options: Any) -> Path:
    """Fourteen episodes, but for what is asked otherwise."""
    given: dict[str, Any] = {"episodes": 14, "seed": 3, "compiled": False, **options}
    make_data(TARGETS, given.pop("policy", "random"), path, **given)
    return path


def contents(path: Path) -> list[bytes]:
    return [(path / name).read_bytes() for name in FILES]


def played_again(episode: Episode, **keywords: Any) -> None:
    """Compares an episode with the same match in Gymnasium's environment."""
    env = gymnasium.make(TARGETS, disable_env_checker=True, compiled=False, **keywords)
    seen, info = env.reset(seed=episode.seed)
    np.testing.assert_array_equal(seen, episode.observations[0])
    ended = [False, False]
    for k, action in enumerate(episode.actions):
        assert ended == [False, False]
        choice = int(action[0]) if episode.actions.dtype == np.int64 else action
        seen, reward, *ended, info = env.step(choice)
        np.testing.assert_array_equal(seen, episode.observations[k + 1])
        assert np.float32(reward) == episode.rewards[k]
        if episode.infos:
            assert info["task"] == episode.infos["task"][k + 1]
    assert ended == [episode.terminated, episode.truncated]


def test_an_episode_is_the_match_of_its_seed_and_its_task(recorded: Path):
    episodes = read_data(recorded, TARGETS)
    assert len(episodes) == 12
    for episode in episodes:
        assert episode.observations.shape == (len(episode.rewards) + 1, 2)
        assert episode.observations.dtype == episode.rewards.dtype == np.float32
        played_again(episode, task=episode.task)
    assert {episode.terminated for episode in episodes} == {True, False}


def test_seeds_count_through_the_tasks_and_the_order_of_the_file_says_nothing_of_them(recorded: Path):
    manifest = read_manifest(recorded)
    numbers = np.array(manifest.seeds) - (3 << 32)
    np.testing.assert_array_equal(np.sort(numbers), np.arange(12))
    np.testing.assert_array_equal(manifest.tasks, np.array([0, 1, 5])[numbers // 4])
    assert len({tuple(manifest.tasks[k : k + 4]) for k in (0, 4, 8)} & {(0,) * 4, (1,) * 4, (5,) * 4}) == 0


def test_minari_reads_the_same_without_our_reader(recorded: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(recorded.parent))
    found = minari.load_dataset("targets-v0")
    assert (found.total_episodes, found.total_steps) == (12, sum(read_manifest(recorded).steps))
    for theirs, ours in zip(found.iterate_episodes(), read_data(recorded), strict=True):
        np.testing.assert_array_equal(theirs.observations, ours.observations)
        np.testing.assert_array_equal(theirs.actions, ours.actions[:, 0])
        np.testing.assert_array_equal(theirs.rewards, ours.rewards)
        assert (theirs.terminations[-1], theirs.truncations[-1]) == (ours.terminated, ours.truncated)
        np.testing.assert_array_equal(theirs.infos["task"], ours.infos["task"])
    (metadata,) = found.storage.get_episode_metadata([0])
    manifest = read_manifest(recorded)
    assert (metadata["seed"], metadata["options"]) == (manifest.seeds[0], {"task": manifest.tasks[0]})


@pytest.mark.check  # compiles the game
def test_minari_makes_the_environment_again(recorded: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(recorded.parent))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = minari.load_dataset("targets-v0").recover_environment()
    assert env.spec is not None
    assert env.spec.id == TARGETS


def test_the_bytes_depend_neither_on_lanes_nor_on_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one = made(tmp_path / "a" / "walk-v0", num_envs=1)
    many = made(tmp_path / "b" / "walk-v0", num_envs=64)
    monkeypatch.setattr("palaestra.data.data_maker.MOST_EPISODES", 3)
    parts = made(tmp_path / "c" / "walk-v0", num_envs=2)
    assert contents(one) == contents(many) == contents(parts)


def test_what_was_interrupted_goes_on_with_the_next_part_and_ends_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = made(tmp_path / "a" / "walk-v0")
    monkeypatch.setattr("palaestra.data.data_maker.MOST_EPISODES", 4)
    calls: list[int] = []

    def stop_after(done: int, total: int) -> None:
        calls.append(done)
        if done == 8:
            raise KeyboardInterrupt

    path = tmp_path / "b" / "walk-v0"
    with pytest.raises(KeyboardInterrupt):
        made(path, progress=stop_after)
    assert not path.exists()
    made(path, progress=lambda done, total: calls.append(done))
    assert calls == [4, 8, 12, 14]
    assert contents(path) == contents(whole)
    assert [file.name for file in path.parent.iterdir()] == ["walk-v0"]


def test_a_kill_while_the_files_are_joined_leaves_parts_that_are_joined_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "walk-v0"
    with monkeypatch.context() as patch:
        patch.setattr("palaestra.data.data_parts.Parts._write_minari", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            made(path)
    assert not path.exists()
    assert verify(made(path)).episodes == 14


def test_a_relative_path_is_made_with_its_parents_and_the_bytes_do_not_tell_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    absolute = made(tmp_path / "walk-v0")
    monkeypatch.chdir(tmp_path)
    assert contents(made(Path("some/where/walk-v0"))) == contents(absolute)


def test_parts_of_another_plan_are_refused(tmp_path: Path):
    path = tmp_path / "walk-v0"
    with pytest.raises(KeyboardInterrupt):
        made(path, progress=lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(DataError, match=r"walk-v0\.parts: holds parts of another data set: delete it"):
        made(path, seed=4)


def test_the_same_call_again_returns_what_is_there_and_another_one_is_refused(tmp_path: Path):
    path = made(tmp_path / "walk-v0")
    before = (path / FILES[0]).stat().st_mtime_ns
    made(path)
    assert (path / FILES[0]).stat().st_mtime_ns == before
    with pytest.raises(DataError, match="walk-v0: is there already: name another folder"):
        made(path, policy="right")


def test_the_bytes_of_a_script_are_others_than_those_of_another_one(tmp_path: Path):
    right = read_data(made(tmp_path / "right-v0", policy="right"))
    assert {int(action) for episode in right for action in episode.actions[:, 0]} == {2}


def test_tasks_that_the_game_draws_are_read_from_its_info(tmp_path: Path):
    episodes = read_data(made(tmp_path / "drawn-v0", each_task="train", infos=["task"]))
    assert {episode.task for episode in episodes} == {0, 1, 2, 3}
    assert all(episode.infos["task"][0] == episode.task for episode in episodes)
    assert read_manifest(tmp_path / "drawn-v0").keywords == {"tasks": "train"}


def test_real_actions_are_rounded_to_float32_as_the_space_says(tmp_path: Path):
    for episode in read_data(made(tmp_path / "real-v0", policy="right", real=True, task=1)):
        np.testing.assert_array_equal(episode.actions, np.full((5, 1), np.float32(0.1)))
        assert episode.actions.dtype == np.float32


def test_a_team_is_one_agent_with_a_joint_action(tmp_path: Path):
    make_data("palaestra/TeamTag-v0", "random", tmp_path / "tag-v0", episodes=2, team="red", compiled=False, horizon=4)
    (first, _) = read_data(tmp_path / "tag-v0")
    env = gymnasium.make("palaestra/TeamTag-v0", control="red", compiled=False, horizon=4)
    assert first.actions.shape == (4, *(env.action_space.shape or ()))
    seen, _ = env.reset(seed=first.seed)
    np.testing.assert_array_equal(seen, first.observations[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "left"}, "opponent 'left' is neither a script"),
        ({"team": "red"}, "has no team 'red': team is one of walker"),
        ({"infos": ["tasks"]}, "has no info 'tasks', did you mean 'task'?"),
        ({"episodes": 0}, "episodes must be an integer from 1"),
        ({"each_task": [1, 1]}, "each_task must be one or more numbers, each once"),
        ({"autoreset_mode": "off"}, "autoreset_mode= makes no sense here"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_is_written(options: dict[str, Any], message: str, tmp_path: Path):
    with pytest.raises((ValueError, TypeError), match=message):
        made(tmp_path / "walk-v0", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_game_without_flat_observations_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="GridPursuit shows no flat vector"):
        make_data("palaestra/GridPursuit-v0", "random", tmp_path / "g-v0", episodes=1, team="predator", compiled=False)


def test_the_name_of_the_folder_is_one_that_minari_takes(tmp_path: Path):
    with pytest.raises(DataError, match="walk: the folder's name is that of the data set in Minari: write NAME-v0"):
        made(tmp_path / "walk")


def test_without_minari_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "minari.dataset._storages.hdf5_storage", None)
    with pytest.raises(ImportError, match=r'pip install "palaestra\[data\]"'):
        made(tmp_path / "walk-v0")
