"""What the communication games share: messages, received in the next decision, colours of landmarks, bodies."""

from __future__ import annotations

from palaestra.game import ActionField, Choice, Continuous

MASS_KG, START_M = 1.0, 1.0
"""Of bodies; starts are drawn from the square of this half-width (mpe2)."""
NEAR_M = 0.05
"""Ways shorter than this the scripts do not go."""


def message_of(actions: str, words: int) -> ActionField:
    """The action that sends a message: `Discrete(words)`, or ``words`` numbers in [0, 1]."""
    if actions == "discrete":
        return Choice("word", words, about="message that the others receive in the next decision")
    return Continuous(
        "words",
        (words,),
        0.0,
        1.0,
        "1",
        "message that the others receive in the next decision",
        parts=tuple(f"word {k}" for k in range(words)),
    )


def say_word(said, word):
    """One-hot message: 1 at ``word``, 0 elsewhere (float64 [words])."""
    said[:] = 0.0
    said[word] = 1.0


def say_words(said, words):
    """Continuous message: one number for each entry (float64 [words])."""
    for k in range(len(said)):
        said[k] = words[k]


def loudest(said, words):
    """Index of the greatest of the first ``words`` entries; -1 if all are 0."""
    best, volume = -1, 0.0
    for k in range(words):
        if said[k] > volume:
            best, volume = k, said[k]
    return best


def write_color(out, number, dark, bright):
    """Writes the colour of a landmark: red, green or blue is bright in it."""
    for k in range(3):
        out[k] = bright if k == number else dark
