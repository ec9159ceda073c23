"""Examiner: one agent searches text and asks a question over what it has read, another one answers it.

## Description

Self-play of question making, as in pi-Play (arXiv:2604.14054). Each match draws a world of its own as
``SearchQA(world="fresh")`` does, without noise. The *examiner* (`examiner_0`) starts from the name of an entity,
searches, and asks for what a path of facts leads to: "What is the mayor of the birthplace of Velka Arnev?" The question
is checked. If it is accepted, the *student* (`student_0`), who sees nothing of the examiner's searches, searches and
answers as in SearchQA.

The agents alternate in two phases: first all turns of the examiner, then all turns of the student. ``acting`` in `info`
says who is to move; the action of the other one is ignored, and its observation stays as it is, without passages.

The words of a question are free but for two things: the nouns of relations (``birthplace``, ``mayor``, ...), the last
one of the path first, and the two words of one entity's name, where the path begins. "mayor birthplace Velka Arnev"
asks the same. The student reads the question in the words of SearchQA.

The scripts:

* ``oracle``: the examiner walks one to three facts from its start, or as many as its turns allow, searching for each,
  and asks for the end of the path. The path depends on the names of the world alone: it draws nothing. The student
  follows the path of the question and answers right.
* ``closed_book``: the examiner plays as ``oracle``; the student answers at once, with an answer of the right kind that
  is drawn at random.

## Action Space

<!-- table: action -->

0 is no word, 1 a word that is not in the vocabulary. Searches and answers without a word are no turns, as the verb
``none``: they are counted in ``info["malformed"]`` and do nothing.

``form="text"``: the first complete pair of tags is the turn, ``<search>query</search>`` or
``<question>text</question>`` for the examiner, ``<search>query</search>`` or ``<answer>text</answer>`` for the student.
Queries, questions and answers count up to 16 words.

## Observation Space

<!-- table: observation -->

Before its phase the student sees no question (all zeros), verb -1 and its full turns and words.

``text``: first a prompt (the examiner's has the name from which it starts, the student's is `prompt`), then the
passages that the last turn found; nothing (``""``) for the agent that is not to move.

In `info`, besides ``exact_match``, ``f1``, ``hops_found``, ``turn_label`` (the student's, as in SearchQA; 0 in the
examiner's phase) and ``malformed`` (turns of both):

* ``accepted``: 1 once a question was accepted, ``hops``: its relations, else 0.
* ``path_names``: its path, int32 ``[5, 2]``: row k has the two words (tokens) of the entity after k relations; the
  second word of a year is 0. ``path_relations``: int32 ``[4]``, element k is the word of the relation from row k to row
  k + 1. Zeros beyond the path, and before a question was accepted.
* ``refusal``: why a question was refused; the first of these that applies, facts in the order of the path. 0: it was
  accepted, or not asked yet.

1. ``malformed``: it has no words
2. ``too_long``: it has more than 4 nouns of relations
3. ``no_name``: it has no name of the world, or more than one
4. ``no_relation``: it has no noun of a relation
5. ``no_such_fact``: it needs a relation that an entity on the path has not
6. ``ambiguous``: it needs a fact with several objects (worlds with 7 relations or more have such)
7. ``circular``: it comes to an entity twice
8. ``unread``: it needs a fact that no search of the examiner has shown

With text also ``refusal_reason`` (the reason as a word), ``question``, ``answers`` and ``path``; all are empty before a
question was accepted or refused, and once the next match has begun.

## Rewards

The student: 1 for an answer that equals the right one, as in SearchQA, with its `partial_credit` and `turn_reward`.
The examiner: `format_reward` for a question that is accepted, and 1 - `format_reward` when the match ends without a
right answer. Each agent pays `malformed_cost` for turns that say nothing.

The paper pays an examiner for questions that some students answer and others do not: (n - k) / (n - 1) for
0 < k < n right answers of n students, else 0. That takes n matches of one question: n lanes with one seed,
``reset(seed=[s] * n)``, in which the examiner takes the same turns; a learner computes it from their ``exact_match``.

## Starting State

Names, facts and sentences are drawn, then an entity from which a relation leads to another entity, and which of
SearchQA's two wordings the question will have. Nothing is drawn later: the worlds of a lane do not depend on actions.

## Episode End

``refused`` and ``not_asked`` (the examiner's turns or words are over): nobody has won. ``answered`` and
``out_of_words``: the student has won if its answer is right, else the examiner. Truncated, ``out_of_turns``, when the
student's turns are over: the examiner has won. The horizon is the sum of both agents' turns.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v1: exact match and F1 are those of the scorer; no observation has a question's number.
* v0: first version.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from palaestra.game import Choice, Field, Game, Option, Parameter, Role, with_options
from palaestra.games.search import examiner_turns as rules
from palaestra.games.search import search_qa, turns
from palaestra.games.search.examiner_codec import ExaminerCodec
from palaestra.games.search.examiner_turns import REFUSALS, VERBS, ExaminerWorld
from palaestra.games.search.library import MOST_HOPS, RELATIONS

PARAMETERS = (
    *search_qa.PARAMETERS,
    Parameter("format_reward", 0.5, 0.0, 1.0, "1", "pay of the examiner for a question that is accepted"),
)
INFO = (
    *search_qa.INFO,
    Field("hops", (), 0, MOST_HOPS, "1", "relations of the accepted question", "i8"),
    Field("accepted", (), 0, 1, "1", "a question was accepted", "i8"),
    Field("refusal", (), 0, len(REFUSALS) - 1, "1", "reason for which the question was refused, 0 for none", "i8"),
)


@with_options(
    Option("form", "tokens", "numbers of words, or text", words=("tokens", "text")),
    replace(search_qa.ENTITIES_OF_WORLD, about="of the world", only={}),
    Option("relations", 4, "of the world", low=1, high=RELATIONS),
    Option(
        "examiner_turns",
        5,
        "turns of the examiner. One who follows a path needs a search for each fact and a turn for the question",
        low=2,
        high=turns.MOST_TURNS,
    ),
    replace(
        search_qa.MAX_TURNS,
        about="turns of the student, who needs as many: with 4 turns, paths of 4 facts are too long for that",
    ),
    replace(search_qa.PROMPT, about="of the student, as in SearchQA"),
)
def game(options: Any) -> Game:
    """The rules of `palaestra/Examiner-v1`."""
    form, max_turns, examiner_turns = options.form, options.max_turns, options.examiner_turns
    qa = search_qa.game(
        form="tokens", hops=1, entities=options.entities, relations=options.relations, max_turns=max_turns
    )
    role, texts = qa.roles[0], qa.captions
    *seen, turns_left, words_left = (replace(field, at="step") for field in role.observation)
    seen = (*seen, replace(turns_left, about="turns that the agent may still take"), words_left)
    start = (replace(seen[0], about="words of the name of the entity to start from"), *seen[1:])
    verb, words = role.action
    assert isinstance(verb, Choice)
    asks = (replace(verb, meanings=VERBS), replace(words, about="words of the query or the question"))
    most = len(texts.words) - 1
    return Game(
        name="Examiner",
        roles=(Role("examiner", ("examiner_0",), start, asks), Role("student", ("student_0",), seen, role.action)),
        state=rules.STATE,
        reset=rules.reset,
        step=rules.step,
        observe=rules.observe,
        script=rules.script,
        scripts=turns.SCRIPTS[: turns.FIRST_HIT],
        default_opponent=turns.SCRIPTS[0],
        parameters=PARAMETERS,
        horizon=examiner_turns + max_turns,
        info=(
            *INFO,
            Field("path_names", (MOST_HOPS + 1, 2), 0, most, "1", "words of the entities on the path", "i4"),
            Field("path_relations", (MOST_HOPS,), 0, most, "1", "words of the relations between them", "i4"),
        ),
        end_reasons=("answered", "out_of_words", "refused", "not_asked"),
        truncation_reasons=("out_of_turns",),
        scratch=rules.SCRATCH,
        world=ExaminerWorld(qa.world, examiner_turns, max_turns),
        determinism="cross-platform",
        codecs={"text": ExaminerCodec(texts, options.prompt)},
        default_codec="text" if form == "text" else None,
        render="palaestra.games.search.examiner_render:draw",
        render_text="palaestra.games.search.examiner_render:write",
        render_fps=1.0,
        captions=texts,
    )
