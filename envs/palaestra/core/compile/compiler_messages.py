"""What the compiler says of rules that it refuses, cut down to the author's file and line and to its innermost words.

It is asked where Python itself finds nothing wrong: a dict of the module, a NumPy function that numba does not know, a
branch that a short match did not reach.
"""

from __future__ import annotations

import dis
import os
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence

from palaestra.core.compile.diagnosis import RuleError, hook_codes, near_name, no_result, rule_error, subject_of
from palaestra.core.compile.reachable import CORE
from palaestra.core.contract.rules import Game

CONSTANT = (
    "compiled rules read numbers, tuples, named tuples, enumerations of integers and NumPy arrays from outside: give "
    "the number a name of its own, as in PULL_M = 0.3"
)
ADVICE = (
    (r"Untyped global name '(\w+)'.*builtin_function", "leave it out, or play with compiled=False"),
    (r"Untyped global name", CONSTANT),
    (r"format spec", 'give print the number itself, as in print("knot", s.knot_m), or play with compiled=False'),
    (r"unsupported NumPy function", "write a loop over elements, or a function of math"),
    (r"[Cc]annot modify readonly", "the world is read-only: what changes in a match is a field of Game(state=...)"),
    (r"Unsupported array index type float", "an index is an integer: np.int64(x), or // instead of /"),
    (r"Unsupported array index type (unicode|Literal\[str\])", "an index is an integer"),
    (r"[Cc]annot cast unicode_type", "records hold numbers: write the number of the alternative"),
)
LONGEST = 240


def explain_refusal(
    game: Game, hooks: Mapping[str, Callable], error: Exception, functions: Sequence[types.FunctionType]
) -> RuleError | None:
    """The error for code that numba refused.

    Args:
        game: The rules.
        hooks: Its hooks by name.
        error: What numba raised.
        functions: All functions that were handed to numba, in any order.

    Returns:
        None if no function of an author is to be found in it.
    """
    message = plain_text(error)
    codes = hook_codes(hooks)
    authors = [f.__code__ for f in functions if not f.__module__.startswith(CORE)]
    if wrong := _explain_name(game, error, message, authors, codes):
        return wrong
    place = _place(message, authors)
    if place is None:
        return _explain_result(game, message, codes)
    file, line = place
    code = _code_at(authors, file, line)
    what = innermost(message)
    advice = next((advice for pattern, advice in ADVICE if re.search(pattern, message)), "")
    subject = subject_of(game.name, _hook_of(code, message, functions, codes), code, codes)
    return rule_error(subject, what, file, line, advice)


def plain_text(error: Exception) -> str:
    """The message of an error without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error))


def innermost(message: str) -> str:
    """The first thing that numba says, without where it says so, and the reason that it gives below, if any."""
    said = []
    for line in map(str.strip, message.splitlines()):
        if line.startswith("Failed in nopython") or not line:
            continue
        if line.startswith(("During:", "File ", "There are", "Raised from")):
            break
        said.append(line.removeprefix(">>> ").partition(" Raised from ")[0])
    reasons = re.findall(r"^\s*(?:TypingError|NumbaTypeError|NumbaValueError): (.+)$", message, re.MULTILINE)
    text = reasons[0] if reasons else " ".join(said)
    text = re.sub(r"_[0-9a-f]{32}_\d+", "", text)
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def _place(message: str, authors: Iterable[types.CodeType]) -> tuple[str, int] | None:
    """The first line of an author that numba names."""
    files = {code.co_filename for code in authors}
    message = message.replace("Raised from ", "\nfrom ")
    for named in re.finditer(r'\b(?:at|from) (\S[^\n()]*?) \((\d+)\)|File "([^"\n]+)", line (\d+)', message):
        file, line = (named[1], named[2]) if named[1] else (os.path.abspath(named[3]), named[4])
        if file in files:
            return file, int(line)
    return None


def _code_at(codes: Iterable[types.CodeType], file: str, line: int) -> types.CodeType:
    """The function that a line belongs to."""
    here = [code for code in codes if code.co_filename == file]
    above = [code for code in here if code.co_firstlineno <= line]
    return max(above or here, key=lambda code: code.co_firstlineno)


def _hook_of(
    code: types.CodeType,
    message: str,
    functions: Iterable[types.FunctionType],
    codes: Mapping[types.CodeType, str],
) -> str | None:
    """The hook in which code was compiled; None if numba does not say."""
    if code in codes:
        return codes[code]
    named = re.findall(r"<function ([^\n]*?_[0-9a-f]{32}_\d+) at", message)  # from the inside out
    by_name = {f.__qualname__: f.__code__ for f in functions}
    return next((codes[by_name[name]] for name in named if by_name.get(name) in codes), None)


def _explain_name(
    game: Game,
    error: Exception,
    message: str,
    authors: Iterable[types.CodeType],
    codes: Mapping[types.CodeType, str],
) -> RuleError | None:
    """A field or a name that is not there: numba says which, but not where."""
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        name, operations = error.args[0], ("LOAD_ATTR", "STORE_ATTR", "LOAD_METHOD")
        what = f"there is no field {name!r} here{near_name(name, _fields(game))}"
    elif found := re.search(r"name '(\w+)' is not defined", message):
        name, operations = found[1], ("LOAD_GLOBAL", "LOAD_NAME")
        what = f"the name {name!r} is not defined"
    else:
        return None
    for code in authors:
        for instruction in dis.get_instructions(code):
            if instruction.opname in operations and instruction.argval == name and instruction.positions:
                line = instruction.positions.lineno or code.co_firstlineno
                return rule_error(subject_of(game.name, codes.get(code), code, codes), what, code.co_filename, line)
    return None


def _fields(game: Game) -> set[str]:
    """Names of all fields of a game's records."""
    names: set[str] = set()

    def collect(dtype: object) -> None:
        base = getattr(dtype, "base", None)
        for name in getattr(base, "names", None) or ():
            names.add(name)
            collect(base[name])  # type: ignore[index]

    for table in (game.state_dtype, game.action_dtype, game.kernel_observation_dtype, game.kernel_mask_dtype):
        collect(table)
    collect(game.scratch_dtype)
    return names


def _explain_result(game: Game, message: str, codes: Mapping[types.CodeType, str]) -> RuleError | None:
    """A result of `step` or `evaluate` that may be None: numba stumbles over it in the batch loop."""
    if "int64" not in message or not re.search(r"OptionalType|[Nn]one", message):
        return None
    for code, hook in codes.items():
        if hook in ("step", "evaluate"):
            return no_result(game.name, hook, code)
    return None
