"""``form="text"``: turns and passages as text, with the tags of Search-R1 (B. Jin et al., 2025, arXiv:2503.09516)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache, partial
from itertools import chain, repeat
from string import Formatter
from struct import unpack_from
from typing import Any

import numpy as np

from palaestra.game import AgentView, Game, Role, TextSpace, check_template
from palaestra.games.search.language import (
    ARTICLES,
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
from palaestra.games.search.name_tokens import NameTokens
from palaestra.games.search.queries import QueryTooLongError, query_refusal, split_query, tell_limit
from palaestra.games.search.scoring import normal_words
from palaestra.games.search.sources import Texts, question_words
from palaestra.games.search.turns import (
    ANSWER,
    AT_START,
    JUDGE,
    LARGEST_BUDGET,
    MOST_TURNS,
    NONE,
    SEARCH,
    TOO_LONG,
    VERBS,
)
from palaestra.games.search.vocabulary import UNKNOWN, split

LONGEST_TURN, LONGEST_TEXT = 2**20, 2**20
"""Characters of a turn, and of what an agent reads."""
READ_CHARACTERS = 4096
"""Characters of an answer that are read."""
LONGEST_GENERATED = 2**9
"""Characters of a question of a generated world, or more."""
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
REFUSAL = (
    "\n\nThis turn said nothing: write a query between <search> and </search>, or the answer between <answer> and"
    f" </answer>, in at most {WORDS} words.\n\n"
)


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


def check_length(template: str, longest: int) -> None:
    """Refuses a template whose prompts could be longer than what an agent reads.

    Args:
        template: The prompt.
        longest: Characters of the longest question.

    Raises:
        ValueError: They could be.
    """
    count = sum("question" in (field or "") for _, field, *_ in Formatter().parse(template))
    numbers = {"turns": MOST_TURNS, "words": LARGEST_BUDGET}
    most = len(template.format(question="", judge=JUDGE_PROMPT, **numbers)) + count * longest
    if most > LONGEST_TEXT:
        told = f"with the longest question it has {most} characters, an observation at most {LONGEST_TEXT}"
        raise ValueError(f"prompt={template[:60]!r}...: {told}: shorten it")


def has_plain_question(template: str) -> bool:
    """Whether a template's questions stand in it as they are."""
    fields = [field for _, *field in Formatter().parse(template) if "question" in f"{field[0]}{field[1]}"]
    return "\0" not in template and all(field == ["question", "", None] for field in fields)


@lru_cache(maxsize=64)
def around_question(template: str, turns: int, words: int, judge: str) -> list[str]:
    """The parts of a prompt between its questions; for templates with plain questions."""
    return template.format(question="\0", turns=turns, words=words, judge=judge).split("\0")


TAGS = {verb: (f"<{verb}>", f"</{verb}>") for verb in VERBS}


TOOLS = {
    "search": "Searches the passages for a query and shows those that fit best.",
    "answer": "Answers the question, by the answer alone. Nothing can be done after it.",
    "judge": "Says of the passages that were found last whether they help: yes or no.",
}
"""What turns do, for models that call tools."""


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

    def __init__(
        self,
        texts: Texts,
        prompt: str,
        judges: bool,
        top: int = TOP,
        query_words: int = WORDS,
        room: int = WORDS,
        sizes: tuple[int, int] = (QUESTION_WORDS, PASSAGE_WORDS),
    ) -> None:
        """Args are those of `palaestra.games.search.search_qa.game` and these.

        Args:
            texts: The game's texts.
            prompt: Name of a prompt, or a template.
            judges: Whether a turn may judge.
            top: Passages that a search shows.
            query_words: Most words of a query.
            room: Words of an action.
            sizes: Words of a question and of a passage, see `palaestra.games.search.turns.token_fields`.
        """
        self.texts, self._judges, self._top, self._query_words = texts, judges, top, query_words
        self._no_turn = np.array([NONE, *[NO_WORD] * room])
        # The last fields of an observation: documents, verb, turns_left and words_left. They are read at once,
        # as each read of a record takes as long as all.
        self._numbers, self._format = np.dtype(("<i4", 3 + top)), f"<{3 + top}i"
        self._numbers_at = 4 * (sizes[0] + top * sizes[1])
        self._verbs = VERBS[1 : JUDGE + judges]
        self._prompt = check_prompt(prompt)
        check_length(self._prompt, max(map(len, texts.questions), default=LONGEST_GENERATED))
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

    def refusal(self, query: str) -> str:
        """Why a query is not searched; empty if it is."""
        return query_refusal(query, self._query_words)

    def tools(self, role: Role) -> dict[str, str]:
        """The verbs of turns, and what each does."""
        return {verb: TOOLS[verb] for verb in self._verbs}

    def turn_tokens(self, game: Game) -> NameTokens:
        """Tokens for small models.

        Raises:
            ValueError: They cannot say all that such a game does.
        """
        return NameTokens(game)

    def demonstration(self, view: AgentView) -> list[str]:
        """A search for each fact of the path and the answer, as turns."""
        _, answers, path = self._told_of(view.world, view.row, view.record)
        if not answers or any(len(step) != 3 for step in path):
            return []
        searches = (f"<search>{relation} of {subject}</search>" for subject, relation, _ in path)
        return [*searches, f"<answer>{answers[0]}</answer>"]

    # -- reading -------------------------------------------------------------------------------------------------------

    def decode(self, view: AgentView, action: str) -> np.ndarray:
        """Verb and words, int64 ``[1 + W]``; any text is a turn."""
        decoded = self._no_turn.copy()
        decoded[0], ids = self._turn(action)
        for k, number in enumerate(ids, 1):  # in half the time of an array of a list
            decoded[k] = FIRST_WORD + number
        return decoded

    def decode_many(self, view: AgentView, actions: Sequence[str]) -> np.ndarray:
        """The same of N matches, int64 ``[N, 1 + W]``."""
        verbs, ids = zip(*map(self._turn, actions), strict=True)
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        decoded = np.tile(self._no_turn, (len(ids), 1))
        decoded[:, 0] = verbs
        is_word = np.arange(len(self._no_turn) - 1) < lengths[:, None]
        decoded[:, 1:][is_word] = FIRST_WORD + np.fromiter(chain.from_iterable(ids), np.int64)
        return decoded

    def _turn(self, action: str) -> tuple[int, list[int]]:
        """Verb, and the words' numbers in the vocabulary.

        An answer has the words of `palaestra.games.search.scoring`; one without any (``the``) is an article.
        """
        verb, content = parse(action, self._verbs)
        content = content.strip()
        if verb == "none":
            return NONE, []
        if verb == "search":
            try:
                return SEARCH, self.texts.vocabulary.ids_of(split_query(content, self._query_words))
            except QueryTooLongError:
                return TOO_LONG, []
        text = content[:READ_CHARACTERS]
        if verb == "judge":
            return JUDGE, self.texts.vocabulary.ids_of(split(text.replace("\0", " "))[:WORDS])
        words = normal_words(text)
        if len(words) > WORDS or len(content) > READ_CHARACTERS:
            return NONE, []
        return ANSWER, self.texts.vocabulary.ids_of(words or ARTICLES[: bool(text)])

    # -- writing -------------------------------------------------------------------------------------------------------

    def encode_action(self, view: AgentView, action: np.ndarray) -> str:
        """A turn of verb and words, int64 ``[1 + W]``, as text; an empty one for no turn.

        Raises:
            ValueError: A word that is in no vocabulary.
        """
        words = action[1 : len(self._no_turn)]
        if action[0] in (NONE, TOO_LONG):
            return ""
        if UNKNOWN + FIRST_WORD in words:
            raise ValueError("a word that is in no vocabulary cannot be written")
        opened, closed = TAGS[self._tags[action[0]]]
        return f"{opened}{words_of(self.texts, words)}{closed}"

    def encode(self, view: AgentView) -> str:
        """What came since the last turn: at first the prompt with the question, then passages."""
        return self._segment(unpack_from(self._format, view.row, self._numbers_at), view.row, view.record)

    def encode_many(self, view: AgentView) -> list[str]:
        """The same for N matches."""
        records = repeat(None) if view.record is None else view.record
        numbers = view.row.getfield(self._numbers, self._numbers_at).tolist()
        return list(map(self._segment, numbers, view.row, records))

    def _segment(self, numbers: Sequence[int], row: Any, record: Any) -> str:
        """See `encode`.

        Args:
            numbers: The last fields of the observation.
            row: The observation.
            record: Of the match, or None.
        """
        *_, verb, turns, words = numbers
        if verb == SEARCH:
            if numbers[0] == NOTHING:
                text = "No passage was found." if words > 0 else "No words are left."
            else:
                text = "\n".join(self._passages(numbers[: self._top], row))
            return f"\n\n<information>{text}</information>\n\n"
        if verb == AT_START:
            question = self._question(row, record)
            judge = JUDGE_PROMPT if self._judges else ""
            if self._is_plain:
                return question.join(around_question(self._prompt, turns, words, judge))
            return self._prompt.format(question=question, turns=turns, words=words, judge=judge)
        if verb == TOO_LONG:
            return f"\n\nThis turn said nothing: {tell_limit(self._query_words)}.\n\n"
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

        Once the next match has begun, the last two are empty.
        """
        question, answers, path = self._told_of(view.world, view.row, view.record)
        return {"question": question, "answers": [*answers], "path": list(map(list, path))}

    def info_many(self, view: AgentView) -> dict[str, list[Any]]:
        """The same of N matches, by name."""
        records: Iterable[Any] = repeat(None) if view.record is None else view.record
        told = list(map(partial(self._told_of, view.world), view.row, records))
        return {
            "question": [question for question, _, _ in told],
            "answers": [[*answers] for _, answers, _ in told],
            "path": [list(map(list, path)) for _, _, path in told],
        }

    def _told_of(self, world: Any, row: Any, record: Any) -> Told:
        """See `info`."""
        if record is None:
            return self._question(row, None), (), ()
        if self.texts.questions:
            return self._fixed(int(record["number"]), world)
        return question_of(self.texts, record), fresh_answers(self.texts, record), fresh_path(self.texts, record)

    def _question(self, row: Any, record: Any) -> str:
        """The question of a match, by its observation alone if need be; see `_segment`."""
        if record is not None or not self.texts.questions:
            return question_of(self.texts, row if record is None else record)
        return self._by_words.get(row["question"].tobytes()) or sentence_of(words_of(self.texts, row["question"]))

    @cached_property
    def _by_words(self) -> dict[bytes, str]:
        """The questions of a fixed world by the words that observations show; "" where several have the same."""
        found = dict[bytes, str]()
        for text, words in zip(
            self.texts.questions, question_words(self.texts.vocabulary, self.texts.questions), strict=True
        ):
            found[words.tobytes()] = text if found.get(words.tobytes(), text) == text else ""
        return found

    def _fixed(self, number: int, world: Any) -> Told:
        """See `info`; of a question of a fixed world."""
        told = self._told.get(number)
        if told is None:
            path = tuple(self._step_of(p, world.facts) for p in needed(world.questions, number))
            told = self._told[number] = (self.texts.questions[number], self.texts.answers[number], path)
        return told

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
        row: The match record; in a world of the match's own, an observation of the token form does as well.
    """
    return texts.questions[row["number"]] if texts.questions else sentence_of(words_of(texts, row["question"]))


def sentence_of(words: str) -> str:
    """The words of a question as a sentence."""
    return f"{words[:1].upper()}{words[1:]}{'.' if words.startswith('name') else '?'}"


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
