"""Maps: the standard one by its counts and borders, the mirrors, and every way in which a file is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import palaestra_assets
from palaestra.games.concert import concert_map
from palaestra.games.concert.concert_map import ARMY, COAST, FAR, FLEET, INLAND, MAPS, SEA, load_map

STANDARD, NAMES = load_map("standard")
DUELS = ("duel", "duel20")
Content = dict[str, Any]


def content(name: str) -> Content:
    return json.loads(palaestra_assets.path(f"concert/{name}.json").read_text(encoding="utf-8"))


def army_may_walk(start: str, end: str) -> bool:
    return bool(STANDARD.army_edge[NAMES.provinces.index(start), NAMES.provinces.index(end)])


def fleet_may_sail(start: str, end: str) -> bool:
    return bool(STANDARD.fleet_edge[NAMES.locations.index(start), NAMES.locations.index(end)])


def units(name: str) -> set[str]:
    """The units of a map at the start, as "red A COR"."""
    world, names = load_map(name)
    return {
        f"{names.powers[concert_map.unit_power(code)]} {'A' if concert_map.unit_form(code) == ARMY else 'F'} "
        f"{names.locations[concert_map.unit_location(world, province, code)]}"
        for province, code in enumerate(world.start_unit.tolist())
        if code
    }


def test_the_standard_map_has_75_provinces_and_81_locations() -> None:
    assert (STANDARD.provinces, STANDARD.locations) == (75, 81)
    assert NAMES.locations[75:] == ("BUL/EC", "BUL/SC", "SPA/NC", "SPA/SC", "STP/NC", "STP/SC")


def test_the_standard_map_has_14_provinces_inland_42_on_coasts_and_19_seas() -> None:
    assert np.bincount(STANDARD.ground).tolist() == [14, 42, 19]
    assert [STANDARD.ground[NAMES.provinces.index(key)] for key in ("PAR", "BRE", "MAO")] == [INLAND, COAST, SEA]


def test_the_standard_map_has_34_centres_of_which_22_are_homes_with_units() -> None:
    assert STANDARD.centres == len(STANDARD.centre_province) == 34
    assert (STANDARD.home >= 0).sum() == (STANDARD.start_unit > 0).sum() == (STANDARD.start_owner >= 0).sum() == 22
    assert (STANDARD.home[STANDARD.start_unit > 0] >= 0).all()


def test_eighteen_centres_win_from_1901() -> None:
    assert (STANDARD.solo, STANDARD.first_year) == (18, 1901)


def test_the_standard_map_has_111_borders_of_armies_and_141_of_fleets() -> None:
    assert STANDARD.army_edge.sum() == 2 * 111
    assert STANDARD.fleet_edge.sum() == 2 * 141


@pytest.mark.parametrize("name", MAPS)
def test_borders_lead_both_ways(name: str) -> None:
    world, _ = load_map(name)
    assert (world.army_edge == world.army_edge.T).all()
    assert (world.fleet_edge == world.fleet_edge.T).all()


@pytest.mark.parametrize(
    "border",
    ["TRI VEN", "ROM VEN", "ARM SMY", "DEN KIE", "DEN SWE", "EDI LVP", "FIN NWY", "MUN SIL", "CON BUL", "SPA POR"],
)
def test_armies_cross_known_borders(border: str) -> None:
    assert army_may_walk(*border.split())


@pytest.mark.parametrize("border", ["CLY YOR", "NAF SPA", "ROM PIE", "LON EDI", "BEL PAR", "SER VIE", "MOS FIN"])
def test_armies_do_not_cross_where_there_is_no_border(border: str) -> None:
    assert not army_may_walk(*border.split())


@pytest.mark.parametrize(
    "border",
    ["TRI VEN", "KIE BAL", "KIE HEL", "DEN KIE", "STP/NC NWY", "STP/SC FIN", "BUL/EC CON", "BUL/SC CON", "SPA/NC GAS"],
)
def test_fleets_cross_known_borders(border: str) -> None:
    assert fleet_may_sail(*border.split())


@pytest.mark.parametrize(
    "border",
    ["ROM VEN", "ARM SMY", "SPA/SC GAS", "SPA/NC MAR", "STP/SC NWY", "STP/NC FIN", "BUL/SC RUM", "EDI LVP", "SKA BAL"],
)
def test_fleets_do_not_cross_where_there_is_no_border(border: str) -> None:
    assert not fleet_may_sail(*border.split())


def test_a_fleet_reaches_a_province_by_any_of_its_coasts() -> None:
    location, province = NAMES.locations.index, NAMES.provinces.index
    assert STANDARD.fleet_reach[location("MAO"), province("SPA")]
    assert not STANDARD.fleet_reach[location("SPA/NC"), province("MAR")]
    assert STANDARD.fleet_reach[location("SPA/SC"), province("MAR")]


def test_lists_of_neighbours_are_the_borders_in_ascending_order() -> None:
    for edge, start, members in (
        (STANDARD.army_edge, STANDARD.army_start, STANDARD.army_list),
        (STANDARD.fleet_edge, STANDARD.fleet_start, STANDARD.fleet_list),
    ):
        assert len(start) == len(edge) + 1
        for place, row in enumerate(edge):
            assert members[start[place] : start[place + 1]].tolist() == np.flatnonzero(row).tolist()


def test_split_coasts_follow_the_provinces() -> None:
    assert (STANDARD.province_of[:75] == np.arange(75)).all()
    for key, coasts in (("BUL", 2), ("SPA", 2), ("STP", 2), ("GAS", 0)):
        province = NAMES.provinces.index(key)
        first = NAMES.locations.index(f"{key}/{'EC' if key == 'BUL' else 'NC'}") if coasts else -1
        assert (STANDARD.coasts[province], STANDARD.first_coast[province]) == (coasts, first)


def test_russia_starts_with_a_fleet_on_the_south_coast_of_st_petersburg() -> None:
    assert {unit for unit in units("standard") if unit.startswith("russia")} == {
        "russia A MOS", "russia A WAR", "russia F SEV", "russia F STP/SC",
    }  # fmt: skip
    code = int(STANDARD.start_unit[NAMES.provinces.index("STP")])
    assert code == concert_map.unit_code(NAMES.powers.index("russia"), FLEET + 2)


def test_centres_are_numbered_in_the_order_of_their_provinces() -> None:
    assert (np.diff(STANDARD.centre_province) > 0).all()
    assert (STANDARD.centre[STANDARD.centre_province] == np.arange(34)).all()
    assert (STANDARD.centre >= 0).sum() == 34


def test_an_army_may_be_carried_over_seas() -> None:
    province = NAMES.provinces.index
    assert STANDARD.army_steps[province("LON"), province("YOR")] == 1
    assert STANDARD.army_steps[province("LON"), province("NWY")] == 2
    assert STANDARD.army_steps[province("LON"), province("LON")] == 0
    assert STANDARD.army_steps.max() < FAR


def test_steps_of_a_fleet_depend_on_its_coast() -> None:
    location, province = NAMES.locations.index, NAMES.provinces.index
    assert STANDARD.fleet_steps[location("STP/NC"), province("NWY")] == 1
    assert STANDARD.fleet_steps[location("STP/SC"), province("NWY")] == 3
    assert STANDARD.fleet_steps[location("SPA/NC"), province("SPA")] == 0
    assert STANDARD.fleet_steps[location("BRE"), province("SPA")] == 2
    assert STANDARD.fleet_steps[location("BRE"), province("PAR")] == FAR
    assert STANDARD.fleet_steps[location("PAR"), province("BRE")] == FAR


def test_all_powers_of_the_standard_map_count_in_the_order_of_the_keys() -> None:
    assert (STANDARD.rank == np.arange(75)).all()
    assert (STANDARD.ranked == np.arange(75)).all()
    assert STANDARD.mirror.tolist() == [0]


def test_france_against_austria_is_the_standard_map_with_two_powers() -> None:
    world, names = load_map("france_austria")
    assert names.powers == ("austria", "france")
    assert (world.fleet_edge == STANDARD.fleet_edge).all()
    assert (world.centres, (world.start_owner >= 0).sum(), (world.home >= 0).sum()) == (34, 6, 6)
    assert units("france_austria") == {unit for unit in units("standard") if unit.startswith(("austria", "france"))}


@pytest.mark.parametrize(("name", "sizes"), [("duel", (12, 8, 5)), ("duel20", (20, 12, 7))])
def test_a_duel_has_its_sizes_and_three_homes_and_units_a_side(name: str, sizes: tuple[int, int, int]) -> None:
    world, names = load_map(name)
    assert (world.provinces, world.centres, world.solo) == sizes
    assert names.powers == ("blue", "red")
    assert np.bincount(world.home[world.home >= 0]).tolist() == [3, 3]
    assert sorted(unit[:-4] for unit in units(name)) == ["blue A", "blue A", "blue F", "red A", "red A", "red F"]


@pytest.mark.parametrize("name", DUELS)
def test_a_half_turn_of_the_picture_is_the_mirror_of_a_duel(name: str) -> None:
    world, names = load_map(name)
    assert (names.at[world.mirror] == [1000, 800] - names.at).all()
    assert (world.mirror[world.mirror] == np.arange(world.locations)).all()
    assert (world.mirror != np.arange(world.locations)).all()


@pytest.mark.parametrize("name", DUELS)
def test_the_second_power_of_a_duel_counts_in_the_order_of_the_mirror(name: str) -> None:
    world, _ = load_map(name)
    places = np.arange(world.provinces)
    assert (world.ranked[0] == places).all()
    assert (world.ranked[1] == world.mirror[: world.provinces]).all()
    for rank, ranked in zip(world.rank, world.ranked, strict=True):
        assert (rank[ranked] == places).all()


@pytest.mark.parametrize("name", DUELS)
def test_fleets_can_carry_an_army_from_a_home_of_red_to_a_home_of_blue(name: str) -> None:
    world, names = load_map(name)
    reached = {names.provinces.index("AST")}
    for _ in range(3):  # shore, sea and sea, shore
        seas = {place for place in reached if world.ground[place] == SEA or names.provinces[place] == "AST"}
        reached |= {int(place) for sea in seas for place in np.flatnonzero(world.fleet_reach[sea])}
    assert 0 in world.home[[place for place in reached if world.ground[place] == COAST]]


@pytest.mark.parametrize("name", MAPS)
def test_each_place_of_a_map_is_drawn_apart(name: str) -> None:
    world, names = load_map(name)
    between = np.linalg.norm(names.at[:, None] - names.at, axis=2) + np.diag(np.full(world.locations, 99.0))
    assert between[: world.provinces, : world.provinces].min() > 28
    assert between.min() > 20


@pytest.mark.parametrize("name", [*DUELS, "standard"])
def test_a_coast_is_drawn_in_its_own_province(name: str) -> None:
    world, names = load_map(name)
    centres = names.at[: world.provinces]
    for location in range(world.provinces, world.locations):
        assert np.linalg.norm(centres - names.at[location], axis=1).argmin() == world.province_of[location]


@pytest.mark.parametrize("name", MAPS)
def test_the_name_inside_a_map_is_its_file_name(name: str) -> None:
    assert content(name)["name"] == name


def test_a_map_is_read_once() -> None:
    assert load_map("duel") is load_map("duel")


def test_no_array_of_a_map_can_be_written() -> None:
    arrays = [value for value in (*STANDARD, NAMES.at) if isinstance(value, np.ndarray)]
    assert len(arrays) == 22
    assert not any(array.flags.writeable for array in arrays)


def test_arrays_have_the_types_that_rules_are_compiled_for() -> None:
    small = {"army_start": "<i2", "fleet_start": "<i2"}
    flags = ("army_edge", "fleet_edge", "fleet_reach", "start_unit")
    for name, value in STANDARD._asdict().items():
        if isinstance(value, np.ndarray):
            assert value.dtype.str == small.get(name, "|u1" if name in flags else "|i1"), name
            assert value.flags.c_contiguous, name


def test_an_unknown_map_is_refused_with_the_near_one() -> None:
    with pytest.raises(ValueError, match=r"map must be one of 'standard'.*got 'duel21', did you mean 'duel2?0?'"):
        load_map("duel21")


def put(*path: Any) -> Callable[[Content], None]:
    """An edit that sets a member: keys, then the value."""

    def edit(file: Content) -> None:
        for key in path[:-2]:
            file = file[key]
        file[path[-2]] = path[-1]

    return edit


def take(*path: Any) -> Callable[[Content], None]:
    """An edit that removes a member."""

    def edit(file: Content) -> None:
        for key in path[:-1]:
            file = file[key]
        del file[path[-1]]

    return edit


def many_provinces(file: Content) -> None:
    for number in range(128):
        key = f"X{chr(65 + number // 26)}{chr(65 + number % 26)}"
        file["provinces"][key] = {"name": key, "ground": "inland", "at": [1, 1], "army": []}


def many_powers(file: Content) -> None:
    file["powers"] = {f"power_{chr(97 + k)}": {"home": ["AST"], "units": ["A AST"]} for k in range(9)}


def border_between_coasts(file: Content) -> None:
    file["provinces"]["VEL"]["coasts"]["NC"]["fleet"].append("VEL/SC")


P, AST, VEL = "provinces", ("provinces", "AST"), ("provinces", "VEL")
RED = ("powers", "red")
REFUSALS = {
    "wrong type": (put("about", 3), "about: must be a text of one line, got 3"),
    "missing key": (take("solo"), "solo: missing key"),
    "unknown key": (put("solos", 5), "solos: unknown key, did you mean 'solo'?"),
    "unknown key of a province": (put(*AST, "center", True), "provinces.AST.center: unknown key, did you mean 'cen"),
    "missing key of a province": (take(*AST, "at"), "provinces.AST.at: missing key"),
    "provinces and base": (put("base", "standard"), "provinces: a map has either provinces or a base"),
    "key of a province": (put(P, "North", {}), "provinces: must be three capital letters, got 'North'"),
    "no province": (put(*AST[:1], []), r"provinces: must be an object of 1 to \d+ members, got \[\]"),
    "ground": (put(*AST, "ground", "costa"), "provinces.AST.ground must be one of .*'costa', did you mean 'coast'"),
    "centre": (put(*AST, "centre", 1), "provinces.AST.centre: must be true or false, got 1"),
    "place": (put(*AST, "at", [1001, 0]), r"provinces.AST.at: must be inside of 1000 x 800, got \[1001, 0\]"),
    "no place": (put(*AST, "at", [float("nan"), 0]), "provinces.AST.at: must be inside"),
    "place of one number": (put(*AST, "at", [1]), "provinces.AST.at: must be two numbers"),
    "borders": (put(*AST, "army", "DUN"), "provinces.AST.army: must be a list of texts, got 'DUN'"),
    "border twice": (put(*AST, "army", ["DUN", "DUN"]), "provinces.AST.army: 'DUN' stands twice"),
    "one-way army": (put(*AST, "army", ["COR", "DUN"]), "provinces.VEL.army: AST has no army border back"),
    "one-way fleet": (put(*AST, "fleet", ["GAN"]), "provinces.VEL/NC.fleet: AST has no fleet border back"),
    "unknown province": (put(*AST, "army", ["DUM"]), "provinces.AST.army: no province 'DUM', did you mean 'DUN'"),
    "unknown coast": (put(*AST, "fleet", ["VEL/EC"]), "provinces.AST.fleet: no province or coast 'VEL/EC', did you"),
    "army to itself": (put(*AST, "army", ["AST"]), "provinces.AST.army: a border with itself"),
    "coast to coast": (border_between_coasts, "provinces.VEL/NC.fleet: a border with itself"),
    "fleet inland": (put(*AST, "fleet", ["DUN"]), "provinces.AST.fleet: DUN is inland, where no fleet sails"),
    "army at sea": (put(*AST, "army", ["GAN"]), "provinces.AST.army: GAN is a sea, where no army walks"),
    "fleet without coast": (put(*AST, "fleet", ["VEL"]), "AST.fleet: VEL has split coasts, name one: VEL/NC or VEL/SC"),
    "army of a sea": (put(P, "GAN", "army", ["AST"]), "GAN: with the ground 'sea' it has the keys fleet, got"),
    "fleet of inland": (put(P, "DUN", "fleet", []), "DUN: with the ground 'inland' it has the keys army, got"),
    "coasts of inland": (put(P, "DUN", "coasts", {}), "provinces.DUN: with the ground 'inland' .* got army, coasts"),
    "coast without fleets": (take(*AST, "fleet"), "'coast' it has the keys army, fleet or army, coasts"),
    "single coast": (take(*VEL, "coasts", "NC"), "provinces.VEL.coasts: must be an object of 2 to 3 members, got 1"),
    "too many provinces": (many_provinces, "provinces: 144 provinces and coasts, at most 127 are possible"),
    "too many powers": (many_powers, "powers: must be an object of 2 to 8 members, got 9"),
    "home without centre": (put(*RED, "home", ["DUN"]), "powers.red.home: DUN has no supply centre"),
    "home of two": (put(*RED, "home", ["HAL"]), "powers.red.home: HAL is a home of blue too"),
    "unknown home": (put(*RED, "home", ["ASK"]), "powers.red.home: no province 'ASK', did you mean 'AST'"),
    "no home": (put(*RED, "home", []), "powers.red.home: a power has at least one"),
    "no unit": (put(*RED, "units", []), "powers.red.units: a power has at least one"),
    "army in a sea": (put(*RED, "units", ["A GAN"]), "powers.red.units: 'A GAN': an army stands in a province on land"),
    "army on a coast": (put(*RED, "units", ["A VEL/NC"]), "'A VEL/NC': an army stands in a province on land"),
    "fleet unit inland": (put(*RED, "units", ["F COR"]), "powers.red.units: COR is inland"),
    "fleet unit without coast": (put(*RED, "units", ["F VEL"]), "powers.red.units: VEL has split coasts, name one"),
    "unknown form": (put(*RED, "units", ["U COR"]), "'U COR': it must begin with A or F"),
    "two in one province": (put(*RED, "units", ["A VEL", "F VEL/NC"]), "'F VEL/NC': the province has a unit already"),
    "solo of none": (put("solo", 0), "solo must be an integer from 1 to 8, got 0"),
    "solo of too many": (put("solo", 9), "solo must be an integer from 1 to 8, got 9"),
    "year": (put("first_year", 1901.0), "first_year must be an integer from 1 to 9999, got 1901.0"),
    "mirror type": (put("mirror", []), r"mirror: must be an object, got \[\]"),
    "mirror of nothing": (take("mirror", "DUN"), "mirror: DUN has no image|mirror: KEL has the image DUN"),
    "mirror of unknown": (put("mirror", "DUN", "KEN"), "mirror: no province or coast 'KEN', did you mean 'KEL'"),
    "no involution": (put("mirror", "AST", "IST"), "mirror: AST has the image IST, whose image is BRA"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_a_map_that_breaks_a_rule_is_refused_with_key_and_reason(name: str) -> None:
    edit, message = REFUSALS[name]
    file = content("duel")
    edit(file)
    with pytest.raises(ValueError, match=message) as refusal:
        concert_map.read_map(json.dumps(file), "mine")
    assert str(refusal.value).startswith("mine: ")


def exchange(file: Content, *pairs: str) -> None:
    """Makes the members of each pair the images of each other."""
    for pair in pairs:
        one, other = pair.split()
        file["mirror"] |= {one: other, other: one}


def mirror_one_coast_elsewhere(file: Content) -> None:
    exchange(file, "VEL/NC VEL/SC", "WYR/NC WYR/SC")


def turn_the_coasts(file: Content) -> None:
    exchange(file, "VEL/NC WYR/NC", "VEL/SC WYR/SC")


def link(file: Content, kind: str, one: str, other: str) -> None:
    file["provinces"][one][kind].append(other)
    file["provinces"][other][kind].append(one)


MIRRORS = {
    "coasts": (mirror_one_coast_elsewhere, "VEL/NC has the image VEL/SC: coasts go with their provinces"),
    "fleet borders": (turn_the_coasts, "does not keep the fleet borders of "),
    "ground": (lambda file: exchange(file, "DUN BRA", "KEL IST"), "does not keep the ground of BRA"),
    "centres": (put(P, "DUN", "centre", True), "does not keep the centres of DUN"),
    "army borders": (lambda file: link(file, "army", "AST", "BRA"), "does not keep the army borders of AST"),
    "homes": (put(*RED, "home", ["AST", "BRA"]), "does not keep the homes of COR"),
    "units": (put(*RED, "units", ["A AST", "A BRA", "A COR"]), "does not keep the units of AST"),
}


@pytest.mark.parametrize("what", MIRRORS)
def test_a_mirror_that_changes_the_map_is_refused(what: str) -> None:
    edit, message = MIRRORS[what]
    file = content("duel")
    edit(file)
    with pytest.raises(ValueError, match=f"mine: mirror: .*{message}"):
        concert_map.read_map(json.dumps(file), "mine")


def test_a_mirror_of_seven_powers_is_refused() -> None:
    file = content("standard")
    locations = NAMES.locations
    file["mirror"] = dict(zip(locations, locations, strict=True))
    with pytest.raises(ValueError, match="mirror: exchanges two powers, the map has 7"):
        concert_map.read_map(json.dumps(file), "mine")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "no JSON"),
        ("[]", r"must be a JSON object, got \[\]"),
        ('{"solo": 1, "solo": 2}', "the key 'solo' stands twice in one object"),
        ("[" * 100_000, "nested too deep"),
        (" " * 300_000, "it has 300000 characters"),
    ],
)
def test_a_text_that_is_no_map_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^mine: .*{reason}"):
        concert_map.read_map(text, "mine")


def test_a_map_may_stand_on_ours_alone() -> None:
    file = content("france_austria")
    file["base"] = "/etc/passwd"
    with pytest.raises(ValueError, match="base must be one of 'standard'"):
        concert_map.read_map(json.dumps(file), "mine")
