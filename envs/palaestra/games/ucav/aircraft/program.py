"""A frame as a list of Python statements on variables, from which functions are cut out.

A variable stands for one of JSBSim's properties or for a quantity of a model; statements stand in the order in which
JSBSim computes. Whatever is read before it is written comes from the frame before: it is *carried* in the record of the
aircraft. A function is cut out by what it shall leave behind; statements that nothing of it needs are left out.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Statement(NamedTuple):
    """One assignment.

    Attributes:
        text: ``"a, b = f(c)"``.
        writes: Variables on the left.
        reads: Variables on the right.
    """

    text: str
    writes: frozenset[str]
    reads: frozenset[str]


def variable(path: str) -> str:
    """Name of the variable of a property: ``fcs/roll-rate-pid`` is ``fcs_roll_rate_pid``."""
    return re.sub(r"\W", "_", path.removesuffix("[0]").replace("[0]/", "/"))


@dataclass
class Program:
    """The statements of a frame.

    Attributes:
        known: Names in statements that are no variables: functions and constants of the generated file.
        constants: Values of variables that nothing changes.
        fixed: Variables that statements do not change: their assignments are left out.
        lasting: Variables that JSBSim's reset leaves as they are.
        numbers: Breakpoints and data of all tables and actuators, one after the other.
        statements: What has been added.
    """

    known: frozenset[str]
    constants: dict[str, float] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    lasting: set[str] = field(default_factory=set)
    numbers: list[float] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    _stored: dict[tuple[float, ...], int] = field(default_factory=dict)

    def add(self, text: str) -> None:
        """Adds assignments."""
        for assignment in ast.parse(textwrap.dedent(text)).body:
            loads, stores = set(), set()
            for node in ast.walk(assignment):
                if isinstance(node, ast.Name) and node.id not in self.known:
                    (stores if isinstance(node.ctx, ast.Store) else loads).add(node.id)
            if not stores <= self.fixed:
                self.statements.append(Statement(ast.unparse(assignment), frozenset(stores), frozenset(loads)))

    def store(self, numbers: Iterable[float]) -> int:
        """Puts numbers into the array of the airframe, once; returns where they begin."""
        row = tuple(numbers)
        if row not in self._stored:
            self._stored[row] = len(self.numbers)
            self.numbers += row
        return self._stored[row]

    def written(self) -> frozenset[str]:
        """All variables that some statement writes."""
        return frozenset().union(*(s.writes for s in self.statements))

    def needed(self, roots: Iterable[str]) -> tuple[list[Statement], frozenset[str]]:
        """Statements that lead to the roots, frame after frame, and the variables that they need from before."""
        written, wanted = self.written(), frozenset(roots)
        while True:
            kept, live = self.needed_once(wanted)
            if live & written <= wanted:
                return kept, live
            wanted |= live & written

    def needed_once(self, roots: Iterable[str]) -> tuple[list[Statement], frozenset[str]]:
        """The same within one frame."""
        live, kept = set(roots), []
        for statement in reversed(self.statements):
            if statement.writes & live:
                kept.append(statement)
                live -= statement.writes
                live |= statement.reads
        return kept[::-1], frozenset(live)


def function_text(
    name: str, arguments: str, statements: Iterable[Statement], before: Mapping[str, str], after: Iterable[str]
) -> Iterator[str]:
    """Lines of a function: what it takes before, the statements, and what it leaves in the record ``e``.

    Args:
        name: Of the function.
        arguments: Its parameters as text.
        statements: In their order.
        before: Variables and the expressions that they begin with.
        after: Variables that are stored in ``e``.
    """
    yield f"def {name}({arguments}):"
    for target, source in sorted(before.items()):
        yield f"    {target} = {source}"
    for statement in statements:
        yield f"    {statement.text}"
    for target in sorted(after):
        yield f"    e.{target} = {target}"
