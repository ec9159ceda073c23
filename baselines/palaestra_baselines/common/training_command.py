"""The command of a method: ``palaestra train METHOD ...`` or ``python -m palaestra_baselines.METHOD ...``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any

import tyro

from palaestra.console import find_id
from palaestra_baselines.common.checkpoints import CHECKPOINT, PREVIOUS


def run_command(
    kind: type[Any], method: str, about: str, argv: Sequence[str] | None, train: Callable[[Any], Any]
) -> tuple[Any, Any]:
    """Reads the arguments and trains; after Ctrl-C it says how to go on.

    Args:
        kind: Dataclass of the arguments.
        method: Name of the method.
        about: Docstring of the method's module; its first line is shown by ``--help``.
        argv: Words of the command line; those of the process if None.
        train: Called with the arguments.

    Returns:
        The arguments, short names of environments in full, and what ``train`` returned.

    Raises:
        ValueError: A word or a number that the method does not take.
        KeyError: No such environment; suggests the near one.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    args = tyro.cli(kind, args=words, prog=f"palaestra train {method}", description=about.strip().splitlines()[0])
    if hasattr(args, "env_id"):
        args.env_id = find_id(args.env_id)
    try:
        return args, train(args)
    except KeyboardInterrupt:
        print(resume_hint(method, words, args), file=sys.stderr, flush=True)
        raise


def resume_hint(method: str, words: Sequence[str], args: Any) -> str:
    """What to do after Ctrl-C."""
    command = ["palaestra", "train", method, *(word for word in words if word not in ("--overwrite", "--resume"))]
    if not hasattr(args, "resume"):
        return f"the same command continues: {shlex.join(command)}"
    if any((args.folder / name).exists() for name in (CHECKPOINT, PREVIOUS)):
        return f"to continue from the last evaluation: {shlex.join([*command, '--resume'])}"
    return f"no evaluation was reached, so nothing was saved: start again with {shlex.join([*command, '--overwrite'])}"


def evaluation_hint(args: Any, weights: Any, opponent: str | None, is_second: bool = False) -> str:
    """The last line of a training: the file, and the command that evaluates it.

    Args:
        args: Arguments with ``env_id`` and ``options``.
        weights: File of the policy.
        opponent: Who it plays against; None in a game of one team.
        is_second: Whether the policy is one of the second team alone.
    """
    first, second = (opponent, str(weights)) if is_second else (str(weights), opponent)
    words = ["palaestra", "eval", args.env_id, "--a", str(first), *(["--b", second] if second else [])]
    for option in args.options:
        words += ["--set", option]
    return f"{weights} is the policy; to evaluate it: {shlex.join(words)}"
