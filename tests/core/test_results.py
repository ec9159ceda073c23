"""Results of `step` and `evaluate`: a match continues, is terminated or truncated; and how that is reported."""

from typing import Any

import numpy as np
import pytest
from games import body_game, orchard, two_team
from games.orchard import CUT, NONE, RULE, started
from games.play import idle_actions, random_actions, seen_bytes, simulation

from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv
from palaestra.game import TERMINATED, TRUNCATED

pytestmark = pytest.mark.jitless

GAME = orchard.game()
REASONS = {NONE: "horizon", RULE: "sold", CUT: "spoilt"}


def ended(ending: float, ends_at: int = 1, **options: Any) -> Any:
    sim = started(2, autoreset_mode="off", parameters={"ending": ending, "ends_at": ends_at}, **options)
    for _ in range(ends_at):
        assert not (sim.terminated | sim.truncated).any()
        sim.step(idle_actions(sim))
    return sim


def test_a_rule_ends_a_match_by_a_bool_or_by_terminated():
    assert (TERMINATED, TRUNCATED) == (1, 2)
    sim = ended(RULE, 2)  # orchard.step returns True there, and integers elsewhere
    assert (sim.terminated.tolist(), sim.truncated.tolist()) == ([True] * 2, [False] * 2)
    assert sim.info["winner"].tolist() == [1, 1]


def test_a_rule_cuts_a_match_off_by_truncated():
    sim = ended(CUT, 2)
    assert (sim.terminated.tolist(), sim.truncated.tolist()) == ([False] * 2, [True] * 2)
    assert sim.info["winner"].tolist() == [-1, -1]


def test_a_result_of_zero_continues_the_match():
    sim = ended(NONE, 3)
    assert not (sim.terminated | sim.truncated).any()
    assert sim.info["end_reason"].tolist() == [0, 0]


def test_reasons_of_rules_come_after_the_horizon_and_those_of_cuts_after_them():
    assert [GAME.end_reason(n) for n in range(4)] == ["", "horizon", "sold", "spoilt"]
    other = orchard.game(end_reasons=("sold", "eaten"), truncation_reasons=("spoilt", "rained"))
    assert [other.end_reason(n) for n in (1, 3, 4, 5)] == ["horizon", "eaten", "spoilt", "rained"]


@pytest.mark.parametrize(("ending", "number"), [(NONE, 1), (RULE, 2), (CUT, 3)])
def test_the_number_of_the_reason_stands_in_the_info(ending: float, number: int):
    sim = ended(ending, 2 if ending != NONE else 20)
    assert sim.info["end_reason"].tolist() == [number] * 2
    assert GAME.end_reason(sim.info["end_reason"][0]) == REASONS[ending]


@pytest.mark.parametrize("ending", [RULE, CUT])
def test_a_rule_wins_over_the_horizon_in_the_same_decision(ending: float):
    sim = started(2, autoreset_mode="off", parameters={"ending": ending, "ends_at": 3, "horizon": [3, 5]})
    for _ in range(3):
        sim.step(idle_actions(sim))
    assert sim.terminated.tolist() == [ending == RULE] * 2
    assert sim.truncated.tolist() == [ending == CUT] * 2
    assert sim.info["end_reason"].tolist() == [orchard.SOLD if ending == RULE else orchard.SPOILT] * 2


def test_a_match_that_was_cut_off_waits_where_nothing_starts_anew():
    sim = ended(CUT)
    before = sim.states.copy()
    sim.step(idle_actions(sim))
    assert sim.truncated.all()
    np.testing.assert_array_equal(sim.states, before)


def test_a_match_that_was_cut_off_starts_anew_in_the_next_call():
    sim = started(3, parameters={"ending": [CUT, RULE, NONE], "ends_at": 2})
    steps, cut, over = [], [], []
    for _ in range(4):
        sim.step(idle_actions(sim))
        steps.append(sim.states["steps"].tolist())
        cut.append(sim.truncated.tolist())
        over.append(sim.terminated.tolist())
    assert steps == [[1, 1, 1], [2, 2, 2], [0, 0, 3], [1, 1, 4]]
    assert cut == [[False] * 3, [True, False, False], [False] * 3, [False] * 3]
    assert over == [[False] * 3, [False, True, False], [False] * 3, [False] * 3]


def test_a_truncated_match_starts_anew_at_once_and_reports_its_end_reason():
    sim = started(3, autoreset_mode="same_step", parameters={"ending": [CUT, RULE, NONE], "ends_at": 2})
    for _ in range(2):
        sim.step(idle_actions(sim))
    assert sim.states["steps"].tolist() == [0, 0, 2]
    assert (sim.truncated.tolist(), sim.terminated.tolist()) == ([True, False, False], [False, True, False])
    assert sim.final_info["end_reason"][:2].tolist() == [orchard.SPOILT, orchard.SOLD]
    assert sim.info["end_reason"].tolist() == [0, 0, 0]


@pytest.mark.check
@pytest.mark.parametrize("mode", ["next_step", "same_step", "off"])
def test_threads_see_the_same_ends(mode: Any):
    options = {"autoreset_mode": mode, "parameters": {"ending": [CUT, RULE, NONE], "ends_at": [3, 2, 4]}}
    sim, twin, rng = started(3, threads=2, **options), started(3, **options), np.random.default_rng(0)
    for _ in range(8):
        actions = random_actions(sim, rng)
        sim.step(actions)
        twin.step(actions)
        np.testing.assert_array_equal(seen_bytes(sim), seen_bytes(twin))
    sim.close()


@pytest.mark.parametrize("ending", REASONS)
def test_the_faces_name_the_reason(ending: float):
    parameters = {"ending": ending, "ends_at": 2, "horizon": 2 if ending == NONE else 20}
    many = GameParallelEnv(simulation(GAME, 1, autoreset_mode="off", parameters=parameters), observation="dict")
    one = simulation(GAME, 1, autoreset_mode="off", parameters=parameters, opponents={"blue": "one"})
    single = GameEnv(one, observation="dict")
    batch = simulation(GAME, 2, parameters=parameters, opponents={"blue": "one"})
    vector = GameVectorEnv(batch, observation="dict")
    for face in (many, single, vector):
        face.reset(seed=1)
    act = lambda: (  # noqa: E731
        many.step({agent: many.action_space(agent).sample() for agent in many.agents}),
        single.step(single.action_space.sample()),
        vector.step(vector.action_space.sample()),
    )
    running = act()
    assert [running[0][4]["red_0"]["end_reason"], running[1][4]["end_reason"], *running[2][4]["end_reason"]] == [0] * 4
    (_, _, ends, cuts, infos), (_, _, over, cut, info), (_, _, overs, cut_ones, printed) = act()
    assert many.end_reasons[infos["red_0"]["end_reason"]] == single.end_reasons[info["end_reason"]] == REASONS[ending]
    assert [GAME.end_reason(n) for n in printed["end_reason"]] == [REASONS[ending]] * 2
    assert (over, cut) == (ending == RULE, ending != RULE)
    assert (overs.tolist(), cut_ones.tolist()) == ([over] * 2, [cut] * 2)
    assert (set(ends.values()), set(cuts.values())) == ({over}, {cut})


def assert_ends_are_told(sim: Any) -> np.ndarray:
    """Winner and reason stand in arrays of their own where a match ended, and nothing elsewhere. Returns where."""
    over = sim.terminated | sim.truncated
    source = sim.final_info if sim.autoreset_mode == "same_step" else sim.info
    np.testing.assert_array_equal(sim.buffers.winners, np.where(over, source["winner"], -1))
    np.testing.assert_array_equal(sim.buffers.end_reasons, np.where(over, source["end_reason"], 0))
    return over


@pytest.mark.parametrize("mode", ["next_step", "same_step", "off"])
@pytest.mark.parametrize("make", [two_team.game, body_game.game], ids=["kernel", "engine"])
def test_winner_and_reason_of_the_matches_that_ended_stand_side_by_side(make: Any, mode: Any):
    game = make()
    team, horizon = list(game.teams)[-1], {"horizon": 20}
    sim = simulation(game, 4, autoreset_mode=mode, opponents={team: game.scripts[0]}, parameters=horizon)
    sim.reset(seed=5)
    rng, ends = np.random.default_rng(5), 0
    for _ in range(60):
        assert_ends_are_told(sim)
        sim.step(random_actions(sim, rng))
        over = assert_ends_are_told(sim)
        ends += over.sum()
        if mode == "off" and over.sum() > 1:
            sim.reset(over & (np.arange(4) > 0))
    assert ends > 4
    sim.restore(sim.snapshot())
    assert not assert_ends_are_told(sim).any()
    sim.close()
