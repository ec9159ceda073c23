"""LLMEnsemble with models of Hugging Face: the rules around the engine (`palaestra.games.ensemble.live_engine`).

A match is a prompt of the file, drawn uniformly. The models continue it together. Their tokenizers may differ: a token
of the ensemble is the bytes that a token of any expert stands for, or the end of the text. Each expert reads the prompt
and the text so far by its own tokenizer; its distribution is mapped onto the tokens of all. A token that only one
vocabulary has gets probability from that expert alone.

Right is a token that goes on as the answer does: tokenizers cut the same answer in different ways, its bytes do not
depend on them. ``right`` in `info` is the share of the answer's bytes with which the text begins, and it is paid when
the match ends:

1. ``complete``: the text begins with the whole answer.
2. ``departed``: it goes on otherwise, or ends before.
3. ``out_of_tokens``: all spans are written.

An answer is what follows the prompt at once: one that begins with a space says so. Agents see and do the same as with
other experts. The scripts are ``static_0``, ``static_1``, ..., ``entropy`` and ``uniform``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from palaestra.game import TERMINATED, Field, integer
from palaestra.games.ensemble import ensemble_rules as rules
from palaestra.games.ensemble.ensemble_rules import ENTROPY_FACTOR, LOGIT, draw_features, to_weights, write_sight

MOST_TOKENS = rules.MOST_SPANS * rules.MOST_SPAN_TOKENS
"""Of a text."""
COMPLETE, DEPARTED, OUT_OF_TOKENS = 2, 3, 4
"""Numbers of the end reasons."""
END_REASONS = ("complete", "departed", "out_of_tokens")


class LiveWorld(NamedTuple):
    """The world of the game: C prompts, U tokens of all vocabularies.

    Attributes:
        spans: Most spans of a match.
        span_tokens: Tokens of a span.
        domains: D.
        domain: int64 ``[C]``: of each prompt.
        answers: uint8: the answers in UTF-8, one behind the other.
        answer_start: int64 ``[C + 1]``: where each begins.
        tokens: uint8: the bytes of the tokens, likewise; token 0 has none: it ends the text.
        token_start: int64 ``[U + 1]``.
    """

    spans: int
    span_tokens: int
    domains: int
    domain: np.ndarray
    answers: np.ndarray
    answer_start: np.ndarray
    tokens: np.ndarray
    token_start: np.ndarray


def text_dtype(experts: int) -> np.dtype:
    """The text of a match, which the engine reads and writes.

    Its members: the number of the prompt; the experts' weights, ``[K]``; how many tokens are written, the tokens; and
    the experts' entropies at the next one as shares of log U, ``[K]``.
    """
    return np.dtype(
        [
            ("prompt", "i8"),
            ("weights", "f8", (experts,)),
            ("length", "i8"),
            ("tokens", "i4", (MOST_TOKENS,)),
            ("entropy", "f8", (experts,)),
        ],
        align=True,
    )


def state_fields(experts: int) -> tuple:
    """Fields of the match record for K experts."""
    return (
        ("text", text_dtype(experts), (1,)),
        ("drawn", "f8", (2 * rules.MOST_DOMAINS,)),  # the last random numbers
        ("domain", "i8"),
        ("features", "f8", (rules.MOST_DOMAINS,)),
        ("weights", "f8", (experts,)),  # of the last decision
        ("tokens", "i8"),  # that are compared with the answer
        ("place", "i8"),  # bytes of the answer with which the text begins
    )


def info_fields(domains: int) -> tuple[Field, ...]:
    """Fields of the info."""
    return (
        Field("right", (), 0.0, 1.0, "1", "share of the answer with which the text begins", "f8"),
        Field("domain", (), 0, domains - 1, "1", "domain of the prompt", "i8"),
    )


def reset(s, world):
    """Draws a prompt."""
    s.text[0].prompt = integer(s, len(world.domain))
    s.domain = world.domain[s.text[0].prompt]
    draw_features(s, world)


def command_one(s, world, actions, scratch):
    """One agent gives the logits of all experts."""
    for k in range(len(s.weights)):
        s.weights[k] = actions.agent[0].logits[k]
    hand_over(s)


def command_experts(s, world, actions, scratch):
    """Each agent gives the logit of its expert."""
    for k in range(len(s.weights)):
        s.weights[k] = actions.expert[k].logit
    hand_over(s)


def hand_over(s):
    """Gives the engine the weights."""
    to_weights(s.weights)
    for k in range(len(s.weights)):
        s.text[0].weights[k] = s.weights[k]


def evaluate(s, world, rewards, scratch):
    """Compares the tokens that the engine has written with the answer; pays when the match is over."""
    while s.tokens < s.text[0].length:
        if s.info.end_reason == 0:
            compare(s, world, s.text[0].tokens[s.tokens])
        s.tokens += 1
    goal = world.answer_start[s.text[0].prompt + 1] - world.answer_start[s.text[0].prompt]
    s.info.right = s.place / goal
    if s.info.end_reason == 0 and s.steps >= world.spans:
        s.info.end_reason = OUT_OF_TOKENS
    if s.info.end_reason != 0 or s.steps >= s.parameters.horizon:
        for k in range(len(rewards)):
            rewards[k] += s.info.right
    if s.info.end_reason != 0:
        return TERMINATED
    draw_features(s, world)
    return 0


def compare(s, world, token):
    """Compares the bytes of a token with those that follow in the answer."""
    start, end = world.token_start[token], world.token_start[token + 1]
    if start == end:
        s.info.end_reason = DEPARTED
    for i in range(start, end):
        if s.info.end_reason == 0:
            place = world.answer_start[s.text[0].prompt] + s.place
            if world.tokens[i] != world.answers[place]:
                s.info.end_reason = DEPARTED
            else:
                s.place += 1
                if place + 1 == world.answer_start[s.text[0].prompt + 1]:
                    s.info.end_reason = COMPLETE


def observe_one(s, world, observations, scratch):
    """The one agent."""
    write_sight(s, world, s.text[0].entropy, observations.agent[0])


def observe_experts(s, world, observations, scratch):
    """The agent of each expert sees the same, and which expert is its own."""
    for k in range(len(s.weights)):
        write_sight(s, world, s.text[0].entropy, observations.expert[k])
        observations.expert[k].own[k] = 1.0


def script_names(experts: int) -> tuple[str, ...]:
    """Names of the scripts in the order of their numbers."""
    return (*(f"static_{k}" for k in range(experts)), "entropy", "uniform")


def script_one(s, world, slot, which, actions, scratch):
    """The logits of a script."""
    for k in range(len(s.weights)):
        actions.agent[0].logits[k] = scripted_logit(s, which, k)


def script_experts(s, world, slot, which, actions, scratch):
    """The logit of a script for one expert."""
    actions.expert[slot].logit = scripted_logit(s, which, slot)


def scripted_logit(s, which, k):
    """Logit of expert k, see `script_names`."""
    experts = len(s.weights)
    if which == experts:
        return -ENTROPY_FACTOR * s.text[0].entropy[k]
    if which == experts + 1:
        return 0.0
    return LOGIT if k == which else -LOGIT
