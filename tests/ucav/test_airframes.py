"""Airframes and planets of the flight engines: what a correction changes, where its file lies, and what is refused."""

from __future__ import annotations

import math
import os
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ucav.aircraft_files import GAME

import palaestra_assets
from palaestra.games.ucav.airframes import (
    AIRFRAMES,
    Airframe,
    Correction,
    Edit,
    aircraft_folder,
    aircraft_tree,
    airframe_digest,
    root_folder,
)
from palaestra.games.ucav.body import BODY

pytest.importorskip("jsbsim", reason="the aircraft need the extra palaestra[flight]")

from palaestra.games.ucav.jsbsim_engine import FOOT_M, JsbsimEngine, idle_aircraft
from palaestra.games.ucav.planets import PLANETS

STANDARD_GRAVITY_MPS2 = 9.80665
FULL_FLAPS_RAD = math.radians(20.0)
MIXER = "fcs/left-flaperon-norm"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Corrected aircraft go to a folder of the test, not to the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def another_jsbsim(tmp_path: Path) -> Path:
    """A copy of the data that the F-16 is read from, to be changed."""
    root = tmp_path / "jsbsim"
    shutil.copytree(root_folder() / "aircraft" / "f16", root / "aircraft" / "f16")
    shutil.copytree(root_folder() / "engine", root / "engine")
    return root


def fly(
    seconds: float, stick: Callable[[float, Any], dict[str, float]], kind: dict[str, Any], **start: float
) -> list[Any]:
    """A flight from 6 km and 250 m/s with idle throttle; the aircraft's record at its start and end.

    ``stick`` has commands for the time (s) and the record.
    """
    engine = JsbsimEngine(GAME, 1, **kind)
    states: Any = np.zeros(1, GAME.state_dtype)
    body = states["body"][0, 0]
    for name, value in {"altitude_m": 6000.0, "true_airspeed_mps": 250.0, **start}.items():
        body[name] = value
    engine.load(states, [0])
    record = [body.copy()]
    for period in range(round(10 * seconds)):
        for name, value in stick(period / 10, body).items():
            body[f"{name}_command"] = value
        engine.advance(states, [0])
    engine.close()
    return [*record, body.copy()]


def energy_height(body: Any) -> float:
    """Height (m) that the aircraft would have if it gave all its speed for it."""
    return float(body["altitude_m"] + body["true_airspeed_mps"] ** 2 / (2 * STANDARD_GRAVITY_MPS2))


def idle_roll(airframe: str, aileron: float) -> float:
    """Change of energy height (m/s) in four seconds of full rolls with an idle engine."""
    start, end = fly(4.0, lambda _, __: {"aileron": aileron}, {"airframe": airframe})
    return (energy_height(end) - energy_height(start)) / 4.0


def test_rolls_with_an_idle_engine_lose_energy_to_either_side():
    right, neutral, left = (idle_roll("f16", aileron) for aileron in (1.0, 0.0, -1.0))
    assert right == pytest.approx(-58.8, abs=0.5)
    assert left == pytest.approx(right, abs=0.5)
    assert neutral == pytest.approx(-55.7, abs=0.5)


def test_the_aircraft_as_installed_gains_energy_from_rolling_right():
    right, neutral, left = (idle_roll("f16-jsbsim", aileron) for aileron in (1.0, 0.0, -1.0))
    assert right == pytest.approx(50, abs=3)
    assert left == pytest.approx(-165, abs=3)
    assert neutral == pytest.approx(-55.7, abs=0.5)


def mirror_images_end(airframe: str) -> tuple[float, np.ndarray]:
    """Distance (m) and roll, pitch, heading (deg) between a flight and the mirror image of its mirrored programme."""
    ends = []
    for side in (1.0, -1.0):
        pulse = {"aileron": 0.4 * side, "elevator": 0.3, "rudder": 0.1 * side}
        neutral = dict.fromkeys(pulse, 0.0)

        def stick(time, _, pulse=pulse, neutral=neutral):
            return pulse if time < 1.0 else neutral

        body = fly(20.0, stick, {"airframe": airframe}, throttle_command=0.4)[1]
        position = body["north_m"], side * body["east_m"], body["altitude_m"]
        ends.append((position, (side * body["roll_rad"], body["pitch_rad"], side * body["heading_rad"])))
    (here, attitude), (there, mirrored) = np.array(ends)
    turned = (attitude - mirrored + math.pi) % (2 * math.pi) - math.pi
    return float(np.linalg.norm(here - there)), np.degrees(abs(turned))


def test_mirrored_programmes_fly_mirror_images():
    distance_m, angles_deg = mirror_images_end("f16")
    assert distance_m <= 40
    assert (angles_deg <= 1.5).all()
    assert mirror_images_end("f16-jsbsim")[0] > 300


def flaperons(aileron: float) -> tuple[float, float]:
    """Symmetric deflection (rad) that moves lift and drag, and position of the flaps (0 to 1), after 2 s at 110 m/s."""
    idle_aircraft.clear()
    fly(2.0, lambda _, __: {"aileron": aileron}, {"airframe": "f16"}, true_airspeed_mps=110.0)
    fdm = idle_aircraft[60, "f16", "wgs84"][0].fdm
    return fdm["fcs/flaperon-mix-rad"], fdm["fcs/tef-control"]


def test_the_corrected_mixer_moves_lift_and_drag_with_the_flaps_alone():
    for aileron in (-0.1, 0.0, 0.1):
        symmetric_rad, flaps = flaperons(aileron)
        assert flaps > 0.5
        assert symmetric_rad == pytest.approx(FULL_FLAPS_RAD * flaps, abs=1e-6)


def test_a_flaperon_at_its_stop_costs_lift_to_either_side_alike():
    (right_rad, flaps), (left_rad, _) = flaperons(1.0), flaperons(-1.0)
    assert right_rad == pytest.approx(left_rad, abs=1e-4)
    assert right_rad < 0.8 * FULL_FLAPS_RAD * flaps


def turns(time: float, body: Any) -> dict[str, float]:
    """A turn to the right and one to the left; depends on nothing but time and bank."""
    bank_rad = 1.0 if time < 25.0 else -0.8
    aileron = min(0.5, max(-0.5, 0.5 * (bank_rad - body["roll_rad"])))
    return {"aileron": aileron, "elevator": 0.15, "rudder": 0.1 * (time < 1.0), "throttle": 0.5}


def travelled(heading_deg: float, north_m: float, east_m: float, planet: str) -> np.ndarray:
    """Way (m) ahead and to the right of the first heading, and up, in a minute of `turns`."""
    place = {"north_m": north_m, "east_m": east_m, "heading_rad": math.radians(heading_deg)}
    start, end = fly(60.0, turns, {"airframe": "f16", "planet": planet}, throttle_command=0.5, **place)
    north, east, up = (end[axis] - start[axis] for axis in ("north_m", "east_m", "altitude_m"))
    sine, cosine = math.sin(math.radians(heading_deg)), math.cos(math.radians(heading_deg))
    return np.array([north * cosine + east * sine, east * cosine - north * sine, up])


@pytest.mark.check
def test_around_the_still_planet_flights_depend_on_neither_heading_nor_place():
    ways = [travelled(90.0 * k, *at, "still") for k in range(4) for at in ((0.0, 0.0), (8000.0, -6000.0))]
    assert max(np.linalg.norm(way - ways[0]) for way in ways) < 0.2
    assert np.linalg.norm(travelled(90, 0, 0, "wgs84") - travelled(270, 0, 0, "wgs84")) > 10


def test_the_still_planet_is_a_sphere_as_large_as_the_earth_is_at_the_equator():
    planet = ElementTree.parse(palaestra_assets.path(PLANETS["still"].asset or "")).getroot()
    values = {child.tag: float(child.text or "nan") for child in planet}
    assert values["rotation_rate"] == values["J2"] == 0.0
    assert values["equatorial_radius"] == values["polar_radius"]
    assert values["equatorial_radius"] == PLANETS["still"].equator_ft
    gravity_mps2 = values["GM"] / values["polar_radius"] ** 2 * FOOT_M
    assert gravity_mps2 == pytest.approx(STANDARD_GRAVITY_MPS2, rel=1e-3)


def test_the_file_lies_in_the_cache_and_is_written_once(own_cache: Path):
    with aircraft_folder("f16", root_folder()) as folder:
        (file,) = (path for path in own_cache.rglob("*") if path.is_file())
        assert file == folder / "f16.xml"
    stamp = file.stat().st_mtime_ns
    with aircraft_folder("f16", root_folder()) as again:
        assert again == folder
    assert file.stat().st_mtime_ns == stamp


def test_a_damaged_file_of_the_cache_is_written_anew():
    with aircraft_folder("f16", root_folder()) as folder:
        content = (folder / "f16.xml").read_bytes()
    (folder / "f16.xml").write_bytes(content[:1000])
    with aircraft_folder("f16", root_folder()) as folder:
        assert (folder / "f16.xml").read_bytes() == content


def test_where_the_cache_cannot_be_written_the_file_is_temporary(own_cache: Path):
    own_cache.write_text("no folder")
    with aircraft_folder("f16", root_folder()) as folder:
        assert (folder / "f16.xml").is_file()
    assert not folder.exists()
    JsbsimEngine(GAME, 1, airframe="f16").close()


@pytest.mark.skipif(os.name == "nt", reason="folders have no rights there")
def test_a_folder_of_the_cache_that_others_can_write_is_not_used():
    with aircraft_folder("f16", root_folder()) as folder:
        folder.chmod(0o777)
    with aircraft_folder("f16", root_folder()) as other:
        assert other != folder


def test_the_aircraft_as_installed_is_jsbsims_file_with_a_payload_of_no_weight():
    root = root_folder()
    installed = ElementTree.parse(root / "aircraft" / "f16" / "f16.xml").getroot()
    ours = aircraft_tree("f16-jsbsim", root)
    (masses,) = ours.findall("mass_balance")
    (payload,) = masses.findall("pointmass[@name='payload']")
    assert float(payload.findtext("weight", "")) == 0.0
    assert [payload.findtext(f"location/{axis}") for axis in "xyz"] == [
        masses.findtext(f"location[@name='CG']/{axis}") for axis in "xyz"
    ]
    masses.remove(payload)
    canonical = lambda tree: ElementTree.canonicalize(ElementTree.tostring(tree, "unicode"), strip_text=True)  # noqa: E731
    assert canonical(ours) == canonical(installed)


def test_writing_the_file_anew_changes_no_bit_of_a_flight(monkeypatch: pytest.MonkeyPatch):
    nothing = Correction("none", "a test", (Edit("fcs/flaperon-mix-rad", "gain", "1.4324", "1.4324"),))
    monkeypatch.setitem(AIRFRAMES, "same", Airframe("f16", (nothing,), "the F-16, written anew"))
    one, two = (fly(20.0, turns, {"airframe": airframe})[1] for airframe in ("same", "f16-jsbsim"))
    for name in BODY.names or ():
        assert one[name].tobytes() == two[name].tobytes(), name


def test_a_correction_changes_what_it_names_and_nothing_else():
    def texts(airframe):
        return [(element.get("name"), element.tag, element.text) for element in tree_of(airframe).iter()]

    def tree_of(airframe):
        return aircraft_tree(airframe, root_folder())

    changed = [pair for pair in zip(texts("f16-jsbsim"), texts("f16"), strict=True) if pair[0] != pair[1]]
    edits = [edit for correction in AIRFRAMES["f16"].corrections for edit in correction.edits]
    assert [(old[2], new[2]) for old, new in changed] == [(edit.expected, edit.corrected) for edit in edits]


@pytest.mark.parametrize(
    ("old", "new", "component", "found"),
    [
        ("<input>-fcs/tef-control<", "<input>fcs/tef-control<", MIXER, "found 'fcs/tef-control'"),
        ("<gain>1.4324<", "<gain>0.1745329<", "fcs/flaperon-mix-rad", "found '0.1745329'"),
        ("<gain>1.4324</gain>", "", "fcs/flaperon-mix-rad", "found 'nothing'"),
        (f'"{MIXER}"', '"fcs/left-flaperon"', MIXER, "found 0 components of that name"),
    ],
)
def test_another_version_of_the_aircraft_is_refused(
    old: str, new: str, component: str, found: str, another_jsbsim: Path, monkeypatch: pytest.MonkeyPatch
):
    file = another_jsbsim / "aircraft" / "f16" / "f16.xml"
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")
    monkeypatch.setattr("palaestra.games.ucav.jsbsim_engine.root_folder", lambda: another_jsbsim)
    with pytest.raises(RuntimeError) as refusal:
        JsbsimEngine(GAME, 1, airframe="f16")
    for part in (str(file), component, "'flaperon mixer'", found, "airframe='f16-jsbsim'"):
        assert part in str(refusal.value)
    assert aircraft_tree("f16-jsbsim", another_jsbsim).tag == "fdm_config"


def test_the_digest_follows_every_file_that_jsbsim_reads_of_an_aircraft(another_jsbsim: Path):
    digests = {airframe_digest(airframe, root_folder()) for airframe in AIRFRAMES}
    assert len(digests) == len(AIRFRAMES)
    assert {airframe_digest(airframe, another_jsbsim) for airframe in AIRFRAMES} == digests
    before = airframe_digest("f16", another_jsbsim)
    for name in ("engine/F100-PW-229.xml", "engine/direct.xml", "aircraft/f16/Systems/hook.xml"):
        file = another_jsbsim / name
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("\n", "\r\n") + "<!-- a comment -->\r\n", encoding="utf-8", newline="")
        assert airframe_digest("f16", another_jsbsim) == before, name
        root = ElementTree.fromstring(text)
        root.set("changed", "1")
        file.write_bytes(ElementTree.tostring(root))
        assert airframe_digest("f16", another_jsbsim) != before, name
        before = airframe_digest("f16", another_jsbsim)
