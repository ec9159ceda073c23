"""The aircraft that the flight engines fly: JSBSim's own, with named corrections or as installed.

JSBSim's aircraft are read from the user's installation whenever an engine is made, because their licence (GPL) is not
ours: this repository holds what is changed, never a file. A `Correction` is data. It names the text that it expects,
so that another version of an aircraft is refused and never changed blindly.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import math
import os
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palaestra.core.compile.disk_cache import folder_problem
from palaestra.core.files import write_atomically
from palaestra.core.interrupts import imported_whole


@dataclass(frozen=True)
class Edit:
    """One text of an aircraft's file that is replaced.

    Attributes:
        component: ``name`` of the XML element that is edited; one element of the file has it.
        path: Where in it the text stands, as `xml.etree.ElementTree.Element.find` takes it.
        expected: The text as JSBSim ships it, without the spaces around it.
        corrected: The text in its place.
    """

    component: str
    path: str
    expected: str
    corrected: str


@dataclass(frozen=True)
class Correction:
    """A mistake in an aircraft of JSBSim and its cure.

    Attributes:
        name: For messages.
        why: What is wrong without it.
        edits: The cure.
    """

    name: str
    why: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Airframe:
    """An aircraft of JSBSim.

    Attributes:
        model: Its name in JSBSim's folder ``aircraft``.
        corrections: What is changed in its file, in this order.
        about: What it is, for pages.
    """

    model: str
    corrections: tuple[Correction, ...]
    about: str


# The flaperons are the ailerons of the F-16 and at the same time its trailing-edge flaps. Their symmetric part, half
# the sum of left (flap + aileron) and right (flap - aileron), times the full deflection of the flap, 20 deg, moves lift
# and drag: half of 20 deg is 0.1745329 rad, and 1.4324 is 1 / (2 x 20 deg). JSBSim holds each flaperon between -1 and
# 1, so hard rolls with the flaps down still cost lift, to either side alike.
FLAPERON_MIXER = Correction(
    "flaperon mixer",
    "wrong signs cancel the flaps and sum the ailerons, with the gain inverted: rolling right adds thrust, left drag",
    (
        Edit("fcs/left-flaperon-norm", "input[1]", "-fcs/tef-control", "fcs/tef-control"),
        Edit("fcs/left-flaperon-norm", "input[2]", "-fcs/aileron-speed-compensated", "fcs/aileron-speed-compensated"),
        Edit("fcs/flaperon-mix-rad", "gain", "1.4324", "0.1745329"),
    ),
)

PAYLOAD = "payload"
"""Name of the point mass that flights load; it weighs nothing in the file."""

AIRFRAMES = {
    "f16": Airframe("f16", (FLAPERON_MIXER,), "the F-16 of JSBSim, with its flaperon mixer corrected"),
    "f16-jsbsim": Airframe("f16", (), "the F-16 of JSBSim as installed, whose ailerons act on lift and drag"),
}
"""Words of ``airframe=``."""


def import_jsbsim() -> Any:
    """The jsbsim module.

    Raises:
        ImportError: It is not installed; the message names the extra that brings it.
    """
    try:
        import jsbsim
    except ImportError as error:
        raise ImportError(
            'the aircraft of palaestra fly with JSBSim, which is not installed: pip install "palaestra[flight]"'
        ) from error
    return jsbsim


import_jsbsim = imported_whole(import_jsbsim)  # no decorator: digests of rules read the function with its decorators


def root_folder() -> Path:
    """The folder of JSBSim's data: ``aircraft``, ``engine`` and ``systems``. The library itself is not loaded for it.

    Raises:
        ImportError: jsbsim is not installed.
    """
    spec = importlib.util.find_spec("jsbsim")
    if spec is None or spec.origin is None:
        import_jsbsim()
        raise ImportError("jsbsim is no installed package: its folder is not known")
    return Path(spec.origin).parent


def aircraft_tree(airframe: str, root: Path) -> ElementTree.Element:
    """The file of an aircraft, corrected, with a point mass named `PAYLOAD` of no weight where the aircraft's own is.

    Args:
        airframe: A name of `AIRFRAMES`.
        root: JSBSim's data folder (`root_folder`).

    Raises:
        OSError: The file cannot be read.
        RuntimeError: The file is not the one that the corrections are made for.
    """
    file = _installed_folder(airframe, root) / f"{AIRFRAMES[airframe].model}.xml"
    tree = ElementTree.parse(file).getroot()
    for correction in AIRFRAMES[airframe].corrections:
        for edit in correction.edits:
            _apply(edit, correction.name, tree, file)
    _add_payload(tree, file)
    return tree


def _add_payload(tree: ElementTree.Element, file: Path) -> None:
    masses = tree.find("mass_balance")
    place = None if masses is None else masses.find("location[@name='CG']")
    if masses is None or place is None:
        raise RuntimeError(f"{file}: there is no mass_balance with a location CG")
    payload = ElementTree.SubElement(masses, "pointmass", name=PAYLOAD)
    ElementTree.SubElement(payload, "weight", unit="LBS").text = "0"
    where = ElementTree.SubElement(payload, "location", unit=place.get("unit", "IN"))
    for axis in "xyz":
        ElementTree.SubElement(where, axis).text = place.findtext(axis, "0")


def _apply(edit: Edit, correction: str, tree: ElementTree.Element, file: Path) -> None:
    components = [element for element in tree.iter() if element.get("name") == edit.component]
    target = components[0].find(edit.path) if len(components) == 1 else None
    text = (target.text or "").strip() if target is not None else None
    if target is None or text != edit.expected:
        found = f"{len(components)} components of that name" if len(components) != 1 else repr(text or "nothing")
        as_installed = next(n for n, other in AIRFRAMES.items() if other.model == file.stem and not other.corrections)
        raise RuntimeError(
            f"{file}: {edit.path} of {edit.component} must be {edit.expected!r} for the correction {correction!r}, "
            f"found {found}: this JSBSim has another version. Write airframe={as_installed!r} to fly that one"
        )
    target.text = edit.corrected


def airframe_digest(airframe: str, root: Path) -> str:
    """SHA-256 over all that JSBSim reads of an aircraft: its corrected file, and engine, thruster and systems.

    Comments, order of attributes and line ends do not count.

    Args:
        airframe: A name of `AIRFRAMES`.
        root: JSBSim's data folder (`root_folder`).

    Raises:
        ValueError, OSError, RuntimeError: As `aircraft_tree`.
    """
    tree = aircraft_tree(airframe, root)
    files = [root / "engine" / f"{part.get('file')}.xml" for part in tree.findall("propulsion/engine")]
    files += [root / "engine" / f"{part.get('file')}.xml" for part in tree.findall("propulsion/engine/thruster")]
    systems = systems_folder(airframe, root)
    files += [systems / f"{part.get('file')}.xml" for part in tree.findall("system") if part.get("file")]
    digest = hashlib.sha256(_text(tree))
    for file in files:
        digest.update(b"\0" + _text(ElementTree.parse(file).getroot()))
    return digest.hexdigest()


def _text(tree: ElementTree.Element) -> bytes:
    """The file of a tree, without comments; the same on every platform."""
    return ElementTree.canonicalize(ElementTree.tostring(tree, "unicode")).encode()


def common_range(tables: Iterable[ElementTree.Element], variable: str) -> tuple[float, float]:
    """Breakpoints between which every table of ``variable`` has data; beyond them JSBSim holds the last value."""
    low, high = -math.inf, math.inf
    for table in tables:
        lines = table.findtext("tableData", "").splitlines()
        rows = [[float(x) for x in line.split()] for line in lines if line.strip()]
        for axis in table.findall("independentVar"):
            if (axis.text or "").strip() != variable:
                continue
            two_way = axis.get("lookup") is not None and len(table.findall("independentVar")) > 1
            points = rows[0] if axis.get("lookup") == "column" else [row[0] for row in (rows[1:] if two_way else rows)]
            low, high = max(low, points[0]), min(high, points[-1])
    return low, high


def _installed_folder(airframe: str, root: Path) -> Path:
    return root / "aircraft" / AIRFRAMES[airframe].model


def systems_folder(airframe: str, root: Path) -> Path:
    """Where the systems that an aircraft's file names lie: in a folder of its own, or among those of all aircraft."""
    own = _installed_folder(airframe, root) / "Systems"
    return own if own.is_dir() else root / "systems"


@contextlib.contextmanager
def aircraft_folder(airframe: str, root: Path) -> Iterator[Path]:
    """A folder with the file ``<model>.xml`` of an aircraft, for JSBSim to load while the block runs.

    The file lies in the user's cache, under its digest, and is compared with what it should hold whenever it is used.
    Where the cache cannot be written, or others can write there, it lies in a temporary folder until the block ends.

    Args:
        airframe: A name of `AIRFRAMES`.
        root: JSBSim's data folder (`root_folder`).

    Raises:
        ValueError, OSError, RuntimeError: As `aircraft_tree`.
    """
    content = _text(aircraft_tree(airframe, root))
    name = f"{AIRFRAMES[airframe].model}.xml"
    cached = _cached_folder(name, content)
    if cached is not None:
        yield cached
        return
    with tempfile.TemporaryDirectory(prefix="palaestra-aircraft-") as folder:
        (Path(folder) / name).write_bytes(content)
        yield Path(folder)


def _cached_folder(name: str, content: bytes) -> Path | None:
    """The folder of the user's cache that holds a file with this content; None where there can be none."""
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute()
        folder = cache / "palaestra" / "aircraft" / hashlib.sha256(content).hexdigest()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder_problem(folder):
            return None
        file = folder / name
        if not file.is_file() or folder_problem(file) or file.read_bytes() != content:
            write_atomically(file, lambda opened: opened.write(content))
        return folder
    except (OSError, RuntimeError):  # RuntimeError: the user has no home
        return None
