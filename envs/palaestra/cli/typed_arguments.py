"""Command lines of dataclasses and functions, by tyro, and files of their settings; their help is in plain words."""

from __future__ import annotations

import dataclasses
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import palaestra_assets
from palaestra.console import near
from palaestra.core.files import FileError, read_text

CONFIG = "config"
"""Field of a dataclass that names a file of settings."""
MOST_BYTES = 1_000_000
"""Of a file of settings; those of our methods have a thousand."""


def read_arguments(
    kind: Callable[..., Any], words: Sequence[str] | None, program: str, about: str | None = None
) -> Any:
    """What tyro makes of the words of a command line; ``--help`` shows the docstrings without their markup.

    Args:
        kind: A dataclass or function: its parameters are the options, its docstring describes them. Where a dataclass
            has a field ``config``, this names a TOML file (`settings_file`) whose settings count where no word of the
            line gives them; those in the dataclass's ``NO_SETTINGS`` are for the line alone.
        words: Those of the process if None.
        program: What the usage calls it.
        about: First words of the help; those of the docstring if None.

    Returns:
        What ``kind`` returned.

    Raises:
        FileError: A file of settings that cannot be read, or a name in it that is no setting; suggests the near one.
        OSError: There is no such file.
        ImportError: tyro is not installed; gives the command that installs it.
        SystemExit: After ``--help``, and after a word that is no option: the message names it.
    """
    try:
        import tyro
    except ImportError as error:
        raise ImportError(
            f'{program} needs tyro, which is not installed: pip install "palaestra[baselines]"'
        ) from error

    words = list(sys.argv[1:] if words is None else words)
    marked = {each: each.__doc__ for each in getattr(kind, "__mro__", (kind,)) if "`" in (each.__doc__ or "")}
    try:
        for each, text in marked.items():
            each.__doc__ = str(text).replace("`", "")
        about = None if about is None else about.replace("`", "")
        return tyro.cli(kind, args=[*words_of_file(kind, words), *words], prog=program, description=about)
    finally:
        for each, text in marked.items():
            each.__doc__ = text


def words_of_file(kind: Any, words: Sequence[str]) -> list[str]:
    """The settings of the file that ``--config`` names, as words of a command line; those given there are left out."""
    fields = {field.name: field for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}
    if CONFIG not in fields:
        return []
    options = [word.partition("=")[0].replace("_", "-") for word in words if word.startswith("--")]
    given = {option.removeprefix("--no-") if option.startswith("--no-") else option[2:] for option in options}
    found = [
        text or "".join(words[k + 1 : k + 2])
        for k, word in enumerate(words)
        for option, _, text in [word.partition("=")]
        if option == f"--{CONFIG}"
    ]
    if not found:
        return []
    made = []
    for name, value in read_settings(settings_file(found[-1])).items():
        option = name.replace("_", "-")
        field = name.replace("-", "_")
        if field in (CONFIG, *getattr(kind, "NO_SETTINGS", ())):
            raise FileError(f"{found[-1]}: {name!r} is no setting: give --{option} on the command line")
        if field not in fields:
            known = sorted(set(fields).difference((CONFIG, *getattr(kind, "NO_SETTINGS", ()))))
            raise FileError(f"{found[-1]}: no setting {name!r}{near(name, known)} (there are: {', '.join(known)})")
        if option in given:
            continue
        if field == "env_id" and ":" in str(value):
            raise FileError(f"{found[-1]}: env_id {value!r} would import a module: give --env-id on the command line")
        if fields[field].type in (bool, "bool") and isinstance(value, bool):
            made.append(f"--{option}" if value else f"--no-{option}")
        else:
            made += [f"--{option}", *map(str, value if isinstance(value, list) else [value])]
    return made


def settings_file(name: str) -> Path:
    """The file that is meant: a path, or the name of one of the files that come with the package, without ``.toml``.

    Raises:
        FileError: There is neither; names those that there are.
    """
    path, bundled = Path(name), {file.stem: file for file in palaestra_assets.path("settings").glob("*.toml")}
    if path.suffix or path.exists():
        return path
    if name not in bundled:
        known = sorted(bundled)
        raise FileError(f"no file {name!r}{near(name, known)} (give a TOML file, or one of ours: {', '.join(known)})")
    return bundled[name]


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of a TOML file.

    Raises:
        FileError: No TOML, or a table in it.
        OSError: There is no such file.
    """
    try:
        settings = tomllib.loads(read_text(path, MOST_BYTES))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileError(f"{path}: no TOML ({error}): write settings as name = value, one a line") from error
    for name, value in settings.items():
        if isinstance(value, dict):
            raise FileError(f"{path}: {name!r} is a table: write settings as name = value, one a line")
    return settings
