"""Flight recordings that Tacview opens: ACMI 2.2 text, plain (``.acmi``) or zipped (``.zip.acmi``).

The format, as published at tacview.net/documentation/acmi: two header lines, then lines of three kinds::

    #12.5                                  the time of what follows, s after ReferenceTime
    101,T=0.01|0.02|4000|1|2|90,Name=...   properties of object 101 (hexadecimal); object 0 is the recording itself
    -101                                   object 101 is gone

``T`` is longitude | latitude | altitude | roll | pitch | yaw in degrees and metres. Whatever has not changed is left
out, within ``T`` too. In values a backslash precedes a comma or a line break; there is no way to write a backslash
itself, which becomes a slash.

Positions are the flat ones of `palaestra.games.ucav.jsbsim_engine`, around latitude 0, longitude 0.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

from palaestra.core.files import open_atomically
from palaestra.game import Game
from palaestra.games.ucav.jsbsim_engine import EAST_M_PER_RAD, NORTH_M_PER_RAD, body_field
from palaestra.games.ucav.missiles import GUIDED, HIT, LOST
from palaestra.games.ucav.records import match_time_s, outcome, reason

REFERENCE_TIME = "2000-01-01T12:00:00Z"
"""When every match starts, so that equal matches give equal files."""
T_DECIMALS = (7, 7, 2, 2, 2, 2)
"""Decimals of longitude and latitude (1e-7 degrees are 11 mm), altitude (m) and the three angles (degrees)."""

AIRCRAFT = {"Name": "F-16C", "Type": "Air+FixedWing"}
MISSILE_SHAPE = {"Name": "AIM-9", "Type": "Weapon+Missile"}
"""What Tacview needs to pick a shape."""

FIRST_MISSILE = 0x1000000
"""Ids of missiles follow this one."""
AXES = ("north", "east", "down")

INSTRUMENTS = (
    ("TAS", "true_airspeed_mps", 1.0, 1),
    ("Mach", "mach", 1.0, 3),
    ("AOA", "angle_of_attack_rad", math.degrees(1.0), 1),
    ("AOS", "sideslip_rad", math.degrees(1.0), 1),
    ("VerticalGForce", "load_factor_g", 1.0, 2),
    ("Throttle", "throttle_command", 1.0, 2),
    ("FuelWeight", "fuel_kg", 1.0, 0),
)
"""Property, member of the aircraft record, factor, decimals."""


class AcmiWriter:
    """Writes a recording line by line; a context manager.

    An old file stays until `close`, and where the new one cannot be written.

    >>> with AcmiWriter("match.zip.acmi", Title="Red against blue") as writer:
    ...     writer.begin(0.0)
    ...     writer.update(0x101, (0.0, 0.0, 4000.0, 0.0, 0.0, 90.0), Name="F-16C", Type="Air+FixedWing", Color="Red")
    ...     writer.event("Message", 0x101, text="Fight's on")
    """

    def __init__(self, path: str | os.PathLike[str], reference_time: str = REFERENCE_TIME, **properties: str) -> None:
        """Opens the file and writes the header.

        Args:
            path: ``.zip.acmi`` is zipped, anything else is text.
            reference_time: ISO 8601, UTC.
            **properties: Of the recording: Title, Author, Category, Briefing, Comments ...
        """
        path = Path(path)
        self._unfinished = contextlib.ExitStack()
        raw = self._unfinished.enter_context(open_atomically(path))
        self._zip: zipfile.ZipFile | None = None
        if path.name.endswith(".zip.acmi"):
            self._zip = zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED)
            inside = zipfile.ZipInfo(path.name.removesuffix(".zip.acmi") + ".txt.acmi")  # dated 1980: equal files
            inside.compress_type = zipfile.ZIP_DEFLATED
            self._file = io.TextIOWrapper(self._zip.open(inside, "w"), "utf-8-sig", newline="\n")
        else:
            self._file = io.TextIOWrapper(raw, "utf-8-sig", newline="\n")
        self._time = ""
        self._known: dict[int, dict[str, str]] = {0: {}}
        self._gone: set[int] = set()
        self._over = False
        self._match, self._start_s, self._match_s = 0, 0.0, 0.0
        self._missiles: dict[int, tuple[int, float]] = {}  # of each record in flight: id, and time of flight then
        self._launched = 0
        self._file.write("FileType=text/acmi/tacview\nFileVersion=2.2\n")
        self.update(0, None, **{"ReferenceTime": reference_time, "DataRecorder": "palaestra", **properties})

    def begin(self, time_s: float) -> None:
        """Says when the next lines happen."""
        time = _number(time_s, 3)
        if time != self._time:
            self._file.write(f"#{time}\n")
            self._time = time

    def update(self, id: int, transform: Sequence[float] | None = None, **properties: str) -> None:
        """Sets properties of an object; those that it already has are left out.

        Args:
            id: Of the object, positive, or 0 for the recording.
            transform: Longitude, latitude (degrees), altitude (m), roll, pitch, yaw (degrees).
            **properties: The others, by Tacview's names.
        """
        known = self._known.setdefault(id, {})
        entries = []
        if transform is not None:
            fields = [_number(x, digits) for x, digits in zip(transform, T_DECIMALS, strict=True)]
            before = known.get("T", "|" * 5).split("|")
            changed = ["" if new == old else new for new, old in zip(fields, before, strict=True)]
            if any(changed):
                entries.append("T=" + "|".join(changed))
            known["T"] = "|".join(fields)
        for name, value in properties.items():
            if known.get(name) != value:
                entries.append(f"{name}={escape(value)}")
                known[name] = value
        if entries:
            self._file.write(f"{id:x},{','.join(entries)}\n")

    def event(self, kind: str, *ids: int, text: str = "") -> None:
        """Notes something that happened.

        Args:
            kind: Message, Bookmark, Debug, LeftArea, Destroyed, TakenOff, Landed or Timeout.
            *ids: Objects concerned.
            text: For the reader; a bar in it becomes a slash.
        """
        value = "|".join([kind, *(f"{id:x}" for id in ids), text.replace("|", "/")])
        self._file.write(f"0,Event={escape(value)}\n")

    def remove(self, id: int) -> None:
        """Takes an object away."""
        self._known.pop(id, None)
        self._gone.add(id)
        self._file.write(f"-{id:x}\n")

    def write_match(self, game: Game, s: np.void) -> None:
        """Writes one moment of a match of this family: every aircraft, the losses, and the end.

        When its time goes back another match has begun: it follows a second later, with aircraft of its own.

        Args:
            game: The rules.
            s: The match record.
        """
        time_s = match_time_s(game, s)
        if time_s < self._match_s:
            self._next_match(game)
        self._match_s = time_s
        self.begin(self._start_s + time_s)
        fields = s.dtype.names or ()
        bodies = s[body_field(s.dtype)]
        teams = list(game.teams)
        for slot, agent in enumerate(game.agents):
            id = object_id(game, slot, self._match)
            if id in self._gone:
                continue
            team = teams[game.team_index[slot]].capitalize()
            color = team if team in ("Red", "Blue") else "Green"
            playing = int(s["current_player"][slot])
            pilot = game.scripts[playing] if playing >= 0 else agent
            more = {"CallSign": agent, "Pilot": pilot, "Coalition": team, "Color": color}
            body = bodies[slot]
            for name, member, factor, digits in INSTRUMENTS:
                more[name] = _number(factor * float(body[member]), digits)
            if "health" in fields:
                more["Health"] = _number(float(s["health"][slot]), 3)
            if "in_gun" in fields:
                more["TriggerPressed"] = str(int(s["in_gun"][slot]))
            self.update(id, transform_of(body), **AIRCRAFT, **more)
            if "lost" in fields and s["lost"][slot]:
                self.event("Destroyed", id, text=f"{agent}: {reason(game, s['lost'][slot])}")
                self.remove(id)
        if "missiles" in fields:
            self._write_missiles(game, s["missiles"])
        if s["info"]["end_reason"] and not self._over:
            self._over = True
            self.event("Bookmark", text=outcome(game, s))

    def _write_missiles(self, game: Game, missiles: np.ndarray) -> None:
        """Writes the missiles in flight, each launch an object of its own, and what became of those that end."""
        for k, missile in enumerate(missiles):
            before = self._missiles.get(k)
            flies, age_s = missile["status"] in (GUIDED, LOST), float(missile["flight_s"])
            if before is not None and (not flies or age_s < before[1]):
                kind = "Destroyed" if missile["status"] == HIT else "Timeout"
                self.event(kind, before[0], text="the missile hits" if kind == "Destroyed" else "the missile is gone")
                self.remove(before[0])
                del self._missiles[k]
            if flies:
                if k not in self._missiles:
                    self._launched += 1
                id = FIRST_MISSILE + self._launched if k not in self._missiles else self._missiles[k][0]
                self._missiles[k] = id, age_s
                slot = int(missile["shooter"])
                team = list(game.teams)[game.team_index[slot]].capitalize() if slot < len(game.agents) else "Red"
                color = team if team in ("Red", "Blue") else "Green"
                speed = math.sqrt(sum(float(missile[f"velocity_{axis}_mps"]) ** 2 for axis in AXES))
                self.update(id, _transform_of_missile(missile), **MISSILE_SHAPE, Color=color, TAS=_number(speed, 1))

    def _next_match(self, game: Game) -> None:
        for id, _ in self._missiles.values():
            self.remove(id)
        self._missiles.clear()
        for slot in range(len(game.agents)):
            id = object_id(game, slot, self._match)
            if id in self._known:
                self.event("LeftArea", id)
                self.remove(id)
        self._match, self._start_s, self._over = self._match + 1, self._start_s + self._match_s + 1.0, False

    def close(self) -> None:
        """Finishes the file, which takes the place of an old one; may be called twice."""
        with self._unfinished:
            self._end()

    def _end(self) -> None:
        """Writes what is still to be written into the unfinished file."""
        if self._zip is not None:
            self._file.close()
            self._zip.close()
        elif not self._file.closed:
            self._file.flush()

    def __enter__(self) -> AcmiWriter:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes; what was written stays, unless the error is that it cannot be written."""
        if isinstance(error, OSError):
            with contextlib.suppress(OSError):
                self._end()
            self._unfinished.__exit__(kind, error, trace)
        else:
            self.close()


def write_acmi(
    path: str | os.PathLike[str], game: Game, records: Iterable[np.void] | np.ndarray, title: str = ""
) -> None:
    """Writes a whole match, for ``palaestra replay --acmi`` too.

    Args:
        path: ``.zip.acmi`` is zipped, anything else is text.
        game: The rules.
        records: Match records in their order.
        title: Of the recording; by default the game's name.

    Raises:
        ValueError: The game has no aircraft.
    """
    try:
        body_field(game.state_dtype)
    except ValueError as error:
        raise ValueError(f"a flight recording is of aircraft, and {game.name} has none") from error
    with AcmiWriter(path, REFERENCE_TIME, Title=title or game.name, Category="Air combat") as writer:
        for s in records:
            writer.write_match(game, s)


def object_id(game: Game, slot: int, match: int = 0) -> int:
    """Tacview's id of a slot: red_0 is 101, red_1 is 102, blue_0 is 201 (hexadecimal), in the next match 10101 ..."""
    team = int(game.team_index[slot])
    return 0x10000 * match + 0x100 * (team + 1) + list(game.teams.values())[team].index(slot) + 1


def transform_of(body: np.void) -> tuple[float, float, float, float, float, float]:
    """Longitude, latitude (degrees), altitude (m), roll, pitch, yaw (degrees) of an aircraft record."""
    return (
        math.degrees(float(body["east_m"]) / EAST_M_PER_RAD),
        math.degrees(float(body["north_m"]) / NORTH_M_PER_RAD),
        float(body["altitude_m"]),
        math.degrees(float(body["roll_rad"])),
        math.degrees(float(body["pitch_rad"])),
        math.degrees(float(body["heading_rad"])),
    )


def _transform_of_missile(missile: np.void) -> tuple[float, float, float, float, float, float]:
    """The same of a missile, which points where it flies."""
    north, east, down = (float(missile[f"velocity_{axis}_mps"]) for axis in AXES)
    return (
        math.degrees(float(missile["east_m"]) / EAST_M_PER_RAD),
        math.degrees(float(missile["north_m"]) / NORTH_M_PER_RAD),
        float(missile["altitude_m"]),
        0.0,
        math.degrees(math.atan2(-down, math.hypot(north, east))),
        math.degrees(math.atan2(east, north)) % 360.0,
    )


def escape(value: str) -> str:
    """A value as written in a file."""
    value = value.replace("\\", "/").replace("\r\n", "\n").replace("\r", "\n")
    return value.replace(",", "\\,").replace("\n", "\\\n")


def _number(value: float, digits: int) -> str:
    """The shortest decimal number with at most so many digits after the point."""
    text = f"{value:z.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
