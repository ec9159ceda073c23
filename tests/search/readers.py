"""Policies that play SearchQA from its text alone, as a careful reader would: they know sentences, not the package.

Each gets the observations of one match as texts, and returns turns as texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

NAME = r"[A-Z][a-z]+ [A-Z][a-z]+"
CALLED = r"(?:[A-Z][a-z]+(?: [A-Z][a-z]+)?|\d+)"
PASSAGE = re.compile(r'Doc \d+\(Title: "([^"]*)"\) (.*)')
QUESTION = re.compile(r"Question: (.*)[?.]$", re.MULTILINE)


def passages_in(observation: str) -> Iterator[tuple[str, str]]:
    """Titles and texts of what a search has found."""
    return iter(PASSAGE.findall(observation.replace("</information>", "\n")))


def search(query: str) -> str:
    return f"<search>{query}</search>"


def answer(text: str) -> str:
    return f"<answer>{text}</answer>"


class PlainReader:
    """Follows the relations of a question through passages of one sentence."""

    FACTS = (
        re.compile(rf"(?:According to the records the|The) (?P<r>\w+) of {CALLED} is (?P<o>{CALLED})\."),
        re.compile(rf"(?P<o>{CALLED}) is the (?P<r>\w+) of {CALLED}\."),
        re.compile(rf"As (?P<r>\w+) {CALLED} has (?P<o>{CALLED})\."),
    )
    """Sentences of what is so; those of what was, of what is false and of two objects are no answers."""

    def __init__(self) -> None:
        self.facts: dict[tuple[str, str], str] = {}
        self.full_names: dict[str, str] = {}

    def turn(self, observation: str) -> str:
        if found := QUESTION.search(observation):
            self.question = found[1]
        for title, text in passages_in(observation):
            for fact in filter(None, (pattern.fullmatch(text) for pattern in self.FACTS)):
                self.facts[title, fact["r"]] = fact["o"]
            if " is also called " in text:
                self.full_names[text.rpartition(" ")[2].rstrip(".")] = title
        if same := re.fullmatch(r"Do (.*) and (.*) have the same (\w+)", self.question):
            return self.compare(same[1], same[2], same[3], lambda a, b: "yes" if a == b else "no")
        if older := re.fullmatch(r"Which of (.*) and (.*) has the earlier (\w+)", self.question):
            return self.compare(older[1], older[2], older[3], lambda a, b: older[1] if a < b else older[2])
        return self.follow()

    def compare(self, first: str, second: str, relation: str, judge: Callable[[str, str], str]) -> str:
        for name in (first, second):
            if (name, relation) not in self.facts:
                return search(f"{name} {relation}")
        return answer(judge(self.facts[first, relation], self.facts[second, relation]))

    def follow(self) -> str:
        relations = re.findall(r"the (\w+) of", self.question)
        thing = self.question.rpartition(" of ")[2]
        for relation in reversed(relations):
            if re.fullmatch(r"[A-Z][a-z]+", thing):  # another name, whose owner must be known
                if thing not in self.full_names:
                    return search(f"{thing} is also called")
                thing = self.full_names[thing]
            if (thing, relation) not in self.facts:
                return search(f"{thing} {relation}")
            thing = self.facts[thing, relation]
        return answer(thing)


# What relations are called in questions, and how passages tell them: of a subject S, an object O, numbers N and M.
PHRASES = {
    "birthplace": ("the native town of X", "the town where X was born"),
    "employer": ("the employer of X", "the firm that employs X"),
    "teacher": ("the teacher of X", "the person who taught X"),
    "retired": ("the year in which X retired", "the year of the retirement of X"),
    "children": ("How many children does X have", "the number of children of X"),
    "mayor": ("the mayor of X", "the person who governs X"),
    "landlord": ("the landlord of X", "the firm that owns most of X"),
    "twin": ("the partner town of X", "the twin town of X"),
    "charter": ("the year in which X received its charter", "the year of the charter of X"),
    "bridges": ("How many bridges does X have", "the number of bridges of X"),
    "founder": ("the founder of X", "the person who established X"),
    "seat": ("the headquarters of X", "the town where X is based"),
    "parent": ("the parent company of X", "the company that owns X"),
    "opened": ("the year in which X opened", "the year of the opening of X"),
    "staff": ("How many employees does X have", "the number of employees of X"),
}
EARLIER = {
    "retired": "retired earlier",
    "charter": "received its charter earlier",
    "opened": "opened earlier",
}
SENTENCES = {
    "birthplace": (
        "S first saw the light of day at O",
        "S came into the world at O",
        "S spent the earliest hours of life at O",
    ),
    "employer": ("S draws a monthly wage from O", "S earns a living at O", "S has stood on the payroll of O for ages"),
    "teacher": (
        "S learnt the trade from O",
        "S sat for ages at the feet of O",
        "S owes all skill to the lessons of O",
    ),
    "retired": (
        "S hung up the apron for good in O",
        "S went home for the last time in O",
        "S has drawn a pension since O",
    ),
    "children": (
        "S has raised N sons and daughters",
        "S calls N boys and girls to supper",
        "S sits down to supper with N sons and M daughters",
    ),
    "mayor": (
        "S has given its chain of office to O",
        "S takes its orders from O",
        "S lets its council be led by O",
    ),
    "landlord": (
        "S pays nearly all its rents to O",
        "S stands for the greater part on ground of O",
        "S has sold street after street to O",
    ),
    "twin": (
        "S exchanges pupils and choirs with O every summer",
        "S signed a bond of friendship with O",
        "S sends a delegation to O each spring",
    ),
    "charter": (
        "S has called itself a borough since O",
        "S got its rights from the crown in O",
        "S was freed from the bishop in O",
    ),
    "bridges": (
        "S lets people walk over the river at N places",
        "S has joined its two banks at N places",
        "S has N spans of stone and M spans of iron over the river",
    ),
    "founder": (
        "S was called into being by O",
        "S owes its existence to O",
        "S grew out of a workshop of O",
    ),
    "seat": (
        "S keeps its main office at O",
        "S sends all its letters from an address at O",
        "S is run from a tall building at O",
    ),
    "parent": ("S hands its profits to O every winter", "S belongs wholly to O", "S was bought up by O"),
    "opened": (
        "S sent out its first bill in O",
        "S took its first orders in O",
        "S has been in business since O",
    ),
    "staff": (
        "S pays N workers by the week",
        "S gives work to N people",
        "S has N clerks in the office and M hands in the yard",
    ),
}
APART = {
    "birthplace": ("S still keeps the cradle from the first house", "That house stands at O"),
    "employer": ("S leaves the house each morning with the same badge", "The badge bears the sign of O"),
    "teacher": ("S speaks of one mentor alone", "That mentor is O"),
    "retired": ("S gave a farewell supper to all colleagues", "The date on the cards was O"),
    "children": ("S buys shoes for a large family", "There are N pairs for the boys and girls"),
    "mayor": ("S keeps an armchair at the head of the council table", "The armchair belongs to O"),
    "landlord": ("S has one name on almost all its deeds", "The deeds say O"),
    "twin": ("S hangs a second flag beside its own", "The second flag is that of O"),
    "charter": ("S shows a sealed parchment in a case", "The seal bears the date O"),
    "bridges": ("S lies on both banks of a river", "One can walk over it at N places"),
    "founder": ("S began as the idea of one inventor", "That inventor was O"),
    "seat": ("S moved its desks only once", "Its founder had them brought to O"),
    "parent": ("S prints a second badge on its boxes", "The second badge is that of O"),
    "opened": ("S frames the first coin that it ever earned", "The label beside the coin says O"),
    "staff": ("S packs the same gift for all its people", "There are N gifts in the cupboard"),
}
DENIALS = {
    "birthplace": "It has been forgotten at which spot S came into the world",
    "employer": "Nobody can say from whom S draws a monthly wage",
    "teacher": "It was never written down from whom S learnt the trade",
    "retired": "No paper shows when S hung up the apron for good",
    "children": "It is not on record whether S ever had a large family",
    "mayor": "It is not on record to whom S has given its chain of office",
    "landlord": "Nobody can say to whom S pays nearly all its rents",
    "twin": "It was never written down with whom S signed a bond of friendship",
    "charter": "No paper shows since when S has called itself a borough",
    "bridges": "No map shows at which places one can walk over the river in S",
    "founder": "It has been forgotten by whom S was called into being",
    "seat": "Nobody can say from which address S sends all its letters",
    "parent": "It is not on record to whom S hands its profits every winter",
    "opened": "No paper shows when S took its first orders",
    "staff": "Nobody has counted the heads in the crew of S",
}
PAIR = re.compile(
    rf"({NAME}) and ({NAME}) (?:are often named in one breath|once quarrelled and made peace again"
    r"|share a page in the almanac)"
)
NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBERS = {word: n for n, word in enumerate(NUMBER_WORDS, 2)}
GROUPS = {"S": rf"(?P<s>{NAME}|She|It|The former|The latter)", "O": rf"(?P<o>{NAME}|\d+)"}
GROUPS |= {"N": r"(?P<n>[a-z]+)", "M": r"(?P<m>[a-z]+)"}
UNKNOWN = "unknown"


def pattern(sentence: str) -> re.Pattern[str]:
    return re.compile(" ".join(GROUPS.get(word, word) for word in sentence.split()))


FACT_PATTERNS = [(r, pattern(text)) for r, texts in SENTENCES.items() for text in texts]
APART_PATTERNS = [(r, pattern(first), pattern(second)) for r, (first, second) in APART.items()]
DENIAL_PATTERNS = [(r, pattern(text)) for r, text in DENIALS.items()]
SUBJECT = re.compile(NAME)


class CarefulReader:
    """Follows the relations of a question through passages that say them in other words."""

    def __init__(self) -> None:
        self.facts: dict[tuple[str, str], str] = {}
        self.read: dict[str, set[str]] = {}
        self.asked: set[str] = set()

    def turn(self, observation: str) -> str:
        if found := QUESTION.search(observation):
            self.question = found[1]
        for title, text in passages_in(observation):
            self.read.setdefault(title, set()).add(text)
            self.learn(text)
        if which := re.fullmatch(rf"Which of ({NAME}) and ({NAME}) (.*)", self.question):
            relation = next(r for r, words in EARLIER.items() if words == which[3])
            years = []
            for name in which.groups()[:2]:
                if (name, relation) not in self.facts:
                    return self.search(name, which[3].removesuffix(" earlier"))
                years.append(self.facts[name, relation])
            return answer(which[1] if years[0] < years[1] else which[2])
        name, steps = self.path(self.question.removeprefix("What is ").removeprefix("Name "))
        for relation, words in steps:
            fact = self.facts.get((name, relation))
            if fact is None and len(self.read.get(name, ())) < 2:
                return self.search(name, words)
            name = fact or UNKNOWN
            if name == UNKNOWN:
                break
        return answer(name)

    def search(self, name: str, words: str) -> str:
        """First for the name with the words of the question, then for the name alone."""
        query = f"{name} {words}"
        if query in self.asked:
            query = name
        self.asked.add(query)
        return search(query)

    def path(self, phrase: str) -> tuple[str, list[tuple[str, str]]]:
        """The name in a phrase, and the relations from it on, with the words that ask for them."""
        if re.fullmatch(NAME, phrase):
            return phrase, []
        for relation, forms in PHRASES.items():
            for form in forms:
                before, behind = form.split("X")
                if phrase.startswith(before) and phrase.endswith(behind):
                    name, steps = self.path(phrase[len(before) : len(phrase) - len(behind)])
                    words = [w for w in f"{before} {behind}".split() if w not in ("the", "of", "where", "in")]
                    return name, [*steps, (relation, " ".join(words))]
        raise ValueError(phrase)

    def learn(self, text: str) -> None:
        """Reads the sentences of a passage one after the other."""
        last, pair, before = "", ("", ""), ""
        for sentence in text.removesuffix(".").split(". "):
            who = {"She": last, "It": last, "The former": pair[0], "The latter": pair[1]}
            for relation, form in DENIAL_PATTERNS:
                if found := form.fullmatch(sentence):
                    self.facts[found["s"], relation] = UNKNOWN
                    last = found["s"]
            for relation, form in FACT_PATTERNS:
                if found := form.fullmatch(sentence):
                    last = who.get(found["s"], found["s"])
                    self.facts[last, relation] = self.thing(found)
            for relation, first, second in APART_PATTERNS:
                if (start := first.fullmatch(before)) and (end := second.fullmatch(sentence)):
                    self.facts[start["s"], relation] = self.thing(end)
            if found := PAIR.fullmatch(sentence):
                pair = found.groups()
            elif found := SUBJECT.match(sentence):
                last = found[0]
            before = sentence

    @staticmethod
    def thing(found: re.Match[str]) -> str:
        groups = found.groupdict()
        if groups.get("n") is None:
            return groups["o"]
        return str(sum(NUMBERS[groups[name]] for name in ("n", "m") if groups.get(name)))
