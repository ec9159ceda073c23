"""Text environments in TRL's GRPOTrainer: whole rollouts by tags, token by token, or as tools.

By tags, for any model, with or without a chat template (``rollout_func`` of TRL 1.16)::

    rows = Dataset.from_list([{"prompt": str(seed)} for seed in range(2_000)])
    GRPOTrainer(model, match_return, args, rows, rollout_func=rollout("palaestra/SearchQA-2Hop-v1"))

As tools ``search`` and ``answer``, for models whose chat template TRL knows::

    rows = Dataset.from_list([{"prompt": [{"role": "user", "content": ""}], "seed": seed} for seed in range(2_000)])
    GRPOTrainer(model, None, args, rows, environment_factory=environment("palaestra/SearchQA-2Hop-v1"))
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from palaestra.adapters.text_session import TextSession
from palaestra.game import Importing

CLOSING_TAGS = ("</search>", "</answer>", "</judge>")
"""Behind one of these a turn is complete."""
TAIL = 16
"""Last tokens of a turn that are searched for such a tag."""
MARK = "palaestra-turn"
"""Stands for a turn where a chat template is asked what comes behind one."""

Rollouts = dict[str, list[Any]]
RolloutFunction = Callable[[list[str], Any], Rollouts]


def environment(id: str, **keywords: Any) -> type:
    """Makes a class of environments; see `palaestra.wrappers.transcript.text_env` for the arguments.

    The environment understands ``<search>`` and ``<answer>``. TRL takes every public method of the class as a tool.
    Rows have a ``seed``, so that all rollouts of a row answer one question, and a ``prompt``: messages, to the last of
    which the question is appended.
    """

    class SearchEnvironment:
        def __init__(self) -> None:
            self._session = TextSession(id, **keywords)

        def reset(self, seed: int | None = None, **row: Any) -> str:
            if seed is None and row:
                raise ValueError('the dataset has no "seed": rollouts of a group would answer different questions')
            self._session.reset(seed)
            return self._session.question  # the prompt explains tags, which nobody has to write here

        def get_reward(self) -> float:
            return self._session.total

        def search(self, query: str) -> str:
            """Searches the passages.

            Args:
                query: What to look for.
            """
            return self._session.search(query)

        def answer(self, text: str) -> str:
            """Answers the question. Nothing can be done after it.

            Args:
                text: The answer alone, without a sentence around it.
            """
            return self._session.answer(text)

    return SearchEnvironment


def match_return(completions: Sequence[Any], match_return: list[float], **_: Any) -> list[float]:
    """A reward function: the return of each match that `rollout` played."""
    return match_return


def rollout(id: str, system: str = "", turn_tokens: int = 256, **keywords: Any) -> RolloutFunction:
    """Makes a ``rollout_func``: each prompt is the seed of a match, which the model plays by turns of text.

    The function returns ``prompt_ids``, ``completion_ids``, ``logprobs`` (at the trainer's temperature, before top-k
    and its like; 0 where the environment speaks), ``env_mask`` (1: a token that the model sampled, 0: one of the
    environment) and ``match_return``, for the reward function of this name. Sampled ids are kept as they are: no turn
    is decoded and tokenised again. Where the tokenizer has a chat template, the prompt and what the environment says
    are messages of the user; else they are plain text.

    A turn ends behind a closing tag (without vLLM), at an end of sequence, or after ``turn_tokens``. A match whose
    completion grows past ``max_completion_length`` ends there, with the rewards until then. One that is over ends with
    an end of sequence, which has no part in the loss if the model did not sample it.

    Args:
        id: See `palaestra.wrappers.transcript.text_env`, as for ``keywords``.
        system: Text before the prompt: the system message where there is a chat template.
        turn_tokens: Most tokens of a turn.
        **keywords: Of the environment.
    """
    sessions: list[TextSession] = []

    def play(prompts: list[str], trainer: Any) -> Rollouts:
        seeds, most = [seed_of(prompt) for prompt in prompts], trainer.max_completion_length
        sessions.extend(TextSession(id, **keywords) for _ in range(len(seeds) - len(sessions)))
        tokens = Tokens(trainer.processing_class, getattr(trainer, "chat_template_kwargs", {}))
        matches = [Match(*pair, tokens, system) for pair in zip(sessions, seeds, strict=False)]
        while running := [match for match in matches if match.room(most) > 0]:
            longest = min(turn_tokens, max(match.room(most) for match in running))
            turns = sample(trainer, [match.prompt_ids + match.ids for match in running], longest)
            for match, (ids, log_probs) in zip(running, turns, strict=True):
                cut = match.room(most)
                match.play(ids[:cut], log_probs[:cut], most)
        return {
            "prompt_ids": [match.prompt_ids for match in matches],
            "completion_ids": [match.ids for match in matches],
            "logprobs": [match.log_probs for match in matches],
            "env_mask": [match.mask for match in matches],
            "match_return": [match.session.total for match in matches],
        }

    return play


def seed_of(prompt: Any) -> int:
    """The seed that a prompt is.

    Raises:
        ValueError: It is none.
    """
    if isinstance(prompt, str) and prompt.isdecimal():
        return int(prompt)
    raise ValueError(f'prompt {str(prompt)[:80]!r}: give the seed of a match as a text, such as {{"prompt": "7"}}')


class Tokens:
    """The tokenizer of a model, and what stands around turns."""

    def __init__(self, tokenizer: Any, template_keywords: dict[str, Any]) -> None:
        """Takes the tokenizer and the keywords of its chat template."""
        self.tokenizer, self._keywords = tokenizer, template_keywords
        self.is_chat = getattr(tokenizer, "chat_template", None) is not None

    def start(self, prompt: str, system: str) -> list[int]:
        """Tokens of a prompt, up to where the model's turn begins."""
        if not self.is_chat:
            return self.tokenizer(f"{system}{prompt}")["input_ids"]
        first = [{"role": "system", "content": system}] if system else []
        return self._ids(self._text([*first, {"role": "user", "content": prompt}]))

    def behind(self, turn: list[int], text: str) -> list[int]:
        """Tokens of the environment between a turn and the next one.

        Raises:
            ValueError: The chat template does not show turns as they are.
        """
        if not self.is_chat:
            return self._ids(text)
        told = [("user", MARK), ("assistant", MARK), ("user", text)]
        parts = self._text([{"role": role, "content": content} for role, content in told]).split(MARK, 2)
        if len(parts) < 3:
            raise ValueError("the chat template leaves out turns: give tokenizer.chat_template another one, or None")
        ids = self._ids(parts[2])
        return ids[1:] if turn[-1:] == ids[:1] else ids  # the end of the turn, if the model has written it

    def _text(self, messages: list[dict[str, str]]) -> str:
        how: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True, **self._keywords}
        return self.tokenizer.apply_chat_template(messages, **how)

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]


class Match:
    """A match and its tokens.

    Attributes:
        prompt_ids: Of the prompt.
        ids, log_probs, mask: Of the completion: each turn, and behind it what the environment said.
    """

    def __init__(self, session: TextSession, seed: int, tokens: Tokens, system: str) -> None:
        """Begins the match of a seed."""
        self.session, self._tokens, self._has_room = session, tokens, True
        self.prompt_ids = tokens.start(session.reset(seed), system)
        self.ids, self.log_probs, self.mask = list[int](), list[float](), list[int]()

    def room(self, most: int) -> int:
        """Tokens that the next turn may have, 0 where there is none; ``most`` is for the whole completion."""
        return max(0, most - len(self.ids)) if self._has_room and not self.session.is_over else 0

    def play(self, turn: list[int], log_probs: list[float], most: int) -> None:
        """Plays a turn of sampled tokens."""
        self._append(turn, log_probs, 1)
        try:
            text = self.session.say(self._tokens.tokenizer.decode(turn, skip_special_tokens=False))
        except ValueError:  # how environments refuse a text that they do not understand
            self._has_room = False
            return
        if self.session.is_over:
            end = self._tokens.tokenizer.eos_token_id
            said = [] if turn[-1:] == [end] else [end]
        else:
            said = self._tokens.behind(turn, text)
            self._has_room = len(self.ids) + len(said) < most
        if self._has_room:
            self._append(said, [0.0] * len(said), 0)

    def _append(self, ids: list[int], log_probs: list[float], mask: int) -> None:
        self.ids += ids
        self.log_probs += log_probs
        self.mask += [mask] * len(ids)


def sample(trainer: Any, prompts: list[list[int]], most: int) -> list[tuple[list[int], list[float]]]:
    """Samples a turn behind each prompt: ids and logarithms of their probabilities.

    Args:
        trainer: A ``GRPOTrainer``.
        prompts: Ids.
        most: Most tokens of a turn.
    """
    if trainer.use_vllm:
        _, turns, log_probs, _ = trainer.vllm_generation.generate(prompts=prompts, images=None, num_generations=1)
        pairs = zip(turns, log_probs, strict=True)
        return [(list(turn[:most]), [first[0] for first in some[:most]]) for turn, some in pairs]
    with Importing("torch"):
        import torch
        from trl.models import unwrap_model_for_generation

    device, width, tokenizer = trainer.accelerator.device, max(map(len, prompts)), trainer.processing_class
    ids = torch.tensor([[tokenizer.pad_token_id] * (width - len(row)) + row for row in prompts], device=device)
    seen = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in prompts], device=device)
    config = copy.copy(trainer.generation_config)
    config.max_new_tokens = most
    ends, drawn = TurnEnds(tokenizer, trainer.eos_token_ids, width), Drawn(trainer.temperature)
    gathers = trainer.args.ds3_gather_for_generation
    with unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator, gathers) as model, torch.no_grad():
        watched = {"stopping_criteria": [ends], "logits_processor": [drawn]}
        found = model.generate(input_ids=ids, attention_mask=seen, generation_config=config, **watched)
    new, log_probs = found[:, width:].tolist(), drawn.finish(found[:, -1])
    lengths = [ends.lengths.get(row, most) for row in range(len(prompts))]
    return [(new[row][:length], log_probs[row][:length]) for row, length in enumerate(lengths)]


class TurnEnds:
    """A stopping criterion of transformers: closing tags and ends of sequence.

    Attributes:
        lengths: Tokens of each turn that has ended, by row.
    """

    def __init__(self, tokenizer: Any, ends: Sequence[int], width: int) -> None:
        """Watches turns that begin at a column ``width``."""
        self._tokenizer, self._ends, self._width = tokenizer, {*ends}, width
        self.lengths: dict[int, int] = {}

    def __call__(self, ids: Any, scores: Any, **_: Any) -> Any:
        """Which of B sequences ``[B, T]`` are complete, bool ``[B]``."""
        for row, tail in enumerate(ids[:, max(self._width, ids.shape[1] - TAIL) :].tolist()):
            if row not in self.lengths and self._is_end(tail):
                self.lengths[row] = ids.shape[1] - self._width
        return ids.new_tensor([row in self.lengths for row in range(len(ids))]).bool()

    def _is_end(self, tail: list[int]) -> bool:
        text = self._tokenizer.decode(tail, skip_special_tokens=False)
        return tail[-1] in self._ends or any(tag in text for tag in CLOSING_TAGS)


class Drawn:
    """A processor of logits of transformers: changes none, keeps the probabilities of the tokens that are drawn."""

    def __init__(self, temperature: float) -> None:
        """Probabilities are those at a temperature."""
        self._temperature, self._last = temperature, None
        self._kept: list[list[float]] = []

    def __call__(self, ids: Any, logits: Any) -> Any:
        """Takes the logits of the next token, ``[B, V]``."""
        self._keep(ids[:, -1])
        self._last = (logits.float() / self._temperature).log_softmax(-1)
        return logits

    def finish(self, last: Any) -> list[list[float]]:
        """Logarithms by sequence, when the last token of each is known."""
        self._keep(last)
        return [list(row) for row in zip(*self._kept, strict=True)]

    def _keep(self, drawn: Any) -> None:
        if self._last is not None:
            self._kept.append(self._last.gather(1, drawn[:, None])[:, 0].tolist())
