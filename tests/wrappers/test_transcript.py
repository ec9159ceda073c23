"""Text environments, observed as one text or as chat messages."""

from __future__ import annotations

import json
import pickle
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
import pytest
from games.play import by_tier
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from testing import broken_games

import palaestra
from palaestra import registry
from palaestra.game import Game, Option, TextSpace, with_options
from palaestra.wrappers import Messages, Transcript
from palaestra.wrappers.transcript import text_env, text_ids

pytestmark = pytest.mark.check

ECHO, SPOKEN, WORDY = "text/Echo-v0", "text/Spoken-v0", "text/Wordy-v0"
palaestra.register(SPOKEN, "testing.broken_games:spoken", family="test")


class Echo(gymnasium.Env):
    """Asks for a number, repeats what is said and ends with it, without a word, or after ``turns``."""

    def __init__(self, turns: int = 100, form: str = "text") -> None:
        self.observation_space = TextSpace(40, min_length=0, charset=None)
        self.action_space: Any = (
            TextSpace(20, min_length=0, charset=None) if form == "text" else gymnasium.spaces.Discrete(2)
        )
        self.turns = turns

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.number = str((options or {}).get("number", self.np_random.integers(1000)))
        self.said = 0
        return f"Say {self.number}.", {"number": self.number}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.said += 1
        is_right = action == self.number
        return (
            "" if is_right else f"[{action}?]",
            float(is_right),
            is_right,
            self.said == self.turns,
            {"said": self.said},
        )


gymnasium.register(ECHO, lambda **given: Echo(**given))


def test_a_transcript_is_all_that_was_said():
    env = Transcript(Echo())
    assert env.reset(options={"number": 12}) == ("Say 12.", {"number": "12"})
    assert env.step("é") == ("Say 12.é[é?]", 0.0, False, False, {"said": 1})
    assert env.step("") == ("Say 12.é[é?][?]", 0.0, False, False, {"said": 2})
    assert env.step("12") == ("Say 12.é[é?][?]12", 1.0, True, False, {"said": 3})
    assert env.reset(options={"number": 3})[0] == "Say 3."


def test_messages_are_those_of_a_chat():
    env = Messages(Echo(), system="Be brief.")
    first = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say 12."})
    assert env.reset(options={"number": 12}) == (first, {"number": "12"})
    seen, *rest = env.step("1")
    second = (*first, {"role": "assistant", "content": "1"}, {"role": "user", "content": "[1?]"})
    assert (seen, rest) == (second, [0.0, False, False, {"said": 1}])
    assert env.step("12")[0] == (*second, {"role": "assistant", "content": "12"})
    assert env.reset(options={"number": 12})[0] == first
    assert Messages(Echo()).reset(options={"number": 12})[0] == first[1:]


def test_an_empty_answer_to_any_but_the_last_action_is_a_message_so_that_roles_alternate():
    env = Messages(gymnasium.wrappers.TransformObservation(Echo(turns=2), lambda text: "", None))
    env.reset()
    assert [message["role"] for message in env.step("1")[0]] == ["user", "assistant", "user"]
    assert [message["role"] for message in env.step("1")[0]] == ["user", "assistant", "user", "assistant"]


def test_a_long_system_message_is_in_the_space():
    env = Messages(Echo(), system="Be brief. " * 50)
    assert env.observation_space.contains(env.reset()[0])


def test_a_last_answer_that_is_not_empty_is_a_message():
    env = Messages(Echo(turns=1))
    env.reset()
    assert env.step("no")[0][-1] == {"role": "user", "content": "[no?]"}


def test_whoever_changes_messages_changes_no_later_ones():
    env = Messages(Echo())
    env.reset(options={"number": 1})[0][0]["content"] = "changed"
    assert env.step("2")[0][0]["content"] == "Say 1."


@pytest.mark.parametrize("wrapper", [Transcript, Messages])
@pytest.mark.parametrize("id", [ECHO, SPOKEN])
def test_observations_are_in_their_space_and_seeds_arrive(wrapper: Any, id: str):
    env, twin = (wrapper(gymnasium.make(id, disable_env_checker=True)) for _ in range(2))
    assert env.action_space == env.unwrapped.action_space
    env.action_space.seed(0)
    observation, info = env.reset(seed=5)
    assert twin.reset(seed=5)[0] == observation
    is_over, turns = False, 0
    while not is_over and turns < 30:
        assert env.observation_space.contains(observation)
        action = env.action_space.sample()
        observation, reward, terminated, truncated, info = env.step(action)
        assert twin.step(action)[:4] == (observation, reward, terminated, truncated)
        is_over, turns = terminated or truncated, turns + 1
    assert env.observation_space.contains(observation)
    json.dumps([observation, palaestra.jsonable(info)])
    assert env.observation_space.contains(env.observation_space.sample())


@pytest.mark.parametrize("wrapper", [Transcript, Messages])
@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version:UserWarning")
def test_gymnasiums_checker_has_no_complaint(wrapper: Any):
    check_env(wrapper(Echo()), skip_render_check=True)


@pytest.mark.parametrize("wrapped", [Transcript(Echo(), max_length=999), Messages(Echo(), system="Be brief.")])
def test_copies_go_on_alone(wrapped: Any):
    wrapped.reset(options={"number": 12})
    for copied in (deepcopy(wrapped), pickle.loads(pickle.dumps(wrapped))):
        assert copied.observation_space == wrapped.observation_space
        seen = copied.step("1")[0]
        assert seen == deepcopy(wrapped).step("1")[0] != wrapped.step("2")[0]
        wrapped.reset(options={"number": 12})


def spec_of(env: gymnasium.Env) -> EnvSpec:
    assert env.spec is not None
    return env.spec


def test_a_spec_makes_the_same_wrappers():
    env = Messages(gymnasium.make(ECHO), system="Be brief.")
    assert gymnasium.make(spec_of(env)).reset(seed=1)[0] == env.reset(seed=1)[0]
    env = Transcript(gymnasium.make(ECHO), max_length=77)
    assert gymnasium.make(spec_of(env)).observation_space == env.observation_space


def test_the_horizon_bounds_a_transcript():
    assert Transcript(Echo()).observation_space.max_length == 1_000_000  # pyright: ignore[reportAttributeAccessIssue]
    env = Transcript(gymnasium.make(ECHO, max_episode_steps=3))
    assert env.observation_space.max_length == 40 + 3 * (40 + 20)  # pyright: ignore[reportAttributeAccessIssue]


def test_a_text_beyond_the_space_is_refused():
    env = Transcript(Echo(), max_length=11)
    env.reset(options={"number": 12})
    env.step("")
    with pytest.raises(ValueError, match="the text has 13 characters, at most 11 fit: raise max_length="):
        env.step("")


@pytest.mark.parametrize("wrapper", [Transcript, Messages])
def test_other_spaces_are_refused(wrapper: Any):
    for env in (Echo(form="numbers"), gymnasium.make("palaestra/CartPole-v0")):
        with pytest.raises(TypeError, match=r'both must be Text, as those of gymnasium.make\(.*form="text"\)'):
            wrapper(env)


def test_messages_share_their_texts():
    env = Messages(Echo())
    env.reset()
    first, last = env.step("x")[0], env.step("y")[0]
    assert len(last) == 5
    assert all(one["content"] is other["content"] for one, other in zip(first, last, strict=False))


@with_options(Option("form", None, "what is said", words=("numbers", "text")))
def wordy(options: Any) -> Game:
    """A factory whose games are made as text where they are asked for."""
    return broken_games.spoken()


def test_an_environment_with_a_text_form_is_made_in_it(monkeypatch: pytest.MonkeyPatch):
    gymnasium.register(WORDY, lambda **given: Echo(**{"form": "numbers", **given}))
    monkeypatch.setitem(registry.ROWS, WORDY, registry.Row(WORDY, wordy))
    monkeypatch.setitem(registry.ROWS, "text/Nowhere-v0", registry.Row("text/Nowhere-v0", "no_such_module:game"))
    assert WORDY in text_ids()
    assert not {SPOKEN, "text/Nowhere-v0"} & set(text_ids())
    assert text_env(WORDY, turns=3).unwrapped.turns == 3  # pyright: ignore[reportAttributeAccessIssue]
    assert text_env(SPOKEN).reset(seed=0)[0]
    with pytest.raises(TypeError, match="both must be Text"):
        text_env(WORDY, form="numbers")


def test_ids_whose_games_have_a_text_codec_have_a_text_form():
    first = [rows[0].id for _, rows in registry.pages() if rows[0].family in registry.FAMILIES]
    spoken = {id for id in first if "text" in registry.make_game(id)[0].codecs}
    assert spoken
    assert spoken <= set(text_ids())


@pytest.mark.parametrize("id", by_tier(text_ids()))
def test_every_id_with_a_text_form_is_played_as_text(id: str):
    env = Transcript(text_env(id, compiled=False))
    env.action_space.seed(0)
    text, _ = env.reset(seed=0)
    is_over = False
    while not is_over:
        before, turn = text, env.action_space.sample()
        text, reward, terminated, truncated, _ = env.step(turn)
        assert text.startswith(f"{before}{turn}")
        assert np.isfinite(reward)
        is_over = terminated or truncated
    env.close()
