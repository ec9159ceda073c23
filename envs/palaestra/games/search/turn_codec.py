"""``form="text"``: turns and passages as text, with the tags of Search-R1 (B. Jin et al., 2025, arXiv:2503.09516)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, repeat
from string import Formatter
from struct import Struct
from typing import Any

import numpy as np

from palaestra.game import AgentView, Role, TextSpace, check_template
from palaestra.games.search.language import (
    FIRST_WORD,
    FRESH_STEMS,
    LITERAL,
    LITERALS,
    NO_WORD,
    NOTHING,
    RELATIONS,
    stems,
)
from palaestra.games.search.library import PASSAGE_WORDS, QUESTION_WORDS, TOP, WORDS
from palaestra.games.search.scoring import normal_words, normalize
from palaestra.games.search.sources import Texts
from palaestra.games.search.turns import ANSWER, AT_START, JUDGE, NONE, SEARCH, VERBS
from palaestra.games.search.vocabulary import UNKNOWN, split

NO_TURN = np.array([NONE, *[NO_WORD] * WORDS])
LONGEST_TURN, LONGEST_TEXT = 2**20, 2**20
"""Characters of a turn, and of what an agent reads."""
READ_CHARACTERS = 4096
"""Characters of a query or an answer that are read."""
MOST_SHOWN = 2**14
"""Passages that a codec keeps as agents read them."""

Told = tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]
"""A question, its answers and its path."""

PROMPTS = {
    "search_r1": (
        "Find the answer to the question below. Think between <think> and </think> before you act. Where you lack"
        " knowledge, search: write a query between <search> and </search>; the passages that fit best come back between"
        " <information> and </information>. You have {turns} turns and {words} words for queries and the answer. When"
        " you know it, write the answer alone, between <answer> and </answer>.{judge}\n\nQuestion: {question}\n"
    ),
    "plain": "{question}",
}
"""Prompts by name. A template of one's own has the same fields in braces; all but ``question`` may be missing."""
JUDGE_PROMPT = (
    " After a search you may spend a turn to say whether the passages help: <judge>yes</judge> or <judge>no</judge>."
)
REFUSAL = "\n\nThis turn said nothing: write a query between <search> and </search>, or the answer between <answer> and"
REFUSAL += " </answer>.\n\n"


def check_prompt(prompt: str) -> str:
    """A prompt by its name or the template itself.

    Raises:
        ValueError: No such name, or a template without the question or with an unknown field.
    """
    template = PROMPTS.get(prompt, prompt)
    try:
        check_template(template)
        is_fine = "\0" in template.format(question="\0", turns=4, words=256, judge="")
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        fields = "{question}, {turns}, {words}, {judge}"
        raise ValueError(f"prompt={prompt!r}: its fields are {fields}: {error!r}") from None
    if not is_fine:
        raise ValueError(f"prompt={prompt!r}: give {', '.join(PROMPTS)}, or a template with {{question}}")
    return template


def has_plain_question(template: str) -> bool:
    """Whether a template's questions stand in it as they are."""
    fields = [field for _, *field in Formatter().parse(template) if "question" in f"{field[0]}{field[1]}"]
    return "\0" not in template and all(field == ["question", "", None] for field in fields)


@lru_cache(maxsize=64)
def around_question(template: str, turns: int, words: int, judge: str) -> list[str]:
    """The parts of a prompt between its questions; for templates with plain questions."""
    return template.format(question="\0", turns=turns, words=words, judge=judge).split("\0")


TAGS = {verb: (f"<{verb}>", f"</{verb}>") for verb in VERBS}
NUMBERS = np.dtype(("<i4", 4 + TOP))
"""The last fields of an observation of the token form: ``number``, ``documents``, ``verb``, ``turns_left`` and
``words_left``, see `turns.token_fields`. Read at once: each read of a record takes as long as all."""
NUMBERS_AT = 4 * (QUESTION_WORDS + TOP * PASSAGE_WORDS)
"""Where they begin, in bytes."""
ONE_ROW = Struct(f"<{4 + TOP}i")


def sample_turn(generator: np.random.Generator) -> str:
    """A turn of the language's words, for the samples of the action space: two queries for an answer."""
    stem, relation = SAMPLED_STEMS[generator.integers(FRESH_STEMS)], RELATIONS[generator.integers(len(RELATIONS))].noun
    return f"<search>{relation} of {stem}</search>" if generator.integers(3) else f"<answer>{stem}</answer>"


def sample_judging_turn(generator: np.random.Generator) -> str:
    """Likewise where agents judge: a quarter of the turns does."""
    word = LITERALS[generator.integers(2)]
    return sample_turn(generator) if generator.integers(4) else f"<judge>{word}</judge>"


SAMPLED_STEMS = tuple(stems(FRESH_STEMS))


def parse(turn: str, verbs: Sequence[str]) -> tuple[str, str]:
    """The verb of a turn and what stands in its tags, in time linear in the turn's length; ``none`` without such tags.

    It is the first pair of tags that is complete: the one that opens first, up to where it is closed first.
    """
    best, found = len(turn), ("none", "")
    for verb in verbs:
        opened, closed = TAGS[verb]
        start = turn.find(opened, 0, best)
        if start >= 0:
            inside = start + len(opened)
            end = turn.find(closed, inside)
            if end >= 0:
                best, found = start, (verb, turn[inside:end])
    return found


class TurnCodec:
    """Text for `palaestra.games.search.turns`' tokens; each observation is what came since the last turn."""

    total = True
    _tags: tuple[str, ...] = VERBS
    """By the numbers of verbs."""

    def __init__(self, texts: Texts, prompt: str, judges: bool) -> None:
        """See `palaestra.games.search.search_qa.game`."""
        self.texts, self._judges = texts, judges
        self._verbs = VERBS[1:] if judges else VERBS[1:-1]
        self._prompt = check_prompt(prompt)
        self._is_plain = has_plain_question(self._prompt)
        self._shown = dict[int, str]()
        self._told = dict[int, Told]()

    @property
    def index(self) -> Any:
        """What turns search; None where each match draws its passages."""
        return self.texts.index

    def observation_space(self, role: Role) -> TextSpace:
        """Any text."""
        return TextSpace(LONGEST_TEXT, min_length=0, charset=None)

    def action_space(self, role: Role) -> TextSpace:
        """Any text; samples are turns."""
        samples = sample_judging_turn if self._judges else sample_turn
        return TextSpace(LONGEST_TURN, min_length=0, charset=None, samples=samples)

    # -- reading -------------------------------------------------------------------------------------------------------

    def decode(self, view: AgentView, action: str) -> np.ndarray:
        """Verb and words, int64 ``[17]``; any text is a turn."""
        decoded = NO_TURN.copy()
        decoded[0], ids = self._turn(action)
        for k, number in enumerate(ids, 1):  # in half the time of an array of a list
            decoded[k] = FIRST_WORD + number
        return decoded

    def decode_many(self, view: AgentView, actions: Sequence[str]) -> np.ndarray:
        """The same of N matches, int64 ``[N, 17]``."""
        verbs, ids = zip(*map(self._turn, actions), strict=True)
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        decoded = np.tile(NO_TURN, (len(ids), 1))
        decoded[:, 0] = verbs
        is_word = np.arange(WORDS) < lengths[:, None]
        decoded[:, 1:][is_word] = FIRST_WORD + np.fromiter(chain.from_iterable(ids), np.int64)
        return decoded

    def _turn(self, action: str) -> tuple[int, list[int]]:
        """Verb, and the words' numbers in the vocabulary."""
        verb, content = parse(action, self._verbs)
        if verb == "none":
            return NONE, []
        text = content[:READ_CHARACTERS]
        if verb == "search" or verb == "judge":
            return VERBS.index(verb), self.texts.vocabulary.ids_of(split(text.replace("\0", " "))[:WORDS])
        has_words_alone = text.isascii() and text.isprintable()  # when it is normal
        words = normal_words(text) if has_words_alone else split(normalize(text))
        ids = self.texts.vocabulary.ids_of(words[:WORDS])
        if words and (len(words) > WORDS or len(content) > READ_CHARACTERS):
            ids[-1] = UNKNOWN  # a longer answer is not its beginning
        return ANSWER, ids

    # -- writing -------------------------------------------------------------------------------------------------------

    def encode_action(self, view: AgentView, action: np.ndarray) -> str:
        """A turn of verb and words, int64 ``[17]``, as text; an empty one for no turn.

        Raises:
            ValueError: A word that is in no vocabulary.
        """
        if action[0] == NONE:
            return ""
        if UNKNOWN + FIRST_WORD in action[1 : 1 + WORDS]:
            raise ValueError("a word that is in no vocabulary cannot be written")
        opened, closed = TAGS[self._tags[action[0]]]
        return f"{opened}{words_of(self.texts, action[1 : 1 + WORDS])}{closed}"

    def encode(self, view: AgentView) -> str:
        """What came since the last turn: at first the prompt with the question, then passages."""
        return self._segment(ONE_ROW.unpack_from(view.row, NUMBERS_AT), view.row)

    def encode_many(self, view: AgentView) -> list[str]:
        """The same for N matches."""
        rows: Iterable[Any] = repeat(None) if self.texts.passages else view.row
        return list(map(self._segment, view.row.getfield(NUMBERS, NUMBERS_AT).tolist(), rows))

    def _segment(self, numbers: Sequence[int], row: Any) -> str:
        """See `encode`.

        Args:
            numbers: Those of `NUMBERS`.
            row: The observation, read where its question or its passages are words of its own.
        """
        *_, verb, turns, words = numbers
        if verb == SEARCH:
            if numbers[1] == NOTHING:
                text = "No passage was found." if words > 0 else "No words are left."
            else:
                text = "\n".join(self._passages(numbers[1 : 1 + TOP], row))
            return f"\n\n<information>{text}</information>\n\n"
        if verb == AT_START:
            question = self.texts.questions[numbers[0]] if self.texts.questions else question_of(self.texts, row)
            judge = JUDGE_PROMPT if self._judges else ""
            if self._is_plain:
                return question.join(around_question(self._prompt, turns, words, judge))
            return self._prompt.format(question=question, turns=turns, words=words, judge=judge)
        return REFUSAL if verb == NONE else "\n" if verb == JUDGE else ""

    def _passages(self, documents: Sequence[int], row: Any) -> list[str]:
        """Numbers, titles and texts of what was found."""
        found = documents[: documents.index(NOTHING)] if NOTHING in documents else documents
        if self.texts.passages:
            shown = self._shown
            return [f"Doc {k}{shown.get(number) or self._show(number)}" for k, number in enumerate(found, 1)]
        fresh = (fresh_passage(self.texts, tokens) for tokens in row["passages"][: len(found)])
        return [f"Doc {k}{as_shown(*passage)}" for k, passage in enumerate(fresh, 1)]

    def _show(self, number: int) -> str:
        """A passage of a fixed world as agents read it; it is kept, as it may be found again."""
        if len(self._shown) == MOST_SHOWN:
            self._shown.clear()
        self._shown[number] = text = as_shown(*passage_of(self.texts, number))
        return text

    def info(self, view: AgentView) -> dict[str, Any]:
        """``question``, ``answers`` and ``path``: subject, relation and object of each needed passage, or its title.

        In worlds of their own the last two are empty once the next match has begun.
        """
        if self.texts.questions:
            question, answers, path = self._fixed(ONE_ROW.unpack_from(view.row, NUMBERS_AT)[0], view.world)
        else:
            question, answers, path = self._fresh(view.row, view.record)
        return {"question": question, "answers": [*answers], "path": list(map(list, path))}

    def info_many(self, view: AgentView) -> dict[str, list[Any]]:
        """The same of N matches, by name."""
        if self.texts.questions:
            told = [self._fixed(number, view.world) for number in view.row["number"].tolist()]
        else:
            records: Iterable[Any] = repeat(None) if view.record is None else view.record
            told = list(map(self._fresh, view.row, records))
        return {
            "question": [question for question, _, _ in told],
            "answers": [[*answers] for _, answers, _ in told],
            "path": [list(map(list, path)) for _, _, path in told],
        }

    def _fixed(self, number: int, world: Any) -> Told:
        """See `info`; of a question of a fixed world."""
        told = self._told.get(number)
        if told is None:
            path = tuple(self._step_of(p, world.facts) for p in needed(world.questions, number))
            told = self._told[number] = (self.texts.questions[number], self.texts.answers[number], path)
        return told

    def _fresh(self, row: Any, record: Any) -> Told:
        """Likewise in a world of the match's own."""
        question = question_of(self.texts, row)
        if record is None:
            return question, (), ()
        return question, fresh_answers(self.texts, record), fresh_path(self.texts, record)

    def _step_of(self, passage: int, facts: Any) -> tuple[str, ...]:
        title = self.texts.passages[passage].partition("\n")[0]
        if len(facts.subject) == 0:
            return (title,)
        thing = name_of(self.texts, facts.names, int(facts.objects[passage, 0]))
        return (title, RELATIONS[facts.relation[passage]].noun, thing)


def question_of(texts: Texts, row: Any) -> str:
    """The question of a match.

    Args:
        texts: The game's texts.
        row: An observation of the token form, or a match record.
    """
    if texts.questions:
        return texts.questions[row["number"]]
    text = words_of(texts, row["question"])
    return f"{text[0].upper()}{text[1:]}{'.' if text.startswith('name') else '?'}"


def passage_of(texts: Texts, number: int) -> tuple[str, str]:
    """Title and text of a passage of a fixed world."""
    title, _, text = texts.passages[number].partition("\n")
    return (title, text) if text else ("", title)


def as_shown(title: str, text: str) -> str:
    """Title and text as agents read them."""
    return f'(Title: "{title}") {text}'


def fresh_passage(texts: Texts, tokens: np.ndarray) -> tuple[str, str]:
    """Title and text of the words of a passage of a match with a world of its own."""
    first, second, text = words_of(texts, tokens).split(" ", 2)
    return f"{first} {second}", f"{text[0].upper()}{text[1:]}."


def words_of(texts: Texts, tokens: np.ndarray) -> str:
    """Tokens as they are shown."""
    return " ".join([texts.words[token] for token in tokens.tolist() if token != NO_WORD])


def needed(questions: Any, number: int) -> list[int]:
    """The passages that a question of a fixed world needs."""
    return questions.gold[number, : questions.hops[number]].tolist()


def name_of(texts: Texts, names: np.ndarray, thing: int) -> str:
    """Name of an entity, or a literal.

    Args:
        texts: The game's texts.
        names: int32 ``[E, 2]``: tokens.
        thing: Entity or literal.
    """
    if thing <= LITERAL:
        return LITERALS[LITERAL - thing]
    return " ".join(texts.words[token] for token in names[thing].tolist())


def fresh_answers(texts: Texts, record: Any) -> tuple[str, ...]:
    """The right answers of a match with a world of its own."""
    rows = record["answers"].tolist()
    return tuple(" ".join([texts.words[token] for token in row if token]) for row in rows if row[0])


def fresh_path(texts: Texts, record: Any) -> tuple[tuple[str, ...], ...]:
    """Subject, relation and object of each passage that the question of a match with a world of its own needs."""
    names, subjects, relations, objects = (record[name] for name in ("name_words", "subject", "relation", "objects"))
    return tuple(
        (
            name_of(texts, names, int(subjects[passage])),
            RELATIONS[relations[passage]].noun,
            name_of(texts, names, int(objects[passage, 0])),
        )
        for passage in record["gold"][: int(record["hops"])].tolist()
    )
