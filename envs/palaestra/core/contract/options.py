"""Options: the keywords of a factory as a table, from which signature, checks, pages and declared files come."""

from __future__ import annotations

import functools
import inspect
import math
from collections import namedtuple
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np

from palaestra.core.contract.keywords import Words, any_text, check_flag, check_word

Made = TypeVar("Made")

TABLE = "__options__"
"""Attribute of a factory that holds its `Option` objects."""


@dataclass(frozen=True)
class Option:
    """A keyword of a factory, which decides what game is made; a `Parameter` is a number of a game that is made.

    What it may be: one of ``words``; a number from ``low`` to ``high``, whole where ``low`` is an int; a flag, where
    the default is True or False and nothing else is said; else what ``check`` accepts.

    Attributes:
        name: The keyword.
        default: Its value where the user gives none, or None.
        about: For the page of the environment: what it decides, and what None stands for.
        words: All values, each a text (or None, where that is a value of its own beside the default).
        low: Smallest number.
        high: Largest number.
        unit: Of the number, ``"1"`` if it has none.
        is_span: Two whole numbers may be given too, the fewest and the most; the factory gets two in any case.
        texts: Texts of a keyword that may name a file, a folder, code or a model, which name nothing of the kind. What
            somebody else wrote (a replay, a pool) may say these alone, or hold the content of a text file. `any_text`
            where no text is ever opened.
        check: ``check(value, options) -> value`` returns what the factory gets and raises ValueError; ``options`` has
            the values of the options above, by name.
        otherwise: ``otherwise(options) -> value``: what the factory gets where the value is None.
        only: The option means something only where another one has this value, one of a tuple of values, or one for
            which a function is true. Elsewhere any value but the default is refused.
        example: Another value than the default which makes a difference, where no other one can be guessed: for tests.
    """

    name: str
    default: Any
    about: str
    words: Collection[str | None] = ()
    low: float | None = None
    high: float | None = None
    unit: str = "1"
    is_span: bool = False
    texts: Words | None = None
    check: Callable[[Any, Mapping[str, Any]], Any] | None = None
    otherwise: Callable[[Mapping[str, Any]], Any] | None = None
    only: Mapping[str, Any] = field(default_factory=dict)
    example: Any = None

    def __post_init__(self) -> None:
        """Raises ValueError where nothing says what the option may be, or its default may not be."""
        kinds = [bool(self.words), self.low is not None or self.high is not None, self.is_flag]
        if sum(kinds) > 1 or not (any(kinds) or self.check or self.texts is not None):
            raise ValueError(f"option {self.name!r}: give words, or low and high, or True or False, or a check")
        if (self.low is None) != (self.high is None):
            raise ValueError(f"option {self.name!r}: give both low and high")
        if self.default is not None and self.check is None:
            self.value_of(self.default, {})

    @property
    def is_flag(self) -> bool:
        """Whether it is True or False."""
        plain = not self.words and self.low is None and self.check is None and self.texts is None
        return plain and isinstance(self.default, bool)

    def value_of(self, given: Any, above: Mapping[str, Any]) -> Any:
        """What the factory gets for a value of the user's.

        Args:
            given: The user's; None is the default.
            above: Values of the options above, by name.

        Raises:
            ValueError: It cannot be; names option, value and what can.
        """
        value = self.default if given is None and None not in self.words else given
        if value is None and None not in self.words:
            return self.otherwise(above) if self.otherwise else None
        if self.words:
            check_word(self.name, value, self.words)
        if self.is_flag:
            check_flag(self.name, value)
            value = bool(value)
        if self.low is not None:
            value = self._number(value)
        return value if self.check is None else self.check(value, above)

    @property
    def _range(self) -> str:
        return " to ".join(str(end) if isinstance(end, int) else f"{end:g}" for end in (self.low, self.high))

    def _number(self, value: Any) -> Any:
        kind: Any = int if isinstance(self.low, int) else float
        ends = tuple(value) if self.is_span and isinstance(value, tuple | list) and len(value) == 2 else (value, value)
        if not all(_is_number(end, kind) and self.low <= end <= self.high for end in ends) or ends[0] > ends[1]:  # type: ignore[operator]
            name = "an integer" if kind is int else "a number"
            pair = ", or the fewest and the most" if self.is_span else ""
            raise ValueError(f"{self.name} must be {name} from {self._range}{pair}, got {value!r}")
        return (kind(ends[0]), kind(ends[1])) if self.is_span else kind(value)

    def row(self) -> dict[str, str]:
        """The option in a table of a page, all as text."""
        if self.words:
            values = ", ".join(f"`{word!r}`".replace("'", '"') for word in self.words)
        elif self.low is not None:
            values = self._range + (", or fewest and most" if self.is_span else "")
        else:
            values = "`True`, `False`" if self.is_flag else ""
        default = f"`{self.default!r}`".replace("'", '"') if self.default is not None else ""
        unit = "" if self.unit == "1" else self.unit
        about = "; only with ".join([self.about, *self._meant_beside()])
        return {"name": self.name, "default": default, "values": values, "unit": unit, "about": about}

    def _meant_beside(self) -> Iterator[str]:
        for other, meant in self.only.items():
            values = meant if isinstance(meant, tuple) else (meant,)
            if not callable(meant):
                yield f"`{other}={' or '.join(map(repr, values))}`".replace("'", '"')


def _is_number(value: Any, kind: type) -> bool:
    if isinstance(value, bool | np.bool_):
        return False
    whole = isinstance(value, int | np.integer)
    return whole or (kind is float and isinstance(value, float | np.floating) and math.isfinite(value))


def with_options(*table: Option) -> Callable[[Callable[[Any], Made]], Callable[..., Made]]:
    """Gives a factory its keywords.

    ::

        @with_options(
            Option("task", "arith", "what is asked", words=("arith", "algebra")),
            Option("largest", 9, "coefficient of an equation", low=2, high=49, only={"task": "algebra"}),
        )
        def game(options) -> Game: ...


        game(task="algebra", largest=12)  # the factory gets options.task and options.largest, checked

    ``options`` is a named tuple. Its ``numbers`` are a named tuple for the world, which the rules read: words are their
    place among ``words``, flags 0 or 1, None is -1; options of other kinds are left out.

    Args:
        table: The options, in the order in which they are checked. Games that share some write them once, as a tuple:
            ``@with_options(*ROBOT_OPTIONS, Option(...))``.

    Raises:
        ValueError: A name stands twice, or ``only`` names no option.
    """
    names = [option.name for option in table]
    if len(set(names)) < len(names) or not all(other in names for option in table for other in option.only):
        raise ValueError(f"names of options stand once, and only= names options: {', '.join(names)}")

    def decorate(factory: Callable[[Any], Made]) -> Callable[..., Made]:
        signature = inspect.Signature([_parameter(option) for option in table])
        numeric = [option for option in table if option.words or option.low is not None or option.is_flag]
        numbers: Any = namedtuple("Numbers", [option.name for option in numeric])
        # Where `pickle` finds it, for compiled code that is kept on the disk.
        numbers.__module__, numbers.__qualname__ = factory.__module__, f"{factory.__qualname__}.Numbers"

        class Options(namedtuple("Options", names)):
            """The options' values; see `with_options`."""

            __slots__ = ()

            @property
            def numbers(self) -> Any:
                """Those that rules can read."""
                return numbers(*(_as_number(option, getattr(self, option.name)) for option in numeric))

        @functools.wraps(factory)
        def with_table(*arguments: Any, **keywords: Any) -> Made:
            given = signature.bind(*arguments, **keywords).arguments
            return factory(Options(**values_of(table, given)))

        with_table.__signature__ = signature  # type: ignore[attr-defined]
        with_table.Numbers = numbers  # type: ignore[attr-defined]
        setattr(with_table, TABLE, table)
        return with_table

    return decorate


def _parameter(option: Option) -> inspect.Parameter:
    kind: Any = Any
    if option.words:
        kind = Literal[tuple(option.words)]  # type: ignore[valid-type]
    elif option.low is not None:
        kind = int if isinstance(option.low, int) else float
    elif option.is_flag:
        kind = bool
    kind = kind | None if option.default is None and kind is not Any else kind
    return inspect.Parameter(
        option.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=option.default, annotation=kind
    )


def _as_number(option: Option, value: Any) -> Any:
    if value is None:
        return -1
    return list(option.words).index(value) if option.words else int(value) if option.is_flag else value


def values_of(table: Collection[Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """What a factory gets, by name.

    Args:
        table: Its options.
        given: What the user gives, by name.

    Raises:
        ValueError: A value that cannot be, or that means nothing beside the others; names it.
    """
    values: dict[str, Any] = {}
    for option in table:
        values[option.name] = option.value_of(given.get(option.name, option.default), values)
    for option in table:
        value = given.get(option.name)
        if value is None or _is_same(value, option.default):
            continue
        for other, meant in option.only.items():
            if not is_meant(values[other], meant):
                raise ValueError(f"{option.name}={value!r} means nothing with {other}={values[other]!r}: leave it out")
    return values


def is_meant(value: Any, meant: Any) -> bool:
    """Whether a value is that of an ``only``, one of its values, or one for which it is true."""
    if callable(meant):
        return bool(meant(value))
    return any(_is_same(value, one) for one in (meant if isinstance(meant, tuple) else (meant,)))


def _is_same(value: Any, default: Any) -> bool:
    try:
        return bool(value == default)
    except ValueError:  # of an array
        return False


def options_of(factory: Any) -> tuple[Option, ...]:
    """The options of a factory; empty where it has no table."""
    while isinstance(factory, functools.partial):
        factory = factory.func
    return getattr(factory, TABLE, ())


def declared_words(factory: Any) -> dict[str, Words]:
    """By keyword of a factory, the texts that name nothing outside the game; without those that its table leaves open.

    Of an option with words, a number or a flag this is any text: the table refuses all but its own.
    """
    declared = {}
    for option in options_of(factory):
        is_closed = option.words or option.low is not None or option.is_flag
        if is_closed or option.texts is not None:
            declared[option.name] = any_text if option.texts is None else option.texts
    return declared
