"""PettingZoo's module style: ``from palaestra.zoo import ucav_dogfight_v0; env = ucav_dogfight_v0.parallel_env()``.

Every registered id is a module here with ``parallel_env``, ``env`` (AEC: agents one after the other, only those whose
action counts) and ``raw_env`` (AEC without the order checks).
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from palaestra import registry
from palaestra.console import near


def _module(id: str) -> ModuleType:
    module = ModuleType(f"{__name__}.{registry.zoo_name(id)}", f"PettingZoo faces of {id}.")

    def parallel_env(**keywords: Any) -> Any:
        return registry.make_parallel(id, **keywords)

    def raw_env(**keywords: Any) -> Any:
        return registry.make_aec(id, **keywords)

    def env(**keywords: Any) -> Any:
        from pettingzoo.utils import wrappers

        return wrappers.OrderEnforcingWrapper(raw_env(**keywords))

    for function in (parallel_env, raw_env, env):
        setattr(module, function.__name__, function)
    return module


def __getattr__(name: str) -> ModuleType:
    for id in registry.ROWS:
        if registry.zoo_name(id) == name:
            return sys.modules.setdefault(f"{__name__}.{name}", _module(id))
    raise AttributeError(f"palaestra.zoo has no {name!r}{near(name, __dir__())}; it has {', '.join(__dir__())}")


def __dir__() -> list[str]:
    return sorted(registry.zoo_name(id) for id in registry.ROWS)
