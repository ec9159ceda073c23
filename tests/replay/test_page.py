"""The page of a match: what stands in the file is what was drawn and played, and nothing in it is markup."""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")

from palaestra.cli import main
from palaestra.drawing.canvas import Canvas
from palaestra.drawing.display_list import SCALE, DisplayList, varints
from palaestra.drawing.widgets import length_of
from palaestra.game import Choice, Field
from palaestra.registry import make_game
from palaestra.replay import Replay, ReplayError, agent_tables, frames, record, to_html
from palaestra.replay.headline import headline, short_names
from palaestra.replay.page import make_page, page_of

pytestmark = pytest.mark.check

NUMBERS = {
    "panel": 4,
    "layer": 0,
    "rectangle": 4,
    "rounded": 5,
    "circle": 3,
    "arc": 5,
    "dashes": 5,
    "segment": 5,
    "text": 2,
}
"""How many numbers an operation has."""
HOSTILE = "{{data}}</title></script><script>alert(1)</script>\"'\u202e"


def read(page: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and blocks of a page."""
    (data,) = re.findall(r'<script type="application/octet-stream" id="match">(.*?)</script>', page, re.DOTALL)
    content = zlib.decompress(base64.b64decode(data))
    length = int.from_bytes(content[:4], "little")
    header, start = json.loads(content[4 : 4 + length]), -(-(4 + length) // 8) * 8
    blocks = {}
    for name, block in header["blocks"].items():
        array = np.frombuffer(content, f"<{block['dtype']}", int(np.prod(block["shape"])), start + block["start"])
        blocks[name] = array.reshape(block["shape"])
    return header, blocks


def integers(stream: np.ndarray) -> Iterator[int]:
    """The numbers of a stream."""
    value = shift = 0
    for byte in stream.tolist():
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def signed(number: int) -> int:
    return number // 2 if number % 2 == 0 else -(number + 1) // 2


Operation = tuple[list[Any], list[int]]
"""Style and numbers."""


def pictures(drawn: DisplayList) -> list[list[Operation]]:
    """The operations of all pictures, behind those of the layers."""
    codes, *axes = (integers(stream) for stream in drawn.blocks().values())
    found, before = list[list[Operation]](), list[Operation]()
    for number in range(drawn.layers + drawn.pictures):
        now = list[Operation]()
        unused, expected = list(range(len(before))), 0
        for _ in range(next(codes)):
            code = next(codes)
            style = drawn.styles[code - 1] if code else before[expected][0]
            size = 2 * style[-1] if style[0] in ("line", "polygon") else NUMBERS[style[0]]
            numbers = [signed(next(axes[k % 2])) for k in range(size)]
            place = next((place for place in unused if before[place][0] == style), None)
            if place is not None:
                unused.remove(place)
                expected = place + 1
                numbers = [a + b for a, b in zip(numbers, before[place][1], strict=True)]
            now.append((style, numbers))
        found.append(now)
        before = now if number >= drawn.layers else []
    assert [list(rest) for rest in (codes, *axes)] == [[], [], []]
    return found[drawn.layers :]


@pytest.fixture(scope="module")
def replay() -> Replay:
    return record("palaestra/TeamTag-v0", {"red": "default", "blue": "random"}, seed=5)


@pytest.fixture(scope="module")
def shown(replay: Replay) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    return read(make_page(replay))


# -- pictures ----------------------------------------------------------------------------------------------------------


def test_numbers_of_all_lengths_are_written():
    numbers = [0, 1, 127, 128, 16383, 16384, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**31]
    stream = varints(numbers)
    assert stream.dtype == np.uint8
    assert list(integers(stream)) == numbers


def test_a_picture_is_written_as_what_differs_from_the_last_one():
    drawn = DisplayList()
    for x in (10.0, 12.0, 12.0):
        canvas = Canvas(100, 50, (1, 2, 3))
        canvas.circle((x, 20), 5, (255, 0, 0), None, 1.0)
        canvas.line([(0, 0), (x, -7.5), (3, 4)], (0, 255, 0, 128), 2.0)
        canvas.rectangle(1, 2, 3, 4, (0, 0, 255), 1.0)
        canvas.text((50, 30), "w", (255, 255, 255), 12, "ls")
        drawn.add(canvas)
    blocks = drawn.blocks()
    found = pictures(drawn)
    for x, operations in zip((10, 12, 12), found, strict=True):
        whole = [[n * SCALE for n in numbers] for numbers in ([0, 0, 100, 50], [x, 20, 5], [0, 0, x, -7.5, 3, 4])]
        whole += [[n * SCALE for n in numbers] for numbers in ([1, 2, 3, 4, 1], [50, 30])]
        np.testing.assert_allclose([n for _, ns in operations for n in ns], [n for ns in whole for n in ns], atol=0.5)
        kinds = [style[0] for style, _ in operations]
        assert kinds == ["panel", "circle", "line", "rounded", "text"]
    assert len(drawn.styles) == 5
    assert list(integers(blocks["op_styles"]))[6:] == 2 * [5, 0, 0, 0, 0, 0]
    assert [n for n in list(integers(blocks["op_xs"]))[-11:] if n] == []


def test_shapes_that_come_and_go_leave_the_others_differences():
    """Each picture has one shape more at its beginning, or one less; the others move."""
    drawn = DisplayList()
    for number, news in enumerate((0, 1, 2, 1, 0)):
        canvas = Canvas(100, 50)
        for k in range(news):
            canvas.rectangle(k, k, 9, 9, (0, 0, 255))
        for k in range(3):
            canvas.circle((20 * k + number, 10), 5, (k, 0, 0))
        canvas.dashes((number, 0), (50, 40), (0, 255, 0))
        drawn.add(canvas)
    for number, operations in enumerate(pictures(drawn)):
        centers = [ns[0] / SCALE for (kind, *_), ns in operations if kind == "circle"]
        assert centers == [number, 20 + number, 40 + number]
        assert operations[-1][1][-1] / SCALE == 7  # dashes
    codes = list(integers(drawn.blocks()["op_styles"]))
    rectangle, circle = 6, 2
    assert codes[6:] == [
        *(6, 0, rectangle, 0, 0, 0, 0),
        *(7, 0, 0, rectangle, 0, 0, 0, 0),
        *(6, 0, 0, circle, 0, 0, 0),
        *(5, 0, circle, 0, 0, 0),
    ]


def test_long_rows_of_numbers_are_rounded_and_bounded_as_short_ones():
    numbers = [x / 6 for x in range(-7, 9)] + [1e12, -1e12]
    found = []
    for count in (1, 20):
        drawn, canvas = DisplayList(), Canvas(100, 50)
        canvas.line(count * list(zip(numbers[::2], numbers[1::2], strict=True)), (0, 255, 0), 2.0)
        drawn.add(canvas)
        found.append(pictures(drawn)[0][1][1])
    short, long = found
    assert long == 20 * short


def test_what_never_changes_is_written_once():
    ground, drawn = Canvas(100, 50), DisplayList()
    for k in range(40):
        ground.line([(k, 0), (k, 50)], (9, 9, 9))
    ground.text((5, 5), "ground", (9, 9, 9))
    for k in range(3):
        picture = ground.copy()
        picture.circle((k, k), 3, (255, 0, 0))
        whole = Canvas(120, 60)
        whole.put(picture, (10, 5))
        drawn.add(whole)
    assert drawn.layers == 2
    assert next(integers(drawn.blocks()["op_styles"])) == 40
    kinds = [[style[0] for style, _ in operations] for operations in pictures(drawn)]
    assert kinds == 3 * [["panel", "panel", "layer", "circle", "layer"]]


def test_words_stand_where_pillow_puts_them():
    drawn, canvas = DisplayList(), Canvas(100, 100)
    for anchor in ("ls", "ms", "rs", "mm", "la"):
        canvas.text((50, 50), "width", (255, 255, 255), 16, anchor)
    drawn.add(canvas)
    ((_, *texts),) = pictures(drawn)
    places = [(x / SCALE, y / SCALE) for _, (x, y) in texts]
    assert places[0] == (50, 50)
    assert places[1][0] == pytest.approx(50 - (50 - places[2][0]) / 2, abs=1.0)
    assert places[2][0] < 20
    assert places[3][1] == pytest.approx(56, abs=2)
    assert places[4][1] == pytest.approx(64, abs=3)


def test_letters_have_the_widths_that_pillow_gives_them():
    drawn, canvas, words = DisplayList(), Canvas(100, 100), "Rijam <AV> 12"
    canvas.text((0, 20), words, size=13)
    canvas.text((0, 40), "\u0639\u0631\u0628", size=13)
    drawn.add(canvas)
    assert sum(drawn.letters[13][letter] for letter in words) == length_of(words, 13)
    assert drawn.letters[13].keys() == set(words)


@pytest.mark.check
def test_pictures_of_engines_are_files_and_equal_ones_are_stored_once():
    pytest.importorskip("mujoco", reason="needs the extra palaestra[robots]")
    header, blocks = read(make_page(record("palaestra/QuadGate2-v0", seed=1, horizon=2)))
    starts = blocks["image_starts"].tolist()
    assert len(starts) == header["frames"] + 1
    assert blocks["images"][: starts[1]].tobytes()[8:12] == b"WEBP"
    assert "op_styles" not in blocks
    assert (header["width"], header["height"]) > (100, 100)


# -- what was played ---------------------------------------------------------------------------------------------------


def test_rewards_actions_and_observations_are_those_of_the_match(replay: Replay, shown: Any):
    header, blocks = shown
    actions, observations = (unpacked(header, blocks, name) for name in ("actions", "observations"))
    game, count = make_game(replay.id)[0], 0
    for k, sim in enumerate(frames(replay)):
        np.testing.assert_array_equal(blocks["rewards"][k], sim.rewards[0])
        np.testing.assert_array_equal(blocks["alive"][k], sim.alive[0])
        np.testing.assert_allclose(observations[k], sim.observations[0].ravel(), rtol=2e-3)
        if k:
            np.testing.assert_array_equal(actions[k], sim.actions[0])
        count += 1
    assert np.isnan(actions[0]).all()
    assert header["frames"] == count == replay.steps + 1
    assert header["steps"] == list(range(count))
    assert header["agents"] == list(game.agents)
    assert [team["name"] for team in header["teams"]] == ["red", "blue"]
    assert [len(fields) for fields in header["fields"]] == [len(game.roles[0].observation)] * 4
    (move,) = game.roles[0].action
    assert isinstance(move, Choice)
    assert header["actions"][0][0]["options"][1] == move.meanings[1]


def unpacked(header: dict[str, Any], blocks: dict[str, np.ndarray], name: str) -> np.ndarray:
    numbers = np.array([signed(n) for n in integers(blocks[name])], np.int64).reshape(-1, header["frames"])
    return (numbers.cumsum(axis=1) << header["dropped_bits"][name]).astype(np.int32).view(np.float32).T


def test_a_table_that_is_too_large_is_left_out_and_not_kept(replay: Replay, shown: Any, monkeypatch: Any):
    whole, tables = shown
    width = sum(field["size"] for fields in whole["fields"] for field in fields)
    monkeypatch.setattr(agent_tables, "MOST_NUMBERS", 3 * width)
    read_tables: Any = None
    for number, sim in enumerate(frames(replay)):
        read_tables = read_tables or agent_tables.AgentTables(sim, 0, replay)
        assert ("observations" in read_tables.rows(None)) == (number < 3)
    header, blocks = read(make_page(replay))
    assert header["notes"] == [f"observations are left out: {whole['frames'] * width:,} numbers"]
    assert whole["notes"] == []
    assert set(tables) - set(blocks) == {"observations"}
    np.testing.assert_array_equal(blocks["actions"], tables["actions"])


def test_the_end_is_marked_and_the_match_described(replay: Replay, shown: Any):
    header, _ = shown
    (end,) = header["marks"]
    assert (end["frame"], end["kind"]) == (replay.steps, "end")
    assert end["text"].endswith(replay.matches[0]["end_reason"])
    about = dict(header["about"])
    assert (about["id"], about["seed"], about["digest"]) == (replay.id, "5", replay.digest)
    assert (about["red"], about["blue"]) == ("default", "random")


def test_deaths_and_forbidden_options_are_told():
    made = record("palaestra/Skirmish-3m-v0", {"red": "random", "blue": "builtin"}, seed=2)
    header, blocks = read(make_page(made))
    deaths = [mark for mark in header["marks"] if mark["kind"] == "death"]
    assert deaths
    for mark in deaths:
        slot = header["agents"].index(mark["text"])
        assert blocks["alive"][mark["frame"] - 1 : mark["frame"] + 1, slot].tolist() == [1, 0]
    options = sum(len(field["options"] or ()) for fields in header["actions"] for field in fields)
    assert blocks["legal"].shape == (header["frames"], options)
    assert 0 < blocks["legal"].mean() < 1
    for row, sim in zip(blocks["legal"], frames(made), strict=True):
        assert sim.legal is not None
        np.testing.assert_array_equal(row, np.concatenate([masks[0].ravel() for masks in sim.legal.values()]))


@pytest.mark.parametrize(
    ("winner", "reason", "words"),
    [
        ("red", "point", "tracker (red) beat chaser (blue) by point, 101 decisions"),
        ("blue", "point", "chaser (blue) beat tracker (red) by point, 101 decisions"),
        (None, "horizon", "tracker (red) and chaser (blue) drew by horizon, 101 decisions"),
        (None, "", "tracker (red) and chaser (blue), unfinished, 101 decisions"),
    ],
)
def test_one_line_says_who_played_and_who_won(winner: str | None, reason: str, words: str):
    players = {"red": "tracker", "blue": "chaser"}
    assert headline("palaestra/TeamPong-v0", players, winner, reason, 101) == f"TeamPong: {words}"


def test_one_line_of_a_match_of_one_team_names_its_player():
    words = "SearchQA-2Hop: oracle, answered, 1 decision"
    assert headline("palaestra/SearchQA-2Hop-v1", {"agent": "oracle"}, "agent", "answered", 1) == words


def test_files_are_named_by_as_much_as_tells_them_apart():
    assert short_names(["runs/mappo/last.safetensors", "builtin"]) == ["last", "builtin"]
    assert short_names(["a/mappo/last.onnx", "b/iql/last.onnx"]) == ["mappo/last", "iql/last"]
    assert short_names(["expert:0.5", "a/b.zip"]) == ["expert:0.5", "b"]


def test_the_score_of_a_team_counts_a_shared_reward_once(shown: Any):
    header, blocks = shown
    for team, paid in zip(header["teams"], blocks["team_rewards"].T, strict=True):
        np.testing.assert_array_equal(paid, blocks["rewards"][:, team["agents"][0]])


def test_units_are_multiplied_out():
    made = agent_tables.shown_field(Field("altitude", (), 0.0, 6.0, "5 km"))
    assert (made["factor"], made["unit"]) == (5.0, "km")
    rates = {unit: agent_tables.scaled_unit(unit) for unit in ("1", "1/s", "rad/s", "0.5 s", "10 units in a substep")}
    assert {unit: (made["factor"], made["unit"]) for unit, made in rates.items()} == {
        "1": (1.0, ""),
        "1/s": (1.0, "1/s"),
        "rad/s": (1.0, "rad/s"),
        "0.5 s": (0.5, "s"),
        "10 units in a substep": (10.0, "units in a substep"),
    }


def test_decisions_in_which_a_critic_s_value_falls_most_are_events(replay: Replay):
    values = np.ones((replay.steps, 1, 3), np.float32)
    values[5:], values[9:] = 0.5, 0.49  # the second fall is small
    made = replace(replay, output_columns={"red": {"value": 1}}, outputs=values)
    header, _ = read(make_page(made))
    (fall,) = [mark for mark in header["marks"] if mark["kind"] == "fall"]
    assert (fall["frame"], fall["text"]) == (5, "red's value falls from 1 to 0.5")


def test_orders_are_named_by_whom_they_concern():
    header, blocks = read(make_page(record("palaestra/Skirmish-3m-v0", {"red": "builtin", "blue": "builtin"}, seed=2)))
    names = [["", *header["strings"]][number] for number in blocks["option_names"][0]]
    assert names[6:9] == ["attack blue_0", "attack blue_1", "attack blue_2"]
    header, blocks = read(make_page(record("palaestra/GraphPursuit-Petersen-v0", seed=2)))
    names = [["", *header["strings"]][number] for number in blocks["option_names"][0]]
    assert names[0] == "stay"
    assert re.fullmatch(r"to node \d", names[1])


def test_a_game_of_texts_shows_what_agents_read():
    header, blocks = read(make_page(record("palaestra/SearchQA-2Hop-v1", {"agent": "oracle"}, seed=1, form="text")))
    texts = [header["strings"][number - 1] for number in blocks["texts"][:, 0].tolist() if number]
    assert "Question:" in texts[0]
    assert "<information>" in texts[1]


def test_several_matches_of_a_lane_follow_each_other(tmp_path: Path):
    from palaestra import make_batch
    from palaestra.replay import Recorder

    sim = make_batch("palaestra/TeamPong-v0", 2, opponents=dict.fromkeys(("red", "blue"), "random"))
    with Recorder(sim) as recorder:
        sim.reset(seed=0)
        for _ in range(300):
            sim.step()
        made = recorder.replay()
    header, _ = read(make_page(made, lane=1))
    ends = [mark["frame"] for mark in header["marks"] if mark["kind"] == "end"]
    assert ends == [match["step"] for match in made.matches if match["lane"] == 1]
    assert len(ends) > 2
    assert all(header["steps"][end + 1] == 0 for end in ends if end + 1 < header["frames"])
    with pytest.raises(ReplayError, match="lanes 0 to 1"):
        to_html(made, tmp_path / "a.html", lane=2)


# -- the file ----------------------------------------------------------------------------------------------------------


def test_the_policy_lets_the_page_s_own_program_run_alone():
    page = page_of("a match", b"")
    (policy,) = re.findall(r'Content-Security-Policy" content="(.*?)"', page)
    assert policy.startswith("default-src 'none'; ")
    program = page.rpartition("<script>")[2].rpartition("</script>")[0]
    for text, name in ((program, "script-src"), (re.findall(r"<style>(.*?)</style>", page, re.DOTALL)[0], "style-src")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}';" in policy
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:|//)""", page)
    assert not re.search(r"\bon\w+\s*=\s*[\"']", page.partition("<script>")[0])
    assert "</script" not in program


def test_what_strangers_name_is_no_markup():
    page = page_of(HOSTILE, b"data")
    assert page.count("<script") == 2
    assert page.count("</title>") == 1
    assert "&lt;script&gt;alert(1)" in page
    assert base64.b64encode(b"data").decode() in page.partition("<body")[2]


def test_the_command_writes_a_page(replay: Replay, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    replay.save(tmp_path / "match.npz")
    assert main(["replay", str(tmp_path / "match.npz"), "--html", str(tmp_path / "match.html")]) == 0
    assert "open it in a browser" in capsys.readouterr().out
    header, _ = read((tmp_path / "match.html").read_text(encoding="utf-8"))
    assert dict(header["about"])["command"] == "palaestra replay match.npz --verify"
    with pytest.raises(ValueError, match=re.escape("name it *.html")):
        to_html(replay, tmp_path / "match.gif")
