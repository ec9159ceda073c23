"""Keywords that name files: a recording holds their content, and a replay of anybody opens none of the user's."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reliability.forge import forge

import palaestra
import palaestra_assets
from palaestra import registry
from palaestra.cli import main
from palaestra.core.contract import factories
from palaestra.core.files import FileError, TextFile
from palaestra.replay import Recorder, ReplayError, load, record, verify

pytestmark = pytest.mark.check

BATTLE, HUNT, DRAWN = "palaestra/Skirmish-3m-v0", "palaestra/GraphPursuit-v0", "palaestra/SkirmishUnshaped-Maps-v0"
EDGES = "a b\nb c\nc d\nd a\nd e\n"
OPENS_A_PATH = "test/OpensAPath-v0"
CITY = TextFile("city", EDGES)
SECRET = "the_password_is_swordfish"


def opens_a_path(level: str = "") -> Any:
    """A factory of somebody else, which knows paths alone."""
    from games import two_team

    if level:
        with open(level, encoding="utf-8") as file:
            file.read()
    return two_team.game()


palaestra.register(OPENS_A_PATH, opens_a_path, family="test")

opened: list[str] | None = None
"""Files that were opened while a test watches."""


def note(event: str, arguments: tuple) -> None:
    if opened is not None and event == "open" and isinstance(arguments[0], str | bytes):
        opened.append(os.fsdecode(arguments[0]))


sys.addaudithook(note)


@pytest.fixture
def watched() -> Iterator[list[str]]:
    global opened
    opened = []
    yield opened
    opened = None


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A map, a ruleset and a graph of the user."""
    for name, source in (("mine.json", "skirmish/maps/3m.json"), ("rules.json", "skirmish/rulesets/smac-4.10.json")):
        (tmp_path / name).write_bytes(palaestra_assets.path(source).read_bytes())
    (tmp_path / "city.edges").write_text(EDGES, encoding="utf-8")
    return {path.name: str(path) for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("id", "keywords"),
    [
        (BATTLE, {"map": "mine.json"}),
        (BATTLE, {"map": "mine.json", "ruleset": "rules.json"}),
        (DRAWN, {"maps": ["3m", "mine.json"]}),
        (HUNT, {"graph": "city.edges", "exits": ["e"]}),
    ],
)
def test_a_replay_holds_the_files_and_plays_where_they_are_not(files, tmp_path: Path, id: str, keywords: dict, watched):
    def on_disk(value: Any) -> Any:
        return [on_disk(one) for one in value] if isinstance(value, list) else files.get(value, value)

    sim = palaestra.make_batch(id, 1, compiled=False, **{name: on_disk(value) for name, value in keywords.items()})
    with Recorder(sim) as recorder:
        sim.reset(seed=3)
    recorder.replay().save(tmp_path / "match.npz")
    for path in files.values():
        os.remove(path)
    watched.clear()
    replay = load(tmp_path / "match.npz")
    held = [value for value in replay.keywords.values() if isinstance(value, TextFile)]
    assert held or isinstance(replay.keywords["maps"][1], TextFile)
    assert verify(replay).ok
    assert not set(watched) & set(files.values())


def test_pathlib_paths_are_held_too(files: dict[str, str], tmp_path: Path):
    Path(files["city.edges"]).rename(tmp_path / "city")
    sim = palaestra.make_batch(HUNT, 1, compiled=False, graph=tmp_path / "city")
    with Recorder(sim) as recorder:
        sim.reset(seed=0)
    assert recorder.replay().keywords == {"graph": TextFile("city", EDGES)}


@pytest.mark.parametrize(
    ("id", "keywords"),
    [
        (BATTLE, {"map": "/etc/secret.json"}),
        (BATTLE, {"ruleset": "//attacker/share/x.json"}),
        (BATTLE, {"map": "..\\..\\secret.json"}),
        (HUNT, {"graph": "secret.txt"}),
        (HUNT, {"graph": ["grid:3x3", [["SECRET"]]]}),
        (DRAWN, {"maps": ["3m", "SECRET"]}),
        (OPENS_A_PATH, {"level": "SECRET"}),
        (OPENS_A_PATH, {"level": {"file": "city", "sha256": CITY.digest, "text": CITY.text}}),
        ("palaestra/SearchQA-2Hop-v1", {"world": "example", "retriever": "antigravity:fly"}),
        ("palaestra/SearchQA-2Hop-v1", {"world": "passages", "questions": ["questions"]}),
        ("palaestra/UcavDogfight-v2", {"inner_loop": "weights"}),
        ("palaestra/QuadGate2-v0", {"body": "menagerie:unitree_go2"}),
        (BATTLE, {"SECRET": 1}),
        (BATTLE, {"map": {"file": "SECRET", "sha256": "", "text": 3}}),
    ],
)
def test_a_replay_opens_no_file_of_the_user(tmp_path: Path, id: str, keywords: dict[str, Any], watched: list[str]):
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({SECRET: 1}), encoding="utf-8")
    record("palaestra/TeamPong-v0", max_cycles=1).save(tmp_path / "honest.npz")
    words = json.loads(json.dumps(keywords).replace("SECRET", str(secret)))
    forge(tmp_path / "honest.npz", tmp_path / "forged.npz", {"id": id, "keywords": words})
    factories.load(registry.row(id).factory)  # to read the file this is imported, as it declares what names files
    watched.clear()
    with pytest.raises(
        ReplayError, match=rf"forged\.npz: .*({next(iter(keywords))}|keyword).*--trust-paths"
    ) as refusal:
        load(tmp_path / "forged.npz")
    assert SECRET not in str(refusal.value)
    assert [Path(path).name for path in watched] == ["forged.npz"]


def test_paths_that_the_user_trusts_are_opened(files: dict[str, str], tmp_path: Path, capsys):
    path, level = str(tmp_path / "match.npz"), files["city.edges"]
    sim = palaestra.make_batch(OPENS_A_PATH, 1, level=level)
    with Recorder(sim) as recorder:
        sim.reset(seed=0)
    recorder.replay().save(path)
    with pytest.raises(ReplayError, match="trust_paths=True"):
        load(path)
    assert verify(load(path, trust_paths=True)).ok
    assert main(["replay", path, "--verify"]) == 1
    assert main(["replay", path, "--verify", "--trust-paths"]) == 0
    assert "city.edges" in capsys.readouterr().out


def test_a_file_that_was_changed_after_the_simulation_was_made_is_no_recording(files: dict[str, str]):
    sim = palaestra.make_batch(HUNT, 1, compiled=False, graph=files["city.edges"])
    Path(files["city.edges"]).write_text(EDGES + "e f\n", encoding="utf-8")
    with pytest.raises(ReplayError, match="has changed since"):
        Recorder(sim)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"\x1b[2J": 1, "a": 2}', "x" * 3_000_000, "a a\n", "\0", ""])
def test_content_is_read_as_a_file_would_be(tmp_path: Path, text: str):
    for id, keyword, name in ((BATTLE, "map", "evil.json"), (HUNT, "graph", "\x1b[2J.edges")):
        with pytest.raises(FileError) as refusal:
            palaestra.make_batch(id, 1, **{keyword: TextFile(name, text)})
        assert len(str(refusal.value)) < 400
        assert str(refusal.value).isprintable()
        assert "evil.json" in str(refusal.value) or "\\x1b[2J.edges" in str(refusal.value)


def test_content_without_its_digest_is_refused(files: dict[str, str], tmp_path: Path):
    record("palaestra/TeamPong-v0", max_cycles=1).save(tmp_path / "honest.npz")
    graph = {"file": "city.edges", "sha256": TextFile("city.edges", EDGES).digest, "text": EDGES + "e f\n"}
    forge(tmp_path / "honest.npz", tmp_path / "forged.npz", {"id": HUNT, "keywords": {"graph": graph}})
    with pytest.raises(ReplayError, match=r"forged\.npz is damaged: <city\.edges .*>: the content does not have"):
        load(tmp_path / "forged.npz")


def test_the_command_shows_which_file_a_replay_holds(files: dict[str, str], tmp_path: Path, capsys):
    sim = palaestra.make_batch(HUNT, 1, compiled=False, graph=files["city.edges"])
    with Recorder(sim) as recorder:
        sim.reset(seed=0)
    recorder.replay().save(tmp_path / "match.npz")
    for form in ([], ["--json"]):
        assert main(["replay", str(tmp_path / "match.npz"), *form]) == 0
        assert f"<city.edges {TextFile('city.edges', EDGES).digest[:12]}>" in capsys.readouterr().out
