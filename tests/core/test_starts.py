"""Options of reset: parameters of the start of a match, for the matches that the reset starts alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from games import two_team
from games.play import simulation

from palaestra.core.contract.fields import table_rows
from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv
from palaestra.game import Parameter

pytestmark = pytest.mark.jitless

PLAIN = two_team.game()
WEATHER = Parameter("weather", 0, about="at the start", at_start=True, words=("sun", "rain", "snow"))
GAME = replace(PLAIN, parameters=(*PLAIN.parameters, WEATHER))


def sim_of(n: int, **options: Any) -> Any:
    return simulation(GAME, n, **options)


def weather(face: Any) -> list[float]:
    return face.sim.parameters["weather"].tolist()


def single() -> Any:
    sim = sim_of(1)
    sim.set_opponent("blue", "random")
    return GameEnv(sim, observation="dict")


def vector(n: int = 3) -> Any:
    sim = sim_of(n)
    sim.set_opponent("blue", "random")
    return GameVectorEnv(sim, observation="dict")


def test_a_word_stands_for_its_number_and_pages_explain_the_numbers():
    assert weather_of(parameters={"weather": "rain"}) == [1.0] * 3
    assert weather_of(parameters={"weather": ["snow", "sun", "rain"]}) == [2.0, 0.0, 1.0]
    assert weather_of(parameters={"weather": 2}) == [2.0] * 3
    row = table_rows([WEATHER])[0]
    assert "0 sun, 1 rain, 2 snow" in row["about"]


def weather_of(**options: Any) -> list[float]:
    return sim_of(3, **options).parameters["weather"].tolist()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("rian", "weather must be one of 'sun', 'rain', 'snow', got 'rian', did you mean 'rain'"),
        (["sun", "fog", "sun"], "weather must be one of"),
        (3, r"weather must be in \[0, 2\]"),
        (0.5, "weather must be a whole number"),
    ],
)
def test_another_word_or_number_is_refused_by_name(value: Any, message: str):
    with pytest.raises(ValueError, match=message):
        weather_of(parameters={"weather": value})


@pytest.mark.parametrize("face", [single, lambda: GameParallelEnv(sim_of(1), observation="dict")])
def test_an_option_of_reset_holds_for_the_match_that_it_starts_alone(face: Any):
    env = face()
    env.reset(seed=1, options={"weather": "snow"})
    assert weather(env) == [2.0]
    env.reset()
    assert weather(env) == [0.0]
    env.sim.set_parameters(weather="rain")
    env.reset(options={"weather": 2})
    env.reset()
    assert weather(env) == [1.0]


def test_lanes_get_values_of_their_own_and_a_mask_chooses_lanes():
    vec = vector()
    vec.reset(seed=1, options={"weather": ["sun", "rain", "snow"]})
    assert weather(vec) == [0.0, 1.0, 2.0]
    vec.reset(options={"reset_mask": np.array([True, False, True]), "weather": [1, 0, 2]})
    assert weather(vec) == [1.0, 1.0, 2.0]
    vec.reset(options={"reset_mask": np.array([False, False, True]), "weather": "sun"})
    assert weather(vec) == [1.0, 1.0, 0.0]
    vec.reset()
    assert weather(vec) == [0.0] * 3


def test_a_refused_option_starts_no_match_and_moves_no_stream():
    vec = vector()
    vec.reset(seed=1)
    before = vec.sim.states.tobytes()
    for options in ({"weather": "fog"}, {"weather": [0, 1]}, {"wether": 1}):
        with pytest.raises(ValueError, match=r"weather|wether"):
            vec.reset(seed=[4, None, 5], options=options)
        assert vec.sim.states.tobytes() == before
