"""LLMEnsemble: language models write one text together; agents weight them anew for each span of tokens.

## Description

K language models, the *experts*, write one text, as in RLAE (Fu et al., arXiv:2506.00439). A text is spans of a few
tokens. Before each span agents give weights to the experts, which hold for the span: the next token is the most
probable one of the weighted sum of the experts' distributions. Paid is how much of the text is right.

Experts are better in some domains than in others. An agent sees hints at the domain of the next span and how sure the
experts are of its first token; it does not see which tokens were right.

``LLMEnsemble-v0`` has one agent that weights all experts, ``LLMEnsemble-Multi-v0`` one agent for each expert
(``expert_0``, ...), which are paid the same. With equal seeds and equal logits their matches are equal.

The experts are synthetic. An expert puts most of its probability on a first token, less on a second one, and shares the
rest equally among all tokens. ``skill[k][d]`` is how often the first token of expert k is right in domain d; with
``shared_errors`` its wrong token is one that the other experts' wrong tokens are, too. The first token has a
probability of 0.40 to 0.85 where it is right, and of 0.35 to 0.65 plus ``overconfidence * (1 - skill)`` where it is
wrong: unskilled experts are sure of their errors, so that weights by entropy do not find the best expert. Each span has
a domain of its own; with ``domain_stay`` it may be that of the span before.

The scripts, and the share of right tokens in 4,096 matches by default (95% intervals within 0.005):

1. ``static_0``, ``static_1``, ... (0.36, 0.63, 0.64): all weight on one expert.
2. ``entropy`` (0.65): weights that fall with the expert's entropy, in proportion to ``exp(-h)`` where h is seen.
3. ``uniform`` (0.68): equal weights.
4. ``static`` (0.71): weights in proportion to the experts' shares of right tokens. Of all weights in
   tenths that are the same in all spans none is better.
5. ``oracle`` (0.93): all weight on the best expert of the span. It knows the domain and the skills.

Random weights reach 0.54, all weight on the expert that is best where the features are largest reaches 0.92: a table of
15 numbers, so that there is little to learn. With ``spans=12, domain_stay=0.95, feature_noise=1.0`` the domain is
hidden: the largest feature is that of the domain in 49% of the spans, and only all spans so far tell more. There random
weights reach 0.54, that table 0.70, a table of the sum of features that fades by a tenth with each span 0.82, the
oracle 0.93.

## Action Space

<!-- table: action -->

The weights are the softmax of all logits.

## Observation Space

<!-- table: observation -->

In `info`: ``right``, ``domain`` and ``expert_right``.

## Rewards

The share of right tokens when the match ends, 0 before; all agents are paid the same.

## Starting State

A span has the domain of the one before with probability ``domain_stay``, else one drawn from ``mixture``. Then, for
each token, the right one is drawn, uniformly from the vocabulary, and what the experts say. The tokens that are written
change nothing of what is drawn later: the experts read the right text so far.

## Episode End

``complete``: all spans are written. A smaller ``horizon`` truncates the match, and what is written is paid.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from palaestra.game import Game, Option, with_options
from palaestra.games.ensemble import ensemble_rules as rules
from palaestra.games.ensemble.ensemble_rules import LOGIT, MOST_DOMAINS, MOST_EXPERTS, EnsembleWorld

SKILL = (
    (0.25, 0.20, 0.95, 0.20, 0.20),
    (0.95, 0.45, 0.35, 0.90, 0.50),
    (0.45, 0.95, 0.40, 0.50, 0.90),
)
"""How often the first token of each expert is right in each domain."""
LEAST_SHARE = 1e-9
"""Takes the place of skills of 0 in logarithms."""


def skill_of(skill: Any, above: Mapping[str, Any]) -> np.ndarray:
    """Skills, float64 ``[K, D]``.

    Raises:
        ValueError: No such table.
    """
    try:
        table: np.ndarray = np.array(skill, np.float64)
    except (TypeError, ValueError):
        table = np.zeros((0, 0))
    experts, domains = table.shape if table.ndim == 2 else (0, 0)
    has_size = 1 <= experts <= MOST_EXPERTS and 1 <= domains <= MOST_DOMAINS
    if not has_size or not ((table >= 0.0) & (table <= 1.0)).all():
        sizes = f"1 to {MOST_EXPERTS} experts, each with 1 to {MOST_DOMAINS} domains"
        raise ValueError(f"skill={skill!r}: give a row of numbers from 0 to 1 for each of {sizes}")
    return table


def mixture_of(mixture: Any, above: Mapping[str, Any]) -> np.ndarray:
    """Shares of the domains, float64 ``[D]``, which add up to 1.

    Raises:
        ValueError: No such numbers.
    """
    domains = above["skill"].shape[1]
    try:
        weights = np.array(mixture, np.float64)
    except (TypeError, ValueError):
        weights = np.zeros(0)
    if weights.shape != (domains,) or not np.isfinite(weights).all() or (weights < 0.0).any() or weights.sum() <= 0.0:
        raise ValueError(
            f"mixture={mixture!r}: give {domains} numbers of 0 or more, one each domain, not all of them 0"
        )
    return weights / weights.sum()


@with_options(
    Option("agents", "one", "who gives weights: one agent, or one for each expert", words=("one", "experts")),
    Option(
        "skill",
        SKILL,
        f"a row of numbers from 0 to 1 for each expert (at most {MOST_EXPERTS}), one number a domain (at "
        f"most {MOST_DOMAINS})",
        check=skill_of,
        example=((0.9, 0.1), (0.1, 0.9)),
    ),
    Option(
        "mixture",
        None,
        "weights of the domains, by default equal ones",
        check=mixture_of,
        otherwise=lambda options: mixture_of(np.ones(options["skill"].shape[1]), options),
        example=(1, 0, 0, 0, 0),
    ),
    Option("spans", 6, "of a match", low=1, high=rules.MOST_SPANS),
    Option("span_tokens", 4, "tokens of a span", low=1, high=rules.MOST_SPAN_TOKENS),
    Option("vocabulary", 24, "tokens of the experts", low=4, high=1_000_000),
)
def game(options: Any) -> Game:
    """The rules of `palaestra/LLMEnsemble-v0` and `palaestra/LLMEnsemble-Multi-v0`."""
    (experts, domains), is_one = options.skill.shape, options.agents == "one"
    names = rules.script_names(experts)
    world = EnsembleWorld(
        options.spans,
        options.span_tokens,
        options.vocabulary,
        log_vocabulary=math.log(options.vocabulary),
        domains=domains,
        skill=options.skill,
        best=options.skill.argmax(axis=0),
        cumulative=np.cumsum(options.mixture),
        static=static_logits(options.skill @ options.mixture),
    )
    return Game(
        name="LLMEnsemble",
        roles=rules.roles_of(options.agents, experts, domains),
        state=rules.state_fields(experts),
        reset=rules.reset,
        step=rules.step_one if is_one else rules.step_experts,
        observe=rules.observe_one if is_one else rules.observe_experts,
        script=rules.script_one if is_one else rules.script_experts,
        scripts=names,
        default_opponent=names[-1],
        parameters=rules.PARAMETERS,
        horizon=world.spans,
        info=rules.info_fields(experts, domains),
        end_reasons=("complete",),
        world=world,
        determinism="per-platform",
        render="palaestra.games.ensemble.ensemble_render:draw",
        render_text="palaestra.games.ensemble.ensemble_render:write",
        render_fps=1.0,
    )


def static_logits(accuracies: np.ndarray) -> np.ndarray:
    """Logits of weights in proportion to the experts' shares of right tokens, float64 ``[K]``."""
    logs = np.log(np.maximum(accuracies, LEAST_SHARE))
    return np.clip(logs - logs.max(), -LOGIT, LOGIT)
