"""What several commands share: ids, keywords, entry points, JSON."""

from __future__ import annotations

import argparse
import ast
import json
import math
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from palaestra import registry
from palaestra.console import near
from palaestra.core.rng import check_seed

METHODS = "palaestra.baselines"
"""Entry-point group of the methods."""
OPTIONAL = {
    "scipy": "palaestra[exact]",
    "pygame-ce": "palaestra[render]",
    "pillow": "palaestra[render]",
    "matplotlib": "palaestra[render]",
    "torch": "palaestra[baselines]",
    "stable-baselines3": "palaestra[baselines]",
    "tyro": "palaestra[baselines]",
    "rich": "palaestra[baselines]",
    "minari": "palaestra[data]",
    "h5py": "palaestra[data]",
    "onnxruntime": "palaestra[onnx]",
    "ray": "palaestra[ray]",
}
"""Package and what installs it; families name those of their games."""
IMPORTED_AS = {"pygame-ce": "pygame", "pillow": "PIL"}
"""Packages whose module has another name."""


def find_family(name: str) -> str:
    """The family itself.

    Raises:
        ValueError: No such family; suggests the near one.
    """
    families = sorted({row.family for row in registry.ROWS.values()})
    if name not in families:
        raise ValueError(f"no family {name!r}{near(name, families)} (there are: {', '.join(families)})")
    return name


def find_method(name: str) -> EntryPoint:
    """The installed method of a name.

    Raises:
        ValueError: None is installed; suggests the near one, or what to install.
    """
    methods = {entry.name: entry for entry in entry_points(group=METHODS)}
    if name not in methods:
        there = f"installed are: {', '.join(sorted(methods))}" if methods else "none is installed"
        raise ValueError(f'no method {name!r}{near(name, methods)} ({there}; pip install "palaestra[baselines]")')
    return methods[name]


def load_method(name: str, extras: str = "baselines") -> Any:
    """The module of a method.

    Args:
        name: Of the method.
        extras: Optional parts of palaestra that it needs.

    Raises:
        ValueError: None is installed.
        ImportError: It needs a package that is missing; names the command that installs it.
    """
    try:
        return find_method(name).load()
    except ModuleNotFoundError as error:
        message = f'{name} needs {error.name}, which is not installed: pip install "palaestra[{extras}]"'
        raise ImportError(message) from error


def install_hint(error: ImportError) -> str:
    """What installs the optional package that an error of Python is about, as an end of its message; else nothing."""
    if not isinstance(error, ModuleNotFoundError) or "pip install" in str(error):
        return ""
    for package, installed_by in (OPTIONAL | registry.offers("needs")).items():
        if IMPORTED_AS.get(package, package.replace("-", "_")) == (error.name or "").partition(".")[0]:
            return f': pip install "{installed_by}"'
    return ""


def add_id(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """The positional argument ID."""
    about = "id of an environment; CartPole is short for palaestra/CartPole-v0, module:id imports a module first"
    parser.add_argument("id", metavar="ID", nargs="?" if optional else None, help=about)


def add_keywords(parser: argparse.ArgumentParser) -> None:
    """The option ``--set name=value``."""
    parser.add_argument(
        "--set",
        dest="keywords",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="keyword of the environment, as often as needed (palaestra info ID shows them)",
    )


def keywords_of(args: argparse.Namespace) -> dict[str, Any]:
    """What ``--set`` has collected: numbers, lists, True, False and None as in Python, else text.

    Raises:
        ValueError: Not of the form NAME=VALUE.
    """
    keywords = {}
    for text in args.keywords:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"--set takes NAME=VALUE, got {text!r}")
        try:
            keywords[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            keywords[name] = value
    return keywords


def positive_count(text: str) -> int:
    """An option's integer of at least 1."""
    return _integer(text, 1)


def natural(text: str) -> int:
    """An option's integer of at least 0."""
    return _integer(text, 0)


def seed_number(text: str) -> int:
    """An option's seed; see `palaestra.core.rng.check_seed`."""
    try:
        return check_seed(_integer(text, 0))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def positive_number(text: str) -> float:
    """An option's finite number greater than 0."""
    number = finite_number(text)
    if number <= 0.0:
        raise argparse.ArgumentTypeError(f"must be greater than 0, got {text!r}")
    return number


def finite_number(text: str) -> float:
    """An option's finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text!r}")
    return number


def _integer(text: str, low: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = low - 1
    if number < low:
        raise argparse.ArgumentTypeError(f"must be an integer of at least {low}, got {text!r}")
    return number


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def print_json(value: Any) -> None:
    """Prints JSON that every reader takes: what is not finite becomes null."""
    print(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(member) for member in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
