"""The longest query: one rule for the environment and for ``/retrieve``."""

from __future__ import annotations

from palaestra.games.search.library import MOST_WORDS
from palaestra.games.search.vocabulary import split

MOST_CHARACTERS = 4096
"""Characters of a query."""


class QueryTooLongError(ValueError):
    """A query of more words or characters than are searched; the message says how many are."""


def split_query(query: str, most_words: int = MOST_WORDS) -> list[str]:
    """The words of a query.

    Args:
        query: The query as text; white space around it does not count.
        most_words: More are refused.

    Raises:
        QueryTooLongError: The query has more than ``most_words`` words, or more than `MOST_CHARACTERS` characters.
    """
    query = query.strip()
    words = split(query.replace("\0", " ")) if len(query) <= MOST_CHARACTERS else []
    if len(query) > MOST_CHARACTERS or len(words) > most_words:
        raise QueryTooLongError(tell_limit(most_words))
    return words


def tell_limit(most_words: int = MOST_WORDS) -> str:
    """The message of `QueryTooLongError`, which the observation after such a turn has too."""
    words = "1 word" if most_words == 1 else f"{most_words} words"
    return f"the query was not searched: it has more than {words} or {MOST_CHARACTERS} characters; write a shorter one"


def query_refusal(query: str, most_words: int = MOST_WORDS) -> str:
    """Why a query is not searched, for who asked ``/retrieve``; empty if it is."""
    try:
        split_query(query, most_words)
    except QueryTooLongError as error:
        return str(error)
    return ""
