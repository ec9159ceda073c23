"""The spaces on a page are those of the interfaces, and each index is the place of the field."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from games import body_game, depot, size_game  # noqa: F401 (they register their ids)
from gymnasium import spaces

from palaestra import pages, registry
from palaestra.pages import page_spaces

pytestmark = pytest.mark.check

OURS = [id for id in registry.ROWS if id.startswith("palaestra/") and "Ucav" not in id]
SPOKEN = "tests/Spoken-v0"
registry.register(SPOKEN, "testing.broken_games:spoken", family="test")
IDS = [*OURS, "tests/Couriers-v0", "tests/Body-v0", "tests/Relay-v0", SPOKEN]


def makeable(ids: list[str]) -> list[str]:
    return [id for id in ids if id in registry.ROWS]


@pytest.mark.parametrize("id", makeable(IDS))
def test_a_page_prints_the_spaces_of_the_interfaces(id: str):
    rows = page_spaces.space_rows(registry.make_game(id)[0])
    by_interface = {row.who: (row.observation, row.action) for row in rows}
    parallel = registry.make_parallel(id, compiled=False, mask=None)
    for team in parallel.sim.game.teams:
        env = registry.make_env(id, compiled=False, mask=None, control=team)
        own = next(spaces for who, spaces in by_interface.items() if f'control="{team}"' in _each(who, 'control="'))
        assert own == tuple(f"`{page_spaces.printed(s)}`" for s in (env.observation_space, env.action_space))
    for agent in parallel.possible_agents:
        printed = tuple(
            f"`{page_spaces.printed(s)}`" for s in (parallel.observation_space(agent), parallel.action_space(agent))
        )
        assert printed in by_interface.values()


def _each(who: str, word: str) -> str:
    """The text itself where it holds the word."""
    return who if word in who else ""


def test_a_space_is_printed_in_gymnasium_s_words():
    assert page_spaces.printed(spaces.MultiDiscrete([5, 5])) == "MultiDiscrete([5 5])"
    assert page_spaces.printed(spaces.Box(-1.0, 1.0, (4,))) == str(spaces.Box(-1.0, 1.0, (4,)))
    varied = spaces.Box(np.array([0, -1], np.float32), np.array([1, 1], np.float32))
    assert page_spaces.printed(varied) == "Box(low, 1.0, (2,), float32)"
    assert page_spaces.printed(spaces.Dict({"a": spaces.Discrete(2)})) == "Dict('a': Discrete(2))"


@pytest.mark.parametrize("id", makeable(["palaestra/TeamTag-v0", "palaestra/SpeakerListener-v0", "tests/Couriers-v0"]))
def test_an_index_is_where_the_field_stands_in_the_flat_vector_of_an_agent(id: str):
    found = {}
    for form in ("flat", "dict"):
        env = registry.make_parallel(id, compiled=False, mask=None, observation=form)
        observations, _ = env.reset(seed=3)
        env.step({agent: env.action_space(agent).sample() for agent in env.agents})
        found[form] = observations
        game = env.sim.game
    compared = 0
    for role in game.roles:
        title = f"**{role.name}**"
        table = pages.observation_tables(game)
        own: Any = table.partition(title)[2].partition("**")[0] if title in table else table
        places = {m[1]: (int(m[2]), int(m[3] or int(m[2]) + 1)) for m in re.finditer(ROW, own)}
        agent = role.agents[0]
        for name, value in found["dict"][agent].items():
            begin, end = places[name]
            np.testing.assert_array_equal(found["flat"][agent][begin:end], np.ravel(value))
            compared += 1
    assert compared >= len(game.roles)


ROW = re.compile(r"^\| `(\w+)` \| \[(\d+)(?::(\d+))?\] \|", re.MULTILINE)
