"""How right an answer in words is: exact match, F1 and containment after the usual normalisation of open-domain QA.

Example::

    score("It is the Eiffel Tower.", ["Eiffel Tower", "La tour Eiffel"])  # exact_match 0, f1 2/3, contains 1
    extract_answer("<think>Paris.</think> <answer> Eiffel Tower </answer>")  # "Eiffel Tower"

Normalisation and F1 are those of SQuAD (P. Rajpurkar et al., "SQuAD: 100,000+ questions for machine comprehension of
text", 2016), which Search-R1 (B. Jin et al., 2025) uses too. All take time in proportion to the length of the text.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

ARTICLES = frozenset(("a", "an", "the"))
ARTICLE = re.compile(r"\b(?:a|an|the)\b")
PUNCTUATION = re.compile(f"[{re.escape(string.punctuation)}]+")
ASCII_PUNCTUATION = string.punctuation.encode()


class Score(NamedTuple):
    """How right an answer is.

    Attributes:
        exact_match: 1 if answer and target are the same after `normalize`, else 0.
        f1: Harmonic mean of precision and recall of the answer's words, 0 to 1.
        contains: 1 if the target's words stand in the answer, one behind the other, else 0 (sub-EM, by whole words).
    """

    exact_match: float
    f1: float
    contains: float


def normalize(text: str) -> str:
    """Lower case without punctuation (of ASCII) and articles (a, an, the); one space between words."""
    return " ".join(normal_words(text))


def score(answer: str, targets: str | Sequence[str]) -> Score:
    """The best of each number over the targets.

    A target without words ("The") is right where the answer has no words either.

    Args:
        answer: What was answered; see `extract_answer`.
        targets: One or several right answers.

    Raises:
        TypeError: An answer or a target that is no text.
        ValueError: No targets.
    """
    texts = [targets] if isinstance(targets, str) else list(targets)
    if not texts:
        raise ValueError("no targets: give the right answer, or a list of them")
    if wrong := [text for text in (answer, *texts) if not isinstance(text, str)]:
        raise TypeError(f"answer and targets are texts, got {wrong[0]!r}: give str() of it")
    words, golds = normal_words(answer), [normal_words(text) for text in texts]
    counts = Counter(filter(set().union(*golds).__contains__, words))
    return Score(*map(max, zip(*(_score(words, counts, gold) for gold in golds), strict=True)))


def extract_answer(text: str) -> str | None:
    """The last complete ``<answer>...</answer>`` of a response, without white space around it; None without one.

    What stands in ``<information>...</information>`` is retrieved text, and no answer; nor is what spans such a block.
    """
    answer = None
    for part in _outside_information(text):
        start = part.rfind("<answer>", 0, max(part.rfind("</answer>"), 0))
        if start >= 0:
            answer = part[start + len("<answer>") : part.find("</answer>", start)].strip()
    return answer


def _outside_information(text: str) -> Iterator[str]:
    """The parts of a response before, between and behind complete blocks of information."""
    at = 0
    while (start := text.find("<information>", at)) >= 0 and (end := text.find("</information>", start)) >= 0:
        yield text[at:start]
        at = end + len("</information>")
    yield text[at:]


def normal_words(text: str) -> list[str]:
    """The words of a text after `normalize`."""
    text = text.lower()
    if text.isascii() and text.isprintable():  # in a fifth of the time
        plain = text.encode().translate(None, ASCII_PUNCTUATION).decode()
        return [word for word in plain.split() if word not in ARTICLES]
    return ARTICLE.sub(" ", PUNCTUATION.sub("", text)).split()


def _score(words: list[str], counts: Counter[str], gold: list[str]) -> Score:
    """The score by one target; ``counts`` are those of the target's words, at least, in ``words``."""
    if not words or not gold:
        return Score(*[float(words == gold)] * 3)
    common = sum((Counter(gold) & counts).values())
    contains = common == len(gold) and f" {' '.join(gold)} " in f" {' '.join(words)} "
    return Score(float(words == gold), 2 * common / (len(words) + len(gold)), float(contains))
