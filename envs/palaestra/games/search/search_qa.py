"""SearchQA: an agent answers a question by searching passages of text, turn by turn.

## Description

A question needs facts that stand in different passages: "What is the mayor of the birthplace of Velka Arnev?" The agent
searches, reads the first passages that BM25 finds (`topk`), searches again with what it has learnt, and answers. All
the worlds here but two are generated, names and all: nothing can be known beforehand, and each question carries the
path of facts that answers it. A question is asked only if one who follows its path is shown every fact that it needs.

``world="fresh"`` (the default): each match draws a world of its own, at most 24 entities with at most 8 relations, so
that ``reset(seed=[s] * G)`` is a group of G matches of one question. ``world="fixed"``: thousands of passages, the same
in all matches, and questions with splits (see Starting State). ``world="example"``: a few passages on ancient games.
Else `world` is a file of passages (`palaestra.games.search.corpora`).

The same match can be played in three forms, which share rules, seeds, search engine and scorer:

* ``form="structured"`` (the default for generated worlds): one choice, for any learner. What was found is a table; the
  order of its entities does not tell which passage was ranked first.
* ``form="tokens"``: a verb and 16 words as numbers of a closed vocabulary; passages are words, too.
* ``form="text"``: text in, text out, for language models. Each observation is what came since the last turn;
  `palaestra.wrappers.Transcript` and `Messages` keep what came before.

The scripts play any form:

* ``oracle``: follows the path, and answers right.
* ``closed_book``: answers at once, with an answer of the right kind that is drawn at random.
* ``first_hit``: searches as the oracle does, but takes the first object of the first passage of each search, and reads
  nothing else. In files it searches the question, and answers the first word of the first passage that is new.

Shares of right answers, and of the oracle's searches whose first passage is the one that is needed; 4,096 matches each
in the default form, where ``closed_book`` can only choose among what was mentioned
(``python benchmarks/search_shares.py``). Where ``first_hit`` is right, nothing must be read; see SearchQA-Reading.

| preset | `oracle` | `closed_book` | `first_hit` | random | needed passage first |
|---|---|---|---|---|---|
| SearchQA-2Hop-v1 | 1.000 | 0.000 | 1.000 | 0.014 | 1.000 |
| SearchQA-1Hop-v1 | 1.000 | 0.000 | 1.000 | 0.064 | 1.000 |
| SearchQA-3Hop-v1 | 1.000 | 0.000 | 1.000 | 0.015 | 1.000 |
| SearchQA-Bridge4-v1 | 1.000 | 0.000 | 1.000 | 0.021 | 1.000 |
| SearchQA-Compare-v1 | 1.000 | 0.506 | 0.999 | 0.090 | 0.998 |
| SearchQA-Noisy-v1 | 1.000 | 0.000 | 0.629 | 0.027 | 0.792 |
| SearchQA-Fictional-v1 | 1.000 | 0.000 | 0.722 | 0.007 | 0.861 |
| SearchQA-Judge-v1 | 1.000 | 0.000 | 1.000 | 0.030 | 1.000 |
| SearchQA-Custom-v1 | 1.000 | 0.116 | 0.115 | 0.000 | 1.000 |

## Action Space

<!-- table: action -->

``tokens``: 0 is no word, 1 a word that is not in the vocabulary; empty queries and answers are no turns.
``text``: the first complete pair of ``<search>query</search>`` or ``<answer>text</answer>`` is the turn; what stands
outside of it is free. Any text is a turn; one that says nothing is counted in ``info["malformed"]`` and told, and so
are a query of more than `query_words` words and an answer of more than 16. Where agents judge, a turn may be
``<judge>yes</judge>`` or ``<judge>no</judge>``.

## Observation Space

<!-- table: observation -->

``text``: first the prompt with the question (``prompt="search_r1"``, ``"plain"`` or a template), then the passages that
the last turn found, as ``<information>Doc 1(Title: "...") ...</information>``.

In `info`: ``exact_match``, ``f1``, ``hops_found`` (passages of the path that were found so far), ``turn_label`` (1: the
last turn found one for the first time, judged right, or answered right; -1: it did not), ``malformed``, and ``number``,
the question's in a world that all matches share (no observation has it). With text also ``question``, ``answers`` and
``path``; the last two are empty once the next match has begun.

## Rewards

1 for an answer that equals a right one after lower case, without punctuation and articles: exact match and F1 are those
of `palaestra.games.search.score`, the rule of SQuAD and Search-R1. `partial_credit` times F1 for another answer,
`turn_reward` for each needed passage when it is found first, less `malformed_cost` for turns that say nothing.

A judgement of a search costs 0.6 where it calls passages sufficient that have nothing that is needed, and 0.3 where it
calls others insufficient. A right one earns 0.3 (S. Li et al., "ReSeek", 2025, arXiv:2510.00568), but here once a
needed passage, and with the answer: a match without an answer is paid nothing. A right ``no``, a search that found
nothing, and passages that were judged before are not paid, as they could be repeated at will.

## Starting State

``world="fresh"``: names, facts and sentences are drawn, then a path of `hops` relations over entities that differ, or,
with ``compare=True``, two entities. ``world="fixed"``: one of the questions of the `split`. By ``split_by="facts"`` no
fact leads from an entity of one split to one of another: none of the passages that questions of test need is needed by
a question of training. By ``"first_entity"`` 0.63 of them are (0.78 with ``hops=(1, 4)``, 0.34 with ``compare=True``),
as in data sets that are split by question: ``python benchmarks/search_claims.py``.

## Episode End

``answered``; ``out_of_words``, when queries and answers have taken `token_budget` words; or truncated after
`max_turns`. A turn of more words than are left is not played.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v1: splits have different facts, judgements cannot be farmed, exact match and F1 are those of the scorer, combining
  marks belong to words, no observation has the question's number, choices tell no ranks, ``world="stdlib"`` is gone.
  Queries in text have up to 64 words, and longer ones are refused, not cut to 16; `topk`; the script ``first_hit``.
* v0: first version.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import palaestra_assets
from palaestra.game import Field, Game, Option, Parameter, Role, any_text, with_options
from palaestra.games.search import sources, turns
from palaestra.games.search.dense import DenseIndex, RetrieverDigest
from palaestra.games.search.dense_codec import DenseTurnCodec
from palaestra.games.search.generator import MOST_PASSAGES, SPLITS, SPLITS_BY
from palaestra.games.search.language import YEAR_RELATION
from palaestra.games.search.library import (
    ENTITIES,
    MENTIONS,
    MOST_HOPS,
    MOST_TOP,
    MOST_WORDS,
    PASSAGES,
    RELATIONS,
    TOP,
    WORDS,
    Library,
    Rules,
)
from palaestra.games.search.sources import Texts
from palaestra.games.search.turn_codec import TurnCodec

GENERATED = ("fresh", "fixed")
WORLDS = (*GENERATED, "example")
JUDGEMENTS = (0.3, -0.6, -0.3)
"""Pays for a judgement that is right, that accepts what is of no use, that rejects what is."""

PARAMETERS = (
    Parameter("token_budget", 256, 1, turns.LARGEST_BUDGET, "words", "to write in turns", at_start=True, whole=True),
    Parameter("partial_credit", 0.0, 0.0, 1.0, "1", "pay for F1 of an answer that is not right"),
    Parameter("turn_reward", 0.0, 0.0, 1.0, "1", "pay for each needed passage when it is found first"),
    Parameter("malformed_cost", 0.0, 0.0, 1.0, "1", "price of a turn that says nothing"),
)
INFO = (
    Field("exact_match", (), 0, 1, "1", "the answer is right", "i8"),
    Field("f1", (), 0.0, 1.0, "1", "F1 of the answer's words", "f8"),
    Field("hops_found", (), 0, MOST_HOPS, "1", "needed passages that were found", "i8"),
    Field("turn_label", (), -1, 1, "1", "1 if the last turn was of use, else -1", "i8"),
    Field("malformed", (), 0, turns.MOST_TURNS, "1", "turns that said nothing", "i8"),
)
NUMBER = Field("number", (), -1, 2**31 - 1, "1", "of the question in a world that all matches share, else -1", "i8")


def form_of(form: str, above: Mapping[str, Any]) -> str:
    """Refuses choices where there is no table of facts.

    Raises:
        ValueError: The world has none.
    """
    world = above["world"]
    if form == "structured" and world not in GENERATED:
        raise ValueError(f'form="structured" needs a table of facts, which world={world!r} has not: take "text"')
    return form


def relations_of(relations: int, above: Mapping[str, Any]) -> int:
    """Refuses a single relation where paths have several.

    Raises:
        ValueError: They have.
    """
    if relations == 1 and above["hops"][1] > 1 and not above["compare"]:
        raise ValueError("hops above 1 need paths that go on: give relations=2 or more")
    return relations


def judgements_of(judge: Any, above: Mapping[str, Any]) -> tuple[float, ...] | None:
    """What judgements pay; None without any.

    Raises:
        ValueError: Neither True nor False nor three numbers.
    """
    if judge is False:
        return None
    pays = JUDGEMENTS if judge is True else tuple(float(pay) for pay in judge)
    if len(pays) != 3 or not all(math.isfinite(pay) for pay in pays):
        raise ValueError(f"judge={judge!r}: give True, or what a right, an accepting and a rejecting judgement pay")
    return pays


ENTITIES_OF_WORLD = Option("entities", ENTITIES, "of a fresh world", low=9, high=ENTITIES, only={"world": "fresh"})
MAX_TURNS = Option("max_turns", 4, "turns after which a match is truncated", low=1, high=turns.MOST_TURNS)
PROMPT = Option(
    "prompt",
    "search_r1",
    '`"search_r1"`, `"plain"`, or a template with `{question}`, and `{turns}` and `{words}` where it tells them',
    texts=any_text,
    only={"form": "text"},
    example="plain",
)
TOPK = Option("topk", TOP, "passages that a search shows", low=1, high=MOST_TOP)
QUERY = Option(
    "query_words",
    MOST_WORDS,
    "most words of a query; longer ones are refused",
    low=1,
    high=MOST_WORDS,
    only={"form": "text"},
)
NOISE = tuple(
    Option(name, 0.0, about, low=0.0, high=1.0, only={"world": GENERATED})
    for name, about in (
        ("aliases", "share of the mentions by another name"),
        ("near_duplicates", "share of the entities whose names begin as another one's"),
        ("stale", "share of the facts with a passage of what is no longer so"),
        ("contradicting", "share of the facts with a passage of what is not so"),
    )
)


@with_options(
    Option(
        "world",
        "fresh",
        '`"fresh"`, `"fixed"`, `"example"` (a few passages on ancient games), or a file of passages',
        texts=WORLDS,
    ),
    Option(
        "questions",
        None,
        "a file of questions, for a file of passages",
        texts=(),
        only={"world": lambda world: world not in WORLDS},
    ),
    Option(
        "retriever",
        "bm25",
        '`"bm25"`, or, in worlds that all matches share, what embeds passages and queries '
        '(`palaestra.games.search.dense`): the folder of a model, or `"module:function"`. The same questions are asked '
        "as with BM25, and the oracle's searches find the passage that they need alone",
        texts=("bm25",),
        only={"world": lambda world: world != "fresh", "form": "text"},
    ),
    Option(
        "form",
        None,
        "choices, numbers of words, or text; by default choices in generated worlds with BM25, else text. Files have "
        "no table of facts to choose from",
        words=("structured", "tokens", "text"),
        check=form_of,
        otherwise=lambda options: (
            "structured" if options["world"] in GENERATED and options["retriever"] == "bm25" else "text"
        ),
    ),
    Option(
        "hops",
        2,
        "facts that a question needs",
        low=1,
        high=MOST_HOPS,
        is_span=True,
        only={"world": GENERATED, "compare": False},
    ),
    Option("compare", False, "whether questions compare two entities", only={"world": GENERATED}),
    ENTITIES_OF_WORLD,
    Option(
        "relations",
        None,
        f"of a fresh world; by default 4, or {RELATIONS} where questions compare",
        low=1,
        high=RELATIONS,
        check=relations_of,
        otherwise=lambda options: RELATIONS if options["compare"] or options["world"] == "fixed" else 4,
        only={"world": "fresh"},
    ),
    Option("passages", 10_000, "of a fixed world", low=100, high=MOST_PASSAGES, only={"world": "fixed"}, example=200),
    Option("world_seed", 0, "of a fixed world", low=0, high=2**63 - 1, only={"world": "fixed"}),
    Option(
        "split",
        "train",
        "which questions of a world that all matches share are asked; None asks all",
        words=(*SPLITS, None),
        check=lambda split, above: None if above["world"] == "fresh" else split,
        only={"world": lambda world: world != "fresh"},
    ),
    Option(
        "split_by",
        SPLITS_BY[0],
        "what tells the splits of a fixed world apart: by facts, none that a question of one split needs is needed in "
        "another one; or by the entity alone that a question begins with",
        words=SPLITS_BY,
        only={"world": "fixed"},
    ),
    Option(
        "strict",
        False,
        "whether a question of a file that cannot be asked is an error; else a warning counts them",
        only={"world": lambda world: world not in GENERATED},
    ),
    *NOISE,
    Option(
        "judge",
        False,
        "whether a turn may say that the passages help (True, False), or what a right, an accepting and a rejecting "
        "judgement pay",
        check=judgements_of,
    ),
    MAX_TURNS,
    TOPK,
    QUERY,
    PROMPT,
)
def game(options: Any) -> Game:
    """The rules of `palaestra/SearchQA-2Hop-v1` and the like.

    Raises:
        FileError: A damaged file; names file and line.
    """
    world, relations = options.world, options.relations
    is_dense = options.retriever != "bm25"
    first_second, first_stem = sources.first_words()
    has_years = relations > YEAR_RELATION
    rules = Rules(
        fresh=int(world == "fresh"),
        structured=int(options.form == "structured"),
        dense=int(is_dense),
        entities=options.entities,
        mentions=MENTIONS if has_years or world == "fixed" else min(MENTIONS, options.entities),
        questions=0,
        judge=int(options.judge is not None),
        **dict(zip(("judge_right", "judge_accept", "judge_reject"), options.judge or JUDGEMENTS, strict=True)),
        first_second=first_second,
        first_stem=first_stem,
    )
    if world == "fresh":
        library, texts = sources.fresh_world(rules, options)
    elif world == "fixed":
        library, texts = sources.fixed_world(rules, options)
    else:
        library, texts = sources.corpus_world(rules, options, read_corpus(world, options.questions))
    if is_dense:
        texts = replace(texts, index=DenseIndex(texts.passages, options.retriever))
    return _game(options, library, texts)


def read_corpus(world: str, questions: str | None) -> Any:
    """The passages and questions of `world`.

    Raises:
        FileError: A damaged file; names file and line.
        ValueError: Neither a word nor a file.
    """
    from palaestra.games.search import corpora

    if world == "example":
        files = (palaestra_assets.path(f"search/example_{what}.jsonl") for what in ("passages", "questions"))
        return corpora.read(*files)
    if not Path(world).exists():
        raise ValueError(f"world={world!r}: give {', '.join(map(repr, WORLDS))}, or a file of passages")
    return corpora.read(world, questions)


def _game(options: Any, library: Library, texts: Texts) -> Game:
    """The rules on arrays."""
    rules = library.rules
    is_structured, is_dense, judges = bool(rules.structured), bool(rules.dense), bool(rules.judge)
    is_text = options.form == "text"
    codec = DenseTurnCodec if is_dense else TurnCodec
    query_words, room = (options.query_words, MOST_WORDS) if is_text else (WORDS, WORDS)
    if is_structured:
        observation = turns.structured_fields(options.relations, rules.mentions)
        action = (turns.structured_choice(options.relations, rules.mentions, judges),)
    else:
        documents = len(library.starts) - 1 if rules.fresh == 0 else PASSAGES
        observation = turns.token_fields(documents, len(texts.words), options.topk)
        action = turns.token_choices(len(texts.words), judges, options.query_words if is_text else 0)
        if is_dense:
            action = (*action, turns.found_choice(documents, options.topk))
    return Game(
        name="SearchQA",
        roles=(Role("agent", ("agent_0",), observation, action),),
        state=turns.STATE,
        reset=turns.reset,
        step=turns.step_structured if is_structured else turns.step_dense if is_dense else turns.step_tokens,
        observe=turns.observe_structured if is_structured else turns.observe_tokens,
        observe_reset=None if is_structured else turns.observe_question,
        legal=turns.legal_structured if is_structured else None,
        script=turns.script_structured if is_structured else turns.script_dense if is_dense else turns.script_tokens,
        scripts=turns.SCRIPTS[: turns.FIRST_HIT] if is_dense else turns.SCRIPTS,
        default_opponent=turns.SCRIPTS[0],
        parameters=PARAMETERS,
        horizon=options.max_turns,
        info=(*INFO, replace(NUMBER, about=f"{NUMBER.about}; none was left out") if options.strict else NUMBER),
        end_reasons=("answered", "out_of_words"),
        scratch=turns.SCRATCH,
        world=library,
        determinism="per-platform" if is_dense else "cross-platform",
        model_digest=RetrieverDigest(options.retriever) if is_dense else None,
        codecs={} if is_structured else {"text": codec(texts, options.prompt, judges, options.topk, query_words, room)},
        default_codec="text" if options.form == "text" else None,
        render="palaestra.games.search.search_render:draw",
        render_text="palaestra.games.search.search_render:write",
        render_fps=1.0,
        captions=texts,
    )
