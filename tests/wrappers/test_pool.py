"""A pool of past policies: how members are drawn, their memory, and weights learnt from results."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from games.play import idle_actions, random_actions

import palaestra
from palaestra.core.contract.actions import ActionError
from palaestra.core.files import FileError
from palaestra.core.run.opponents import FunctionOpponent, Opponent
from palaestra.game import Game
from palaestra.replay import Recorder, verify
from palaestra.wrappers import SelfPlayPool, pool

pytestmark = pytest.mark.check

MELEE = "pool/Melee-v0"
SEARCH = "palaestra/SearchQA-2Hop-v1"
palaestra.register(MELEE, "games.two_team_homogeneous:game", family="test")


def constant(thrust: float) -> Any:
    return lambda observations: np.full((*observations.shape[:2], 2), thrust)


class Adder:
    """Thrusts by a number times the decisions that it remembers."""

    memory_size = 1

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def act(self, observations, legal, acting, first, seeds, memory):
        memory[:, 0] += 1
        return np.broadcast_to((self.scale * memory[:, 0])[:, None, None], (len(memory), 5, 2))


def batch(opponent: Any, n: int = 64, horizon: int = 3, mode: str = "same_step", **keywords: Any) -> Any:
    sim = palaestra.make_batch(MELEE, n, autoreset_mode=mode, opponents={"blue": opponent}, horizon=horizon, **keywords)
    sim.reset(seed=7)
    return sim


def played(sim: Any) -> np.ndarray:
    """The first blue agent's thrust in each lane."""
    sim.step(idle_actions(sim))
    return sim.actions[:, 5, 0].copy()


def test_it_is_an_opponent():
    assert isinstance(SelfPlayPool(MELEE), Opponent)


def test_each_match_is_played_by_one_member_and_the_next_by_another():
    league = SelfPlayPool(MELEE, members=[constant(0.1), constant(0.2), constant(0.3)])
    sim = batch(league)
    matches = np.array([[played(sim) for _ in range(3)] for _ in range(20)])  # [match, decision, lane]
    assert (matches == matches[:, :1]).all(), "a member plays its match to the end"
    values, counts = np.unique(matches[:, 0], return_counts=True)
    np.testing.assert_allclose(values, [0.1, 0.2, 0.3])
    assert (abs(counts / counts.sum() - 1 / 3) < 0.05).all()
    assert all(len(np.unique(matches[:, 0, lane])) > 1 for lane in range(64))


def test_a_lane_draws_by_its_seed_and_the_number_of_its_match_alone():
    members = [constant(0.1 * k) for k in range(5)]
    sim = batch(SelfPlayPool(MELEE, members=members), n=4)
    alone = batch(SelfPlayPool(MELEE, members=members), n=1)
    alone.reset(seed=7 + 2)
    for _ in range(30):
        assert played(sim)[2] == played(alone)[0]
    sim.reset(seed=7)
    first = played(sim)
    np.testing.assert_array_equal(first, played(batch(SelfPlayPool(MELEE, members=members), n=4)))


def test_members_remember_their_own_match():
    sim = batch(SelfPlayPool(MELEE, members=[Adder(0.01), Adder(0.1), constant(0.5)]), horizon=3)
    seen = np.array([[played(sim) for _ in range(3)] for _ in range(6)])
    allowed = [[0.01, 0.02, 0.03], [0.1, 0.2, 0.3], [0.5, 0.5, 0.5]]
    for match in seen.transpose(0, 2, 1).reshape(-1, 3):
        assert any(np.allclose(match, sequence) for sequence in allowed)
    assert len(np.unique(seen)) == 7


def test_a_snapshot_keeps_the_member_and_what_it_remembers():
    league = SelfPlayPool(MELEE, members=[Adder(0.01), constant(0.5), Adder(0.02)])
    sim = batch(league, horizon=4)
    for _ in range(6):
        played(sim)
    snapshot = sim.snapshot()
    assert snapshot.memories["blue"].shape == (64, 3)
    expected = [played(sim) for _ in range(10)]
    sim.restore(snapshot)
    np.testing.assert_array_equal([played(sim) for _ in range(10)], expected)


def test_a_pool_that_grows_leaves_running_matches_alone():
    league = SelfPlayPool(MELEE, members=[constant(0.1)])
    sim = batch(league)
    played(sim)
    assert league.add(constant(0.2)) == 1
    assert (played(sim) == 0.1).all()
    played(sim)
    assert set(played(sim)) == {0.1, 0.2}
    np.testing.assert_array_equal(league.members_of(sim), np.where(sim.actions[:, 5, 0] == 0.1, 0, 1))


def test_the_latest_has_its_share():
    league = SelfPlayPool(MELEE, members=[constant(0.1 * k) for k in range(5)], draw="latest", latest_share=0.8)
    np.testing.assert_allclose(league.weights(), [0.05, 0.05, 0.05, 0.05, 0.8])
    share = (played(batch(league, n=2000)) == 0.4).mean()
    assert abs(share - 0.8) < 0.03
    assert SelfPlayPool(MELEE, members=[constant(0)], draw="latest").weights() == [1.0]


def test_members_that_beat_the_learner_are_drawn_more_often():
    league = SelfPlayPool(MELEE, members=[constant(0.1 * k) for k in range(3)], draw="pfsp", exponent=2.0)
    np.testing.assert_allclose(league.weights(), [1 / 3] * 3)
    league.report(np.array([0] * 8 + [1] * 8), np.array([1.0] * 8 + [0.0] * 8))
    lost = 1.0 - np.array([9 / 10, 1 / 10, 1 / 2])  # one win and one loss are assumed of every member
    np.testing.assert_allclose(league.weights(), lost**2 / (lost**2).sum())


@pytest.mark.parametrize("mode", ["same_step", "next_step", "off"])
def test_watching_a_batch_books_every_match_once(mode: str):
    league = SelfPlayPool(MELEE, members=[constant(0.1), constant(-0.1)])
    sim = batch(league, n=16, horizon=60, mode=mode, damage=0.5)
    rng, ended, points = np.random.default_rng(0), 0, 0.0
    for _ in range(150):
        before = sim.states["pending"] == 0
        sim.step(random_actions(sim, rng))
        league.watch(sim)
        over = (sim.terminated | sim.truncated) & before
        winner = (sim.final_info if mode == "same_step" else sim.info)["winner"][over]
        ended += int(over.sum())
        points += float((winner == 0).sum() + 0.5 * (winner < 0).sum())
        league.watch(sim)  # a second look books nothing
    assert league.matches.sum() == ended > 10
    assert league.points.sum() == points
    assert (league.matches > 0).all()


def test_the_gymnasium_faces_take_a_pool():
    members = [constant(0.1 * k) for k in range(4)]
    league = SelfPlayPool(MELEE, members=members)
    envs = gymnasium.make_vec(MELEE, num_envs=3, opponent=league)
    env = gymnasium.make(MELEE, opponent=SelfPlayPool(MELEE, members=members)).unwrapped
    envs.reset(seed=3)
    env.reset(seed=5)
    for _ in range(10):
        several = envs.step(np.zeros((3, 10)))
        one = env.step(np.zeros(10))
        np.testing.assert_array_equal(several[0][2], one[0])
    assert league.members_of(envs.unwrapped.sim)[2] >= 0  # type: ignore[attr-defined]


class Paid:
    """Reads its rewards."""

    memory_size = reward_at = 0

    def act(self, observations, legal, acting, first, seeds, memory):
        raise NotImplementedError


def test_what_cannot_be_a_member_is_refused():
    league = SelfPlayPool(MELEE, members=[constant(0.0)])
    with pytest.raises(ValueError, match="remembers 1 numbers, the pool has room for 0: SelfPlayPool"):
        league.add(Adder(0.1))
    assert SelfPlayPool(MELEE, members=[constant(0.0)], room=1).add(Adder(0.1)) == 1
    with pytest.raises(ValueError, match="the policy reads its rewards, which a pool does not pass on"):
        league.add(Paid())
    for name in ("chasr", "chaser.zip", Path("chaser")):
        with pytest.raises(
            ValueError, match=r"neither a script of Melee \(chaser, random\) nor the file of a saved policy"
        ):
            league.add(name)
    for name in ("mix", "mix:0.5"):
        with pytest.raises(ValueError, match=rf"'{name}' draws scripts itself: add the scripts that the pool draws"):
            league.add(name)
    with pytest.raises(ValueError, match="CartPole has one team and no scripts"):
        SelfPlayPool("palaestra/CartPole-v0", members=["random"])
    with pytest.raises(TypeError, match="a callable or an Opponent, got int"):
        league.add(3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="the pool is empty"):
        batch(SelfPlayPool(MELEE)).step(np.zeros((64, 10, 2)))
    with pytest.raises(ValueError, match='draw must be "uniform"'):
        SelfPlayPool(MELEE, draw="best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="latest_share is in"):
        SelfPlayPool(MELEE, latest_share=2.0)


SCRIPTS = ("chaser", "random", "chaser:0.25")


def players_of(sim: Any) -> np.ndarray:
    """Number and strength of the script that plays each blue agent, [lanes, agents, 2]."""
    return np.stack([sim.states["current_player"][:, 5:], sim.states["strength"][:, 5:]], axis=-1)


def test_scripts_are_members_that_play_compiled():
    league = SelfPlayPool(MELEE, members=[constant(0.1), *SCRIPTS])
    sim, wanted = batch(league, n=32), np.array([[-1, 1.0], [0, 1.0], [-2, 1.0], [0, 0.25]])
    alike = {name: batch(name, n=32) for name in SCRIPTS[:2]}
    for _ in range(3):
        played(sim)
        drawn = league.members_of(sim)
        assert set(drawn) == {0, 1, 2, 3}
        np.testing.assert_array_equal(players_of(sim), np.broadcast_to(wanted[drawn][:, None], (32, 5, 2)))
        assert (sim.actions[drawn == 0, 5:] == 0.1).all()
        for number, name in enumerate(SCRIPTS[:2], 1):
            played(alike[name])
            own = drawn == number
            np.testing.assert_array_equal(sim.actions[own, 5:], alike[name].actions[own, 5:])
    assert sim.open_slots("blue") == ()


def test_a_lane_changes_between_scripts_and_policies_from_match_to_match():
    league = SelfPlayPool(MELEE, members=[constant(0.1), "chaser"])
    sim, seen = batch(league, n=16), set()
    for _ in range(12):
        played(sim)
        drawn = league.members_of(sim)
        np.testing.assert_array_equal(players_of(sim)[:, 0, 0], np.where(drawn == 0, -1, 0))
        np.testing.assert_array_equal((sim.actions[:, 5:] == 0.1).all(axis=(1, 2)), drawn == 0)
        seen.add(int(drawn[0]))
    assert seen == {0, 1}
    sim.set_opponent("blue", None)
    assert set(players_of(sim).ravel()) == {-1.0, 1.0}


def test_a_pool_of_scripts_alone_plays_and_grows():
    league = SelfPlayPool(MELEE, members=["chaser"])
    sim, named = batch(league, n=8), batch("chaser", n=8)
    for _ in range(6):
        np.testing.assert_array_equal(played(sim), played(named))
    league.add(constant(0.1))
    for _ in range(9):
        played(sim)
    assert set(league.members_of(sim)) == {0, 1}


def test_a_pool_with_scripts_in_a_pool_plays_them():
    inner = SelfPlayPool(MELEE, members=["chaser", constant(0.2)])
    sim = batch(SelfPlayPool(MELEE, members=[inner, constant(0.1)]), n=32)
    played(sim)
    by_script = players_of(sim)[:, 0, 0] == 0
    assert 2 < by_script.sum() < 20
    assert set(sim.actions[~by_script, 5, 0]) == {0.1, 0.2}


def test_snapshots_copies_and_replays_have_the_scripts_of_a_pool():
    league = SelfPlayPool(MELEE, members=[constant(0.1), *SCRIPTS])
    sim = batch(league, n=8)
    with Recorder(sim) as recorder:
        sim.reset(seed=7)
        played(sim)
        played(sim)
        saved = sim.snapshot()
        expected = [played(sim) for _ in range(8)]
        sim.restore(saved)
        np.testing.assert_array_equal([played(sim) for _ in range(8)], expected)
    assert verify(recorder.replay()).ok
    sim.restore(saved)
    twin = pickle.loads(pickle.dumps(batch(SelfPlayPool(MELEE, members=SCRIPTS), n=8)))
    assert set(np.concatenate([played(twin) for _ in range(3)])) != {0.0}


def test_one_agent_of_a_team_can_have_a_pool_with_scripts():
    league = SelfPlayPool(MELEE, members=["chaser", constant(0.1)])
    sim = batch(None, n=16)
    sim.set_opponent("blue_2", league)
    played(sim)
    drawn = league.members_of(sim)
    assert set(drawn) == {0, 1}
    np.testing.assert_array_equal(sim.states["current_player"][:, 7], np.where(drawn == 0, 0, -1))
    assert (sim.states["current_player"][:, [5, 6, 8, 9]] == -1).all()
    assert not sim.actions[:, [5, 6, 8, 9]].any()


def test_results_against_scripts_are_counted_and_saved_with_their_names(tmp_path: Path):
    league = SelfPlayPool(MELEE, members=SCRIPTS, draw="pfsp")
    sim = batch(league, n=16, horizon=2)
    for _ in range(4):
        played(sim)
        league.watch(sim)
    assert league.matches.sum() == 32
    league.save(tmp_path / "pool.json")
    printed = json.loads((tmp_path / "pool.json").read_text())
    assert [member["script"] for member in printed["members"]] == list(SCRIPTS)
    again = SelfPlayPool.load(tmp_path / "pool.json")
    assert again.matches.tolist() == league.matches.tolist()
    np.testing.assert_array_equal(played(batch(again)), played(batch(league)))


@pytest.mark.parametrize("script", ["chasr", "mix", "{folder}/secret.zip", "/etc/secret.onnx", 3, None])
def test_a_script_in_the_file_of_a_pool_is_a_script_and_no_file(tmp_path: Path, script: Any):
    (tmp_path / "secret.zip").touch()
    (tmp_path / "a").mkdir()
    script = script.format(folder=tmp_path) if isinstance(script, str) else script
    saved = {"id": MELEE, "team": "blue", "keywords": {}, "members": [{"script": script, "matches": 0, "points": 0}]}
    (tmp_path / "a" / "pool.json").write_text(json.dumps(saved), encoding="utf-8")
    for trust in (False, True):
        with pytest.raises(FileError, match=r"pool\.json: .*(neither a script|draws scripts itself|named by a text)"):
            SelfPlayPool.load(tmp_path / "a" / "pool.json", trust_paths=trust)


def test_a_pool_of_files_is_saved_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[str, str]] = []

    def loader(path: Path, game: Game, team: str) -> Opponent:
        asked.append((game.name, team))
        return FunctionOpponent(constant(float(path.read_text())))

    monkeypatch.setattr(pool, "load_policy", loader)
    (tmp_path / "policies").mkdir()
    for number in (1, 2):
        (tmp_path / "policies" / f"{number}.safetensors").write_text(f"0.{number}")
    files = [tmp_path / "policies" / f"{number}.safetensors" for number in (1, 2)]
    league = SelfPlayPool(MELEE, members=files, draw="pfsp", exponent=3.0)
    assert asked == [("Melee", "blue")] * 2
    league.report(np.array([1]), np.array([0.5]))
    league.save(tmp_path / "pool.json")
    printed = json.loads((tmp_path / "pool.json").read_text())
    assert [m["file"] for m in printed["members"]] == ["policies/1.safetensors", "policies/2.safetensors"]
    (tmp_path / "pool.json").rename(tmp_path / "policies" / ".." / "moved.json")
    again = SelfPlayPool.load(tmp_path / "moved.json")
    np.testing.assert_array_equal(again.weights(), league.weights())
    assert (again.draw, again.exponent, again.matches.tolist(), again.points.tolist()) == (
        "pfsp",
        3.0,
        [0, 1],
        [0, 0.5],
    )
    np.testing.assert_array_equal(played(batch(again)), played(batch(league)))


def test_a_pool_without_members_is_saved_and_comes_back(tmp_path: Path):
    SelfPlayPool(MELEE, room=3).save(tmp_path / "pool.json")
    again = SelfPlayPool.load(tmp_path / "pool.json")
    assert (len(again), again.matches.shape, again.add(constant(0.0))) == (0, (0,), 0)


def test_the_file_of_a_pool_plays_wherever_a_player_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        pool, "load_policy", lambda path, game, team: FunctionOpponent(constant(float(path.read_text())))
    )
    for number in (1, 2):
        (tmp_path / f"{number}.onnx").write_text(f"0.{number}")
    league = SelfPlayPool(MELEE, members=[tmp_path / "1.onnx", tmp_path / "2.onnx"])
    league.save(tmp_path / "league.json")
    np.testing.assert_array_equal(played(batch(str(tmp_path / "league.json"))), played(batch(league)))
    sim = batch(league)
    with pytest.raises(FileError, match=r"league.json: its members play blue of Melee, and cannot play red"):
        sim.set_opponent("red", tmp_path / "league.json")


def test_a_pool_that_cannot_be_written_or_read_says_why(tmp_path: Path):
    with pytest.raises(
        ValueError,
        match=r"member 0 \(<lambda>\) is no file: save the policy as one of .safetensors, .*",
    ):
        SelfPlayPool(MELEE, members=[constant(0.0)]).save(tmp_path / "pool.json")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "notes.json").write_text("{}")
    with pytest.raises(ValueError, match="is not the file of a pool"):
        SelfPlayPool.load(tmp_path / "notes.json")


def test_members_may_give_their_actions_in_different_shapes():
    flat = lambda observations: np.full((len(observations), 10), 0.25)  # noqa: E731
    league = SelfPlayPool(MELEE, members=[constant(0.5), flat])
    sim = batch(league)
    sim.step(np.zeros((64, 10, 2)))
    expected = np.where(league.members_of(sim) == 0, 0.5, 0.25)
    np.testing.assert_array_equal(sim.actions[:, 5:], np.broadcast_to(expected[:, None, None], (64, 5, 2)))
    wrong = SelfPlayPool(MELEE, members=[constant(0.5), lambda observations: np.zeros((len(observations), 2, 5))])
    with pytest.raises(ActionError, match=r"action of point must have the shape \[n, 5, 2\] or \[n, 10\]"):
        batch(wrong).step(np.zeros((64, 10, 2)))


def test_files_of_other_libraries_are_members_that_are_saved_and_pickled(tmp_path: Path):
    sb3 = pytest.importorskip("stable_baselines3")
    from palaestra.adapters.sb3 import as_vec_env
    from palaestra.players import as_opponent

    model = sb3.PPO("MlpPolicy", as_vec_env(MELEE, 1, opponent="random"), n_steps=2, batch_size=2, device="cpu")
    model.save(tmp_path / "mine.zip")
    league = SelfPlayPool(MELEE, members=[tmp_path / "mine.zip"])
    league.save(tmp_path / "pool.json")
    module = SelfPlayPool(MELEE, members=[as_opponent(model)])
    pools = [league, SelfPlayPool.load(tmp_path / "pool.json"), pickle.loads(pickle.dumps(league)), module]
    played = []
    for league in pools:
        sim = batch(league, n=3)
        sim.step(np.zeros((3, 10, 2)))
        played.append(sim.actions[:, 5:].copy())
    assert np.abs(played[0]).max() > 0
    for actions in played[1:]:
        np.testing.assert_allclose(actions, played[0], atol=1e-6)


def test_a_member_that_draws_draws_anew_in_each_match():
    from palaestra.players import as_opponent

    logits = as_opponent(lambda rows: np.zeros((len(rows), 3)), deterministic=False, agents="rows")
    league = SelfPlayPool("palaestra/TeamPong-v0", members=[logits])
    actions = []
    for match in range(2):
        memory = np.zeros((64, league.memory_size))
        memory[:, 0] = match
        ones = np.ones((64, 2), np.bool_)
        seen = np.zeros((64, 2, 9), np.float32)
        actions.append(league.act(seen, None, ones, ones[:, 0], np.arange(64, dtype=np.uint64), memory))
    assert 0.4 < (actions[0] != actions[1]).mean() < 0.9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"exponent": float("nan")}, r"exponent in \[0, 1e\+06\], got 0.5 and nan"),
        ({"exponent": 10**400}, r"exponent in \[0, 1e\+06\], got 0.5 and 1000"),
        ({"latest_share": float("nan")}, "latest_share is in"),
        ({"room": -5}, r"room is a whole number in \[0, 100000\], got -5"),
        ({"room": 10**12}, "room is a whole number"),
        ({"room": 1.5}, "room is a whole number"),
        ({"team": "green"}, "Melee has no team 'green': choose from red, blue"),
    ],
    ids=str,
)
def test_numbers_and_teams_that_cannot_be_are_refused(changes: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        SelfPlayPool(MELEE, **changes)


def test_results_that_cannot_be_are_refused():
    league = SelfPlayPool(MELEE, members=[constant(0.0)])
    for members, points in ((0, np.nan), (0, -1.0), (0, 2.0), (1, 0.5), (-1, 0.5)):
        with pytest.raises(ValueError, match=r"(points are in \[0, 1\]|members are numbers from 0 to 0), got"):
            league.report(np.array([members]), np.array([points]))
    assert league.matches.tolist() == league.points.tolist() == [0.0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"points": 0.5', '"points": NaN'),
        ('"points": 0.5', '"points": -1'),
        ('"points": 0.5', '"points": 1.5'),
        ('"points": 0.5', '"points": [1, 2]'),
        ('"points": 0.5', '"points": "many"'),
        ('"matches": 1.0', '"matches": 1e999'),
        ('"matches": 1.0', '"games": 1.0'),
        ('"exponent": 2.0', '"exponent": NaN'),
        ('"exponent": 2.0', '"exponent": "x"'),
        ('"room": 0', '"room": -5'),
        ('"team": null', '"team": "green"'),
        ('"draw": "uniform"', '"draw": "last"'),
        ('"draw": "uniform"', '"drawn": "uniform"'),
        ('"id": ', '"id": "nobody/Knows-v0", "name": '),
        ('"id": ', '"id": 5, "name": '),
        ('"keywords": {}', '"keywords": {"speeed": 1}'),
        ('"keywords": {}', '"keywords": []'),
        ('"members": [', '"members": [5, '),
        ('policy.safetensors"', 'gone.safetensors"'),
        ("{", "[" * 100_000),
        ("}", ""),
    ],
    ids=lambda text: text[:25],
)
def test_a_file_with_something_wrong_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str
):
    monkeypatch.setattr(pool, "load_policy", lambda *_: FunctionOpponent(constant(0.0)))
    (tmp_path / "policy.safetensors").touch()
    league = SelfPlayPool(MELEE, members=[tmp_path / "policy.safetensors"])
    league.report(np.array([0]), np.array([0.5]))
    league.save(tmp_path / "pool.json")
    SelfPlayPool.load(tmp_path / "pool.json")
    text = (tmp_path / "pool.json").read_text()
    assert old in text
    (tmp_path / "pool.json").write_text(text.replace(old, new, 1))
    with pytest.raises(FileError, match=r"pool\.json: "):
        SelfPlayPool.load(tmp_path / "pool.json")


@pytest.mark.parametrize(
    "changes",
    [
        {"members": [{"file": "../secret.zip", "matches": 0, "points": 0}]},
        {"members": [{"file": "/etc/secret.onnx", "matches": 0, "points": 0}]},
        {"members": [{"file": "a/../../secret.zip", "matches": 0, "points": 0}]},
        {"members": [{"file": "\\\\attacker\\share\\x.zip", "matches": 0, "points": 0}]},
        {"members": [{"file": "//attacker/share/x.zip", "matches": 0, "points": 0}]},
    ],
)
def test_the_file_of_a_pool_opens_no_files_elsewhere(tmp_path: Path, changes: dict[str, Any]):
    saved: dict[str, Any] = {"id": MELEE, "team": "blue", "members": [], "keywords": {}}
    (tmp_path / "pool.json").write_text(json.dumps({**saved, **changes}), encoding="utf-8")
    with pytest.raises(FileError, match=r"pool\.json: names the file .* trust_paths=True"):
        SelfPlayPool.load(tmp_path / "pool.json")
    with pytest.raises(FileError, match=r"secret|x\.zip|level"):
        SelfPlayPool.load(tmp_path / "pool.json", trust_paths=True)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"keywords": {"level": "../secret.json"}}, "level names '../secret.json'"),
        ({"keywords": {"level": [{"a": "antigravity:fly"}]}}, "level names 'antigravity:fly'"),
        ({"id": SEARCH, "keywords": {"world": "example", "retriever": "antigravity:fly"}}, "retriever names"),
        ({"id": SEARCH, "keywords": {"world": "folder"}}, "world names 'folder'"),
        ({"id": SEARCH, "retriever": "antigravity:fly", "world": "example"}, "retriever, world is no part of it"),
        ({"keywords": {"../secret": 1}}, "the name of no keyword"),
        ({"keywords": ["level"]}, "not a mapping"),
        ({"id": ["x"], "keywords": {"level": "a:b"}}, "level names"),
        ({"members": [{"file": "pool.json", "matches": 0, "points": 0}]}, "pools for members"),
        ({"members": [{"file": "link/x.zip", "matches": 0, "points": 0}]}, "outside its folder"),
        ({"members": [{"file": "\0x.zip", "matches": 0, "points": 0}]}, "outside its folder"),
        ({"members": [{"file": "\ud800.zip", "matches": 0, "points": 0}]}, "outside its folder|there is no|no file"),
    ],
)
def test_the_file_of_a_pool_runs_and_opens_nothing_of_the_user(tmp_path: Path, changes: dict[str, Any], named: str):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to("/etc")
    saved: dict[str, Any] = {"id": MELEE, "team": "blue", "members": [], "keywords": {}}
    path = tmp_path / "folder" / "pool.json"
    path.write_text(json.dumps({**saved, **changes}), encoding="utf-8")
    with pytest.raises(FileError, match=rf"pool\.json: .*({named})"):
        SelfPlayPool.load(path)
    with pytest.raises(FileError, match=rf"pool\.json: .*({named})"):
        gymnasium.make(MELEE, opponent=str(path))


def test_a_name_that_stands_twice_in_the_file_of_a_pool_is_refused(tmp_path: Path):
    text = '{"id": "' + MELEE + '", "members": [], "keywords": {}, "keywords": {"level": 1}}'
    (tmp_path / "pool.json").write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=r"pool\.json: .*'keywords' stands twice"):
        SelfPlayPool.load(tmp_path / "pool.json")


@pytest.mark.parametrize(
    "changes",
    [
        {"draw": "\x1b[2J" * 99_999},
        {"members": [{"file": "a.zip", "matches": "a" * 99_999, "points": 0}]},
        {"members": [{"file": "a.zip", "matches": -1, "points": 0}] * 9999},
        {"id": "x" * 99_999},
    ],
)
def test_words_of_a_pool_are_quoted_escaped_and_cut(tmp_path: Path, changes: dict[str, Any]):
    saved: dict[str, Any] = {"id": MELEE, "team": "blue", "members": [], "keywords": {}}
    (tmp_path / "pool.json").write_text(json.dumps({**saved, **changes}), encoding="utf-8")
    with pytest.raises(FileError, match=r"pool\.json") as refusal:
        SelfPlayPool.load(tmp_path / "pool.json")
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 1000


def test_the_file_of_a_pool_holds_the_files_of_its_keywords(tmp_path: Path):
    city = tmp_path / "city.edges"
    city.write_text("a b\nb c\n", encoding="utf-8")
    league = SelfPlayPool("palaestra/GraphPursuit-v0", graph=str(city))
    league.matches = league.points = np.zeros(0)
    league.save(tmp_path / "pool.json")
    city.unlink()
    game, _ = SelfPlayPool.load(tmp_path / "pool.json").game_and_team()
    assert int(game.world.nodes[0]) == 3
