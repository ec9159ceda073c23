# pyright: reportMissingImports=false
"""examples/train_with_trl.py: the environment without TRL; and two steps with it where it is installed."""

from __future__ import annotations

import inspect
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.check

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_with_trl.py"
SEED = 7
OVER = "the episode is over"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


@pytest.fixture
def env(example: dict[str, Any]) -> Any:
    return example["Environment"]()


def asked(env: Any, seed: int = SEED) -> tuple[str, dict[str, Any]]:
    """The question, and what the environment knows of it."""
    from palaestra.wrappers.transcript import text_env

    return env.reset(seed=seed, prompt=[]), text_env("palaestra/SearchQA-2Hop-v1").reset(seed=seed)[1]


def test_a_rollout_searches_answers_and_is_paid(env):
    question, info = asked(env)
    assert question == info["question"]
    (first, relation, found), _ = info["path"]
    passages = env.search(f"{relation} of {first}")
    assert passages.strip().startswith("<information>Doc 1(Title:")
    assert found in passages
    assert env.get_reward() == 0.0
    env.answer(info["answers"][0])
    assert env.get_reward() == 1.0


def test_a_wrong_answer_pays_nothing_and_ends_the_episode(env):
    asked(env)
    env.answer("nobody at all")
    assert env.get_reward() == 0.0
    with pytest.raises(ValueError, match=OVER):
        env.answer("somebody")


def test_answering_twice_or_searching_after_the_end_changes_no_reward(env):
    _, info = asked(env)
    env.answer(info["answers"][0])
    with pytest.raises(ValueError, match=OVER):
        env.answer(info["answers"][0])
    with pytest.raises(ValueError, match=OVER):
        env.search("the mayor")
    assert env.get_reward() == 1.0


def test_after_the_last_turn_nothing_can_be_said(env, example):
    asked(env)
    for _ in range(example["TURNS"]):
        env.search("the mayor")
    with pytest.raises(ValueError, match=OVER):
        env.answer("nobody at all")


def test_the_rollouts_of_a_group_answer_one_question_and_groups_differ(example):
    rows = example["questions"](3, first=5)
    assert [row["seed"] for row in rows] == [5, 6, 7]
    assert all(row["prompt"][-1]["role"] == "user" for row in rows)
    group = [[example["Environment"]().reset(**row) for row in rows] for _ in range(2)]
    assert group[0] == group[1]
    assert len(set(group[0])) == 3


def test_every_tool_has_what_trl_asks_for(example):
    """TRL takes each public function of the class but two for a tool, and makes its schema of types and docstring."""
    members = dict(inspect.getmembers(example["Environment"], inspect.isfunction))
    tools = {name: tool for name, tool in members.items() if not name.startswith("_")}
    assert {"reset", "get_reward"} < set(tools)
    assert set(tools) - {"reset", "get_reward"} == {"search", "answer"}
    for name in ("search", "answer"):
        about, _, arguments = inspect.cleandoc(tools[name].__doc__ or "").partition("\n\nArgs:\n")
        assert about
        types = inspect.get_annotations(tools[name], eval_str=True)
        parameters = [name for name in inspect.signature(tools[name]).parameters if name != "self"]
        assert set(types) == {*parameters, "return"}
        for parameter in parameters:
            assert f"    {parameter}: " in arguments


def test_without_trl_the_example_names_the_command_that_installs_it(example, monkeypatch: pytest.MonkeyPatch):
    for name in ("datasets", "trl"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SystemExit, match=r"pip install trl \(no module datasets\)"):
        example["main"](["--model", "x"])


@pytest.mark.peers
@pytest.mark.filterwarnings("default")  # TRL and transformers warn of their own names
def test_trl_trains_a_tiny_random_model_on_it(example, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("trl", reason="pip install trl==1.16.0")
    from peers.libraries.train_trl import tokenizer
    from transformers import Qwen3Config, Qwen3ForCausalLM

    words: Any = tokenizer()
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "head_dim": 8}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    Qwen3ForCausalLM(Qwen3Config(vocab_size=len(words), **sizes, **heads)).save_pretrained(tmp_path / "model")
    words.save_pretrained(tmp_path / "model")
    sizes = ["--steps", "1", "--questions", "1", "--group", "2", "--max-tokens", "32"]
    example["main"](["--model", str(tmp_path / "model"), "--output", str(tmp_path / "trained"), *sizes])
    assert "after 1 steps: reward 0.000" in capsys.readouterr().out
    assert (tmp_path / "trained" / "config.json").is_file()
