"""The command line: ``palaestra COMMAND``.

There are list, info, demo, play, train, eval, bench, replay, data, serve, questions, check and doctor. One module a
command, with `ABOUT`, `EXAMPLE`, ``add_arguments(parser)`` and ``run(args) -> exit code``; a command that passes
arguments on to another program also has ``split(arguments) -> its own, passed on``. Errors are one line on stderr (a
few, for a mistake in a user's rules) and a code other than 0; ``--debug`` shows where they come from.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

from palaestra.cli.common import install_hint
from palaestra.console import near
from palaestra.core.compile.diagnosis import RuleError
from palaestra.core.files import escaped

COMMANDS = {
    "list": "palaestra.cli.listing",
    "info": "palaestra.cli.info",
    "demo": "palaestra.cli.demo_command",
    "play": "palaestra.cli.play",
    "train": "palaestra.cli.train",
    "eval": "palaestra.cli.evaluate",
    "bench": "palaestra.cli.bench",
    "replay": "palaestra.cli.replay",
    "data": "palaestra.cli.data_command",
    "serve": "palaestra.cli.serve",
    "questions": "palaestra.cli.questions",
    "check": "palaestra.cli.check",
    "doctor": "palaestra.cli.doctor",
}
"""Commands and their modules, in the order of the help."""


class Parser(argparse.ArgumentParser):
    """Reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        """Ends with code 2, as `argparse` does."""
        self.exit(2, f"{self.prog}: {escaped(message)} ({self.prog} --help shows what there is)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: Words after the program's name; those of the process if None.

    Returns:
        Exit code: 0 when all is well, 1 for a failure, 2 for an unknown command or option, 130 when interrupted.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    _prepare_process()
    debug = "--debug" in (arguments[:1] if "train" in arguments[:2] or "demo" in arguments[:2] else arguments)
    if debug:
        arguments.remove("--debug")
    try:
        code = _run(arguments, argv is None)
        sys.stdout.flush()  # here, where a closed pipe is no surprise
        return code
    except SystemExit as exit:  # argparse has printed the reason
        return exit.code if isinstance(exit.code, int) else _fail(str(exit.code)) if exit.code else 0
    except KeyboardInterrupt as error:
        return _fail(_with_notes("interrupted", error), 130)
    except BrokenPipeError:  # the reader of the output has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if debug:
            print(getattr(error, "compiler_message", ""), end="", file=sys.stderr)
            raise
        return _fail(_with_notes(str(error) if isinstance(error, RuleError) else one_line(error), error))


def _prepare_process() -> None:
    """Lets ``module:name`` be a module of the current folder, and prints what the output's encoding lacks as escapes.

    ``python -m palaestra`` looks for modules in the current folder, a console script in the folder of the script. The
    current folder comes last: a file there never replaces an installed package. ``python -P`` leaves it out.
    """
    folder = os.getcwd()
    if not sys.flags.safe_path and not {"", folder} & set(sys.path):
        sys.path.append(folder)
    streams: tuple[Any, ...] = (sys.stdout, sys.stderr)
    for stream in streams:
        if getattr(stream, "errors", "") == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def one_line(error: BaseException) -> str:
    """The message of an error, without line breaks and escape sequences; of a long message the first and the last line.

    Python's own errors need their place, a `KeyError` has no more than the key: it is added. A package that is missing
    needs the command that installs it.
    """
    if isinstance(error, OSError) and error.filename is not None:
        return escaped(f"{os.fsdecode(error.filename)}: {_trouble(error)}")
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if isinstance(error, ImportError):
        text += install_hint(error)
    is_bare = isinstance(error, KeyError) and " " not in text
    if (is_bare or isinstance(error, AttributeError | IndexError | NameError | AssertionError)) and error.__traceback__:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(place.filename)} line {place.lineno}, in {place.name}"
        text = f"{type(error).__name__}: {text} ({where}; --debug shows more)"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return escaped(lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1]}")


def _with_notes(text: str, error: BaseException) -> str:
    """A message and what was added to the error on its way, for example where results are kept."""
    return "; ".join([text, *getattr(error, "__notes__", [])])


def _trouble(error: OSError) -> str:
    """What is wrong with a path, and what to do."""
    match error:
        case FileNotFoundError():
            return "there is no such file or folder: check the path"
        case IsADirectoryError():
            return "a folder: name a file"
        case NotADirectoryError():
            return "a file is where the path needs a folder: check the path"
        case PermissionError():
            return "this user may not read or write it: change its permissions, or name another path"
        case _:
            return str(error.strerror or error)


def _run(command_line: list[str], is_program: bool) -> int:
    if not command_line or command_line[0] in ("-h", "--help", "--version"):
        _overview().parse_args(command_line)
        _overview().print_help()
        return 0 if command_line else 2
    name, *rest = command_line
    if name not in COMMANDS:
        return _fail(f"no command {name!r}{near(name, COMMANDS)} (palaestra --help shows all)", 2)
    module = importlib.import_module(COMMANDS[name])
    parser = _parser(name, module)
    own, passed_on = module.split(rest) if hasattr(module, "split") else (rest, [])
    arguments = parser.parse_args(own)
    arguments.passed_on = passed_on
    arguments.is_program = is_program  # the command line is that of this process
    return module.run(arguments)


def _overview() -> Parser:
    parser = Parser(
        prog="palaestra",
        description="Multi-agent environments, compiled, batched and reproducible.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="palaestra [--version] [--debug] COMMAND ...",
        epilog="\n".join(
            [
                "commands:",
                *(f"  {name:<9} {importlib.import_module(module).ABOUT}" for name, module in COMMANDS.items()),
                "",
                "palaestra COMMAND --help ends with an example; --debug COMMAND shows where an error is from.",
                "",
                "example:\n  palaestra info CartPole",
            ]
        ),
    )
    from palaestra import __version__

    parser.add_argument("--version", action="version", version=f"palaestra {__version__}")
    return parser


def _parser(name: str, module: ModuleType) -> Parser:
    parser = Parser(
        prog=f"palaestra {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"example:\n  {module.EXAMPLE}",
    )
    module.add_arguments(parser)
    return parser


def _fail(message: str, code: int = 1) -> int:
    lines = message.split("\n")  # a rule's error shows the author's lines
    print("palaestra: " + "\n".join(map(escaped, lines)), file=sys.stderr)
    return code
