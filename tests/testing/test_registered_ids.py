"""Every registered environment keeps every promise."""

import warnings

import pytest
from games.play import OURS, by_tier

from palaestra import registry
from palaestra.core.compile.linker import link
from palaestra.testing import check, levels

LIKE_ANOTHER = ("QuadGate", "QuadShepherd", "QuadSumo", "QuadFootball", "HandOpen")
"""Pages whose games are made by the function of another page, with other rules."""
MANY = 40
"""Agents from which on the fast tests check an id as a preset, in less time; `make nightly` checks it in full."""
LONG = ("Concert-v0", "GridBattle-Huge-v0", "GridBattle-Large-v0", "GridPursuit-Blind-v0")
"""Left to `make nightly`, since they take long: `make check` has smaller presets of their rules."""
OF_A_KERNEL = (
    "compiled_rules_equal_plain_python",
    "lanes_equal_single_envs",
    "mirror_symmetry_holds",
    "observations_are_in_spaces",
    "scripts_play_legally",
    "threads_do_not_change_results",
    "zero_sum_is_exact",
)
"""Checks for an id that is none of these; `make nightly` makes all of them on every id."""


@pytest.fixture(scope="module")
def level_of() -> dict:
    return levels(OURS)


@pytest.fixture(scope="module")
def first() -> set[str]:
    """One id of each other page, with few agents if there is one."""
    pages = [[row.id for row in rows] for page, rows in registry.pages() if page.name not in LIKE_ANOTHER]
    return {next((id for id in ids if not has_many_agents(id)), ids[0]) for ids in pages}


def has_many_agents(id: str) -> bool:
    try:
        return len(registry.make_game(id)[0].agents) >= MANY
    except ImportError:
        return False


@pytest.mark.check
def test_every_kernel_is_checked_in_full_on_one_id(level_of: dict):
    presets = {id for id, level in level_of.items() if level == "preset"}
    kernel_of = {id: link(registry.make_game(id)[0]) for id in OURS}
    in_full = [kernel_of[id] for id in OURS if id not in presets]
    assert len(set(in_full)) == len(in_full)
    assert {kernel_of[id] for id in presets} <= set(in_full)
    assert {"palaestra/UcavDogfight-v2", "palaestra/Skirmish-8m-v0", "palaestra/Drill-Beacon-v0"} <= presets
    assert set(level_of) == set(OURS)
    assert levels(["palaestra/UcavDogfight-v2"]) == {"palaestra/UcavDogfight-v2": "fast"}


@pytest.mark.check
@pytest.mark.parametrize(
    "id", [pytest.param(id, marks=pytest.mark.slow) if id.removeprefix("palaestra/") in LONG else id for id in OURS]
)
def test_an_id_passes_the_conformance_kit(id: str, level_of: dict, first: set[str]):
    try:
        level = "preset" if has_many_agents(id) else level_of[id]
        only = OF_A_KERNEL if level == "fast" and id not in first else None
        report = check(id, level, only=only)
    except ImportError as error:
        pytest.skip(str(error))
    assert report.passed, str(report)


@pytest.mark.parametrize("id", by_tier())
def test_an_id_makes_no_warning(id: str):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            sim = registry.make_batch(id, 2)
        except ImportError as error:
            pytest.skip(str(error))
        sim.reset(seed=0)
        sim.close()
