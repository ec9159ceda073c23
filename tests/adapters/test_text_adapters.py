"""Adapters for libraries of language models, without these: `tests/peers` plays with the real ones."""

from __future__ import annotations

import importlib
import inspect
import sys
from types import ModuleType
from typing import Any

import gymnasium
import pytest
from games.play import by_tier

from palaestra.adapters.trl import environment
from palaestra.core.files import FileError
from palaestra.game import TextSpace
from palaestra.wrappers.transcript import text_ids

pytestmark = pytest.mark.check

LOOKUP = "text/Lookup-v0"


class Lookup(gymnasium.Env):
    """A search finds the number that is the answer; ``turns`` end the episode."""

    def __init__(self, turns: int = 3, asks: bool = True) -> None:
        self.observation_space = self.action_space = TextSpace(100, min_length=0, charset=None)
        self.turns, self.asks = turns, asks

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.answer, self.said = str(self.np_random.integers(1000)), 0
        return "Use tags. Which?", {"question": f"Which? (not {self.answer}0)"} if self.asks else {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.said += 1
        if action == f"<answer>{self.answer}</answer>":
            return "", 1.0, True, False, {}
        text = f"<information>{self.answer}</information>" if action == "<search>it</search>" else "What?"
        return text, 0.25, False, self.said == self.turns, {}


gymnasium.register(LOOKUP, lambda **given: Lookup(**given))


@pytest.mark.parametrize(
    ("name", "package", "distribution"),
    [
        ("gem", "gem", "gem-llm"),
        ("skyrl", "skyrl_gym", "skyrl-gym"),
        ("textarena", "textarena", "textarena"),
        ("openenv", "openenv", "openenv"),
        ("verifiers", "verifiers", "verifiers"),
        ("mcp", "mcp", "mcp"),
    ],
)
def test_a_missing_library_is_named_with_the_command_that_installs_it(
    name: str, package: str, distribution: str, monkeypatch: pytest.MonkeyPatch
):
    module = f"palaestra.adapters.{name}"
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(ImportError, match=rf"{module} needs .*, which is not installed: pip install {distribution}$"):
        importlib.import_module(module)


def stand_in(monkeypatch: pytest.MonkeyPatch, adapter: str, **members: dict[str, Any]) -> Any:
    """An adapter of `palaestra.adapters` on modules with these members; "__" stands for a dot in their names."""
    for name in members:
        module = ModuleType(name.replace("__", "."))
        vars(module).update(members[name])
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, f"palaestra.adapters.{adapter}", raising=False)
    made = importlib.import_module(f"palaestra.adapters.{adapter}")
    monkeypatch.delitem(sys.modules, f"palaestra.adapters.{adapter}")
    return made


@pytest.fixture
def skyrl(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The adapter on a stand-in for SkyRL-gym."""
    base = {"BaseTextEnv": type("BaseTextEnv", (), {})}
    return stand_in(monkeypatch, "skyrl", skyrl_gym={}, skyrl_gym__envs={}, skyrl_gym__envs__base_text_env=base)


@pytest.fixture
def gem(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The adapter on a stand-in for GEM, whose ``register`` fills ``ENV_REGISTRY``."""
    known: dict[str, Any] = {}
    members = {"Env": object, "register": lambda id, entry_point, **keywords: known.update({id: keywords})}
    return stand_in(monkeypatch, "gem", gem=members, gem__envs={}, gem__envs__registration={"ENV_REGISTRY": known})


@pytest.fixture
def textarena(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The adapter on a stand-in for TextArena."""
    return stand_in(monkeypatch, "textarena", textarena={"Env": object, "ObservationType": None})


def test_gem_knows_every_id_with_a_text_form(gem: Any):
    gem.register()
    assert set(gem.ENV_REGISTRY) == set(text_ids()) >= {"palaestra/MathText-Arith-v1", "palaestra/SearchQA-2Hop-v1"}


@pytest.mark.parametrize("id", by_tier(text_ids()))
def test_libraries_of_language_models_take_every_id_with_a_text_form(id: str, gem: Any, skyrl: Any, textarena: Any):
    prompts = []
    env = gem.TextEnv(id, seed=3, compiled=False)
    prompts.append(env.reset()[0])
    assert len(env.step("<answer>7</answer>")) == 5
    row = skyrl.TextEnv(extras={"id": id, "seed": 3, "keywords": {"compiled": False}})
    prompts.append(row.init([])[0][0]["content"])
    assert set(row.step("<answer>7</answer>")) == {"observations", "reward", "done", "metadata"}
    prompts.append(textarena.TextEnv(id, compiled=False).session.reset(3))
    assert len({*prompts}) == 1
    assert prompts[0]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"id": "antigravity:Fly-v0"}, "names a module to import"),
        ({"id": ["antigravity"]}, "names a module to import"),
        ({"id": "palaestra/SearchQA-2Hop-v1", "keywords": {"world": "example", "retriever": "a:b"}}, "retriever names"),
        ({"id": "palaestra/SearchQA-2Hop-v1", "keywords": {"world": "passages"}}, "world names 'passages'"),
        ({"id": LOOKUP, "keywords": {"turns": "os:system"}}, "turns names 'os:system'"),
        ({"id": LOOKUP, "keywords": ["turns"]}, "not a mapping"),
    ],
)
def test_a_row_of_a_data_set_runs_and_opens_nothing_of_the_user(skyrl: Any, row: dict[str, Any], reason: str):
    with pytest.raises(FileError, match=rf"a row of the data set.*{reason}.*env_config"):
        skyrl.TextEnv(extras=row)


def test_a_row_names_its_episode(skyrl: Any):
    env = skyrl.TextEnv(env_config={"other": 1}, extras={"id": LOOKUP, "seed": 7, "keywords": {"turns": 2}})
    assert env.session.env.unwrapped.turns == 2
    trusted = skyrl.TextEnv(env_config={"trust_paths": True}, extras={"id": LOOKUP, "keywords": {"turns": "a:b"}})
    assert trusted.session.env.unwrapped.turns == "a:b"


def test_the_public_methods_of_trl_s_environment_are_its_tools():
    made = environment(LOOKUP)
    assert {name for name in dir(made) if not name.startswith("_")} == {"reset", "get_reward", "search", "answer"}
    for tool, argument in ((made.search, "query"), (made.answer, "text")):
        assert inspect.get_annotations(tool, eval_str=True) == {argument: str, "return": str}
        assert f"\n    {argument}: " in inspect.cleandoc(tool.__doc__ or "")


def test_tools_are_turns_and_rewards_add_up():
    env: Any = environment(LOOKUP)()
    question = env.reset(seed=5, prompt=[{"role": "user", "content": ""}], other=1)
    assert question.startswith("Which?"), "the question alone: the prompt tells of tags"
    assert environment(LOOKUP)().reset(seed=5) == question
    assert env.get_reward() == 0.0
    answer = env.search("it").removeprefix("<information>").removesuffix("</information>")
    assert question == f"Which? (not {answer}0)"
    assert env.answer(answer) == ""
    assert env.get_reward() == 1.25
    assert env.reset(seed=6) != question
    assert env.get_reward() == 0.0


def test_without_a_question_the_prompt_is_shown_and_keywords_arrive():
    env: Any = environment(LOOKUP, asks=False, turns=1)()
    assert env.reset(seed=1) == "Use tags. Which?"
    assert env.search("x") == "What?"
    with pytest.raises(ValueError, match="the episode is over"):
        env.search("x")


def test_no_turn_is_taken_before_the_first_reset_or_after_the_answer():
    env: Any = environment(LOOKUP)()
    with pytest.raises(ValueError, match="the episode is over"):
        env.search("it")
    env.reset(seed=5)
    env.answer(env.search("it").removeprefix("<information>").removesuffix("</information>"))
    with pytest.raises(ValueError, match="the episode is over"):
        env.answer("7")
    assert env.get_reward() == 1.25


def test_rows_without_a_seed_are_refused_since_a_group_would_not_answer_one_question():
    env: Any = environment(LOOKUP)()
    with pytest.raises(ValueError, match='the dataset has no "seed"'):
        env.reset(prompt=[{"role": "user", "content": ""}])
    assert env.reset()


def test_environments_without_text_are_refused():
    with pytest.raises(TypeError, match="both must be Text"):
        environment("palaestra/CartPole-v0")()
