"""Decisions of both games against a second account of the rules, written from the pages alone, by names and words."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from grid.grids import cells, fight, hunt, place, words_of

pytestmark = pytest.mark.jitless
SIZE = 20
STEPS = {"ahead": (0, 1), "back": (0, -1), "up": (-1, 0), "down": (1, 0)}
BATTLE = {"damage": 45, "recovery": 4, "step_reward": -0.5, "hit_reward": 0.25, "kill_reward": 6, "death_reward": -2}
PURSUIT = {"hit_reward": -0.25, "catch_reward": 2, "caught_reward": -3}

# --------------------------------------------------------------------------------------------- the rules, a second time


def team_of(agent: str) -> str:
    return agent.partition("_")[0]


def cell_of(agent: str, at: dict, words: str) -> tuple[int, int]:
    """The cell that "move 2 up" or "hit ahead and down" means."""
    row, column = at[agent]
    far = 2 if "2" in words else 1
    for name in set(words.split()) & set(STEPS):
        row += far * STEPS[name][0]
        column += far * STEPS[name][1] * (-1 if team_of(agent) == "blue" else 1)
    return row, column


def may(agent: str, at: dict, words: str) -> bool:
    """Whether the mask offers an alternative."""
    cell, by_cell = cell_of(agent, at, words), {cell: other for other, cell in at.items()}
    if words.startswith("hit"):
        return team_of(by_cell.get(cell, agent)) != team_of(agent)
    return words == "stay" or (cell not in by_cell and min(cell) >= 0 and max(cell) < SIZE)


def victims_of(at: dict, acts: dict) -> dict[str, str]:
    """Whom each agent hits."""
    by_cell = {cell: agent for agent, cell in at.items()}
    return {a: by_cell[cell_of(a, at, act)] for a, act in acts.items() if act.startswith("hit")}


def battle(at: dict, points: dict, acts: dict, names: list[str], sparse: bool) -> tuple[dict, dict, set, Any]:
    """Hit points and pay after a decision, who leaves, and who has won, None where the match goes on."""
    p, victims = BATTLE, victims_of(at, acts)
    hits = Counter(victims.values())
    dead = {a for a in at if points[a] <= hits[a] * p["damage"]}
    left = {a: min(100, points[a] - hits[a] * p["damage"] + p["recovery"]) for a in at if a not in dead}
    teams = {team_of(a) for a in left}
    winner = None if len(teams) == 2 else [*teams, "nobody"][0]
    pay = dict.fromkeys(names, 0.0)
    for a in names:
        if sparse and winner in ("red", "blue"):
            pay[a] = 1 if team_of(a) == winner else -1
        elif not sparse and a in at:
            pay[a] = p["step_reward"] + p["death_reward"] * (a in dead) + p["hit_reward"] * (a in victims)
            if victims.get(a) in dead:
                pay[a] += p["kill_reward"] / hits[victims[a]]
    return left, pay, dead, winner


def pursuit(
    at: dict, points: dict, acts: dict, names: list[str], sparse: bool, need: int, returns: bool = False
) -> Any:
    """The same of the other game; those who leave are the caught."""
    p, victims = PURSUIT, victims_of(at, acts)
    caught = {a for a, n in Counter(victims.values()).items() if n >= need}
    over = not returns and not any(team_of(a) == "prey" for a in set(at) - caught)
    if sparse:
        pay = {a: len(caught) * (1 if team_of(a) == "predator" else -1) for a in names}
    else:
        pay = {a: p["hit_reward"] * (a in victims) + p["caught_reward"] * (a in caught) for a in names}
        pay = {a: pay[a] + p["catch_reward"] * (victims.get(a) in caught) for a in names}
    return points, pay, caught, "predator" if over else None


def assert_moved(at: dict, after: dict, acts: dict, ties: str) -> int:
    """Who wants a cell alone gets it, of several one or none, the others stay. Returns how many cells several want."""
    wanted: dict[Any, list[str]] = {}
    for a in after:
        if acts[a].startswith("move"):
            wanted.setdefault(cell_of(a, at, acts[a]), []).append(a)
    for cell, those in wanted.items():
        assert sum(after[a] == cell for a in those) == (0 if len(those) > 1 and ties == "nobody" else 1)
        assert all(after[a] in (cell, at[a]) for a in those)
    assert all(after[a] == at[a] for a in after if not acts[a].startswith("move"))
    return sum(len(those) > 1 for those in wanted.values())


# ---------------------------------------------------------------------------------------------------------- comparisons


def choose(sim: Any, at: dict, rng: np.random.Generator) -> dict[str, str]:
    """A legal alternative for each agent, hits more often than moves, written into the simulation; checks the masks."""
    acts = {}
    for slot, agent in enumerate(sim.game.agents):
        role, index = sim.game.role_of(slot)
        legal, actions = (x[role.name] if isinstance(x, dict) else x for x in (sim.legal, sim.actions))
        words = words_of(role)
        if agent in at:
            offered = [w for w in words if may(agent, at, w)]
            assert offered == [w for w, allowed in zip(words, legal[0, index], strict=True) if allowed]
            hits = [w for w in offered if w.startswith("hit")]
            acts[agent] = str(rng.choice(hits if hits and rng.random() < 0.5 else offered))
            actions[0, index] = words.index(acts[agent])
    return acts


def places(sim: Any) -> dict[str, Any]:
    return {a: cell for a, cell in zip(sim.game.agents, cells(sim), strict=True) if cell is not None}


GAMES = {"battle": {}, "alone": {"need": 1}, "together": {"need": 2}, "returns": {"need": 2, "returns": True}}


@pytest.mark.check
@pytest.mark.parametrize("reward", ["magent", "sparse"])
@pytest.mark.parametrize("ties", ["lots", "nobody"])
@pytest.mark.parametrize("name", GAMES)
def test_a_decision_is_that_of_the_page(name: str, ties: str, reward: str):
    make, parameters = (fight, BATTLE) if name == "battle" else (hunt, PURSUIT)
    sim = make(10, 4, ties=ties, reward=reward, parameters=parameters, map_size=SIZE, **GAMES[name])
    rng, names, seen = np.random.default_rng(3), list(sim.game.agents), Counter()
    for number in range(7):
        sim.reset(seed=number)
        corner = rng.integers(0, SIZE - 4, 2)  # crowded, here and there at the walls
        crowd = corner + np.stack(np.unravel_index(rng.choice(25, 14, replace=False), (5, 5)), axis=1)
        place(sim, *map(tuple, crowd.tolist()), hit_points=rng.integers(1, 101, 14) if name == "battle" else None)
        for _ in range(6):
            at, points = places(sim), dict(zip(names, sim.states["hit_points"][0].tolist(), strict=False))
            acts = choose(sim, at, rng)
            rules = battle if name == "battle" else pursuit
            left, pay, leave, winner = rules(at, points, acts, names, reward == "sparse", **GAMES[name])
            sim.step()
            after = places(sim)
            stayed = set(after) - leave if name == "returns" else set(after)
            assert stayed == set(at) - leave
            assert len(set(after.values())) == len(after)
            seen["wanted by several"] += assert_moved(at, {a: after[a] for a in names if a in stayed}, acts, ties)
            now = dict(zip(names, sim.states["hit_points"][0].tolist(), strict=False))
            assert {a: now[a] for a in stayed} == {a: left[a] for a in stayed}
            np.testing.assert_allclose(sim.rewards[0], [pay[a] for a in names], rtol=1e-6)
            seen["left"] += len(leave)
            assert bool(sim.terminated[0]) == (winner is not None)
            if winner is not None:
                assert [*sim.game.teams, "nobody"][sim.info["winner"][0]] == winner
                seen["ends"] += 1
                break
    assert seen["wanted by several"] > 3
    assert seen["left"] > 5
    assert name in ("together", "returns") or seen["ends"] > 0
