"""Spaces for codecs: Gymnasium's Text and Graph with membership tests that do not loop in Python.

They are Gymnasium's spaces in every other way: sampling, seeds, ``==``, batching, flattening and shared memory are
inherited.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence, Sized
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.spaces import GraphInstance

ALPHANUMERIC = frozenset(string.ascii_letters + string.digits)
JUNK_SHARE = 0.25
"""Share of the samples of a space with ``samples`` that are texts of random characters."""
LONGEST_JUNK = 100
"""Characters of such a text: enough for what nobody expects, and short enough to read."""
PRINTABLE = "".join(chr(code) for code in range(32, 127))
"""What texts of any characters are sampled from."""


class AnyCharacters(Sequence[str]):
    """All of Unicode, in place of a character set and of a list of characters: each stands at its code point."""

    def __len__(self) -> int:
        return 0x110000

    def __getitem__(self, index: Any) -> Any:
        return chr(index)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, str) and len(value) == 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyCharacters)

    def __hash__(self) -> int:
        return hash(AnyCharacters)


class TextSpace(spaces.Text):
    """Texts of some characters, or of any.

    With ``charset=None`` every text of a fitting length is a member; samples are of printable ASCII. With ``samples``
    three of four samples are what users would say, so that random play and fuzz tests get beyond refusals.
    """

    def __init__(
        self,
        max_length: int,
        *,
        min_length: int = 1,
        charset: frozenset[str] | set[str] | str | None = ALPHANUMERIC,
        samples: Callable[[np.random.Generator], str] | None = None,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        """Makes the space.

        Args:
            max_length: Largest number of characters.
            min_length: Smallest number of characters.
            charset: Characters that may occur; None for all of Unicode.
            samples: ``samples(generator)`` gives a text that means something; a function of a module, which copies and
                other processes find again.
            seed: Seed of `sample`.
        """
        super().__init__(
            max_length,
            min_length=min_length,
            charset=PRINTABLE if charset is None else frozenset(charset) if isinstance(charset, set) else charset,
            seed=seed,
        )
        self._any = AnyCharacters() if charset is None else None
        self._samples = samples
        self._pattern = None if charset is None else re.compile(f"[{re.escape(self.characters)}]*" if charset else "")

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A random text; see `gymnasium.spaces.Text.sample`. Masks of any characters are over printable ASCII.

        Raises:
            ValueError: ``samples`` gave a text that is not in the space.
        """
        is_plain = mask is None and probability is None
        if self._samples is not None and is_plain and self.np_random.random() >= JUNK_SHARE:
            text = self._samples(self.np_random)
            if text not in self:
                raise ValueError(f"samples gave {text!r}, which is not in {self!r}")
            return text
        if self._any is None:
            return super().sample(mask, probability)
        longest = self.max_length if self._samples is None else max(self.min_length, min(self.max_length, LONGEST_JUNK))
        printable = spaces.Text(
            longest, min_length=self.min_length, charset=PRINTABLE, seed=self.np_random
        )  # draws from this space's own generator
        return printable.sample(mask, probability)

    def contains(self, x: Any) -> bool:
        """Whether it is a text of the right length and characters."""
        if not isinstance(x, str) or not self.min_length <= len(x) <= self.max_length:
            return False
        return self._pattern is None or self._pattern.fullmatch(x) is not None

    @property
    def character_set(self) -> Any:
        """The characters that may occur."""
        return super().character_set if self._any is None else self._any

    @property
    def character_list(self) -> Any:
        """The characters by their numbers in flattened texts."""
        return super().character_list if self._any is None else self._any

    def character_index(self, char: str) -> np.int32:
        """Number of a character in flattened texts."""
        return super().character_index(char) if self._any is None else np.int32(ord(char))

    def __repr__(self) -> str:
        if self._any is None:
            return super().__repr__()
        return f"Text({self.min_length}, {self.max_length}, charset=None)"


class GraphSpace(spaces.Graph):
    """Graphs whose nodes and edges are checked as arrays where their spaces are Box or Discrete."""

    def contains(self, x: Any) -> bool:
        """Whether all nodes and edges are in their spaces and all links between nodes."""
        if not isinstance(x, GraphInstance):
            return False
        number_of_nodes, number_of_edges = (len(part) if isinstance(part, Sized) else 0 for part in (x.nodes, x.edges))
        nodes = _rows_inside(self.node_space, x.nodes)
        edges = None if x.edges is None else _rows_inside(self.edge_space, x.edges)
        if nodes is None or (edges is None and x.edges is not None):
            return super().contains(x)
        if x.edges is None or x.edge_links is None:
            return nodes and x.edges is None and x.edge_links is None
        links = x.edge_links
        if not (nodes and edges and isinstance(links, np.ndarray) and np.issubdtype(links.dtype, np.integer)):
            return False
        return links.shape == (number_of_edges, 2) and bool(((links >= 0) & (links < number_of_nodes)).all())


def _rows_inside(space: spaces.Space | None, rows: Any) -> bool | None:
    """Whether every row is in a Box or Discrete space; None where that has to be asked row by row."""
    if not isinstance(rows, np.ndarray) or rows.ndim == 0 or len(rows) == 0:
        return None
    if type(space) is spaces.Box and space.shape and rows.dtype.kind in "biuf":
        if not np.can_cast(rows.dtype, space.dtype) or rows.shape[1:] != space.shape:
            return False
        return bool((rows >= space.low).all() and (rows <= space.high).all())
    if type(space) is spaces.Discrete and rows.ndim == 1 and rows.dtype.kind in "iu":
        inside = (rows >= int(space.start)).all() and (rows < int(space.start) + int(space.n)).all()
        return bool(inside) and np.can_cast(rows.dtype, space.dtype)
    return None


__all__ = ["GraphSpace", "TextSpace"]
