"""Ids are registered once in each library, compiled games kept apart by the module they come from."""

import importlib.util
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pettingzoo
import pytest
from games import two_team
from games.play import simulation

from palaestra import registry, zoo
from palaestra.core.compile.batch_loop import CALLER
from palaestra.core.compile.linker import link
from palaestra.core.faces.gym_env import GameEnv
from palaestra.game import Page, Preset, presets


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[str, registry.Row]:
    """The registry's table for this test alone."""
    rows: dict[str, registry.Row] = {}
    monkeypatch.setattr(registry, "ROWS", rows)
    return rows


def test_registering_again_changes_nothing_and_says_nothing():
    before = gymnasium.registry["palaestra/CartPole-v0"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        registry.register_all()
    assert gymnasium.registry["palaestra/CartPole-v0"] is before
    if hasattr(pettingzoo, "spec"):
        assert pettingzoo.spec("parallel", "palaestra/CartPole-v0").id == "palaestra/CartPole-v0"


def test_the_id_of_another_version_is_refused_with_the_name_of_the_one_that_is_here():
    for make in (registry.row, registry.make_batch, gymnasium.make):
        with pytest.raises((KeyError, gymnasium.error.DeprecatedEnv), match="palaestra/UcavPursuit-v2"):
            make("palaestra/UcavPursuit-v1")
    with pytest.raises(AttributeError, match="did you mean 'ucav_pursuit_v2'"):
        _ = zoo.ucav_pursuit_v1


@pytest.mark.parametrize("mode", ["sync", "async", "vector_entry_point"])
@pytest.mark.parametrize("id", ["palaestra/CartPole-v0", "palaestra/TeamMatrix-v0"])
def test_gymnasium_makes_vectors_of_an_id_in_all_its_modes(id: str, mode: str):
    envs = gymnasium.make_vec(id, num_envs=2, vectorization_mode=mode, horizon=3)
    observations, _ = envs.reset(seed=1)
    assert len(observations) == 2
    truncated = [envs.step(envs.action_space.sample())[3].all() for _ in range(3)]
    assert truncated == [False, False, True]
    envs.close()


def test_the_spec_tells_the_horizon_of_the_rules():
    env = gymnasium.make("palaestra/CartPole-v0", max_cycles=7)
    assert env.spec is not None
    assert env.spec.max_episode_steps == 7
    assert "TimeLimit" not in str(env)  # the rules truncate
    gymnasium.wrappers.TimeAwareObservation(env).reset(seed=1)
    again: Any = gymnasium.make(env.spec)
    assert again.spec.max_episode_steps == again.unwrapped.sim.parameters["horizon"].item() == 7
    assert GameEnv(simulation(two_team.game(), 1, compiled=False), observation="dict").spec is None


def test_a_native_vector_says_that_max_episode_steps_is_the_horizon():
    with pytest.warns(UserWarning, match="max_episode_steps=3 sets the horizon of the rules here"):
        envs = gymnasium.make_vec("palaestra/CartPole-v0", num_envs=2, max_episode_steps=3)
    envs.reset(seed=1)
    assert [bool(envs.step(envs.action_space.sample())[3].all()) for _ in range(3)] == [False, False, True]


def test_an_unknown_keyword_is_refused_in_the_words_of_python():
    """Libraries recognise an environment that does not take their keyword by these words."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'frameskip'"):
        gymnasium.make("palaestra/CartPole-v0", frameskip=1)


def test_a_file_imported_under_another_name_has_compiled_code_of_its_own(monkeypatch: pytest.MonkeyPatch):
    # The cache on disk names the module of a world: under another name it could not be read.
    spec = importlib.util.spec_from_file_location("raid_by_another_name", two_team.__file__)
    assert spec is not None
    assert spec.loader is not None
    again = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "raid_by_another_name", again)
    spec.loader.exec_module(again)
    names = {link(module.game()).drivers["step_lanes"].__qualname__ for module in (again, two_team)}
    assert len(names) == 2


def test_a_row_says_how_its_faces_show_a_match(table: dict[str, registry.Row]):
    keywords = {"observation": "dict"}
    table["mine/Melee-v0"] = registry.Row("mine/Melee-v0", "games.two_team_homogeneous:game", kwargs=keywords)
    for make in (registry.make_env, registry.make_vec, registry.make_parallel):
        faces = make("mine/Melee-v0"), make("mine/Melee-v0", observation="flat")
        kinds = []
        for face in faces:
            space = face.observation_space
            space = space(face.possible_agents[0]) if callable(space) else space
            kinds.append(type(space).__name__)
            face.close()
        assert kinds == ["Dict", "Box"], make


def test_a_row_chooses_the_codec_and_masks_of_its_faces_and_a_batch_leaves_them_out(table: dict[str, registry.Row]):
    keywords = {"codec": "text", "mask": "obs", "fixed_agents": True, "control": "blue"}
    table["mine/Said-v0"] = registry.Row("mine/Said-v0", "games.two_team:game", kwargs=keywords)
    assert registry.make_batch("mine/Said-v0", 3).num_envs == 3
    assert registry.make_game("mine/Said-v0")[1] == {}
    said = registry.make_parallel("mine/Said-v0")
    assert said.reset(seed=1)[0]["red_0"]["observation"].startswith("node ")
    assert said.possible_agents == said.agents
    plain = registry.make_parallel("mine/Said-v0", codec="none", mask="info", observation="dict")
    assert "node" in plain.reset(seed=1)[0]["red_0"]
    env = registry.make_env("mine/Said-v0", codec="none", observation="dict")
    assert env.control == "blue"
    assert "action_mask" in env.reset(seed=1)[0]
    assert registry.make_env("mine/Said-v0", codec="none", observation="dict", control="red").control == "red"
    with pytest.raises(TypeError, match="'codec': it is for Gymnasium and PettingZoo"):
        registry.make_batch("mine/Said-v0", codec="text")


def test_entry_points_hand_the_opponent_on(table: dict[str, registry.Row]):
    table["mine/Raid-v0"] = registry.Row("mine/Raid-v0", "games.two_team:game")
    cases: list[tuple[Any, str]] = [({}, "runner"), ({"opponent": "fighter"}, "fighter")]
    for make in (registry.make_env, registry.make_vec):
        for keywords, script in cases:
            face = make("mine/Raid-v0", observation="dict", **keywords)
            game, assigned = face.sim.game, face.sim.states["assigned_player"][0]
            assert {assigned[slot] for slot in game.teams["blue"]} == {game.scripts.index(script)}
            assert {assigned[slot] for slot in game.teams["red"]} == {CALLER}


def test_a_single_match_waits_when_it_is_over(table: dict[str, registry.Row]):
    table["mine/Raid-v0"] = registry.Row("mine/Raid-v0", "games.two_team:game")
    for make in (registry.make_env, registry.make_parallel):
        assert make("mine/Raid-v0", observation="dict").sim.autoreset_mode == "off"


# -- presets -----------------------------------------------------------------------------------------------------------

RINGS = presets(
    "games.two_team:game",
    *(Preset(f"test/Ring-{n}-v0", f"a ring of {n}", nodes=n) for n in range(3, 26)),
    page=Page("Ring", "rings of all sizes"),
)


def test_presets_are_rows_with_keywords_that_share_a_page(table: dict[str, registry.Row]):
    for row in RINGS:
        table[row.id] = row
    assert list(table) == [f"test/Ring-{n}-v0" for n in range(3, 26)]
    assert table["test/Ring-9-v0"].about == "a ring of 9"
    assert [(page.name, page.about, len(rows)) for page, rows in registry.pages()] == [
        ("Ring", "rings of all sizes", 23)
    ]
    assert len(registry.make_game("test/Ring-9-v0")[0].world.adjacency) == 9
    assert len(registry.make_game("test/Ring-9-v0", nodes=4)[0].world.adjacency) == 4


def test_a_page_without_a_line_has_that_of_its_first_preset(table: dict[str, registry.Row]):
    (table["test/Ring-v0"],) = presets("games.two_team:game", Preset("test/Ring-v0", "a ring"), page=Page("R"))
    assert registry.pages() == [(Page("R", "a ring"), [table["test/Ring-v0"]])]


def test_a_preset_takes_keywords_of_any_name():
    assert Preset("test/A-v0", "a", id=1, about="b", name="c").keywords == {"id": 1, "about": "b", "name": "c"}


def test_ids_registered_for_one_factory_share_a_page(table: dict[str, registry.Row]):
    for id, factory, nodes in (
        ("mine/Ring-small-v0", "games.two_team:game", 3),
        ("mine/Melee-v0", "games.two_team_homogeneous:game", None),
        ("mine/Ring-large-v0", "games.two_team:game", 9),
    ):
        table[id] = registry.Row(id, factory, about=id, kwargs={} if nodes is None else {"nodes": nodes})
    assert [(page.name, page.about, [row.id for row in rows]) for page, rows in registry.pages()] == [
        ("Ring", "mine/Ring-small-v0", ["mine/Ring-small-v0", "mine/Ring-large-v0"]),
        ("Melee", "mine/Melee-v0", ["mine/Melee-v0"]),
    ]
    page, rows = registry.page_of("mine/Ring-large-v0")
    assert (page.name, len(rows)) == ("Ring", 2)


def test_a_foreign_preset_of_our_factory_does_not_enter_our_page(table: dict[str, registry.Row]):
    for row in RINGS:
        table[row.id] = row
    table["mine/Small-v0"] = registry.Row("mine/Small-v0", "games.two_team:game", kwargs={"nodes": 3})
    assert [(page.name, len(rows)) for page, rows in registry.pages()] == [("Ring", 23), ("Small", 1)]


def test_no_two_pages_of_ours_have_one_name():
    names = [page.name for page, rows in registry.pages() if rows[0].id.startswith("palaestra/")]
    assert len(set(names)) == len(names)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Installs a package whose module `a_family` has the given source, with an entry point that names its FAMILY."""

    def install(source: str) -> None:
        (tmp_path / "a_family.py").write_text(source)
        about = tmp_path / "a_family-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: a-family\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[palaestra.families]\nboats = a_family:FAMILY\n")

    known = dict(gymnasium.registry)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "ROWS", dict(registry.ROWS))
    monkeypatch.setattr(registry, "FAMILIES", dict(registry.FAMILIES))
    yield install
    sys.modules.pop("a_family", None)
    for id in set(gymnasium.registry) - set(known):
        del gymnasium.registry[id]


FAMILY = """
from palaestra.game import Family, Page, Preset, presets

FAMILY = Family({name!r}, presets("games.two_team:game", Preset({id!r}, "two boats"), page=Page("Boats")))
"""


def test_an_installed_package_adds_a_family(package: Callable[[str], None]):
    package(FAMILY.format(name="boats", id="lake/Boats-v0"))
    for _ in range(2):  # a second call finds the same rows and says nothing
        registry.register_all()
    assert registry.page_of("lake/Boats-v0")[0].name == "Boats"
    env: Any = gymnasium.make("lake/Boats-v0", observation="dict")
    env.reset(seed=1)
    assert env.unwrapped.sim.game.name == two_team.game().name
    env.close()


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (
            FAMILY.format(name="boats", id="palaestra/CartPole-v0"),
            "ValueError: the id 'palaestra/CartPole-v0' is taken",
        ),
        (FAMILY.format(name="boats", id="Boats"), "ValueError: id must look like namespace/Name-v0, got 'Boats'"),
        ("import sails_that_nobody_has", "ModuleNotFoundError: No module named 'sails_that_nobody_has'"),
        (FAMILY.format(name="teams", id="lake/Boats-v0"), "ValueError: the name 'teams' is taken"),
        ("FAMILY = ['lake/Boats-v0']", "TypeError: expected a palaestra.game.Family, got a list"),
        (
            "from palaestra.game import Family\nFAMILY = Family('boats', ())",
            "ValueError: the family 'boats' has no rows",
        ),
        ("", "AttributeError: module 'a_family' has no attribute 'FAMILY'"),
    ],
)
def test_a_family_that_does_not_fit_is_left_out_with_a_warning(
    package: Callable[[str], None], source: str, problem: str
):
    before = {**registry.ROWS, **registry.FAMILIES}
    package(source)
    place = "the environments of 'a_family:FAMILY', entry point 'boats' of a-family are left out: "
    with pytest.warns(RuntimeWarning, match=re.escape(place + problem)):
        registry.register_all()
    assert before == {**registry.ROWS, **registry.FAMILIES}
