"""`palaestra.adapters.trl.rollout` without TRL: masks, exact tokens, log-probabilities, and where matches end.

The tokenizer has two tokens for each character, so that a text which is decoded and tokenised again has other ids.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium
import pytest

from palaestra.adapters import trl
from palaestra.adapters.trl import rollout
from palaestra.game import TextSpace

ID = "rollout/Echo-v0"
END, OTHER = 3, 1000
"""The end of a turn; what is added for the second token of a character."""
CLOSED = chr(END)


class Echo(gymnasium.Env):
    """Says how often it was spoken to; pays for the seed as an answer, and .25 for any other turn, of three."""

    def __init__(self) -> None:
        self.observation_space = self.action_space = TextSpace(10_000, min_length=0, charset=None)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        self.seed, self.said = seed, 0
        return f"Guess {seed}.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if "refuse" in action:
            raise ValueError("no such turn")
        self.said += 1
        if f"<answer>{self.seed}</answer>" in action:
            return "", 1.0, True, False, {}
        return f"[said {self.said}]", 0.25, False, self.said == 3, {}


gymnasium.register(ID, lambda **given: Echo(**given))


class Characters:
    """A tokenizer of characters, with a chat template if asked for."""

    eos_token_id = END

    def __init__(self, is_chat: bool) -> None:
        self.chat_template = "yes" if is_chat else None

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": [1] * (add_special_tokens and not self.chat_template) + [ord(c) for c in text]}

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        return "".join(chr(number % OTHER) for number in ids if not (skip_special_tokens and number == END))

    def apply_chat_template(self, messages: list[dict[str, str]], tokenize: bool, add_generation_prompt: bool) -> str:
        assert not tokenize
        shown = "".join(f"|{message['role']}>{message['content']}{CLOSED}" for message in messages)
        return shown + ("|assistant>" if add_generation_prompt else "")


class Script:
    """A trainer whose model says prepared turns, by match and turn; a turn's tokens are the second ones."""

    def __init__(self, turns: list[list[str]], is_chat: bool = False, most: int = 10_000) -> None:
        self.processing_class, self.max_completion_length = Characters(is_chat), most
        self.use_vllm, self.vllm_generation, self.asked = True, SimpleNamespace(generate=self.generate), []
        self._left = [list(some) for some in turns]

    def generate(self, prompts: list[list[int]], images: None, num_generations: int) -> tuple[Any, ...]:
        assert num_generations == 1
        self.asked.append(prompts)
        speaking = [k for k, turns in enumerate(self._left) if turns]
        assert len(speaking) == len(prompts), "one turn for each match that is not over"
        ids = [[ord(c) + (OTHER if c != CLOSED else 0) for c in self._left[k].pop(0)] for k in speaking]
        return None, ids, [[[-number / 1e4] for number in turn] for turn in ids], None


def played(trainer: Script, *seeds: int, **how: Any) -> list[SimpleNamespace]:
    """What `rollout` returns, by match; its lengths are checked."""
    found = rollout(ID, **how)([str(seed) for seed in seeds], trainer)
    names = ("prompt_ids", "completion_ids", "logprobs", "env_mask", "match_return")
    rows = [SimpleNamespace(**dict(zip(names, row, strict=True))) for row in zip(*map(found.get, names), strict=True)]
    for row in rows:
        assert len(row.completion_ids) == len(row.logprobs) == len(row.env_mask)
    return rows


@pytest.mark.parametrize("is_chat", [False, True])
def test_sampled_ids_and_their_probabilities_are_kept_and_the_environment_is_masked(is_chat: bool):
    turns = ["<search>a</search>", "<search>b</search>", "<answer>7</answer>"]
    [row] = played(Script([[turn + CLOSED for turn in turns]], is_chat), 7)
    sampled = [(n, lp) for n, lp, m in zip(row.completion_ids, row.logprobs, row.env_mask, strict=True) if m]
    wanted = [ord(c) + OTHER * (c != CLOSED) for turn in turns for c in turn + CLOSED]
    assert sampled == [(number, -number / 1e4) for number in wanted]
    others = [(n, lp) for n, lp, m in zip(row.completion_ids, row.logprobs, row.env_mask, strict=True) if not m]
    said = ["[said 1]", "[said 2]"]
    told = "".join(f"|user>{text}{CLOSED}|assistant>" for text in said) if is_chat else "".join(said)
    assert others == [(ord(c), 0.0) for c in told]
    assert row.match_return == 1.5


def test_a_chat_is_what_the_template_makes_of_the_whole_conversation():
    trainer = Script([["<search>a</search>" + CLOSED, "<answer>7</answer>" + CLOSED]], is_chat=True)
    [row] = played(trainer, 7, system="Be brief.")
    roles = ("system", "user", "assistant", "user", "assistant")
    texts = ("Be brief.", "Guess 7.", "<search>a</search>", "[said 1]", "<answer>7</answer>")
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    whole = trainer.processing_class.apply_chat_template(messages, tokenize=False, add_generation_prompt=False)
    assert trainer.processing_class.decode(row.prompt_ids + row.completion_ids, skip_special_tokens=False) == whole


def test_without_a_template_the_prompt_alone_has_special_tokens():
    trainer = Script([["<search>a</search>", "<answer>7</answer>" + CLOSED]])
    [row] = played(trainer, 7, system="Be brief. ")
    assert row.prompt_ids == [1, *map(ord, "Be brief. Guess 7.")]
    assert 1 not in row.completion_ids
    assert trainer.asked[1] == [row.prompt_ids + row.completion_ids[: len("<search>a</search>[said 1]")]]


def test_the_end_of_a_turn_that_the_model_left_out_is_the_template_s_and_masked():
    [row] = played(Script([["<search>a</search>", "<answer>7</answer>"]], is_chat=True), 7)
    first = len("<search>a</search>")
    assert (row.completion_ids[first], row.env_mask[first]) == (END, 0)
    assert (row.completion_ids[-1], row.env_mask[-1]) == (END, 0), "the match is over, and TRL has to see it"
    assert row.completion_ids.count(END) == 3, "each turn and the user's message"


def test_matches_end_at_their_own_pace_and_pay_what_the_environment_pays():
    turns = [["<answer>5</answer>"], ["no", "no", "no"], ["hm", "<answer>5</answer>"], ["refuse"]]
    trainer = Script(turns)
    rows = played(trainer, 5, 5, 5, 6)
    assert [row.match_return for row in rows] == [1.0, 0.75, 1.25, 0.0]
    assert [len(prompts) for prompts in trainer.asked] == [4, 2, 1]
    assert rows[0].prompt_ids == rows[2].prompt_ids != rows[3].prompt_ids
    assert rows[3].env_mask == [1] * len("refuse"), "what the environment does not understand ends the match"


def test_a_session_is_used_again_by_the_next_call():
    play = rollout(ID)
    for seed in ("4", "5"):
        assert play([seed], Script([[f"<answer>{seed}</answer>"]]))["match_return"] == [1.0]


def test_a_turn_has_at_most_turn_tokens():
    [row] = played(Script([["<search>abc", "<answer>7</answer>", "x"]]), 7, turn_tokens=9)
    assert Characters(False).decode(row.completion_ids) == "<search>a[said 1]<answer>7[said 2]x"
    assert row.match_return == 0.75


@pytest.mark.parametrize(
    ("most", "text", "paid"),
    [
        (4, "abcd", 0.25),  # cut within the first turn
        (6, "abcdef", 0.25),  # nothing left
        (14, "abcdef", 0.25),  # what the environment says would leave nothing for a turn
        (16, "abcdef[said 1]gh", 0.5),  # cut within the second turn
    ],
)
def test_a_completion_that_grows_too_long_ends_the_match(most: int, text: str, paid: float):
    [row] = played(Script([["abcdef", "ghijkl", "mn"]], most=most), 7)
    assert (Characters(False).decode(row.completion_ids), row.match_return) == (text, paid)


def test_each_completion_is_cut_at_its_own_limit():
    rows = played(Script([["abcdef", "x" * 25], ["ab", "y" * 25]], most=30), 7, 7)
    assert [len(row.completion_ids) for row in rows] == [30, 30]


@pytest.mark.parametrize("prompt", ["Who?", "", "-1", "1.0", [{"role": "user", "content": "7"}]])
def test_a_prompt_that_is_no_seed_is_refused(prompt: Any):
    with pytest.raises(ValueError, match="give the seed of a match as a text"):
        rollout(ID)([prompt], Script([]))


def test_a_template_that_leaves_out_turns_is_refused():
    trainer = Script([["hm" + CLOSED]], is_chat=True)
    vars(trainer.processing_class)["apply_chat_template"] = lambda messages, **_: messages[-1]["content"]
    with pytest.raises(ValueError, match=r"leaves out turns: give tokenizer\.chat_template"):
        played(trainer, 7)


def test_the_reward_function_hands_on_the_returns():
    assert trl.match_return(["a", "b"], match_return=[1.0, 0.5], seed=[1, 2]) == [1.0, 0.5]


def test_a_turn_ends_behind_its_own_closing_tag_or_at_an_end_of_sequence():
    torch = pytest.importorskip("torch")
    prompt, texts = "</answer>", ["ab</search>cd", f"a{CLOSED}</answer>12", "no tag here!!"]
    rows = torch.tensor([[ord(c) for c in prompt + text] for text in texts])
    ends = trl.TurnEnds(Characters(False), [END], len(prompt))
    stopped = [ends(rows[:, :length], None).tolist() for length in range(len(prompt) + 1, rows.shape[1] + 1)]
    assert ends.lengths == {0: len("ab</search>"), 1: 2}
    assert stopped[0] == [False] * 3
    assert stopped[-1] == [True, True, False]


def test_probabilities_are_those_of_the_tokens_that_were_drawn_at_the_temperature():
    torch = pytest.importorskip("torch")
    drawn = trl.Drawn(0.5)
    logits = torch.tensor([[[0.0, 1.0, 2.0], [3.0, 1.0, 0.0]], [[1.0, 1.0, 1.0], [0.0, 5.0, 0.0]]])
    ids = torch.tensor([[0, 2, 1], [0, 0, 1]])  # the first column is the prompt
    for step in range(2):
        assert torch.equal(drawn(ids[:, : step + 1], logits[step]), logits[step])
    wanted = (logits / 0.5).log_softmax(-1)
    found = torch.tensor(drawn.finish(ids[:, -1]))
    assert torch.allclose(found, torch.stack([wanted[0, [0, 1], ids[:, 1]], wanted[1, [0, 1], ids[:, 2]]], 1))
