"""Compiled aircraft of this process: files are read, a module is generated, and its functions are compiled once.

The generated module lies in the user's cache, so that tracebacks and the cache of machine code have a file. It is
generated anew in each process, and what runs is what was generated: a file with another content is replaced.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import math
import os
import shutil
import sys
import tempfile
import types
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from palaestra.core.compile.disk_cache import folder_problem
from palaestra.core.files import write_atomically
from palaestra.games.ucav.aircraft.frame import Frame
from palaestra.games.ucav.aircraft.outputs import Limits
from palaestra.games.ucav.aircraft.reader import Source, UnsupportedAircraft
from palaestra.games.ucav.aircraft.writer import source_of
from palaestra.games.ucav.airframes import AIRFRAMES, aircraft_tree, common_range, root_folder, systems_folder
from palaestra.games.ucav.planets import PLANETS


@functools.lru_cache(maxsize=16)
def compiled_aircraft(airframe: str, planet: str) -> types.ModuleType:
    """The generated module of an aircraft of JSBSim, imported.

    It has the record ``FLIGHT`` of a flight's state and the native functions ``load_flight(e, body, dt)`` and
    ``fly_period(e, body, frames, dt)`` on it and on an aircraft record (`palaestra.games.ucav.body.BODY`).

    Args:
        airframe: A name of `palaestra.games.ucav.airframes.AIRFRAMES`.
        planet: A name of `palaestra.games.ucav.planets.PLANETS`.

    Raises:
        ImportError: jsbsim, whose aircraft are compiled, is not installed.
        UnsupportedAircraft: Something in its files is not known to the compiler.
        OSError: A file cannot be read.
    """
    root = root_folder()
    tree = aircraft_tree(airframe, root)
    frame = read_frame(
        tree, f"{AIRFRAMES[airframe].model}.xml", root / "engine", systems_folder(airframe, root), planet
    )
    return import_source(
        f"palaestra_aircraft_{airframe.replace('-', '_')}_{planet}", source_of(frame, limits_of(tree, planet))
    )


def read_frame(tree: ElementTree.Element, name: str, engines: Path, systems: Path, planet: str) -> Frame:
    """The frame of an aircraft.

    Args:
        tree: Its file.
        name: Of the file, for messages.
        engines: Folder of engines and thrusters.
        systems: Folder of its systems.
        planet: What it flies around.

    Raises:
        UnsupportedAircraft: Something in its files is not known to the compiler.
        OSError: A file cannot be read.
    """
    parts = [*tree.findall("propulsion/engine"), *tree.findall("propulsion/engine/thruster")]
    return Frame(
        Source(name, tree),
        _Files(engines, [part.get("file", "") for part in parts]),
        _Files(systems, [part.get("file", "") for part in tree.findall("system") if part.get("file")]),
        PLANETS[planet],
    )


class _Files(dict[str, Source]):
    """Files by name, read when they are asked for: those that the compiler leaves out need not be there."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        super().__init__()
        self._folder, self._names = folder, names

    def __missing__(self, name: str) -> Source:
        file = self._folder / f"{name}.xml"
        try:
            self[name] = Source(file.name, ElementTree.parse(file).getroot())
        except FileNotFoundError:
            raise UnsupportedAircraft(
                f"{file}: there is no such file, which the aircraft names. The compiled engine cannot fly it: "
                'use engine="jsbsim"'
            ) from None
        return self[name]


def limits_of(tree: ElementTree.Element, planet: str) -> Limits:
    """Map of a planet, and the angles that all tables of an aircraft cover."""
    ground, tables = PLANETS[planet], list(tree.iterfind("aerodynamics//table"))
    scale = (ground.equator_ft, ground.pole_ft, ground.rotation, ground.north_m_per_rad, ground.east_m_per_rad)
    ranges = (*common_range(tables, "aero/alpha-rad"), *common_range(tables, "aero/beta-rad"))
    return Limits(*scale, *(min(max(angle, -math.pi), math.pi) for angle in ranges))


def import_source(name: str, source: str) -> types.ModuleType:
    """A module from its source, under a name that says its content.

    Args:
        name: How its name begins.
        source: Python.
    """
    full = f"{name}_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    if full in sys.modules:
        return sys.modules[full]
    file = _file(f"{full}.py", source.encode())
    module = types.ModuleType(full)
    module.__file__ = str(file)
    sys.modules[full] = module
    try:
        exec(compile(source, str(file), "exec"), vars(module))
    except BaseException:
        del sys.modules[full]
        raise
    return module


def _file(name: str, content: bytes) -> Path:
    """A file with this content: in the user's cache, or in a folder of this process where there is none."""
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute()
        folder = cache / "palaestra" / "aircraft"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / name
        if not folder_problem(folder):
            if not file.is_file() or folder_problem(file) or file.read_bytes() != content:
                write_atomically(file, lambda opened: opened.write(content))
            return file
    except (OSError, RuntimeError):  # RuntimeError: the user has no home
        pass
    folder = Path(tempfile.mkdtemp(prefix="palaestra-aircraft-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / name).write_bytes(content)
    return folder / name
