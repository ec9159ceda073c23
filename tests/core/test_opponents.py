"""Opponents: players of the teams that the caller does not play."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from games import body_game, depot, two_team, two_team_homogeneous
from games.play import all_bytes, idle_actions, long_without_the_compiler, random_actions, simulation
from games.two_team import FIGHTER, IDLER, RUNNER

from palaestra.core.compile.batch_loop import CALLER, HELD_OUT, MIX, RANDOM
from palaestra.core.contract.actions import ActionError
from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv
from palaestra.core.files import FileError
from palaestra.core.run.opponents import PREFIXES, SUFFIXES, resolve
from palaestra.games.calibration import cartpole

pytestmark = pytest.mark.jitless

RAID, MELEE = two_team.game(), two_team_homogeneous.game()
DEPOT = depot.game()
GUARDED = replace(RAID, held_out=("idler",))
"""Raid with a script that no policy learns with."""
BLUE = list(RAID.teams["blue"])


def started(opponent: Any = None, n: int = 4, game=MELEE, **options) -> Any:
    sim = simulation(game, n, opponents={"blue": opponent}, **options)
    sim.reset(seed=1)
    return sim


class Counter:
    """Thrusts by the number of decisions it remembers, and keeps what it was shown."""

    memory_size = 2

    def __init__(self, scale: float = 0.01) -> None:
        self.scale = scale
        self.calls: list[dict] = []

    def act(self, observations, legal, acting, first, seeds, memory):
        shown = {"observations": observations, "legal": legal, "acting": acting, "first": first, "seeds": seeds}
        self.calls.append({**shown, "memory": memory.copy()})
        memory[:, 0] += 1
        return np.broadcast_to((self.scale * memory[:, 0])[:, None, None], (len(memory), 5, 2))


class Paid(Counter):
    """Keeps the rewards that the simulation wrote into its memory."""

    reward_at = 1
    kept_size = 0

    def __init__(self) -> None:
        super().__init__(scale=0.1)
        self.rewards: list[np.ndarray] = []

    def act(self, observations, legal, acting, first, seeds, memory):
        self.rewards.append(memory[:, 1].copy())
        return super().act(observations, legal, acting, first, seeds, memory)


def test_a_name_is_a_script():
    assert [resolve(RAID, "blue", name) for name in ("runner", "fighter", "idler")] == [RUNNER, FIGHTER, IDLER]
    assert [resolve(RAID, "blue", spec) for spec in (None, "random", "mix")] == [CALLER, RANDOM, MIX]


@pytest.mark.parametrize(
    ("game", "spec", "error", "complaint"),
    [
        (RAID, "runer", ValueError, r"neither a script of Raid \(runner, fighter, idler, random, mix\).*mean 'runner'"),
        (RAID, "absent.safetensors", FileError, "absent.safetensors: there is no such file"),
        (cartpole.game(), "mix", ValueError, 'CartPole has no scripts to mix: use opponent="random"'),
        (cartpole.game(), "held_out", ValueError, 'CartPole has no scripts to hold out: use opponent="random"'),
        (RAID, "held_out", ValueError, r"Raid holds no scripts out: .* not learnt with \(runner, fighter, idler\)"),
        (GUARDED, "held_ot", ValueError, r"\(runner, fighter, idler, random, mix, held_out\).*mean 'held_out'"),
        (RAID, 3, TypeError, "a name, a file, a callable or an Opponent, got int"),
    ],
)
def test_what_cannot_play_is_refused(game, spec, error, complaint: str):
    with pytest.raises(error, match=complaint):
        resolve(game, "blue", spec)


def test_a_team_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="Raid has no team 'green': choose from red, blue, or one agent from red_0, "):
        simulation(RAID, 1).set_opponent("green", "random")


def test_one_agent_of_a_team_can_be_given_to_a_script():
    sim = simulation(MELEE, 3, opponents={"red_1": "chaser", "blue": "random"})
    twin = simulation(MELEE, 3, opponents={"red": "chaser", "blue": "random"})
    assert sim.open_slots("red") == (0, 2, 3, 4)
    assert sim.open_slots("blue") == ()
    for one in (sim, twin):
        one.reset(seed=1)
    idle = idle_actions(sim)
    idle[:, 1] = np.nan  # the given actions of a scripted agent are ignored
    sim.step(idle)
    twin.step()
    np.testing.assert_array_equal(sim.actions[:, 1], twin.actions[:, 1])
    assert not sim.actions[:, [0, 2, 3, 4]].any()
    sim.set_opponent("red_1", None)
    assert sim.open_slots("red") == (0, 1, 2, 3, 4)


def test_a_teammate_has_a_strength_and_lanes_of_its_own():
    sim = started(n=4)
    sim.set_opponent("red_2", "chaser:0.25", lanes=[1, 3])
    assert sim.states["strength"][:, 2].tolist() == [1, 0.25, 1, 0.25]
    assert sim.states["assigned_player"][:, :4].tolist() == [[CALLER] * 4, [CALLER, CALLER, 0, CALLER]] * 2
    assert sim.open_slots("red") == (0, 1, 2, 3, 4), "the caller plays it in some lanes"
    sim.set_opponent("red_2", "mix")
    sim.reset(seed=1)
    assert sim.states["current_player"][:, 2].tolist() == [0] * 4


def test_a_word_for_the_team_holds_for_every_agent():
    sim = started(n=1)
    sim.set_opponent("red_2", "chaser")
    sim.set_opponent("red", None)
    assert sim.open_slots("red") == (0, 1, 2, 3, 4)


def test_an_agent_leaves_the_player_of_its_team_for_a_script_and_comes_back():
    sim, player = started(n=2), Counter()
    sim.set_opponent("red", player)
    sim.set_opponent("red_0", "random")
    sim.step()
    assert (sim.actions[:, 1:5] == 0.01).all()
    assert (sim.actions[:, 0] != 0.01).all()
    sim.set_opponent("red_0", None)
    sim.step()
    assert (sim.actions[:, :5] == 0.02).all()


def test_the_faces_leave_out_agents_that_a_script_plays():
    make = lambda n: simulation(MELEE, n, autoreset_mode="off", opponents={"red_4": "chaser", "blue": "chaser"})  # noqa: E731
    assert GameEnv(make(1)).action_space.shape == (8,)
    assert GameVectorEnv(make(2)).single_action_space.shape == (8,)
    parallel = GameParallelEnv(make(1))
    assert parallel.possible_agents == ["red_0", "red_1", "red_2", "red_3"]
    assert parallel.teams == {"red": ("red_0", "red_1", "red_2", "red_3")}
    with pytest.raises(ValueError, match="all of blue is played by opponents"):
        GameEnv(make(1), control="blue")


class Diary(Counter):
    """Keeps the number of its matches."""

    memory_size = 3
    kept_size = 1

    def act(self, observations, legal, acting, first, seeds, memory):
        memory[:, 0] += first
        memory[:, 1:] += 1
        self.calls.append({"memory": memory.copy()})
        return np.zeros((len(memory), 5, 2))


def test_what_a_player_keeps_outlives_the_match_until_the_lane_is_seeded():
    diary = Diary()
    sim = started(diary, 1, parameters={"horizon": 2}, autoreset_mode="same_step")
    for _ in range(5):
        sim.step(idle_actions(sim))
    snapshot = sim.snapshot()
    sim.step(idle_actions(sim))
    seen = [call["memory"][0].tolist() for call in diary.calls]
    assert seen == [[1, 1, 1], [1, 2, 2], [2, 1, 1], [2, 2, 2], [3, 1, 1], [3, 2, 2]]
    sim.restore(snapshot)
    sim.step(idle_actions(sim))
    assert diary.calls[-1]["memory"][0].tolist() == [3, 2, 2]
    sim.reset(seed=1)
    sim.step(idle_actions(sim))
    assert diary.calls[-1]["memory"][0].tolist() == [1, 1, 1]


def test_a_game_of_one_team_without_scripts_has_no_opponents():
    with pytest.raises(ValueError, match="CartPole has one team and no scripts"):
        simulation(cartpole.game(), 1).set_opponent("cart", "random")


def test_where_an_engine_moves_the_bodies_the_only_team_can_play_at_random_without_scripts():
    rules = replace(body_game.game(), script=None, scripts=(), default_opponent="random")
    sim = simulation(rules, 32, compiled=False)
    sim.set_opponent(next(iter(rules.teams)), "random")
    sim.reset(seed=0)
    sim.step(idle_actions(sim))
    pushed = sim.team_view(next(iter(rules.teams)), "actions")
    assert abs(pushed.mean()) < 0.3 < pushed.std() / pushed.max()
    assert len(np.unique(pushed)) == pushed.size


def test_what_is_given_for_a_scripted_team_is_ignored():
    sim, twin = started("runner", game=RAID), started("runner", game=RAID)
    rng = np.random.default_rng(0)
    for _ in range(20):
        actions = random_actions(sim, rng)
        sim.step(actions)
        actions["scout"][:, 2] = 99  # blue's
        twin.step(actions)
        np.testing.assert_array_equal(all_bytes(sim), all_bytes(twin))


def test_a_script_that_says_nothing_does_nothing():
    sim, twin = started("idler", game=RAID), started(None, game=RAID)
    rng = np.random.default_rng(0)
    for _ in range(20):
        actions = random_actions(sim, rng)
        actions["scout"][:, 2] = 0
        actions["guard"]["move"][:, 1] = actions["guard"]["trigger"][:, 1] = 0
        actions["guard"]["effort"][:, 1] = 0.1
        twin.step(actions)
        actions["scout"][:, 2] = actions["guard"]["move"][:, 1] = 2
        sim.step(actions)
        np.testing.assert_array_equal(sim.states["node"], twin.states["node"])
        assert not sim.actions["scout"][:, 2].any()
        assert not sim.actions["guard"]["move"][:, 1].any()


@long_without_the_compiler
@pytest.mark.parametrize(("strength", "share"), [("1", 1.0), ("0.75", 0.75), ("0", 0.0)])
def test_a_script_of_some_strength_takes_that_share_of_its_decisions(strength: str, share: float):
    sim = started(f"idler:{strength}", 256, RAID)
    idle = 0
    for _ in range(10):
        sim.step(idle_actions(sim))
        idle += int((sim.actions["guard"]["effort"][:, 1] == 0.1).sum())  # chance never gives exactly that
    taken = idle / 1280 - 1  # blue is asked in every other decision and idles in those between
    assert taken == share if share in (0.0, 1.0) else abs(taken - share) < 0.04


@pytest.mark.parametrize(("default", "word", "number", "strength"), [
    ("runner", "default", 0, 1.0), ("fighter", "default:0.25", 1, 0.25), ("random", "default", RANDOM, 1.0),
    ("mix", "default", MIX, 1.0), ("runner", "held_out", HELD_OUT, 1.0), ("runner", "held_out:0.5", HELD_OUT, 0.5),
])  # fmt: skip
def test_default_names_the_default_opponent_of_any_game(default: str, word: str, number: int, strength: float):
    sim = started(word, 2, replace(GUARDED, default_opponent=default))
    assert set(sim.states["assigned_player"][:, BLUE].ravel()) == {number}
    assert set(sim.states["strength"][:, BLUE].ravel()) == {strength}


def test_a_script_of_the_name_default_is_meant_by_it():
    game = replace(RAID, scripts=("default", *RAID.scripts[1:]), default_opponent=RAID.scripts[1])
    assert set(started("default", 2, game).states["assigned_player"][:, BLUE].ravel()) == {0}


def push_by_strength(s, world, slot, which, actions, scratch):
    actions.point[slot].thrust[0] = s.strength[slot]


def test_a_script_that_reads_its_strength_takes_every_decision_itself():
    sim = started("chaser:0.25", 8, replace(MELEE, script=push_by_strength))
    for _ in range(4):
        sim.step(idle_actions(sim))
        assert (sim.actions[:, list(MELEE.teams["blue"]), 0] == 0.25).all()


def test_strengths_differ_by_lane_and_may_change():
    sim = started(None, 4, RAID)
    sim.set_opponent("blue", "mix:0.5", [1, 2])
    sim.set_opponent("blue", "fighter", [2])
    np.testing.assert_array_equal(sim.states["strength"][:, BLUE[0]], [1.0, 0.5, 1.0, 1.0])
    assert (sim.states["strength"][:, list(RAID.teams["red"])] == 1.0).all()


@pytest.mark.parametrize("digits", ["1.1", "-0.1", "nan", "strong", ""])
def test_a_strength_is_a_number_from_0_to_1(digits: str):
    with pytest.raises(ValueError, match=r"the strength of a script is a number in \[0, 1\]"):
        started(f"runner:{digits}", game=RAID)


def test_a_script_remembers_in_the_match():
    sim = started("runner", game=RAID, parameters={"horizon": 1000})
    turned_back = 0
    for _ in range(12):
        came_from, node = sim.states["came_from"][:, BLUE].copy(), sim.states["node"][:, BLUE].copy()
        sim.step(idle_actions(sim))
        moved = sim.states["node"][:, BLUE] != node
        turned_back += int((moved & (sim.states["node"][:, BLUE] == came_from) & (came_from != node)).sum())
    assert sim.states["came_from"][:, BLUE].max() >= 0
    assert turned_back == 0


def test_the_randomness_of_scripts_does_not_shift_the_stream_of_the_rules():
    sims = [started(o, game=RAID, parameters={"horizon": 10}) for o in (None, "idler", "runner", "random", "mix")]
    for sim in sims:
        for _ in range(9):
            sim.step(idle_actions(sim))
        np.testing.assert_array_equal(sim.states["rng"], sims[0].states["rng"])
    assert (sims[2].states["script_rng"] != sims[1].states["script_rng"]).all()


def test_mix_draws_a_script_for_each_match_and_draws_it_again_under_the_same_seed():
    sim, twin = started("mix", 64, RAID), started("mix", 64, RAID)
    first = sim.states["current_player"][:, BLUE].copy()
    assert set(first.ravel()) == {RUNNER, FIGHTER, IDLER}
    assert (first[:, 0] == first[:, 1]).all()  # one script plays the whole team
    np.testing.assert_array_equal(first, twin.states["current_player"][:, BLUE])
    sim.reset()
    assert 20 < (sim.states["current_player"][:, BLUE[0]] != first[:, 0]).sum() < 64
    assert (sim.states["current_player"][:, list(RAID.teams["red"])] == CALLER).all()


def test_mix_draws_no_script_that_is_held_out_and_held_out_draws_no_other():
    last_two = replace(RAID, held_out=("fighter", "idler"))
    drawn = {}
    for name in ("mix", "held_out"):
        sim = started(name, 64, last_two)
        numbers = [sim.states["current_player"][:, BLUE].copy()]
        sim.set_opponent("blue", name)  # of the running matches
        numbers.append(sim.states["current_player"][:, BLUE].copy())
        drawn[name] = [set(some.ravel()) for some in numbers]
    assert drawn == {"mix": [{RUNNER}] * 2, "held_out": [{FIGHTER, IDLER}] * 2}


def test_held_out_draws_by_the_stream_by_which_mix_draws():
    alike = replace(RAID, script=two_team.game().script, held_out=())
    sims = [started("mix", 32, alike), started("held_out", 32, GUARDED), started("runner", 32, GUARDED)]
    for sim in sims[1:]:
        np.testing.assert_array_equal(sim.states["script_rng"], sims[0].states["script_rng"])
    assert (sims[1].states["current_player"][:, BLUE] == IDLER).all()


def test_a_script_that_is_held_out_can_be_named():
    assert started("idler", 2, GUARDED).states["current_player"][0, BLUE[0]] == IDLER


def test_mix_plays_the_running_match_too():
    sim = started("idler", 64, RAID)
    rules = sim.states["rng"].copy()
    sim.set_opponent("blue", "mix")
    assert set(sim.states["current_player"][:, BLUE[0]]) == {RUNNER, FIGHTER, IDLER}
    np.testing.assert_array_equal(sim.states["rng"], rules)


def test_a_callable_plays_on_batched_observations():
    seen = []

    def retreat(observations: np.ndarray) -> np.ndarray:
        seen.append(observations.copy())
        return np.full((len(observations), 5, 2), -1.0)

    sim = started(retreat)
    before = sim.observations[:, 5:].copy()
    sim.step(idle_actions(sim))
    np.testing.assert_array_equal(seen[0], before)
    assert (sim.actions[:, 5:] == -1).all()
    assert (sim.actions[:, :5] == 0).all()


def test_a_team_of_several_roles_is_played_by_role():
    class Watcher:
        memory_size = 0

        def act(self, observations, legal, acting, first, seeds, memory):
            assert observations["scout"].shape == (2, 1, 5)
            assert observations["guard"].shape == (2, 1)
            assert legal["scout"].shape == (2, 1, 4)
            assert legal["guard"].shape == (2, 1, 6)
            assert acting.shape == (2, 2)
            guard = {"move": np.ones((2, 1), int), "trigger": np.zeros((2, 1), int), "effort": np.full((2, 1), 0.5)}
            return {"scout": np.ones((2, 1), int), "guard": guard}

    sim = started(Watcher(), n=2, game=RAID)
    sim.step(idle_actions(sim))
    before = sim.states["node"].copy()
    sim.step(idle_actions(sim))
    assert (sim.states["node"] != before).tolist() == [[False, False, True, False, True]] * 2


def test_a_player_sees_team_and_lane_fields():
    shown = []

    def act(observations):
        shown.append(observations)
        n = len(observations["scout"])
        guard = {"move": np.zeros((n, 1), int), "trigger": np.zeros((n, 1), int), "effort": np.full((n, 1), 0.1)}
        return {"scout": np.zeros((n, 1), int), "guard": guard}

    sim: Any = simulation(RAID, 3)
    sim.set_opponent("blue", act, lanes=[0, 2])
    sim.reset(seed=1)
    sim.states["info"]["goals"] = [(0, 1), (0, 2), (1, 0)]
    sim.refresh()
    sim.step(idle_actions(sim))
    assert shown[0].keys() == {"scout", "guard", "team", "lane"}
    assert shown[0]["team"].keys() == {"goals"}
    assert shown[0]["team"]["goals"].tolist() == [1, 0]  # blue's, in the lanes that it plays
    assert shown[0]["lane"]["phase"].tolist() == [two_team.RED] * 2
    assert shown[0]["lane"]["time_left"].tolist() == [1.0, 1.0]
    sim.step(idle_actions(sim))
    assert shown[1]["lane"]["phase"].tolist() == [two_team.BLUE] * 2


def test_a_player_sees_arrays_of_the_world_and_lists_of_candidates():
    calls = []

    class Driver:
        memory_size = 0

        def act(self, observations, legal, acting, first, seeds, memory):
            calls.append((observations, legal))
            return legal["order"]["ids"][:, :, 1]  # on to the next place

    sim: Any = simulation(DEPOT, 2, opponents={"blue": Driver()})
    sim.reset(seed=1)
    sim.step(np.zeros((2, 4), int))
    observations, legal = calls[0]
    np.testing.assert_array_equal(observations["lane"]["hops"], [DEPOT.world.hops] * 2)
    assert observations["driver"].shape == (2, 2, 9)
    assert legal["order"]["ids"].tolist() == [[[0, 4, 2, -1], [0, -1, -1, -1]]] * 2  # the last driver is not there yet
    assert sim.states["here"][:, :4].tolist() == [[0, 1, 3, 3]] * 2


def test_an_opponent_learns_of_new_matches_and_remembers_within_one():
    counter = Counter()
    sim = started(counter, parameters={"horizon": 3})
    for _ in range(8):
        sim.step(idle_actions(sim))
    # three decisions, one call that starts the next match and asks no opponent, three decisions, one such call
    assert [c["memory"][:, 0].tolist() for c in counter.calls] == [[0.0] * 4, [1.0] * 4, [2.0] * 4] * 2
    assert [c["first"].tolist() for c in counter.calls] == [[True] * 4, [False] * 4, [False] * 4] * 2
    assert counter.calls[0]["acting"].all()
    assert counter.calls[0]["legal"] is None
    np.testing.assert_array_equal(counter.calls[0]["seeds"], [1, 2, 3, 4])


def test_an_opponent_is_asked_only_for_lanes_that_play():
    counter = Counter()
    sim = started(counter, autoreset_mode="off", parameters={"horizon": [1, 2, 3, 4]})
    for _ in range(4):
        sim.step(idle_actions(sim))
    assert [c["seeds"].tolist() for c in counter.calls] == [[1, 2, 3, 4], [2, 3, 4], [3, 4], [4]]


def test_lanes_may_have_different_opponents():
    sim, plus, minus = started(), Counter(0.5), Counter(-0.5)
    sim.set_opponent("blue", plus, lanes=np.array([True, False, False, False]))
    sim.set_opponent("blue", minus, lanes=[1])
    sim.set_opponent("blue", "chaser", lanes=[2])
    given = idle_actions(sim)
    given[3, 5:] = 0.25
    sim.step(given)
    assert sim.actions[[0, 1, 3], 5, 0].tolist() == [0.5, -0.5, 0.25]
    scripted = started("chaser")
    scripted.step(idle_actions(scripted))
    np.testing.assert_array_equal(sim.actions[2], scripted.actions[2])


def test_an_opponent_may_be_replaced_while_a_match_runs():
    sim, counter = started("chaser"), Counter()
    sim.step(idle_actions(sim))
    sim.set_opponent("blue", counter)
    sim.step(idle_actions(sim))
    assert counter.calls[0]["first"].tolist() == [False] * 4
    assert (sim.actions[:, 5:] == 0.01).all()
    sim.set_opponent("blue", None)
    sim.step(idle_actions(sim))
    assert not sim.actions[:, 5:].any()
    assert len(counter.calls) == 1


def test_both_teams_may_have_opponents():
    sim: Any = simulation(MELEE, 2, opponents={"red": Counter(0.1), "blue": Counter(-0.1)})
    sim.reset(seed=1)
    sim.step()
    assert (sim.actions[:, :5] == 0.1).all()
    assert (sim.actions[:, 5:] == -0.1).all()


def test_memory_is_part_of_a_snapshot():
    sim = started(Counter())
    sim.step(idle_actions(sim))
    snapshot = sim.snapshot()
    after = []
    for _ in range(2):
        sim.restore(snapshot)
        for _ in range(5):
            sim.step(idle_actions(sim))
        after.append(all_bytes(sim))
    np.testing.assert_array_equal(*after)
    assert (sim.actions[:, 5:] == 0.06).all()


def test_a_refused_decision_is_not_remembered():
    counter = Counter()
    sim = started(counter)
    actions = idle_actions(sim)
    actions[0, 0, 0] = np.nan
    with pytest.raises(ActionError, match="red_0"):
        sim.step(actions)
    sim.step(idle_actions(sim))
    assert [c["memory"][0, 0] for c in counter.calls] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (np.full((4, 5, 2), np.inf), r"lane 0, blue_0: thrust\[0\] = inf is not in \[-1, 1\]"),
        (np.zeros((4, 10, 2)), r"shape \[n, 5, 2\] or \[n, 10\] with n = 4, got \(4, 10, 2\)"),
    ],
)
def test_a_wrong_answer_of_an_opponent_is_refused_like_any_other(answer: np.ndarray, complaint: str):
    sim = started(lambda observations: answer)
    before = all_bytes(sim)
    with pytest.raises(ActionError, match=complaint):
        sim.step(idle_actions(sim))
    np.testing.assert_array_equal(all_bytes(sim), before)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes there")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_pipe_in_the_place_of_a_policy_is_refused_at_once(suffix: str, tmp_path: Path):
    path = tmp_path / f"pipe{suffix}"
    os.mkfifo(path)
    with pytest.raises(FileError, match=rf"pipe{suffix}: .*no regular file"):
        resolve(MELEE, "blue", path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_vast_file_in_the_place_of_a_policy_is_refused_unread(suffix: str, tmp_path: Path):
    path = tmp_path / f"vast{suffix}"
    with path.open("wb") as file:
        file.write(b"\x0f" + bytes(7) + b'{"__metadata__":')
        file.truncate(20 * 2**30)  # sparse: it takes no room on the disk
    with pytest.raises(FileError, match=rf"vast{suffix}: .*larger than \d+ bytes"):
        resolve(MELEE, "blue", path)


def test_a_method_that_a_file_names_is_quoted(tmp_path: Path):
    header = b'{"__metadata__": {"method": "\\u001b[2J' + b"x" * 9000 + b'"}}'
    path = tmp_path / "mine.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(FileError, match=r"the method '\\x1b\[2Jx{56}'\.\.\. \(9004 characters\)"):
        resolve(MELEE, "blue", path)


def test_a_player_that_asks_for_it_remembers_the_reward_of_its_team_after_each_decision():
    player = Paid()
    sim, paid = started(player, autoreset_mode="same_step"), [np.zeros(4)]
    sim.set_opponent("red", "chaser")
    for _ in range(12):
        sim.step()
        paid.append(sim.team_rewards("blue").copy())
    before = sim.snapshot()
    np.testing.assert_array_equal(player.rewards, paid[:-1])
    assert np.unique(paid).size > 2
    sim.step()
    sim.restore(before)
    sim.step()
    np.testing.assert_array_equal(player.rewards[-1], paid[-1])


@pytest.mark.parametrize(("kept", "is_there"), [(2, True), (0, False)])
def test_a_reward_outlives_its_match_with_what_the_player_keeps(kept: int, is_there: bool):
    player = Paid()
    player.kept_size = kept
    sim = started(player, autoreset_mode="same_step")
    sim.states["hit_points"][:, :5], sim.states["alive"][:, 1:5], sim.states["position"][:] = (0.01, 0, 0, 0, 0), 0, 0
    sim.step(idle_actions(sim))
    last = sim.team_rewards("blue").copy()
    assert sim.terminated.all()
    sim.step(idle_actions(sim))
    np.testing.assert_array_equal(player.rewards[-1], last * is_there)
    assert (last != 0).all()


class Named:
    """What a text becomes, and then the player of a team."""

    def __init__(self, text: str) -> None:
        self.text = text

    def for_team(self, game: Any, team: str) -> Counter:
        player = Counter()
        player.calls.append({"text": self.text, "team": team})
        return player


def test_a_text_that_begins_as_a_prefix_becomes_a_player_of_its_function(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(PREFIXES, "mine:", f"{__name__}:Named")
    player = resolve(MELEE, "blue", "mine:http://a/b.zip#c")
    assert isinstance(player, Counter)
    assert player.calls == [{"text": "mine:http://a/b.zip#c", "team": "blue"}]
    with pytest.raises(ValueError, match="'mine' is neither a script"):
        resolve(MELEE, "blue", "mine")
