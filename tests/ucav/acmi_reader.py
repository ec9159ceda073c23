"""A reader of the flight recordings that `palaestra.games.ucav.acmi` writes."""

from __future__ import annotations

import math
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from palaestra.games.ucav.jsbsim_engine import EAST_M_PER_RAD, NORTH_M_PER_RAD


@dataclass
class AcmiObject:
    """One object of a recording.

    Attributes:
        history: Values of each property but T, with the time of each change.
        times_s: When the object was moved, float64 [n].
        transforms: Longitude, latitude (degrees), altitude (m), roll, pitch, yaw (degrees), float64 [n, 6]; NaN where
            the file does not give it.
        removed_s: When it was taken away, or None.
    """

    history: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    times_s: np.ndarray = field(default_factory=lambda: np.zeros(0))
    transforms: np.ndarray = field(default_factory=lambda: np.zeros((0, 6)))
    removed_s: float | None = None

    @property
    def properties(self) -> dict[str, str]:
        """The last value of each property."""
        return {name: changes[-1][1] for name, changes in self.history.items()}

    @property
    def positions_m(self) -> np.ndarray:
        """North, east, altitude on the flat map, float64 [n, 3]."""
        longitude, latitude, altitude = self.transforms[:, :3].T
        return np.stack([np.radians(latitude) * NORTH_M_PER_RAD, np.radians(longitude) * EAST_M_PER_RAD, altitude], 1)


@dataclass(frozen=True)
class AcmiEvent:
    """An event: time, kind, objects and text."""

    time_s: float
    kind: str
    ids: tuple[int, ...]
    text: str


@dataclass
class Acmi:
    """A recording.

    Attributes:
        properties: Of the recording itself.
        objects: By id.
        events: In the order of the file.
    """

    properties: dict[str, str] = field(default_factory=dict)
    objects: dict[int, AcmiObject] = field(default_factory=dict)
    events: list[AcmiEvent] = field(default_factory=list)


def read_acmi(path: Path) -> Acmi:
    """Reads a recording, zipped or not."""
    content = path.read_bytes()
    if content.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            content = archive.read(archive.namelist()[0])
    text = content.decode("utf-8-sig")
    lines = [line.replace("\\\n", "\n") for line in re.split(r"(?<!\\)\n", text)]
    assert lines[0] == "FileType=text/acmi/tacview"
    assert lines[1] == "FileVersion=2.2"
    recording, tracks = Acmi(), {}
    time_s = 0.0
    for line in lines[2:]:
        if line.startswith("#"):
            time_s = float(line[1:])
        elif line.startswith("-"):
            recording.objects[int(line[1:], 16)].removed_s = time_s
        elif line:
            _read_update(recording, tracks, time_s, line)
    for id, track in tracks.items():
        recording.objects[id].times_s = np.array([time for time, _ in track])
        recording.objects[id].transforms = np.array([t for _, t in track])
    return recording


def _read_update(recording: Acmi, tracks: dict[int, list], time_s: float, line: str) -> None:
    """Reads ``id,name=value,name=value``."""
    head, *rest = re.split(r"(?<!\\),", line)
    id = int(head, 16)
    for part in rest:
        name, _, value = part.replace("\\,", ",").partition("=")
        if id == 0 and name == "Event":
            kind, *ids, text = value.split("|")
            recording.events.append(AcmiEvent(time_s, kind, tuple(int(i, 16) for i in ids if i), text))
        elif id == 0:
            recording.properties[name] = value
        elif name == "T":
            recording.objects.setdefault(id, AcmiObject())
            track = tracks.setdefault(id, [])
            track.append((time_s, _read_transform(value, track[-1][1] if track else (math.nan,) * 6)))
        else:
            recording.objects.setdefault(id, AcmiObject()).history.setdefault(name, []).append((time_s, value))


def _read_transform(value: str, before: tuple[float, ...]) -> tuple[float, ...]:
    """The six numbers, unchanged ones from before."""
    return tuple(float(new) if new else old for new, old in zip(value.split("|"), before, strict=True))
