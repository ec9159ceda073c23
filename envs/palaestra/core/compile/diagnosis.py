"""Mistakes in the rules of a game, in words that name the author's file and line.

A mistake is looked for by playing the rules as plain Python (`palaestra.core.run.dry_run`): Python knows the line and
the name. What Python accepts and the compiler does not is explained by `palaestra.core.compile.compiler_messages`.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import dis
import functools
import linecache
import os
import re
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

import numpy as np

from palaestra.core.compile import batch_loop
from palaestra.core.compile.reachable import CORE, FOREIGN, plain
from palaestra.core.contract.fields import Choice
from palaestra.core.contract.rules import Game

RESULT = "return 0 while the match goes on, TERMINATED (or True) or TRUNCATED when it is over, on every way out"
INDEX = "compiled rules do not check an index: they would read or overwrite the memory of something else"
SIMPLE = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.Load,
    ast.operator,
    ast.unaryop,
)


class RuleError(ValueError):
    """The rules of a game cannot be compiled or played; the message names the author's file and line.

    Attributes:
        file: File of the author; ``""`` where it is not known.
        line: Number of the line, 0 where it is not known.
        compiler_message: All that the compiler said, where it is the compiler that refused; ``palaestra --debug`` and
            whoever reports a defect want it.
    """

    file: str = ""
    line: int = 0
    compiler_message: str = ""


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def short_traceback(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Lets a function raise a `RuleError` without the frames below it, which are the suite's own."""

    @functools.wraps(function)
    def call(*arguments: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        try:
            return function(*arguments, **keywords)
        except RuleError as error:
            raise error.with_traceback(None) from None

    return call


def rule_error(subject: str, what: str, file: str, line: int, advice: str = "") -> RuleError:
    """The error for one line.

    Args:
        subject: Game and hook.
        what: What is wrong there.
        file: File of the author.
        line: Number of the line.
        advice: What to write instead.
    """
    return with_place(RuleError(f"{subject}, {shown(file)} line {line}: {what}"), file, line, advice)


def with_place(error: RuleError, file: str, line: int, advice: str = "") -> RuleError:
    """Puts the line itself and what to write instead below the message of an error."""
    source = linecache.getline(file, line).strip()
    shortened = source if len(source) <= 110 else source[:107] + "..."
    lines = [str(error), *([f"    {shortened}"] if shortened else []), *([advice] if advice else [])]
    placed = RuleError("\n".join(lines))
    placed.file, placed.line = file, line
    return placed


def shown(file: str) -> str:
    """A file relative to the current folder where it lies there, else whole."""
    try:
        relative = os.path.relpath(file)
    except ValueError:  # another drive
        return file
    return file if relative.startswith("..") else relative


def near_name(name: str, known: Iterable[str]) -> str:
    """``": did you mean 'x'?"`` where something known is near, else what is known, if it is not too much."""
    names = sorted({n for n in known if not n.startswith("__")})
    if found := difflib.get_close_matches(name, names, 1, 0.6):
        return f": did you mean {found[0]!r}?"
    return f" (there are: {', '.join(names)})" if 0 < len(names) <= 12 else ""


def hook_codes(hooks: Mapping[str, Callable]) -> dict[types.CodeType, str]:
    """Names of the hooks by their code."""
    return {function.__code__: name for name, hook in hooks.items() if (function := plain(hook)) is not None}


def subject_of(game: str, hook: str | None, code: types.CodeType, codes: Mapping[types.CodeType, str]) -> str:
    """``"Rope: step"``, or ``"Rope: step, in 'helper'"`` for a function that the hook calls."""
    name = f"{game}: {hook}" if hook is not None else game
    return name if code in codes else f"{name}, in {code.co_name!r}"


def explain_exception(game: Game, hooks: Mapping[str, Callable], error: BaseException) -> RuleError | None:
    """An exception of rules that ran as plain Python, in words of the game; None if it is not the author's.

    Args:
        game: The rules.
        hooks: Its hooks by name.
        error: As it was raised, with its traceback.
    """
    codes = hook_codes(hooks)
    hook, author = None, None
    for frame in _frames(error):
        hook = codes.get(frame[0].f_code, hook)
        if hook is not None and _is_author(frame[0]):
            author = frame
    if author is None:
        return _explain_result(game, codes, error)
    frame, instruction, line = author
    code = frame.f_code
    text = _segment(code, instruction, line)
    what, advice = _explain(game, frame, text, error)
    return rule_error(subject_of(game.name, hook, code, codes), what, code.co_filename, line, advice)


def is_certain(error: BaseException) -> bool:
    """Whether rules that fail so as plain Python are wrong as machine code too: refused, or out of their memory."""
    text = str(error)
    if isinstance(error, NameError | AttributeError | IndexError):
        return True
    if isinstance(error, TypeError):
        return bool(re.search(r"positional argument|unexpected keyword|'NoneType'|not callable", text))
    return isinstance(error, ValueError) and bool(re.search("read-only|invalid literal for|could not convert", text))


def runs_through(error: BaseException, codes: Collection[types.CodeType]) -> bool:
    """Whether an error comes out of one of these functions."""
    return any(frame.f_code in codes for frame, _, _ in _frames(error))


def is_arithmetic(error: BaseException) -> bool:
    """Whether an error is one of arithmetic, where machine code goes on with infinity or nan."""
    return isinstance(error, ArithmeticError | Warning) or str(error) == "math domain error"


def lines_without_result(code: types.CodeType) -> list[int]:
    """Lines of a function behind which it returns None."""
    lines, before = [], None
    for instruction in dis.get_instructions(code):
        returns_constant = instruction.opname == "RETURN_CONST" and instruction.argval is None
        loaded = before is not None and before.opname == "LOAD_CONST" and before.argval is None
        if (returns_constant or (instruction.opname == "RETURN_VALUE" and loaded)) and instruction.positions:
            lines.append(instruction.positions.lineno or code.co_firstlineno)
        before = instruction
    return lines


def no_result(game: str, hook: str, code: types.CodeType) -> RuleError | None:
    """The error for a hook that must return how the match stands and may return None; None if it always does."""
    lines = lines_without_result(code)
    if not lines:
        return None
    return rule_error(f"{game}: {hook}", f"{hook} ends without a result here", code.co_filename, lines[-1], RESULT)


# -- where -------------------------------------------------------------------------------------------------------------


def _frames(error: BaseException) -> Iterator[tuple[types.FrameType, int, int]]:
    """Frames, numbers of instructions and lines from the outside in."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame, trace.tb_lasti // 2, trace.tb_lineno
        trace = trace.tb_next


def _is_author(frame: types.FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return not module.startswith(CORE) and module.partition(".")[0] not in FOREIGN


def _segment(code: types.CodeType, instruction: int, line: int) -> str:
    """The expression that an instruction stands for; ``""`` where Python does not say."""
    for number, (first, last, start, end) in enumerate(code.co_positions()):
        if number == instruction:
            if None in (first, start, end) or first != last:
                return ""
            return linecache.getline(code.co_filename, line).encode()[start:end].decode(errors="replace")
    return ""


# -- what --------------------------------------------------------------------------------------------------------------


def _explain(game: Game, frame: types.FrameType, text: str, error: BaseException) -> tuple[str, str]:
    """What is wrong, and what to write."""
    said = str(error).partition("\n")[0]
    label = f"{text}: " if text and len(text) <= 60 else ""
    if isinstance(error, AttributeError):
        return label + _explain_attribute(game, frame, text, error), ""
    if isinstance(error, UnboundLocalError):
        return said, "give it a value before the branch"
    if isinstance(error, NameError):
        known = {*frame.f_locals, *frame.f_globals, *dir(builtins)}
        return f"the name {error.name!r} is not defined{near_name(error.name or '', known)}", ""
    if isinstance(error, IndexError):
        return (label + said, INDEX) if "out of bounds" in said else (f"{label}an index must be an integer", "")
    if "read-only" in said:
        return f"{label}the world is read-only while matches run", "what changes in a match is a field of Game(state=)"
    if re.search("invalid literal for|could not convert", said):
        return f"{label}takes a number: {said}", _meanings(game, text)
    return f"{label}{type(error).__name__}: {said}", ""


def _explain_attribute(game: Game, frame: types.FrameType, text: str, error: AttributeError) -> str:
    said = str(error)
    if (named := re.search(r"has no attribute '(\w+)'", said)) is None:
        return said
    name, owner = named[1], _owner(frame, text)
    if owner is None:
        owner = error.obj
    if isinstance(owner, np.ndarray) and owner.dtype.names:
        return f"this is an array of records, one a member: take one by its number, as in [k].{name}"
    if isinstance(owner, np.void) and owner.dtype.names:
        return f"{_table(game, owner.dtype.names)} {name!r}{near_name(name, owner.dtype.names)}"
    if isinstance(owner, int | float | np.generic):
        return f"a number has no field {name!r}"
    known = (n for n in dir(owner) if not n.startswith("_"))
    return f"{said.partition('. Did')[0]}{near_name(name, known)}"


def _owner(frame: types.FrameType, text: str) -> Any:
    """The object whose attribute an expression takes; None where it cannot be found without calling anything."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(node, ast.Attribute):
        return None
    value = node.value
    if not all(isinstance(part, SIMPLE) for part in ast.walk(value)):
        return None
    try:
        return eval(ast.unparse(value), frame.f_globals, frame.f_locals)
    except Exception:
        return None


def _table(game: Game, names: tuple[str, ...]) -> str:
    """What a record with these fields lacks."""
    parts: dict[Any, str] = {
        game.state_dtype.names: "the match record has no field",
        game.info_dtype.names: "s.info has no field",
        game.state_dtype["parameters"].names: "the game has no parameter",
        game.scratch_dtype.names: "scratch has no field",
    }
    tables = {
        "observation": game.kernel_observation_dtype,
        "action": game.action_dtype,
        "mask": game.kernel_mask_dtype,
    }
    for table in tables.values():
        parts.setdefault(table.names, "the game has no role")
    for kind, table in tables.items():
        for role in table.names or ():
            parts.setdefault(table[role].base.names, f"the {kind} of {role!r} has no field")
    return parts.get(names, "the record has no field")


def _meanings(game: Game, text: str) -> str:
    """What the numbers of a choice mean that an expression ends with."""
    name = text.rpartition(".")[2]
    for choice in (c for role in game.roles for c in role.action if isinstance(c, Choice) and c.name == name):
        numbers = ", ".join(f"{number} {meaning}" for number, meaning in enumerate(choice.meanings))
        return f"write the number of the alternative: {numbers or f'0 to {choice.n - 1}'}"
    return "records hold numbers alone"


def _explain_result(game: Game, codes: Mapping[types.CodeType, str], error: BaseException) -> RuleError | None:
    """A result of `Game.step` or `Game.evaluate` that is no number."""
    *_, (frame, _, _) = _frames(error)
    if frame.f_globals.get("__name__") != batch_loop.__name__ or not isinstance(error, TypeError | ValueError):
        return None
    for code, hook in codes.items():
        if hook in ("step", "evaluate"):
            if "NoneType" in str(error) and (found := no_result(game.name, hook, code)) is not None:
                return found
            what = f"the result is no number: {error}"
            return rule_error(f"{game.name}: {hook}", what, code.co_filename, code.co_firstlineno, RESULT)
    return None
