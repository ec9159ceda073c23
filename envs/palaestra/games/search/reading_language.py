"""The language of worlds that must be read: what is asked, and what passages say, in other words.

A question names a relation by one of its phrases; no word of a phrase stands in a sentence that tells such a fact,
apart from `FUNCTION_WORDS`. Sentences are templates with slots and without punctuation but the full stop, which is a
word of its own between sentences and is never searched.
"""

from __future__ import annotations

from typing import NamedTuple

from palaestra.games.search.language import ARTICLES, SECOND_WORDS, YEARS, stem
from palaestra.games.search.vocabulary import split

PERSON, TOWN, FIRM, YEAR, COUNT = range(5)
"""Kinds of things: entity e is of kind ``e % 3``; years and counts are no entities."""
KINDS = 3

SUBJECT, OBJECT, SECOND, STOP = -1, -2, -3, -4
"""Slots of encoded sentences: an entity by its name (or a pronoun), what the relation leads to, a second number."""
SLOTS = {"{s}": SUBJECT, "{o}": OBJECT, "{p}": SECOND, ".": STOP}

FUNCTION_WORDS = frozenset(("the", "of", "in", "is", "was", "has", "which", "where", "that", "its"))
"""Words that questions and sentences may share."""


class Phrase(NamedTuple):
    """Words of a question for a relation.

    Attributes:
        before: Before the name.
        behind: Behind it.
        keywords: What one searches for beside the name.
        is_whole: Whether it is a question without "What is" or "Name".
    """

    before: str
    behind: str
    keywords: str
    is_whole: bool = False


class Relation(NamedTuple):
    """What an entity of a kind has.

    Attributes:
        noun: Its name in ``info["path"]``.
        leads_to: Kind of what it leads to.
        phrases: Two, in questions.
        sentences: In passages; they begin with the subject.
        apart: Two sentences that tell the fact together.
        denial: A sentence that nobody knows.
    """

    noun: str
    leads_to: int
    phrases: tuple[Phrase, Phrase]
    sentences: tuple[str, str, str]
    apart: str
    denial: str


RELATIONS: tuple[tuple[Relation, ...], ...] = (
    (
        Relation(
            "birthplace",
            TOWN,
            (Phrase("the native town of", "", "native town"), Phrase("the town where", "was born", "town born")),
            (
                "{s} first saw the light of day at {o}",
                "{s} came into the world at {o}",
                "{s} spent the earliest hours of life at {o}",
            ),
            "{s} still keeps the cradle from the first house . That house stands at {o}",
            "It has been forgotten at which spot {s} came into the world",
        ),
        Relation(
            "employer",
            FIRM,
            (Phrase("the employer of", "", "employer"), Phrase("the firm that employs", "", "firm employs")),
            (
                "{s} draws a monthly wage from {o}",
                "{s} earns a living at {o}",
                "{s} has stood on the payroll of {o} for ages",
            ),
            "{s} leaves the house each morning with the same badge . The badge bears the sign of {o}",
            "Nobody can say from whom {s} draws a monthly wage",
        ),
        Relation(
            "teacher",
            PERSON,
            (Phrase("the teacher of", "", "teacher"), Phrase("the person who taught", "", "person taught")),
            (
                "{s} learnt the trade from {o}",
                "{s} sat for ages at the feet of {o}",
                "{s} owes all skill to the lessons of {o}",
            ),
            "{s} speaks of one mentor alone . That mentor is {o}",
            "It was never written down from whom {s} learnt the trade",
        ),
        Relation(
            "year of retirement",
            YEAR,
            (
                Phrase("the year in which", "retired", "year retired"),
                Phrase("the year of the retirement of", "", "year retirement"),
            ),
            (
                "{s} hung up the apron for good in {o}",
                "{s} went home for the last time in {o}",
                "{s} has drawn a pension since {o}",
            ),
            "{s} gave a farewell supper to all colleagues . The date on the cards was {o}",
            "No paper shows when {s} hung up the apron for good",
        ),
        Relation(
            "number of children",
            COUNT,
            (
                Phrase("how many children does", "have", "children", is_whole=True),
                Phrase("the number of children of", "", "number children"),
            ),
            (
                "{s} has raised {o} sons and daughters",
                "{s} calls {o} boys and girls to supper",
                "{s} sits down to supper with {o} sons and {p} daughters",
            ),
            "{s} buys shoes for a large family . There are {o} pairs for the boys and girls",
            "It is not on record whether {s} ever had a large family",
        ),
    ),
    (
        Relation(
            "mayor",
            PERSON,
            (Phrase("the mayor of", "", "mayor"), Phrase("the person who governs", "", "person governs")),
            (
                "{s} has given its chain of office to {o}",
                "{s} takes its orders from {o}",
                "{s} lets its council be led by {o}",
            ),
            "{s} keeps an armchair at the head of the council table . The armchair belongs to {o}",
            "It is not on record to whom {s} has given its chain of office",
        ),
        Relation(
            "landlord",
            FIRM,
            (Phrase("the landlord of", "", "landlord"), Phrase("the firm that owns most of", "", "firm owns")),
            (
                "{s} pays nearly all its rents to {o}",
                "{s} stands for the greater part on ground of {o}",
                "{s} has sold street after street to {o}",
            ),
            "{s} has one name on almost all its deeds . The deeds say {o}",
            "Nobody can say to whom {s} pays nearly all its rents",
        ),
        Relation(
            "partner town",
            TOWN,
            (
                Phrase("the partner town of", "", "partner town"),
                Phrase("the twin town of", "", "twin town"),
            ),
            (
                "{s} exchanges pupils and choirs with {o} every summer",
                "{s} signed a bond of friendship with {o}",
                "{s} sends a delegation to {o} each spring",
            ),
            "{s} hangs a second flag beside its own . The second flag is that of {o}",
            "It was never written down with whom {s} signed a bond of friendship",
        ),
        Relation(
            "year of the charter",
            YEAR,
            (
                Phrase("the year in which", "received its charter", "year received charter"),
                Phrase("the year of the charter of", "", "year charter"),
            ),
            (
                "{s} has called itself a borough since {o}",
                "{s} got its rights from the crown in {o}",
                "{s} was freed from the bishop in {o}",
            ),
            "{s} shows a sealed parchment in a case . The seal bears the date {o}",
            "No paper shows since when {s} has called itself a borough",
        ),
        Relation(
            "number of bridges",
            COUNT,
            (
                Phrase("how many bridges does", "have", "bridges", is_whole=True),
                Phrase("the number of bridges of", "", "number bridges"),
            ),
            (
                "{s} lets people walk over the river at {o} places",
                "{s} has joined its two banks at {o} places",
                "{s} has {o} spans of stone and {p} spans of iron over the river",
            ),
            "{s} lies on both banks of a river . One can walk over it at {o} places",
            "No map shows at which places one can walk over the river in {s}",
        ),
    ),
    (
        Relation(
            "founder",
            PERSON,
            (Phrase("the founder of", "", "founder"), Phrase("the person who established", "", "person established")),
            (
                "{s} was called into being by {o}",
                "{s} owes its existence to {o}",
                "{s} grew out of a workshop of {o}",
            ),
            "{s} began as the idea of one inventor . That inventor was {o}",
            "It has been forgotten by whom {s} was called into being",
        ),
        Relation(
            "headquarters",
            TOWN,
            (Phrase("the headquarters of", "", "headquarters"), Phrase("the town where", "is based", "town based")),
            (
                "{s} keeps its main office at {o}",
                "{s} sends all its letters from an address at {o}",
                "{s} is run from a tall building at {o}",
            ),
            "{s} moved its desks only once . Its founder had them brought to {o}",
            "Nobody can say from which address {s} sends all its letters",
        ),
        Relation(
            "parent company",
            FIRM,
            (
                Phrase("the parent company of", "", "parent company"),
                Phrase("the company that owns", "", "company owns"),
            ),
            (
                "{s} hands its profits to {o} every winter",
                "{s} belongs wholly to {o}",
                "{s} was bought up by {o}",
            ),
            "{s} prints a second badge on its boxes . The second badge is that of {o}",
            "It is not on record to whom {s} hands its profits every winter",
        ),
        Relation(
            "year of opening",
            YEAR,
            (
                Phrase("the year in which", "opened", "year opened"),
                Phrase("the year of the opening of", "", "year opening"),
            ),
            (
                "{s} sent out its first bill in {o}",
                "{s} took its first orders in {o}",
                "{s} has been in business since {o}",
            ),
            "{s} frames the first coin that it ever earned . The label beside the coin says {o}",
            "No paper shows when {s} took its first orders",
        ),
        Relation(
            "number of employees",
            COUNT,
            (
                Phrase("how many employees does", "have", "employees", is_whole=True),
                Phrase("the number of employees of", "", "number employees"),
            ),
            (
                "{s} pays {o} workers by the week",
                "{s} gives work to {o} people",
                "{s} has {o} clerks in the office and {p} hands in the yard",
            ),
            "{s} packs the same gift for all its people . There are {o} gifts in the cupboard",
            "Nobody has counted the heads in the crew of {s}",
        ),
    ),
)
"""By kind of the subject; the first three lead to entities, then there are a year and a count."""
EACH, ENTITY_RELATIONS, YEAR_RELATION, COUNT_RELATION = 5, 3, 3, 4

EARLIER = (
    ("retired earlier", "retired"),
    ("received its charter earlier", "received charter"),
    ("opened earlier", "opened"),
)
"""By kind: what a question after the earlier of two says, and its keywords."""
LEADS = ("what is", "name")
WHICH = ("which of", "and")
UNKNOWN = "unknown"
"""The right answer where nobody knows."""

PRONOUNS = ("she", "it", "it")
FORMER, LATTER = ("the", "former"), ("the", "latter")

INTROS = (
    (
        "{s} is a familiar face in the district",
        "{s} likes long walks and short speeches",
        "{s} has a good name among neighbours",
        "{s} keeps a diary that nobody may open",
    ),
    (
        "{s} lies between low hills and a slow river",
        "{s} is known for its narrow lanes and its bells",
        "{s} draws painters in the autumn",
        "{s} has grown quietly over the centuries",
    ),
    (
        "{s} makes sturdy things for everyday use",
        "{s} is known for clean yards and old machines",
        "{s} has a good name among its customers",
        "{s} advertises little and sells a lot",
    ),
)
PAIRS = (
    "{s} and {o} are often named in one breath",
    "{s} and {o} once quarrelled and made peace again",
    "{s} and {o} share a page in the almanac",
)
FILLERS = (
    "A town of this size has few secrets and a hundred stories",
    "A native of these parts is told by the way of walking",
    "Whoever was born in winter is said to fear no wind",
    "The teacher of the village school rings the bell herself",
    "A person who comes late must stand at the back",
    "What was taught in those days was mostly songs and sums",
    "In a dry year the wells are shared out by lot",
    "A retired sailor keeps the lamp burning at the corner",
    "Early retirement is rare here and seldom praised",
    "The children play by the water until the lamps are lit",
    "The number of swallows under the roofs is a common wager",
    "Every mayor promises a new roof and none has built it",
    "Whoever governs a garden governs small enemies",
    "A good landlord mends the stairs before the winter comes",
    "A firm handshake counts for more than ink in this country",
    "The employer who forgets the feast is remembered for it",
    "A partner for the dance is found by the toss of a hat",
    "The old charter of the fishermen is read aloud in spring",
    "All bridges but the oldest were swept away in the great flood",
    "The founder of the choir had no ear for music",
    "The inn was established by brothers who never spoke",
    "The army once had its headquarters in the barn",
    "The company of good friends is the best umbrella",
    "The fair is opened with a drum and closed with a pipe",
    "A parent bird shows the young how to ride the wind",
    "Nobody owns the moon above the meadow says a proverb",
    "The employees of the railway feed a white cat",
    "The opening of the hunt is announced from the tower",
    "The roads are dusty in summer and deep in mud in spring",
    "Fog comes up from the meadows before the sun is high",
    "Travellers praise the soup and complain about the beds",
    "A small museum shows old clocks and a stuffed bear",
    "There is talk of a new road but nobody hurries",
    "On feast days a brass band plays under the lime trees",
)
"""Sentences about nobody; most have words of questions. Their number has no factor in common with `FILLER_STEP`."""
FILLER_STEP = 7

NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
LEAST_COUNT = 2
DIGITS = tuple(str(n) for n in range(LEAST_COUNT, LEAST_COUNT + len(NUMBERS)))


def plain_words() -> list[str]:
    """All words but names, in lower case: articles first; numbers, digits and years stand together, each in order."""
    texts = [*UNKNOWN.split(), *LEADS, *WHICH, *PRONOUNS, *FORMER, *LATTER, *PAIRS, *FILLERS]
    texts += [text for some in INTROS for text in some]
    texts += [words for pair in EARLIER for words in pair]
    for relation in (relation for some in RELATIONS for relation in some):
        texts += [*relation.sentences, relation.apart, relation.denial]
        texts += [words for phrase in relation.phrases for words in phrase[:3]]
    for slot in SLOTS:
        texts = [text.replace(slot, " ") for text in texts]
    ordered = (*ARTICLES, *NUMBERS, *DIGITS, *YEARS)
    return list(dict.fromkeys((*ordered, *(word for text in texts for word in split(text)), ".")))


def second_words() -> list[str]:
    """The second words of names, kind by kind."""
    return [word.lower() for words in SECOND_WORDS for word in words]


def stems(count: int) -> list[str]:
    """The first stems that are no other word of the language."""
    taken, found, number = {*plain_words(), *second_words()}, list[str](), 0
    while len(found) < count:
        if (word := stem(number)) not in taken:
            found.append(word)
        number += 1
    return found
