"""Flight recordings: flights are read back, with any text in them."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ucav.acmi_reader import read_acmi

from palaestra.games.ucav import dogfight, limits, track
from palaestra.games.ucav import missiles as missile_rules
from palaestra.games.ucav.acmi import AcmiWriter, object_id, write_acmi

GAME = dogfight.game()
RED, BLUE = 0x101, 0x201


def make_fight(count: int = 30, seed: int = 0) -> np.ndarray:
    """Two aircraft that are anywhere, turned anyhow; blue stands still and is lost at the end."""
    random = np.random.default_rng(seed)
    records = np.zeros(count, GAME.state_dtype)
    records["steps"] = records["periods"] = np.arange(count)
    records["info"]["winner"], records["current_player"] = -1, (0, -1)
    records["health"] = 1.0
    body = records["body"]
    for name, low, high in (
        ("north_m", -15_000, 15_000),
        ("east_m", -15_000, 15_000),
        ("altitude_m", 305, 12_000),
        ("roll_rad", -math.pi, math.pi),
        ("pitch_rad", -0.5 * math.pi, 0.5 * math.pi),
        ("heading_rad", 0, 2 * math.pi),
        ("true_airspeed_mps", 100, 400),
    ):
        body[name][:, 0] = random.uniform(low, high, count)
        body[name][:, 1] = random.uniform(low, high)
    records["health"][-1, 1] = 0.0
    records["lost"][-1, 1] = records["info"]["end_reason"][-1] = dogfight.KILL
    records["info"]["winner"][-1] = 0
    return records


def test_a_match_comes_back_within_the_precision_of_the_file(tmp_path: Path):
    records = make_fight()
    write_acmi(tmp_path / "fight.acmi", GAME, records)
    red = read_acmi(tmp_path / "fight.acmi").objects[RED]
    body = records["body"][:, 0]
    np.testing.assert_allclose(red.times_s, 0.1 * np.arange(30), atol=1e-9)
    flown = np.stack([body["north_m"], body["east_m"], body["altitude_m"]], 1)
    np.testing.assert_allclose(red.positions_m, flown, atol=0.006)
    angles = np.degrees(np.stack([body["roll_rad"], body["pitch_rad"], body["heading_rad"]], 1))
    np.testing.assert_allclose(red.transforms[:, 3:], angles, atol=0.0051)


def test_longitude_is_east_and_latitude_is_north(tmp_path: Path):
    records = make_fight(1)
    records["body"]["north_m"], records["body"]["east_m"] = 11_055.0, -111.0  # about 0.1 and -0.001 degrees
    write_acmi(tmp_path / "fight.acmi", GAME, records)
    longitude, latitude = read_acmi(tmp_path / "fight.acmi").objects[RED].transforms[0, :2]
    assert latitude == pytest.approx(0.1, rel=2e-3)
    assert longitude == pytest.approx(-0.001, rel=5e-3)


def test_every_aircraft_has_a_type_a_side_and_a_pilot(tmp_path: Path):
    write_acmi(tmp_path / "fight.acmi", GAME, make_fight(2))
    recording = read_acmi(tmp_path / "fight.acmi")
    assert set(recording.objects) == {RED, BLUE}
    expected = {"Name": "F-16C", "Type": "Air+FixedWing", "Health": "1"}
    assert expected.items() <= recording.objects[RED].properties.items()
    sides = [
        [recording.objects[id].properties[name] for name in ("Color", "Coalition", "CallSign", "Pilot")]
        for id in (RED, BLUE)
    ]
    assert sides == [["Red", "Red", "red_0", "straight"], ["Blue", "Blue", "blue_0", "blue_0"]]


def test_a_lost_aircraft_is_destroyed_once_and_then_gone(tmp_path: Path):
    records = make_fight(12)
    records["lost"][9:, 1] = dogfight.FIRST_FAILURE + limits.CRASH
    write_acmi(tmp_path / "fight.acmi", GAME, records)
    recording = read_acmi(tmp_path / "fight.acmi")
    destroyed = [event for event in recording.events if event.kind == "Destroyed"]
    assert [(event.time_s, event.ids, event.text) for event in destroyed] == [(0.9, (BLUE,), "blue_0: crash")]
    assert recording.objects[BLUE].removed_s == 0.9
    assert recording.objects[RED].removed_s is None
    assert recording.objects[RED].times_s[-1] == 1.1


def test_the_end_is_a_bookmark(tmp_path: Path):
    records = make_fight()
    write_acmi(tmp_path / "kill.acmi", GAME, records)
    records["lost"], records["info"]["end_reason"][-1], records["info"]["winner"][-1] = 0, 1, -1
    write_acmi(tmp_path / "horizon.acmi", GAME, records)
    ends = [read_acmi(tmp_path / name).events[-1] for name in ("kill.acmi", "horizon.acmi")]
    assert [(end.kind, end.text) for end in ends] == [
        ("Bookmark", "red wins · kill"),
        ("Bookmark", "draw · time is up"),
    ]


def test_what_does_not_change_is_left_out(tmp_path: Path):
    write_acmi(tmp_path / "fight.acmi", GAME, make_fight())
    lines = (tmp_path / "fight.acmi").read_text(encoding="utf-8-sig").split("\n")
    assert [line[:6] for line in lines if line.startswith("201,")] == ["201,T=", "201,He"]
    assert sum(",Type=" in line for line in lines) == 2
    assert read_acmi(tmp_path / "fight.acmi").objects[BLUE].history["Health"] == [(0.0, "1"), (2.9, "0")]


def test_a_part_of_a_position_that_does_not_change_is_left_out_too(tmp_path: Path):
    with AcmiWriter(tmp_path / "part.acmi") as writer:
        for time in range(3):
            writer.begin(time)
            writer.update(7, (1.5, 2.25, 1000.0 + 100 * time, 0.0, 0.0, 90.0))
    assert "\n7,T=||1100|||\n" in (tmp_path / "part.acmi").read_text(encoding="utf-8-sig")
    expected = [(1.5, 2.25, 1000.0 + 100 * time, 0.0, 0.0, 90.0) for time in range(3)]
    np.testing.assert_array_equal(read_acmi(tmp_path / "part.acmi").objects[7].transforms, expected)


def test_equal_matches_give_equal_files_that_begin_as_tacview_wants(tmp_path: Path):
    for name in ("a.acmi", "b.acmi", "a.zip.acmi", "c.zip.acmi"):
        write_acmi(tmp_path / name, GAME, make_fight())
    data = (tmp_path / "a.acmi").read_bytes()
    assert data == (tmp_path / "b.acmi").read_bytes()
    assert data.startswith(
        b"\xef\xbb\xbfFileType=text/acmi/tacview\nFileVersion=2.2\n0,ReferenceTime=2000-01-01T12:00:00Z"
    )
    with zipfile.ZipFile(tmp_path / "a.zip.acmi") as archive:
        assert archive.namelist() == ["a.txt.acmi"]
        assert archive.read("a.txt.acmi") == data
    assert (tmp_path / "a.zip.acmi").stat().st_size < 0.7 * len(data)
    zipped = read_acmi(tmp_path / "a.zip.acmi")
    np.testing.assert_array_equal(
        zipped.objects[RED].transforms, read_acmi(tmp_path / "a.acmi").objects[RED].transforms
    )


@pytest.mark.check
@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")) | st.just("\n") | st.just(",")))
def test_any_text_survives_but_for_backslashes(tmp_path_factory: pytest.TempPathFactory, text: str):
    path = tmp_path_factory.getbasetemp() / "text.acmi"
    with AcmiWriter(path, Title="a, b", Comments=text) as writer:
        writer.begin(1.0)
        writer.update(0x2A, None, Pilot=text, Group="x")
        writer.event("Message", 0x2A, 0xFF, text=text)
    recording = read_acmi(path)
    written = text.replace("\\", "/")
    assert recording.properties["Title"] == "a, b"
    assert recording.properties["Comments"] == written
    assert recording.objects[0x2A].properties == {"Pilot": written, "Group": "x"}
    (event,) = recording.events
    assert (event.time_s, event.kind, event.ids) == (1.0, "Message", (0x2A, 0xFF))
    assert event.text == written.replace("|", "/")


def test_what_was_written_before_an_error_stays(tmp_path: Path):
    def records():
        yield from make_fight(5)
        raise RuntimeError("the match broke off")

    with pytest.raises(RuntimeError, match="broke off"):
        write_acmi(tmp_path / "half.zip.acmi", GAME, records())
    assert len(read_acmi(tmp_path / "half.zip.acmi").objects[RED].times_s) == 5


@pytest.mark.parametrize("name", ["old.acmi", "old.zip.acmi"])
def test_an_old_file_stays_until_the_new_one_is_whole(tmp_path: Path, name: str):
    path = tmp_path / name
    path.write_bytes(b"old")

    def full_disk():
        with AcmiWriter(path) as writer:
            writer.begin(1.0)
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        full_disk()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    with AcmiWriter(path) as writer:
        writer.begin(1.0)
        assert path.read_bytes() == b"old"
    assert read_acmi(path).properties["DataRecorder"] == "palaestra"
    writer.close()


def test_a_tracking_flight_is_written_too(tmp_path: Path):
    game = track.game()
    records = np.zeros(3, game.state_dtype)
    records["steps"], records["current_player"] = np.arange(3), -1
    records["body"]["altitude_m"][:, 0] = (5000.0, 5010.0, 5020.0)
    write_acmi(tmp_path / "track.acmi", game, records)
    (pilot,) = read_acmi(tmp_path / "track.acmi").objects.values()
    assert pilot.properties["Color"] == "Green"
    assert pilot.transforms[:, 2].tolist() == [5000.0, 5010.0, 5020.0]
    np.testing.assert_allclose(pilot.times_s, (0.0, 0.1, 0.2))


def test_a_second_match_follows_the_first_with_aircraft_of_its_own(tmp_path: Path):
    write_acmi(tmp_path / "two.acmi", GAME, np.concatenate([make_fight(11), make_fight(6, seed=1)]))
    recording = read_acmi(tmp_path / "two.acmi")
    second = {RED + 0x10000: 2.0, BLUE + 0x10000: 2.0}
    assert {id: o.times_s[0] for id, o in recording.objects.items()} == {RED: 0.0, BLUE: 0.0} | second
    assert recording.objects[RED].removed_s == 1.0
    end = ("Destroyed", "Bookmark")
    assert [event.kind for event in recording.events] == [*end, "LeftArea", *end]


def test_ids_name_team_and_number():
    assert [object_id(GAME, slot) for slot in range(2)] == [RED, BLUE]


def test_each_launch_is_a_missile_of_its_own_that_ends(tmp_path: Path):
    game = dogfight.game(weapons="missile")
    records = np.zeros(8, game.state_dtype)
    records["steps"] = records["periods"] = np.arange(8)
    records["info"]["winner"], records["current_player"] = -1, (0, -1)
    missiles = records["missiles"]
    missiles["status"][1:4, 2], missiles["status"][4, 2] = missile_rules.GUIDED, missile_rules.HIT
    missiles["flight_s"][1:4, 2] = 0.1, 0.2, 0.3
    missiles["status"][5:7, 2], missiles["flight_s"][5:7, 2] = missile_rules.LOST, (0.1, 0.2)
    missiles["status"][7, 2] = missile_rules.GONE
    missiles["shooter"][:, 2] = 1
    missiles["north_m"][:, 2], missiles["velocity_north_mps"][:, 2] = np.arange(8.0) * 50.0, 500.0
    write_acmi(tmp_path / "fight.acmi", game, records)
    recording = read_acmi(tmp_path / "fight.acmi")
    first, second = (one for one in recording.objects.values() if one.properties.get("Type") == "Weapon+Missile")
    assert (first.properties["Color"], first.times_s[0], first.removed_s) == ("Blue", 0.1, 0.4)
    np.testing.assert_allclose(first.positions_m[:, 0], [50.0, 100.0, 150.0], atol=0.02)
    assert (second.times_s[0], second.removed_s) == (0.5, 0.7)
    assert [event.kind for event in recording.events] == ["Destroyed", "Timeout"]
