"""SearchQA: an agent answers a question by searching passages of text, turn by turn.

## Description

A question needs facts that stand in different passages: "What is the mayor of the birthplace of Velka Arnev?" The agent
searches, reads the first three passages that BM25 finds, searches again with what it has learnt, and answers. All the
worlds here but two are generated, names and all: nothing can be known beforehand, and each question carries the path of
facts that answers it. A question is asked only if one who follows its path is shown every fact that it needs.

``world="fresh"`` (the default): each match draws a world of its own, at most 24 entities with at most 8 relations, so
that ``reset(seed=[s] * G)`` is a group of G matches of one question. ``world="fixed"``: thousands of passages, the same
in all matches, and questions that are split by the entity that they begin with. ``world="stdlib"``: the documentation
of Python's standard library. Else `world` is a file of passages (`palaestra.games.search.corpora`).

The same match can be played in three forms, which share rules, seeds, search engine and scorer:

* ``form="structured"`` (the default for generated worlds): one choice, for any learner. What was found is a table.
* ``form="tokens"``: a verb and 16 words as numbers of a closed vocabulary; passages are words, too.
* ``form="text"``: text in, text out, for language models. Each observation is what came since the last turn;
  `palaestra.wrappers.Transcript` and `Messages` keep what came before.

The scripts play any form:

* ``oracle``: follows the path, and answers right.
* ``closed_book``: answers at once, with an answer of the right kind that is drawn at random.

## Action Space

<!-- table: action -->

``tokens``: 0 is no word, 1 a word that is not in the vocabulary; empty queries and answers are no turns.
``text``: the first complete pair of ``<search>query</search>`` or ``<answer>text</answer>`` is the turn; what stands
outside of it is free. Any text is a turn; one that says nothing is counted in ``info["malformed"]`` and told. Queries
and answers count up to 16 words. Where agents judge, a turn may be ``<judge>yes</judge>`` or ``<judge>no</judge>``.

## Observation Space

<!-- table: observation -->

``text``: first the prompt with the question (``prompt="search_r1"``, ``"plain"`` or a template), then the passages that
the last turn found, as ``<information>Doc 1(Title: "...") ...</information>``.

In `info`: ``exact_match``, ``f1``, ``hops_found`` (passages of the path that were found so far), ``turn_label`` (1: the
last turn found one for the first time, judged right, or answered right; -1: it did not), ``malformed``; with text also
``question``, ``answers`` and ``path``.

## Rewards

1 for an answer that equals a right one after lower case, without punctuation and articles. `partial_credit` times F1
for another answer, `turn_reward` for each needed passage that is found for the first time, less `malformed_cost` for
turns that say nothing. Judgements pay 0.3 where they are right, -0.6 for calling passages sufficient that have nothing
that is needed, -0.3 for calling others insufficient (S. Li et al., "ReSeek", 2025, arXiv:2510.00568), once a search.

## Starting State

``world="fresh"``: names, facts and sentences are drawn, then a path of `hops` relations over entities that differ, or,
with ``compare=True``, two entities. ``world="fixed"``: one of the questions of the `split`.

## Episode End

``answered``; ``out_of_words``, when queries and answers have taken `token_budget` words; or truncated after
`max_turns`. A turn of more words than are left is not played.

## Arguments

* `world`: ``"fresh"``, ``"fixed"``, ``"stdlib"``, ``"example"`` (a few passages on ancient games), or a file.
* `questions`: a file of questions, for a file of passages.
* `form`: ``"structured"``, ``"tokens"`` or ``"text"``. Files and ``"stdlib"`` have no table of facts to choose from.
* `hops`: facts that a question needs, 1 to 4, or the fewest and the most.
* `compare`: whether questions compare two entities.
* `entities`, `relations`: of a fresh world, 9 to 24 and 1 to 8.
* `passages`, `world_seed`, `split`: of a fixed world. None for `split` asks all questions.
* `aliases`, `near_duplicates`, `stale`, `contradicting`: shares of noise in generated worlds: mentions by another name,
  entities whose names begin as another one's, facts with a passage of what is no longer so, or is not so.
* `judge`: whether a turn may say that the passages help, or its three pays.
* `max_turns`: 1 to 128.
* `prompt`: of the text form.
* `retriever`: ``"bm25"``, or, in the text form of worlds that all matches share, what embeds passages and queries
  (`palaestra.games.search.dense`): the folder of a model, or ``"module:function"``. The same questions are asked as
  with BM25, and the oracle's searches find the passage that they need alone.

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import inspect
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import palaestra_assets
from palaestra.game import Field, Game, Parameter, Role, any_text, check_count, check_flag, check_word, names_files
from palaestra.games.search import sources, turns
from palaestra.games.search.dense import DenseIndex, RetrieverDigest
from palaestra.games.search.dense_codec import DenseTurnCodec
from palaestra.games.search.generator import MOST_PASSAGES, SPLITS, Noise
from palaestra.games.search.language import YEAR_RELATION
from palaestra.games.search.library import ENTITIES, MENTIONS, MOST_HOPS, PASSAGES, RELATIONS, Library, Rules
from palaestra.games.search.sources import Texts
from palaestra.games.search.turn_codec import TurnCodec

Form = Literal["structured", "tokens", "text"]
GENERATED = ("fresh", "fixed")
WORLDS = (*GENERATED, "stdlib", "example")
UNUSED = {
    "fresh": ("questions", "passages", "world_seed", "split", "retriever"),
    "fixed": ("questions", "entities", "relations"),
}
"""Keywords that a world does not use."""
UNUSED_BY_FILES = ("questions", "hops", "compare", "entities", "relations", "passages", "world_seed", *Noise._fields)
"""Likewise of other worlds; a file may have a second one with its ``questions``."""
FEWEST_ENTITIES, FEWEST_PASSAGES = 9, 100
JUDGEMENTS = (0.3, -0.6, -0.3)
"""Pays for a judgement that is right, that accepts what is of no use, that rejects what is."""

PARAMETERS = (
    Parameter("token_budget", 256, 1, turns.MOST_WORDS, "words", "to write in turns", at_start=True, whole=True),
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


@names_files(world=WORLDS, questions=(), retriever=("bm25",), prompt=any_text)
def game(
    world: str = "fresh",
    questions: str | None = None,
    form: Form | None = None,
    hops: int | tuple[int, int] = 2,
    compare: bool = False,
    entities: int = 24,
    relations: int | None = None,
    passages: int = 10_000,
    world_seed: int = 0,
    split: str | None = "train",
    aliases: float = 0.0,
    near_duplicates: float = 0.0,
    stale: float = 0.0,
    contradicting: float = 0.0,
    judge: bool | Sequence[float] = False,
    max_turns: int = 4,
    prompt: str = "search_r1",
    retriever: str = "bm25",
) -> Game:
    """The rules of `palaestra/SearchQA-2Hop-v0` and the like.

    Raises:
        ValueError: A word, a number or a prompt that does not fit; says which and what to do.
        FileError: A damaged file; names file and line.
    """
    given = locals()
    is_generated = world in GENERATED
    is_dense = retriever != "bm25"
    form = form or ("structured" if is_generated and not is_dense else "text")
    check_word("form", form, get_args(Form))
    if form == "structured" and not is_generated:
        raise ValueError(f'form="structured" needs a table of facts, which world={world!r} has not: take "text"')
    _refuse_unused(given, world, form)
    fewest, most = hops if isinstance(hops, tuple | list) and len(hops) == 2 else (hops, hops)
    check_count("hops (a number, or the fewest and the most)", fewest, 1, MOST_HOPS)
    check_count("hops (a number, or the fewest and the most)", most, fewest, MOST_HOPS)
    check_flag("compare", compare)
    check_count("entities", entities, FEWEST_ENTITIES, ENTITIES)
    relations = (RELATIONS if compare or world == "fixed" else 4) if relations is None else relations
    check_count("relations", relations, 1, RELATIONS)
    if relations == 1 and most > 1:
        raise ValueError("hops above 1 need paths that go on: give relations=2 or more")
    check_count("passages", passages, FEWEST_PASSAGES, MOST_PASSAGES)
    check_count("world_seed", world_seed, 0, 2**63 - 1)
    if split is not None:
        check_word("split", split, SPLITS)
    check_count("max_turns", max_turns, 1, turns.MOST_TURNS)
    noise = Noise(aliases, near_duplicates, stale, contradicting)
    for name, share in noise._asdict().items():
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"{name} is a share from 0 to 1, got {share!r}")
    first_second, first_stem = sources.first_words()
    has_years = relations > YEAR_RELATION
    rules = Rules(
        fresh=int(world == "fresh"),
        structured=int(form == "structured"),
        dense=int(is_dense),
        entities=entities,
        relations=relations,
        mentions=MENTIONS if has_years or world == "fixed" else min(MENTIONS, entities),
        questions=0,
        fewest_hops=fewest,
        most_hops=most,
        compare=int(compare),
        judge=int(judge is not False),
        **dict(zip(("judge_right", "judge_accept", "judge_reject"), _judgements(judge), strict=True)),
        **noise._asdict(),
        first_second=first_second,
        first_stem=first_stem,
    )
    if world == "fresh":
        library, texts = sources.fresh_world(rules)
    elif world == "fixed":
        library, texts = sources.fixed_world(rules, passages, world_seed, noise, (fewest, most), compare, split)
    else:
        library, texts = sources.corpus_world(rules, read_corpus(world, questions), split)
    if is_dense:
        texts = replace(texts, index=DenseIndex(texts.passages, retriever))
    return _game(library, texts, form, max_turns, prompt, retriever, world == "stdlib")


def _refuse_unused(given: Mapping[str, Any], world: str, form: Form) -> None:
    """Refuses what was said and means nothing.

    Raises:
        ValueError: A keyword other than by default that this world or form does not use; names it.
    """
    unused = list(UNUSED.get(world, UNUSED_BY_FILES if world in WORLDS else UNUSED_BY_FILES[1:]))
    of_form = [*["prompt"] * (form == "structured"), *["retriever"] * (form != "text")]
    for name in (*unused, *of_form):
        if given[name] is not None and given[name] != inspect.signature(game).parameters[name].default:
            where = f"form={form!r}" if name in of_form else f"world={world!r}"
            raise ValueError(f"{name}={given[name]!r} means nothing with {where}: leave it out")


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
    if world != "stdlib" and not Path(world).exists():
        raise ValueError(f"world={world!r}: give {', '.join(map(repr, WORLDS))}, or a file of passages")
    return corpora.read(world, questions)


def _judgements(judge: bool | Sequence[float]) -> tuple[float, float, float]:
    pays = JUDGEMENTS if isinstance(judge, bool) else tuple(float(pay) for pay in judge)
    if len(pays) != 3 or not all(math.isfinite(pay) for pay in pays):
        raise ValueError(f"judge={judge!r}: give True, or what a right, an accepting and a rejecting judgement pay")
    return pays


def _game(
    library: Library, texts: Texts, form: Form, max_turns: int, prompt: str, retriever: str, is_of_python: bool
) -> Game:
    """The rules on arrays; those of the standard library differ from version to version of Python."""
    rules = library.rules
    is_structured, is_dense, judges = form == "structured", bool(rules.dense), bool(rules.judge)
    codec = DenseTurnCodec if is_dense else TurnCodec
    if is_structured:
        observation = turns.structured_fields(rules.relations, rules.mentions)
        action = (turns.structured_choice(rules.relations, rules.mentions, judges),)
    else:
        documents = len(library.starts) - 1 if rules.fresh == 0 else PASSAGES
        observation = turns.token_fields(documents, rules.questions, len(texts.words))
        action = turns.token_choices(len(texts.words), judges)
        if is_dense:
            action = (*action, turns.found_choice(documents))
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
        scripts=turns.SCRIPTS,
        default_opponent=turns.SCRIPTS[0],
        parameters=PARAMETERS,
        horizon=max_turns,
        info=INFO,
        end_reasons=("answered", "out_of_words"),
        scratch=turns.SCRATCH,
        world=library,
        determinism="per-platform" if is_of_python or is_dense else "cross-platform",
        engine_version=platform.python_version if is_of_python else None,
        model_digest=RetrieverDigest(retriever) if is_dense else None,
        codecs={} if is_structured else {"text": codec(texts, prompt, judges)},
        default_codec="text" if form == "text" else None,
        render="palaestra.games.search.search_render:draw",
        render_text="palaestra.games.search.search_render:write",
        render_fps=1.0,
        captions=texts,
    )
