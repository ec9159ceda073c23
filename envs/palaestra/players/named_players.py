"""Players named on the command line."""

from __future__ import annotations

import importlib
from typing import Any

from palaestra.console import near
from palaestra.core.run.opponents import PREFIXES


def named_player(text: str | None) -> Any:
    """Resolves an argument of the command line: the function, model or player of ``module:name``, else the text.

    Raises:
        ValueError: There is no such module, or no such name in it.
        ImportError: The module needs another one, which is not installed.
    """
    module, colon, name = (text or "").partition(":")
    if f"{module}:" in PREFIXES or not colon or not module.replace(".", "_").isidentifier() or not name.isidentifier():
        return text
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ValueError(f"player {text!r}: there is no module {module!r} here or among the installed ones") from error
    if not hasattr(found, name):
        raise ValueError(f"player {text!r}: the module {module} has no {name!r}{near(name, dir(found))}")
    return getattr(found, name)
