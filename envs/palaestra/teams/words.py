"""What the talking games share: words that are said and heard, and colours that stand for landmarks."""

from __future__ import annotations

from palaestra.core.fields import ActionField, Choice, Continuous


def say_of(actions: str, words: int) -> ActionField:
    """How agents talk: one of ``words`` words, or as many numbers in [0, 1]."""
    if actions == "discrete":
        return Choice("word", words, about="what the others hear in the next decision")
    return Continuous("words", (words,), 0.0, 1.0, "1", "what the others hear in the next decision, one number a word")


def say_word(said, word):
    """Puts one word into the air (float64 [words])."""
    said[:] = 0.0
    said[word] = 1.0


def say_words(said, words):
    """Broadcasts all words at once, each with its loudness."""
    for k in range(len(said)):
        said[k] = words[k]


def loudest(said, words):
    """The loudest of the first ``words`` words, -1 while all is silent."""
    best, volume = -1, 0.0
    for k in range(words):
        if said[k] > volume:
            best, volume = k, said[k]
    return best


def write_color(out, number, dark, bright):
    """Writes the colour of a landmark: red, green or blue is bright in it."""
    for k in range(3):
        out[k] = bright if k == number else dark
