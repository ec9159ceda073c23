"""Attributes of faces: the parameters of the rules, and methods that only some games have.

Libraries decide by `hasattr` what an environment is, and set attributes by name. A face has a method only where its
game has what the method says, and setting an attribute acts or is refused.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, TypeVar, cast

from palaestra.core.run.parameters import no_parameter
from palaestra.core.run.simulation import Simulation

Method = TypeVar("Method", bound=Callable[..., Any])


def only_where(has_it: Callable[[Any], bool], why_not: str) -> Callable[[Method], Method]:
    """Makes a method that an object has only where a condition holds: elsewhere `hasattr` says no.

    Args:
        has_it: The condition, a function of the object.
        why_not: Why another object has no such method, for the AttributeError.
    """
    return lambda method: cast(Method, _OnlyWhere(method, has_it, why_not))


class _OnlyWhere:
    """The descriptor of such a method; an object may replace the method by one of its own."""

    def __init__(self, method: Callable[..., Any], has_it: Callable[[Any], bool], why_not: str) -> None:
        functools.update_wrapper(cast(Any, self), method)
        self._method, self._has_it, self._why_not = method, has_it, why_not

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self._method
        if not self._has_it(owner):
            name = self._method.__name__
            problem = f"{type(owner).__name__!r} object has no attribute {name!r}: {self._why_not}"
            raise AttributeError(problem, name=name, obj=owner)
        return MethodType(self._method, owner)


class _Parameter:
    """The descriptor by which the objects of a face read a parameter that some game has.

    Not `__getattr__`: with that Python looks up all attributes of an object more slowly, in every step.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self
        sim = next(iter(getattr(owner, "_sims", ())), None)
        if sim is None or not has_parameter(sim, self._name):
            raise _no_attribute(owner, self._name)
        values = sim.states["parameters"][self._name]
        return values.copy() if owner._is_batch else float(values[0])


_taken: set[tuple[type, tuple[str, ...]]] = set()
"""Classes of faces, and parameters of games that they have read already."""


class RuleAttributes:
    """Parameters of the rules as attributes: ``env.unwrapped.gravity_mps2 = 1.6`` is ``set_parameters``.

    A parameter reads as a float, or of a batch as an array with a value of each lane. It takes what
    `Simulation.set_parameters` takes, with the same errors, and acts at the same time. Setting an attribute that there
    is not is an AttributeError: it would change nothing. Classes that users derive may have attributes of their own.

    The code keeps away from ``__dict__``: once it was asked for, CPython 3.11 reads all attributes of an object more
    slowly.
    """

    _is_batch = False
    """Whether a parameter reads as an array with a value of each lane."""
    _sims: Sequence[Simulation]
    """Simulations of the rules. Until it is there any attribute may be set."""

    def _take_rules(self, *sims: Simulation) -> None:
        """Ends the construction of a face.

        Raises:
            ValueError: A parameter has the name of something else that this face has.
        """
        face, names = _face_of(type(self)), tuple(p.name for sim in sims[:1] for p in sim.game.parameters)
        for name in () if (face, names) in _taken else names:
            known = inspect.getattr_static(face, name, None)
            if type(self) is face and (hasattr(self, name) or not isinstance(known, _Parameter | None)):
                raise ValueError(
                    f"{sims[0].game.name}: the parameter {name!r} has the name of an attribute of {face.__name__}, so "
                    "that setting it would be ambiguous: rename the parameter"
                )
            if known is None:
                setattr(face, name, _Parameter(name))
        _taken.add((face, names))
        self._sims = sims

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets a parameter, or an attribute that there is.

        Raises:
            AttributeError: There is none of this name; suggests the near one.
            ValueError: No value of the parameter; names its range.
        """
        kind = type(self)
        if name[:1] == "_" or not (sims := getattr(self, "_sims", ())):
            object.__setattr__(self, name, value)
        elif has_parameter(sims[0], name) and isinstance(inspect.getattr_static(kind, name, None), _Parameter):
            for sim in sims:
                sim.set_parameters(**{name: value})
        elif hasattr(self, name) or name in _announced(kind) or kind is not _face_of(kind) or _defines(kind, name):
            object.__setattr__(self, name, value)
        else:
            raise _no_attribute(self, name)

    def get_wrapper_attr(self, name: str) -> Any:
        """As Gymnasium's; the error suggests the near parameter."""
        if hasattr(self, name) or isinstance(inspect.getattr_static(type(self), name, None), _OnlyWhere):
            return getattr(self, name)
        raise _no_attribute(self, name)

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """As Gymnasium's. What is unknown is refused here: a wrapper around would keep it, and nothing would happen.

        Raises:
            AttributeError: Neither a parameter nor an attribute.
        """
        if not force and name[:1] == "_" and not hasattr(self, name):
            return False
        setattr(self, name, value)
        return True

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """A process that has made no face of this game yet learns its parameters."""
        sims = saved.pop("_sims", ())
        self.__dict__.update(saved)
        self._take_rules(*sims)

    def __dir__(self) -> list[str]:
        """Without the parameters of other games."""
        names = {name for name in super().__dir__() if not isinstance(getattr(type(self), name, None), _Parameter)}
        return sorted(names | {p.name for sim in getattr(self, "_sims", ()) for p in sim.game.parameters})


def _face_of(kind: type) -> type:
    """The class of this suite that a class is or is derived from: it holds the descriptors of parameters."""
    return next(base for base in kind.__mro__ if RuleAttributes in base.__bases__)


def _defines(kind: type, name: str) -> bool:
    """Whether a class has an attribute, parameters of games left out."""
    return not isinstance(inspect.getattr_static(kind, name, _Parameter(name)), _Parameter)


def _no_attribute(owner: Any, name: str) -> AttributeError:
    sims = getattr(owner, "_sims", ())
    hint = f"; {no_parameter(sims[0].game, name)}" if sims else ""
    return AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=owner)


def has_parameter(sim: Simulation, name: str) -> bool:
    """Whether the rules have a parameter of this name."""
    return any(parameter.name == name for parameter in sim.game.parameters)


def simulations_of(*envs: Any) -> list[Simulation]:
    """The simulations under wrapped environments, those of other packages left out."""
    found = (getattr(env.unwrapped, "sim", None) for env in envs)
    return [sim for sim in found if isinstance(sim, Simulation)]


@functools.cache
def _announced(kind: type) -> frozenset[str]:
    """Names that a class and its bases annotate without a value, as Gymnasium's and PettingZoo's do."""
    return frozenset(name for base in kind.__mro__ for name in vars(base).get("__annotations__", ()))
