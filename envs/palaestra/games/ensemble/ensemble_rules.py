"""The rules of LLMEnsemble: experts' distributions of a span's tokens, their weighted sum, and what is paid for it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from palaestra.game import TERMINATED, Continuous, Field, Parameter, Role, uniform
from palaestra.kernels.scalars import clip

MOST_EXPERTS, MOST_DOMAINS = 8, 8
MOST_SPANS, MOST_SPAN_TOKENS = 64, 16
LOGIT = 5.0
"""Bound of the actions: a weight is at most e^10 times another one."""
SINGLE_RIGHT, SINGLE_WRONG = (0.40, 0.45), (0.35, 0.30)
"""Probability of a synthetic expert's first token, where it is right and where it is wrong: the least one, and how
much more it may be. A wrong one has ``overconfidence * (1 - skill)`` more."""
MOST_OVERCONFIDENCE = 0.34
SECOND_SHARE = 0.5
"""Share of the rest that the second token has, less than the first one has; all tokens share what is left."""
NEAR = 0.5
"""Share of the wrong first tokens whose second token is the right one."""
ENTROPY_FACTOR = 1.0
"""Of the script `entropy`: by how much an expert of the entropy 0 has a larger logit than one of the entropy log V."""
SPREAD = math.sqrt(6.0)
"""Makes the sum of two uniform numbers, less 1, one of standard deviation 1."""
DRAWS = 6
"""Numbers that are drawn for each expert and token."""
COMPLETE = 2
"""Number of the end reason."""

PARAMETERS = (
    Parameter("domain_stay", 0.0, 0.0, 1.0, "1", "probability that a span has the domain of the one before"),
    Parameter("feature_noise", 0.3, 0.0, 1.0, "1", "standard deviation of the noise on the features"),
    Parameter("shared_errors", 0.3, 0.0, 1.0, "1", "share of wrong tokens that all experts have in common"),
    Parameter(
        "overconfidence",
        0.3,
        0.0,
        MOST_OVERCONFIDENCE,
        "1",
        "what lack of skill adds to the probability of a wrong first token",
    ),
)


class EnsembleWorld(NamedTuple):
    """The world of the game: K experts, D domains, V tokens.

    Attributes:
        spans: Most spans of a match.
        span_tokens: Tokens of a span.
        vocabulary: V.
        log_vocabulary: Its natural logarithm.
        domains: D.
        skill: float64 ``[K, D]``: how often the first token of an expert is right.
        best: int64 ``[D]``: the most skilful expert.
        cumulative: float64 ``[D]``: shares of the domains, added up.
        static: float64 ``[K]``: logits of the script `static`.
    """

    spans: int
    span_tokens: int
    vocabulary: int
    log_vocabulary: float
    domains: int
    skill: np.ndarray
    best: np.ndarray
    cumulative: np.ndarray
    static: np.ndarray


def state_fields(experts: int) -> tuple:
    """Fields of the match record for K experts; "next" is the span that the next decision writes."""
    tokens = (MOST_SPAN_TOKENS,)
    each = (MOST_SPAN_TOKENS, experts)
    return (
        ("drawn", "f8", (max(2 + DRAWS * experts, 2 * MOST_DOMAINS),)),  # the last random numbers
        ("domain", "i8"),  # of the next span
        ("features", "f8", (MOST_DOMAINS,)),
        ("entropy", "f8", (experts,)),  # of the next span's first token, as shares of log V
        ("right", "i4", tokens),  # right tokens of the next span
        ("top", "i4", each),  # first tokens of the experts there
        ("second", "i4", each),  # second tokens of the experts
        ("confidence", "f8", each),  # probability of their first tokens, beside their share of the rest
        ("weights", "f8", (experts,)),  # of the last decision
        ("written", "i4", tokens),  # tokens of the last span
        ("wanted", "i4", tokens),  # right ones there
        ("proposed", "i4", each),  # first ones of the experts there
        ("tokens", "i8"),  # written in this match
        ("count", "i8"),  # right ones of them
        ("expert_count", "i8", (experts,)),  # right first tokens of each expert
        ("history", "u1", (MOST_SPANS, experts + 1)),  # right tokens of each span: the experts', the ensemble's
    )


def info_fields(experts: int, domains: int) -> tuple[Field, ...]:
    """Fields of the info."""
    return (
        Field("right", (), 0.0, 1.0, "1", "share of right tokens so far", "f8"),
        Field(
            "domain", (), 0, domains - 1, "1", "domain of the next span; of the last one when the match is over", "i8"
        ),
        Field("expert_right", (experts,), 0.0, 1.0, "1", "the same of each expert's most probable tokens", "f8"),
    )


def _experts(experts: int) -> tuple[str, ...]:
    return tuple(f"expert {k}" for k in range(experts))


def observation_fields(experts: int, domains: int) -> tuple[Field, ...]:
    """What agents see."""
    return (
        Field(
            "features",
            (domains,),
            -2.5,
            3.5,
            "1",
            "domain of the next span, one-hot, with noise",
            capacity=MOST_DOMAINS,
            parts=tuple(f"domain {k}" for k in range(domains)),
        ),
        Field(
            "entropy",
            (experts,),
            0.0,
            1.0,
            "1",
            "of the experts at the span's first token, as shares of log V",
            parts=_experts(experts),
        ),
        Field("progress", (), 0.0, 1.0, "1", "spans written, as a share of all"),
    )


def roles_of(agents: str, experts: int, domains: int) -> tuple[Role, ...]:
    """The role of the one agent, or that of the agents of K experts; D domains."""
    seen = observation_fields(experts, domains)
    if agents == "one":
        logits = Continuous(
            "logits",
            (experts,),
            -LOGIT,
            LOGIT,
            "1",
            "weights of the experts before their softmax",
            parts=_experts(experts),
        )
        return (Role("agent", ("agent_0",), seen, (logits,)),)
    own = Field("own", (experts,), 0.0, 1.0, "1", "which expert is the agent's own, one-hot", parts=_experts(experts))
    logit = Continuous("logit", (), -LOGIT, LOGIT, "1", "weight of the own expert before the softmax of all")
    return (Role("expert", tuple(f"expert_{k}" for k in range(experts)), (*seen, own), (logit,)),)


# -- spans -------------------------------------------------------------------------------------------------------------


def reset(s, world):
    """Draws the first span."""
    draw_span(s, world)


def draw_features(s, world):
    """Draws what agents see of the domain of the next span."""
    s.info.domain = s.domain
    draw_numbers(s, 2 * world.domains)
    for d in range(world.domains):
        s.features[d] = s.parameters.feature_noise * SPREAD * (s.drawn[2 * d] + s.drawn[2 * d + 1] - 1.0)
    s.features[s.domain] += 1.0


def draw_numbers(s, amount):
    """Draws so many numbers in [0, 1): one place for the compiler instead of one each."""
    for i in range(amount):
        s.drawn[i] = uniform(s, 0.0, 1.0)


def draw_span(s, world):
    """Draws the next span: its domain, the distributions of the experts, and what agents see of it."""
    draw_domain(s, world)
    for t in range(world.span_tokens):
        draw_numbers(s, 2 + DRAWS * len(s.weights))
        right = np.int64(s.drawn[0] * world.vocabulary)
        common = another(world, right, s.drawn[1])
        s.right[t] = right
        for k in range(len(s.weights)):
            draw_expert(s, world, t, k, right, common)
    for k in range(len(s.weights)):
        s.entropy[k] = sparse_entropy(world, s.confidence[0, k])
    draw_features(s, world)


def draw_domain(s, world):
    """Keeps the domain of the span before, or draws one from the mixture; the first span has none before it."""
    draw_numbers(s, 1)
    stay = s.parameters.domain_stay if s.steps > 0 else 0.0
    if s.drawn[0] < stay:
        return
    draw = (s.drawn[0] - stay) / (1.0 - stay)
    s.domain = 0
    for d in range(world.domains - 1):
        s.domain += np.int64(draw >= world.cumulative[d])


def another(world, token, draw):
    """A token that is not this one; ``draw`` in [0, 1) says which."""
    return (token + 1 + np.int64(draw * (world.vocabulary - 1))) % world.vocabulary


def draw_expert(s, world, t, k, right, common):
    """Makes the first and the second token of an expert, and the probability of the first one, of its drawn numbers.

    Args:
        s: The match.
        world: The world.
        t: Token of the span.
        k: Expert.
        right: The right token.
        common: The wrong token of all experts whose error is a shared one.
    """
    skill, place = world.skill[k, s.domain], 2 + DRAWS * k
    is_right = s.drawn[place] < skill
    amount = s.drawn[place + 1]
    if is_right:
        first, second = right, common
        s.confidence[t, k] = SINGLE_RIGHT[0] + SINGLE_RIGHT[1] * amount
    else:
        is_shared = s.drawn[place + 2] < s.parameters.shared_errors
        first = common if is_shared else another(world, right, s.drawn[place + 3])
        second = right if s.drawn[place + 4] < NEAR else another(world, first, s.drawn[place + 5])
        s.confidence[t, k] = SINGLE_WRONG[0] + SINGLE_WRONG[1] * amount + s.parameters.overconfidence * (1.0 - skill)
    s.top[t, k], s.second[t, k] = first, second


def sparse_entropy(world, confidence):
    """Entropy of a synthetic distribution as a share of log V, see `sparse_parts`."""
    second = SECOND_SHARE * (1.0 - confidence)
    rest = (1.0 - confidence - second) / world.vocabulary
    total = (world.vocabulary - 2) * surprise(rest) + surprise(confidence + rest) + surprise(second + rest)
    return clip(total / world.log_vocabulary, 0.0, 1.0)


def surprise(share):
    """-p log p in nats."""
    return -share * math.log(share)


# -- the decision ------------------------------------------------------------------------------------------------------


def step_one(s, world, actions, rewards, scratch):
    """One agent gives the logits of all experts."""
    for k in range(len(s.weights)):
        s.weights[k] = actions.agent[0].logits[k]
    return write_span(s, world, rewards)


def step_experts(s, world, actions, rewards, scratch):
    """Each agent gives the logit of its expert."""
    for k in range(len(s.weights)):
        s.weights[k] = actions.expert[k].logit
    return write_span(s, world, rewards)


def write_span(s, world, rewards):
    """Writes a span with the logits in ``s.weights``, which become weights; pays when the match is over."""
    to_weights(s.weights)
    span = s.steps - 1
    for t in range(world.span_tokens):
        right = s.right[t]
        token = choose_token(s, t)
        s.written[t], s.wanted[t] = token, right
        s.tokens += 1
        count(s, span, len(s.weights), token == right)
        for k in range(len(s.weights)):
            s.proposed[t, k] = s.top[t, k]
            count(s, span, k, s.top[t, k] == right)
    s.info.right = s.count / s.tokens
    for k in range(len(s.weights)):
        s.info.expert_right[k] = s.expert_count[k] / s.tokens
    if s.steps >= world.spans or s.steps >= s.parameters.horizon:
        for k in range(len(rewards)):
            rewards[k] = s.info.right
    if s.steps >= world.spans:
        s.info.end_reason = COMPLETE
        return TERMINATED
    draw_span(s, world)
    return 0


def to_weights(logits):
    """Softmax in place: weights add up to 1."""
    largest, total = -LOGIT, 0.0
    for k in range(len(logits)):
        if logits[k] > largest:
            largest = logits[k]
    for k in range(len(logits)):
        logits[k] = math.exp(logits[k] - largest)
        total += logits[k]
    for k in range(len(logits)):
        logits[k] /= total


def count(s, span, column, is_right):
    """Counts a token of an expert, or of the ensemble, whose column is the last one."""
    if is_right:
        s.history[span, column] += np.uint8(1)
        if column == len(s.weights):
            s.count += 1
        else:
            s.expert_count[column] += 1


def choose_token(s, t):
    """The token of the largest weighted sum of distributions, the lowest of equal ones.

    All tokens have the same share of the rest of each expert: only first and second tokens are compared.
    """
    best, chosen = -1.0, -1
    for k in range(2 * len(s.weights)):
        token = s.top[t, k // 2] if k % 2 == 0 else s.second[t, k // 2]
        total = 0.0
        for j in range(len(s.weights)):
            confidence = s.confidence[t, j]
            if s.top[t, j] == token:
                total += s.weights[j] * confidence
            elif s.second[t, j] == token:
                total += s.weights[j] * SECOND_SHARE * (1.0 - confidence)
        if total > best or (total == best and token < chosen):
            best, chosen = total, np.int64(token)
    return chosen


# -- what agents see ---------------------------------------------------------------------------------------------------


def observe_one(s, world, observations, scratch):
    """The one agent."""
    write_sight(s, world, observations.agent[0])


def observe_experts(s, world, observations, scratch):
    """The agent of each expert sees the same, and which expert is its own."""
    for k in range(len(s.weights)):
        write_sight(s, world, observations.expert[k])
        observations.expert[k].own[k] = 1.0


def write_sight(s, world, seen):
    """Writes what all agents see."""
    for d in range(world.domains):
        seen.features[d] = s.features[d]
    for k in range(len(s.weights)):
        seen.entropy[k] = s.entropy[k]
    seen.progress = clip(s.steps / world.spans, 0.0, 1.0)


# -- scripts -----------------------------------------------------------------------------------------------------------


def script_names(experts: int) -> tuple[str, ...]:
    """Names of the scripts in the order of their numbers."""
    return (*(f"static_{k}" for k in range(experts)), "entropy", "uniform", "static", "oracle")


def script_one(s, world, slot, which, actions, scratch):
    """The logits of a script."""
    for k in range(len(s.weights)):
        actions.agent[0].logits[k] = scripted_logit(s, world, which, k)


def script_experts(s, world, slot, which, actions, scratch):
    """The logit of a script for one expert."""
    actions.expert[slot].logit = scripted_logit(s, world, which, slot)


def scripted_logit(s, world, which, k):
    """Logit of expert k, see `script_names`."""
    experts = len(s.weights)
    if which == experts:
        return -ENTROPY_FACTOR * s.entropy[k]
    if which == experts + 1:
        return 0.0
    if which == experts + 2:
        return world.static[k]
    wanted = world.best[s.domain] if which == experts + 3 else which
    return LOGIT if k == wanted else -LOGIT
