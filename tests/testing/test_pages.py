"""Pages and `palaestra info` on sizes, tables, lists, representations, own rewards and codecs."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from games import body_game, depot, size_game  # noqa: F401 (they register their ids)
from gymnasium.spaces import Text

from palaestra import pages, registry
from palaestra.cli import main
from palaestra.core.faces.screen import render_modes
from palaestra.game import Field, Game, Row
from palaestra.testing import Subject

COURIERS, LARGE = "tests/Couriers-v0", "tests/CouriersLarge-v0"
BODY, BODY_COMPILED = "tests/Body-v0", "tests/BodyCompiled-v0"
DEPOT = "tests/Depot-v0"
SILENT: Any = SimpleNamespace(observation_space=lambda role: Text(8), action_space=lambda role: Text(4))
DEPOT_DOCSTRING = "\n\n".join(f"<!-- table: {name} -->" for name in ("action", "observation", "parameters"))


def depot_game(**changes: Any) -> Game:
    return depot.game("mixed", codecs={"words": SILENT, "graph": SILENT}, default_codec="words", **changes)


depot_game.__doc__ = f"Drivers.\n\n## Description\n\n{DEPOT_DOCSTRING}"


@pytest.fixture(autouse=True)
def depot_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.ROWS, DEPOT, Row(DEPOT, depot_game, "test", "drivers"))


def facts(id: str, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    assert main(["info", id, "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def with_default(word: str) -> Game:
    return dataclasses.replace(size_game.game(), default_observation=word)


def test_a_factory_takes_the_sections_that_it_lacks_from_its_module(monkeypatch: pytest.MonkeyPatch):
    def factory() -> Game:
        """Own headline.

        Args:
            map: For the reference.

        ## Description

        Own words.

        ## Rewards

        Own pay.
        """
        return size_game.game()

    shared = "Headline.\n\n## Action Space\n\nShared orders.\n\n## Rewards\n\nShared pay."
    monkeypatch.setattr(sys.modules[__name__], "__doc__", shared)
    monkeypatch.setitem(registry.ROWS, DEPOT, Row(DEPOT, factory, "test", "parts"))
    assert pages.docstring(DEPOT) == (
        "Own headline.\n\n## Description\n\nOwn words.\n\n## Action Space\n\nShared orders.\n\n## Rewards\n\nOwn pay."
    )


# -- observations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [COURIERS, BODY, BODY_COMPILED, DEPOT])
def test_a_page_mentions_every_name(id: str):
    page = pages.page(id)
    for name in pages.names(registry.make_game(id)[0]):
        assert f"`{name}`" in page


def test_names_are_those_of_columns_representations_and_ends_too():
    names = pages.names(registry.make_game(COURIERS)[0])
    assert {"parcels", "parcels.left", "nearest_m", "worth", "pace", "lead", "all_taken", "stalled"} <= set(names)


def test_a_table_has_its_rows_and_columns_in_the_sizes_that_users_see():
    page = pages.page(COURIERS, parcels=5)
    assert "| `parcels` | [27:42] | 5x3 |  |  |  | all parcels in their order |" in page
    assert "| `parcels.offset_m` |  | 2 | -2 | 2 | m | from me |" in page
    assert "| `parcel` | 0 | 5 |" in page
    assert "| `odds` | [7:9] | 2 | 0 | 1 |" in pages.page(DEPOT)


def test_fixed_and_world_fields_say_so():
    page = pages.page(COURIERS)
    assert "my way in one decision (fixed during a match)" in page
    assert "of each parcel (the same for all matches)" in page


def test_every_representation_has_its_own_tables_under_its_word():
    page = pages.page(COURIERS)
    own, _, nearest = page.partition('`observation="nearest"`, the nearest parcel alone:')
    assert own.index('`observation="flat"` or `"dict"`:') < own.index("| `position_m` |")
    assert "| `nearest_m` |" not in own
    table = nearest.partition("## ")[0]
    assert "| `nearest_m` | [0:2] | 2 | -2 | 2 | m |" in table
    assert "| `position_m` |" not in table


def test_the_facts_name_the_representations_and_the_default():
    printed = '`observation="flat"`, `"dict"`, `"nearest"`; the default is `"dict"`; `"nearest:dict"` by name'
    assert f"| observation | {printed} |" in pages.page(COURIERS)
    assert "the default is" not in pages.page("palaestra/CartPole-v0").partition("## ")[0]


def test_a_page_is_the_same_whatever_representation_is_asked_for():
    assert pages.page(COURIERS, observation="nearest") == pages.page(COURIERS)
    with pytest.raises(ValueError, match="no observation 'nearst': choose from 'flat', 'dict', 'nearest'"):
        pages.page(COURIERS, observation="nearst")


def test_a_game_that_shows_a_representation_by_default_has_the_same_tables(monkeypatch):
    row = Row(COURIERS, lambda: with_default("nearest"), "test", "couriers")
    row.factory.__module__ = size_game.__name__
    before = pages.page(COURIERS)
    monkeypatch.setitem(registry.ROWS, COURIERS, row)
    begin, end = "## Spaces", "## Description"
    after, wanted = pages.page(COURIERS), before.replace('the default is `"dict"`', 'the default is `"nearest"`')
    for part in (0, 2):
        assert after.partition((begin, end)[part // 2])[part] == wanted.partition((begin, end)[part // 2])[part]
    assert "`Box(-2.0, 2.0, (2,), float32)`" in after.partition(begin)[2].partition(end)[0]
    assert pages.preset_table([pages.Preset(row, with_default("nearest"), {})]).splitlines()[2].split(" | ")[-2] == "2"


def test_a_representation_that_some_presets_lack_is_marked():
    whole = size_game.game()
    plain = dataclasses.replace(whole, representations={})
    assert "the nearest parcel alone (in 1 of 2 presets):" in pages.observation_tables(whole, plain)
    assert "the nearest parcel alone:" in pages.observation_tables(whole, whole)


def test_a_game_of_several_dtypes_is_not_described_as_flat():
    assert pages.forms_of(registry.make_game(COURIERS)[0]) == ["flat", "dict"]
    time = Field("time", (), 0, 200, dtype="f8")
    assert pages.forms_of(dataclasses.replace(size_game.game(), lane_observation=(time,))) == ["dict"]


def test_the_page_of_a_factory_has_all_its_sizes():
    page = pages.shared_page(*registry.page_of(LARGE))
    assert "| `parcels` | by preset | by preset |  |  |  | all parcels in their order |" in page
    assert f"| `{LARGE}` | `agents=9, parcels=20, paces=3` | 5 red against 4 blue | `MultiDiscrete([21, 3])` |" in page


# -- actions, rewards, ends --------------------------------------------------------------------------------------------


def test_lists_of_candidates_are_documented_with_their_size_and_place():
    assert '| masks | yes; for `parcel` a list of at most 8 ids in `info["candidates"]` |' in pages.page(COURIERS)
    assert "(legal ones as a list of at most 8)" in pages.page(COURIERS)


def test_rewards_say_whose_they_are_and_how_exact():
    assert "| rewards | one per agent; Gymnasium gives the sum; float64 |" in pages.page(BODY)
    assert "| rewards | zero-sum |" in pages.page(COURIERS)
    assert "| rewards | one shared reward per team |" in pages.page("palaestra/CartPole-v0")


def test_end_reasons_say_which_truncate():
    assert "End reasons: 1 `horizon` (truncates), 2 `all_taken`, 3 `stalled` (truncates)." in pages.page(COURIERS)


def test_parameters_list_their_defaults_and_when_they_change():
    page = pages.page(BODY)
    assert "1 pays on the way too, 0 at the end alone (default 1)" in page
    assert "of the masses (default 0.4) (a change takes effect at the next match)" in page


def test_codecs_and_ways_to_be_drawn_are_in_the_facts():
    page = pages.page(DEPOT)
    assert '| codecs | `codec="words"` (default), `codec="graph"`, `codec="none"` (arrays) |' in page
    assert '| render | `"rgb_array"`, `"human"`, `"ansi"` |' in page


def test_every_page_names_the_render_modes_of_its_environments():
    written = sorted((Path(__file__).parents[2] / "docs" / "environments").glob("*.md"))
    assert written
    for path in written:
        text = path.read_text(encoding="utf-8")
        game, _ = registry.make_game(re.findall(r'gymnasium\.make\("([^"]+)"', text)[0])
        (row,) = re.findall(r"^\| render \| (.*) \|$", text, re.MULTILINE)
        assert re.findall(r'"(\w+)"', row) == render_modes(game), path.name


# -- palaestra info ----------------------------------------------------------------------------------------------------


def test_info_prints_the_page(capsys: pytest.CaptureFixture[str]):
    assert main(["info", LARGE, "--set", "observation=nearest"]) == 0
    assert capsys.readouterr().out.strip() == pages.page(LARGE).strip()


def test_info_as_json_holds_the_same(capsys: pytest.CaptureFixture[str]):
    printed = facts(COURIERS, capsys)
    assert printed["end_reasons"] == ["horizon", "all_taken", "stalled"]
    assert printed["truncation_reasons"] == ["horizon", "stalled"]
    assert printed["candidates"] == {"parcel": 8}
    assert printed["default_observation"] == "dict"
    assert printed["representations"]["nearest"]["about"] == "the nearest parcel alone"
    assert [row["name"] for row in printed["representations"]["nearest"]["roles"]["courier"]] == ["nearest_m"]
    assert "parcels.left" in [row["name"] for row in printed["roles"][0]["observation"]]
    assert printed["reward"] == "team"


def test_info_as_json_shows_the_representation_that_is_asked_for(capsys: pytest.CaptureFixture[str]):
    printed = facts(COURIERS, capsys, "--set", "observation=nearest")
    assert [row["name"] for row in printed["roles"][0]["observation"]] == ["nearest_m"]
    assert list(printed["representations"]) == ["nearest"]


def test_info_as_json_holds_rewards_parameters_and_render_modes(capsys: pytest.CaptureFixture[str]):
    body, printed = facts(BODY, capsys), facts(DEPOT, capsys)
    assert (body["reward"], body["reward_dtype"], body["periods"]) == ("agent", "f8", 5)
    parameters = {p["name"]: p for p in body["parameters"]}
    assert (parameters["dense"]["low"], parameters["dense"]["default"]) == (0, 1)
    assert (parameters["mass_spread_kg"]["at_start"], parameters["dense"]["at_start"]) == (True, False)
    assert (printed["codecs"], printed["default_codec"]) == (["words", "graph"], "words")
    assert printed["render_modes"] == ["rgb_array", "human", "ansi"]


# -- the conformance kit -----------------------------------------------------------------------------------------------


@pytest.mark.check
def test_a_subject_hands_each_face_the_keywords_that_it_takes():
    subject = Subject(COURIERS, observation="nearest", fixed_agents=True, control="blue", mask=None)
    assert [f.name for f in subject.game.roles[0].observation] == ["nearest_m"]
    assert subject.batch(2).game is subject.game
    assert subject.env().control == "blue"
    assert "action_mask" not in subject.vec(2).reset(seed=0)[1]
    assert set(subject.parallel().reset(seed=0)[0]) == set(subject.game.agents)
    assert subject.shown("dict") == "nearest:dict"
    assert Subject(COURIERS).shown("flat") == "flat"
    subject.close()
