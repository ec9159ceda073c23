"""SearchQA-Reading: an agent answers questions by searching passages that say things in other words.

## Description

The worlds of SearchQA can be played without reading: the first passage of a search has the fact, in the question's own
words. Here the words must be understood:

* A question names a relation by other words than a passage: "the town where Velka Arnev was born" is "Velka Arnev came
  into the world at Dorab Harbour" there. They share no word but the names, and such as "the" and "of".
* An entity has two passages with its name as title, of 60 to 120 words, and is mentioned in others. BM25 ranks the one
  that is needed first in about half of the searches for a name and the question's words; the words of questions stand
  in sentences that are of no use, and other entities have the same relations in the same passages.
* Facts take two sentences: "She came into the world at ...", "The latter ...", "Its founder ...".
* Answers are names, years, and numbers, which may be the sum of two ("three sons and two daughters"); or which of two
  is earlier.
* Where no passage has the fact, or one says that nobody knows it, the right answer is the word ``unknown``.

Shares of right answers, and of the oracle's searches whose first passage is the one that is needed; 4,096 matches each
(``python benchmarks/search_shares.py``):

| preset | `oracle` | `closed_book` | `first_hit` | random | needed passage first |
|---|---|---|---|---|---|
| SearchQA-Reading-v0 | 1.000 | 0.091 | 0.191 | 0.000 | 0.509 |
| SearchQA-Reading-Fictional-v0 | 1.000 | 0.046 | 0.253 | 0.000 | 0.562 |

A policy that knows the sentences, and nothing of the package, answers all questions (`tests/search/readers.py`).

``world="fresh"`` (the default): each match draws 36 entities and 72 passages, so that ``reset(seed=[s] * G)`` is a
group of G matches of one question; the parameter `question` asks another one about the same world. ``world="fixed"``:
thousands of passages that all matches share, with splits that share no fact.

There are two forms, which share rules, seeds, search engine and scorer: ``form="text"`` (the default), and
``form="tokens"``, a verb and 16 words as numbers of a closed vocabulary. There is no table of facts to choose from.

The scripts:

* ``oracle``: searches for the names along the path with the question's words, and answers right.
* ``closed_book``: answers at once, with an answer of the right kind that is drawn at random.
* ``first_hit``: searches as the oracle does, but takes the first name, year or number of the wanted kind in the first
  passage of each search, and reads nothing else.

## Action Space

<!-- table: action -->

``text``: the first complete pair of ``<search>query</search>`` or ``<answer>text</answer>`` is the turn; what stands
outside of it is free. Any text is a turn; one that says nothing is counted in ``info["malformed"]`` and told, as is a
query of more than `query_words` words. Answers count up to 16 words. ``tokens``: 0 is no word, 1 a word that is not in
the vocabulary; empty queries and answers are no turns.

## Observation Space

<!-- table: observation -->

``text``: first the prompt with the question (``prompt="search_r1"``, ``"plain"`` or a template), then the passages that
the last turn found, as ``<information>Doc 1(Title: "...") ...</information>``. ``tokens``: the full stop is a word of
passages; no search finds it.

In `info`: ``exact_match``, ``f1``, ``hops_found`` (passages of the path that were found so far), ``turn_label`` (1: the
last turn found one for the first time, or answered right; -1: it did not), ``malformed``, and ``number``, the
question's in a fixed world. With text also ``question``, ``answers`` and ``path``; once the next match has begun, the
last two are empty.

## Rewards

As in SearchQA: 1 for an answer that equals a right one after lower case, without punctuation and articles; a number
may be a word or digits. `partial_credit` times F1 for another answer, `turn_reward` for each needed passage that is
found for the first time, less `malformed_cost` for turns that say nothing.

## Starting State

Names, facts and sentences are drawn, then a question: 5 % ask which of two is earlier, 8 % what nobody knows, the
others follow a path of `hops` relations to an entity, a year or a number. ``world="fixed"``: one of the questions of
the `split`.

## Episode End

``answered``; ``out_of_words``, when queries and answers have taken `token_budget` words; or truncated after
`max_turns`. A turn of more words than are left is not played.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from palaestra.game import Game, Option, Parameter, Role, with_options
from palaestra.games.search import reading_sources, reading_turns, search_qa, turns
from palaestra.games.search.generator import SPLITS
from palaestra.games.search.library import MOST_WORDS, WORDS
from palaestra.games.search.reading_codec import ReadingCodec
from palaestra.games.search.reading_questions import QUESTION
from palaestra.games.search.reading_sources import Texts
from palaestra.games.search.reading_world import PASSAGES, TOKENS, ReadingLibrary

MOST_HOPS, MOST_PASSAGES = 3, 100_000
PARAMETERS = (
    *search_qa.PARAMETERS,
    Parameter("question", 0, 0, 2**20, "1", "which question about a fresh world is asked", at_start=True, whole=True),
)


@with_options(
    Option("world", "fresh", "drawn by each match, or shared by all", words=search_qa.GENERATED),
    Option("form", "text", "text, or numbers of words", words=("text", "tokens")),
    Option("hops", 2, "facts that a question along a path needs", low=1, high=MOST_HOPS, is_span=True),
    Option(
        "passages",
        10_000,
        f"of a fixed world, rounded up to whole ones of {PASSAGES}",
        low=PASSAGES,
        high=MOST_PASSAGES,
        only={"world": "fixed"},
        example=720,
    ),
    Option("world_seed", 0, "of a fixed world", low=0, high=2**63 - 1, only={"world": "fixed"}),
    Option(
        "split",
        "train",
        "which questions of a fixed world are asked; None asks all",
        words=(*SPLITS, None),
        check=lambda split, above: None if above["world"] == "fresh" else split,
        only={"world": "fixed"},
    ),
    replace(search_qa.MAX_TURNS, default=6),
    search_qa.TOPK,
    search_qa.QUERY,
    search_qa.PROMPT,
)
def game(options: Any) -> Game:
    """The rules of `palaestra/SearchQA-Reading-v0` and the like.

    Raises:
        ValueError: No question of the split can be answered.
    """
    if options.world == "fresh":
        return _game(options, *reading_sources.fresh_world(options))
    return _game(
        options,
        *reading_sources.fixed_world(options, lambda: game(form=options.form, hops=options.hops, topk=options.topk)),
    )


def _game(options: Any, library: ReadingLibrary, texts: Texts) -> Game:
    """The rules on arrays."""
    is_text, sizes = options.form == "text", (QUESTION, TOKENS)
    documents = len(library.starts) - 1 if texts.passages else PASSAGES
    count = len(texts.words)
    observation = turns.token_fields(documents, count, options.topk, sizes)
    action = turns.token_choices(count, False, options.query_words if is_text else 0)
    query_words, room = (options.query_words, MOST_WORDS) if is_text else (WORDS, WORDS)
    return Game(
        name="SearchQA-Reading",
        roles=(Role("agent", ("agent_0",), observation, action),),
        state=reading_turns.STATE,
        reset=reading_turns.reset,
        step=reading_turns.step,
        observe=reading_turns.observe,
        observe_reset=turns.observe_question,
        script=reading_turns.script,
        scripts=turns.SCRIPTS,
        default_opponent=turns.SCRIPTS[0],
        parameters=PARAMETERS,
        horizon=options.max_turns,
        info=(*search_qa.INFO, search_qa.NUMBER),
        end_reasons=("answered", "out_of_words"),
        scratch=reading_turns.SCRATCH,
        world=library,
        determinism="cross-platform",
        codecs={"text": ReadingCodec(texts, options.prompt, False, options.topk, query_words, room, sizes)},
        default_codec="text" if is_text else None,
        render="palaestra.games.search.reading_render:draw",
        render_text="palaestra.games.search.reading_render:write",
        render_fps=1.0,
        captions=texts,
    )
