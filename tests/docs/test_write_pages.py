"""Pages are generated from the tables of the games, so the two always agree."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from games import two_team, two_team_homogeneous
from testing.planting import DUEL, HALF_DOCUMENTED

import palaestra
import result_tables as tables
import write_pages as docs
from palaestra import pages, registry
from palaestra.core.contract.fields import table_rows
from palaestra.game import Page, Preset, Row, presets

HOUSE = Path(__file__).parents[2]
ID, SMALL = "palaestra/CartPole-v0", "palaestra/TeamGridSoccer-3x3-v0"

BEGIN, END = "<!-- begin: environments -->", "<!-- end: environments -->"


@pytest.mark.check
def test_the_pages_in_the_tree_are_up_to_date():
    stale = [str(p.relative_to(HOUSE)) for p in docs.stale(HOUSE)]
    assert not stale, f"run: {docs.COMMAND} (stale: {', '.join(stale)})"


def test_methods_are_named_on_the_pages_of_the_family_that_they_learn_by_default():
    ids = docs.default_ids(HOUSE)
    assert ids["grpo"].startswith("palaestra/SearchQA")
    assert ids["srft"].startswith("palaestra/MathText")  # GRPO's arguments with an id of its own
    assert ids["rlae"].startswith("palaestra/LLMEnsemble")  # by the number of agents; MAPPO's arguments otherwise


@pytest.mark.check
def test_every_page_of_a_game_that_draws_has_its_picture_in_the_tree_and_there_are_no_others():
    drawn = {
        docs.gallery.picture_name(page): rows[0].id
        for page, rows in registry.pages()
        if rows[0].id.startswith("palaestra/") and docs.gallery.has_picture(rows[0].id)
    }
    there = {path.name for path in (HOUSE / docs.gallery.FOLDER).iterdir()}
    missing = [id for name, id in drawn.items() if name not in there]
    assert not missing, f"run: python docs/tools/gallery.py {' '.join(missing)}"
    assert there == set(drawn)


@pytest.mark.check
def test_a_page_shows_the_picture_that_is_there(tmp_path: Path):
    folder = tmp_path / docs.gallery.FOLDER
    folder.mkdir(parents=True)
    (folder / "CartPole.png").touch()
    docs.write(tmp_path)
    text = (tmp_path / docs.PAGES / "CartPole.md").read_text(encoding="utf-8")
    assert "![A match of palaestra/CartPole-v0](../images/environments/CartPole.png)" in text


def test_a_page_has_a_row_for_every_quantity():
    page, game = pages.page(ID), registry.make_game(ID)[0]
    for fields in (game.roles[0].action, game.parameters):
        assert pages.markdown_table(table_rows(fields)) in page
    for f in (*game.roles[0].observation, *game.roles[0].action, *game.parameters):
        assert f"| `{f.name}` |" in page
    assert "| `angle_rad` | [2] |" in page


def test_a_page_says_how_to_make_the_environment():
    page = pages.page(ID)
    assert page.startswith(f"# {ID}\n\nA pole is hinged to a cart")
    assert f'`gymnasium.make("{ID}")`' in page
    assert "`from palaestra.zoo import cart_pole_v0`" in page
    assert "End reasons: 1 `horizon`, 2 `off_track`, 3 `fell`." in page
    assert "keywords" not in page


def test_the_page_of_a_preset_has_its_own_keywords_and_sizes():
    page = pages.page(SMALL)
    assert page.startswith(f"# {SMALL}\n")
    assert "| keywords | `rows=3, columns=3, players=2` |" in page
    assert "| `own` | [0:9] | 3x3 | 0 |" in page
    assert "## Presets" not in page


@pytest.mark.usefixtures("broken_games_are_registered")
def test_a_game_of_two_teams_names_its_opponents():
    page = pages.page(DUEL)
    assert '`opponent=` takes `"striker"`, `"walker"`, `"random"`, `"mix"`' in page
    assert "| teams | red: `red_0`, `red_1`; blue: `blue_0`, `blue_1` |" in page
    assert "What all agents see" in pages.observation_tables(registry.make_game(DUEL)[0])


@pytest.mark.usefixtures("broken_games_are_registered")
def test_a_page_may_stand_in_the_factory():
    assert pages.docstring(HALF_DOCUMENTED).startswith("A page without most of its sections.")


def test_structural_keywords_change_the_page():
    pytest.importorskip("jsbsim")
    assert "`flight_path`" in pages.page("palaestra/UcavDogfight-v2", commands="macro")
    assert "`elevator`" in pages.page("palaestra/UcavDogfight-v2")


def test_a_table_leaves_empty_columns_out_and_escapes():
    rows = [{"name": "a", "shape": "", "about": "x | y"}, {"name": "b", "shape": "", "about": ""}]
    assert pages.markdown_table(rows) == "| name | about |\n|---|---|\n| `a` | x \\| y |\n| `b` |  |"
    assert pages.markdown_table([]) == "None."


def test_a_page_names_ppo_where_it_can_learn_and_the_methods_of_the_family():
    def section(id: str) -> str:
        return docs.training_section(Path(__file__).parents[2], [registry.row(f"palaestra/{id}")])

    assert section("CartPole-v0") == "## Training\n\n`palaestra train ppo --env-id palaestra/CartPole-v0`.\n\n"
    assert "`palaestra train ppo --env-id palaestra/Skirmish-3m-v0`. Methods" in section("Skirmish-3m-v0")
    assert "[qmix](../../baselines/palaestra_baselines/qmix.py)" in section("Skirmish-3m-v0")
    assert "[fm3q](../../baselines/palaestra_baselines/fm3q.py)" in section("TeamPong-v0")
    assert "ppo --env-id" not in section("Concert-v0")


@pytest.mark.check
def test_writing_fills_the_readme_between_its_markers_and_nothing_else(tmp_path: Path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    assert readme in docs.stale(tmp_path)
    assert readme in docs.write(tmp_path)
    text = readme.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{BEGIN}\n| family |")
    assert text.endswith(f"|\n{END}\nafter\n")
    assert f"[`{ID}`](docs/environments/CartPole.md)" in text
    assert docs.stale(tmp_path) == []
    assert docs.write(tmp_path) == []


@pytest.mark.check
def test_a_readme_without_markers_is_not_changed(tmp_path: Path):
    readme = tmp_path / "README.md"
    readme.write_text("mine\n", encoding="utf-8")
    docs.write(tmp_path)
    assert readme.read_text(encoding="utf-8") == "mine\n"


@pytest.mark.check
def test_a_stale_page_is_removed_and_a_page_by_another_author_is_not(tmp_path: Path):
    docs.write(tmp_path)
    left, own = (tmp_path / docs.PAGES / name for name in ("Gone-v0.md", "Own.md"))
    shutil.copy(tmp_path / docs.PAGES / "CartPole.md", left)
    own.write_text("# By hand\n", encoding="utf-8")
    assert docs.stale(tmp_path) == [left]
    docs.write(tmp_path)
    assert not left.exists()
    assert own.exists()


@pytest.mark.check
def test_the_command_writes_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert docs.main(["--check", "--root", str(tmp_path)]) == 1
    assert docs.COMMAND in capsys.readouterr().out
    assert docs.main(["--write", "--root", str(tmp_path)]) == 0
    assert docs.main(["--check", "--root", str(tmp_path)]) == 0


# -- presets -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def rings(monkeypatch: pytest.MonkeyPatch) -> dict[str, Row]:
    """A table of the registry with five presets of one factory, and nothing else."""
    ids = (Preset(f"palaestra/Ring-{n}-v0", f"a ring of {n}", nodes=n) for n in (8, 3, 4, 5, 6))
    page = Page("Ring", "rings of all sizes")
    rows = {row.id: row for row in presets("games.two_team:game", *ids, page=page)}
    monkeypatch.setattr(registry, "ROWS", rows)
    return rows


OURS = [found for found in registry.pages() if found[1][0].id.startswith("palaestra/")]


@pytest.mark.parametrize(("page", "rows"), OURS, ids=[page.name for page, _ in OURS])
def test_the_page_of_a_factory_names_every_preset_and_all_that_any_of_them_has(page: Page, rows: list[Row]):
    try:
        text = pages.shared_page(page, rows)
    except ImportError as error:
        pytest.skip(str(error))
    assert text.startswith(f"# {page.name}\n")
    for row in rows:
        assert f"`{row.id}`" in text or f'"{row.id}"' in text
        for name in pages.names(registry.make_game(row.id)[0]):
            assert f"`{name}`" in text


@pytest.mark.check
def test_a_preset_stands_in_the_table_with_its_keywords_and_sizes():
    text = pages.shared_page(*registry.page_of(SMALL))
    assert text.startswith("# GridSoccer\n")
    assert (
        f"| `{SMALL}` | `rows=3, columns=3, players=2` | 2 red against 2 blue | `Discrete(5)` | 39 | soccer two" in text
    )
    assert palaestra.make_batch(SMALL).observations.shape[-1] == 39


def test_a_table_of_several_presets_lists_what_differs_and_marks_what_some_lack():
    text = pages.shared_page(*registry.page_of(SMALL))
    assert "| `own` | [0:20] or [0:9] or [0:12] | 4x5 or 3x3 or 3x4 | 0 | 1 | 1 | its own cell is 1 |" in text
    assert "| `has_ball` | [60] or [27] or [36] |  | 0 | 1 | 1 | it has the ball |" in text
    assert "| `teammate_has_ball` | [38] or [50] or [82] |  | 0 | 1 | 1 | its teammate" in text
    assert "its teammate has the ball (in 3 of 4 presets) |" in text


def test_a_role_that_some_presets_lack_is_marked():
    raid, melee = two_team.game(), two_team_homogeneous.game()
    titles = [line for line in pages.action_tables(melee, raid).splitlines() if line.startswith("**")]
    assert titles[-1] == "**guard** (`red_2`, `blue_1`), in 1 of 2 presets:"
    assert len(titles) == 3
    assert pages.action_tables(melee, melee) == pages.action_tables(melee)


def test_merged_tables_say_so_where_a_text_differs_or_too_many_values_do():
    row = {"name": "a", "shape": "", "about": "how many (default 1)"}
    assert pages.merged([[row], [row]]) == [row]
    assert pages.merged([[row], [{**row, "shape": "2"}]])[0]["shape"] == "scalar or 2"
    assert pages.merged([[row], [{**row, "about": "how many (default 2)"}], []])[0]["about"] == (
        "how many (default 1) (differs by preset, in 2 of 3 presets)"
    )
    assert pages.either(["3x3", "4x4", "3x3", "5x5"]) == "3x3 or 4x4 or 5x5"
    assert pages.either(["3x3", "4x4", "5x5", "6x6"]) == "by preset"


def test_spaces_are_named_in_gymnasium_s_words_and_include_lane_fields(rings: dict[str, Row]):
    table = pages.preset_table([pages.Preset(row, *registry.make_game(row.id)) for row in rings.values()])
    assert table.splitlines()[2] == (
        "| `palaestra/Ring-8-v0` | `nodes=8` | 3 red against 2 blue | `Discrete(4)`; "
        "`Dict(effort: Box(), move: Discrete(4), trigger: Discrete(2))` | scout 8, guard 6 | a ring of 8 |"
    )


def test_the_readme_has_one_row_a_factory_and_the_number_of_its_other_presets(rings: dict[str, Row]):
    assert docs.readme_table().splitlines()[2:] == [
        "| third party | [`palaestra/Ring-8-v0`](docs/environments/Ring.md) and 4 more | rings of all sizes |"
    ]
    for nodes in (3, 4, 5, 6):
        rings.pop(f"palaestra/Ring-{nodes}-v0")
    assert "Ring.md) | rings" in docs.readme_table()


def test_a_factory_has_one_picture_of_its_first_preset(rings: dict[str, Row], tmp_path: Path, monkeypatch):
    drawn = []
    picture = np.zeros((4, 4, 3), np.uint8)
    monkeypatch.setattr(docs.gallery, "moment", lambda id: drawn.append(id) or picture)
    pytest.importorskip("PIL")
    assert docs.gallery.write("palaestra/Ring-5-v0", tmp_path) == tmp_path / docs.gallery.FOLDER / "Ring.png"
    assert drawn == ["palaestra/Ring-8-v0"]
    assert docs.gallery_table(tmp_path).count("<img") == 1
    assert 'href="../../docs/environments/Ring.md"' in docs.gallery_table(tmp_path)


@pytest.mark.check
@pytest.mark.parametrize("name", docs.gallery.SHEETS)
def test_a_sheet_shows_the_pictures_that_are_in_the_tree(name: str):
    image = pytest.importorskip("PIL.Image")
    path = HOUSE / docs.gallery.FOLDER.parent / f"{name}.png"
    sheets = docs.gallery.draw_sheet(name, HOUSE), image.open(path).convert("RGB")
    made, there = (np.asarray(sheet).astype(int) for sheet in sheets)
    assert made.shape == there.shape, "run: python docs/tools/gallery.py --all"
    assert np.abs(made - there).max() < 60, "run: python docs/tools/gallery.py --all"  # its palette changes less
    assert path.stat().st_size < 600_000


def test_a_sheet_has_a_cell_with_its_id_for_each_picture(rings: dict[str, Row], tmp_path: Path, monkeypatch):
    pytest.importorskip("PIL")
    monkeypatch.setattr(docs.gallery, "moment", lambda id: np.full((300, 200, 3), (0, 200, 0), np.uint8))
    docs.gallery.write("palaestra/Ring-8-v0", tmp_path)
    wide, high = docs.gallery.CELL
    cell = np.asarray(docs.gallery.draw_sheet("environments", tmp_path))[:, :wide]
    assert cell.shape == (high, wide, 3)
    rows, columns = np.nonzero((cell == (0, 200, 0)).all(axis=-1))
    assert (len(set(rows)), len(set(columns))) == (240, 160), "the whole picture, in its shape"
    assert (cell[rows.max() + 10 :].max(axis=(0, 2)) > 200).any(), "the id below it"


def write_results(root: Path, **files: str) -> None:
    """Files of results, lines without indent."""
    folder = root / tables.FIGURES
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        lines = [line.strip() for line in text.strip().splitlines()]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


BATTLE_RESULTS = """
    battle,method,seed,decisions_wanted,won,learnt_on
    3m,qmix,0,250000,0.9,
    3m,qmix,1,250000,0.99,
    3m,qmix,2,250000,0.96,
    3m,vdn,0,1000000,0.125,
    3m,vdn,1,1000000,0.375,
    3m,unmas,0,250000,1,
    3m,mappo,0,250000,0.5,
    10m,unmas,0,400000,0.5,3m 5m
"""
SCRIPTS = """
    battle,script,won,low,high
    3m,random,0,0,0.004
    3m,hold,0.25,0.2,0.3
    3m,kite,0.75,0.7,0.8
    10m,random,0,0,0.004
    10m,hold,0,0,0.004
"""


def test_a_battle_that_all_methods_have_learnt_has_one_row_beside_random_play_and_the_best_script(tmp_path: Path):
    assert tables.battle_table(tmp_path) == "No results yet."
    write_results(tmp_path, skirmish_easy_results=BATTLE_RESULTS, skirmish_scripts=SCRIPTS)
    assert tables.battle_table(tmp_path).splitlines() == [
        "| battle | random | best script | VDN | QMIX | UNMAS | MAPPO |",
        "|---|---|---|---|---|---|---|",
        "| 3m | 0.00 | 0.75 (`kite`) | 0.25 (0.12 to 0.38, two seeds), 1 M | **0.96** (0.90 to 0.99), 0.25 M "
        "| **1.00** (one seed), 0.25 M | 0.50 (one seed), 0.25 M |",
    ]


def test_a_battle_is_told_by_what_players_win_on_it_who_learn_nothing(tmp_path: Path):
    write_results(tmp_path, skirmish_scripts=SCRIPTS + "luck,random,0.03,0,1\n    luck,hold,0.99,0,1\n")
    assert tables.measures_table(tmp_path).splitlines()[2:] == [
        "| 3m | 0.00 | 0.25 | 0.75 (`kite`) | learning, where it wins well over 0.75 |",
        "| 10m | 0.00 | 0.00 | 0.00 | learning: no script wins |",
        "| luck | 0.03 | 0.99 | 0.99 (`hold`) | little: random play wins, too |",
    ]
    write_results(tmp_path, skirmish_scripts=SCRIPTS.replace("0.75", "0.95"))
    assert "| 3m | 0.00 | 0.25 | 0.95 (`kite`) | a first run: a script solves it |" in tables.measures_table(tmp_path)


def test_policies_that_learnt_with_a_mixture_have_a_row_for_each_opponent(tmp_path: Path):
    assert tables.mix_table(tmp_path) == "No results yet."
    rows = "battle,seed,opponent,won\n 3m,0,mix,0.5\n 3m,1,mix,0.25\n 3m,0,kite,0.125\n 8m,0,mix,1\n 8m,0,kite,0"
    write_results(tmp_path, skirmish_mix_results=rows)
    assert tables.battle_table(tmp_path) == "No results yet."
    assert tables.mix_table(tmp_path).splitlines() == [
        "| against | 3m | 8m |",
        "|---|---|---|",
        "| `mix` | 0.38 (0.25 to 0.50) | 1.00 |",
        "| `kite` | 0.12 | 0.00 |",
    ]


def test_methods_are_compared_at_equal_time_and_at_the_decisions_of_the_slowest(tmp_path: Path):
    assert tables.methods_table(tmp_path, "time") == "No results yet."
    won = "battle,arm,seed,decisions,won_builtin\n3m,slow,0,100,0.5\n3m,fast,0,400,1\n3m,fast,1,400,0.5\n"
    won += "8m,fast,0,50,0.25"
    curve = "battle,arm,seed,steps,won\n" + "\n".join(
        f"{battle},{arm},{seed},{steps},{share}"
        for battle, arm, seed, points in (
            ("3m", "slow", 0, ((0, 0), (100, 0.5))),
            ("3m", "fast", 0, ((0, 0), (200, 0.5), (400, 1))),
            ("3m", "fast", 1, ((0, 0), (80, 0), (160, 0.6), (400, 0.5))),
            ("8m", "fast", 0, ((0, 0), (50, 0.25))),
        )
        for steps, share in points
    )
    write_results(tmp_path, skirmish_methods_results=won, skirmish_methods=curve)
    assert tables.methods_table(tmp_path, "time").splitlines() == [
        "| battle | slow | fast |",
        "|---|---|---|",
        "| 3m | 0.50 | 0.75 (0.50 to 1.00) |",
        "| 8m | not run | 0.25 |",
    ]
    assert tables.methods_table(tmp_path, "decisions").splitlines() == [
        "| battle | decisions | slow | fast |",
        "|---|---|---|---|",
        "| 3m | 0.00 M | 0.50 | 0.20 (0.15 to 0.25) |",
        "| 8m | 0.00 M | not run | 0.25 |",
    ]


def test_one_agent_beside_others_has_a_row_for_each_learner_random_choices_and_the_best_script(tmp_path: Path):
    assert tables.mates_table(tmp_path) == "No results yet."
    rows = (
        "place,learner,seed,beside,won\n 3m,mix,0,mix,0.5\n 3m,mix,1,mix,0.75\n 3m,mix,0,held_out,0.25\n "
        "3m,random,,mix,0\n 3m,hold,,mix,0.25\n 3m,hold,,copies,1\n 3m,kite,,mix,0.5\n 3m,kite,,held_out,0.125"
    )
    write_results(tmp_path, mates_results=rows)
    assert tables.mates_table(tmp_path).splitlines()[2:] == [
        "| 3m | MAPPO, learnt beside the mixture | 0.62 (0.50 to 0.75) | 0.25 |  |",
        "| 3m | MAPPO, learnt beside copies of itself |  |  |  |",
        "| 3m | random choices | 0.00 |  |  |",
        "| 3m | best script there, `kite` | 0.50 | 0.12 |  |",
    ]


def test_adversaries_have_a_column_for_each_share_of_their_decisions(tmp_path: Path):
    assert tables.adversary_table(tmp_path) == "No results yet."
    rows = "place,player,policy,share,won,low,high\n 3m,kite,itself,0,1,0.5,1\n 3m,kite,itself,0.5,0.25,0.125,0.5"
    write_results(tmp_path, adversary_results=rows)
    assert tables.adversary_table(tmp_path).splitlines() == [
        "| place | script | adverse policy | 0 | 0.5 |",
        "|---|---|---|---|---|",
        "| 3m | `kite` | itself | 1.00 (0.50 to 1.00) | 0.25 (0.12 to 0.50) |",
    ]


def test_a_battle_that_some_methods_have_learnt_has_a_row_for_each_of_them(tmp_path: Path):
    assert tables.more_battles_table(tmp_path) == "None."
    write_results(tmp_path, skirmish_easy_results=BATTLE_RESULTS, skirmish_scripts=SCRIPTS)
    assert tables.more_battles_table(tmp_path).splitlines()[2:] == [
        "| 10m, learnt on 3m 5m | 0.00 | 0.00 | UNMAS | 0.50 (one seed), 0.4 M |"
    ]


def test_the_tables_of_results_have_no_row_without_its_scripts():
    for table in (tables.battle_table(HOUSE), tables.more_battles_table(HOUSE)):
        assert all("" not in line.replace(" ", "").split("|")[1:-1] for line in table.splitlines())


def test_the_table_of_pursuit_has_medians_of_the_seeds_below_the_scripts_of_the_same_matches(tmp_path: Path):
    assert tables.pursuit_table(tmp_path) == "No results yet."
    head = "setting,where,method,title,reference,seed,decisions,cpu_s,test,opponent,won,slower\n"
    learnt = [
        f"grid,a grid,arac,ARAC,shortest_path,{k},300000,{60 + k},as learnt,optimal,{won},1.25"
        for k, won in enumerate((0.9, 1, 0.8))
    ]
    write_results(
        tmp_path,
        pursuit_grid_results=head + "\n".join(learnt),
        pursuit_confront_results=head + "confront,a duel,arac,ARAC,,0,0,0.0,against MAPPO,MAPPO,0.5,0.0",
        pursuit_references="where,script,test,opponent,won,slower\na grid,shortest_path,as learnt,optimal,0.25,1.9",
    )
    assert tables.pursuit_table(tmp_path).splitlines()[2:] == [
        "| a duel | against MAPPO | MAPPO | ARAC |  | 0.500 (0.500 to 0.500) |  |  |  |",
        "| a grid | as learnt | `optimal` | script `shortest_path` |  | 0.250 | 1.90 |  |  |",
        "| a grid | as learnt | `optimal` | ARAC | `shortest_path` 0.250 "
        "| 0.900 (0.800 to 1.000) | 1.25 | 0.30 M | 1.0 min |",
    ]


def test_a_measured_speed_stands_in_the_section_of_its_peer_with_the_words_that_measure_it(tmp_path: Path):
    (tmp_path / "docs").mkdir()
    rows = ("JSBSim,a frame,27 x,E,ucav-frame ucav", "MuJoCo,a step,0.98,E,robots", "JSBSim,a page,9 ms,E,")
    head = "peer,what,measured,machine,measurements"
    (tmp_path / "docs" / "speed.csv").write_text("\n".join((head, *rows)))
    speeds = tables.speed_tables(tmp_path)
    assert list(speeds) == ["JSBSim", "MuJoCo"]
    assert speeds["JSBSim"].splitlines()[2:] == [
        "| a frame | 27 x | E | `ucav-frame ucav` |",
        "| a page | 9 ms | E | |",
    ]
    page = tmp_path / "docs" / "speed.md"
    page.write_text("# Speed\n<!-- begin: speed: MuJoCo -->\nold\n<!-- end: speed: MuJoCo -->\nend\n")
    filled = docs._filled(page.read_text(), tmp_path)
    assert "old" not in filled
    assert "| a step | 0.98 | E | `robots` |\n<!-- end: speed: MuJoCo -->\nend\n" in filled


def test_the_table_of_the_duel_has_a_row_for_each_round(tmp_path: Path):
    assert tables.duel_table(tmp_path) == "No results yet."
    rows = (
        "round,seed,pool,gain,exploited,score_against_script\n0,0,0,2.25,0.0,1\n0,1,0,-1.5,0.064,0.5\n1,0,2,17.0,1.0,0"
    )
    write_results(tmp_path, skirmish_duel=rows)
    assert tables.duel_table(tmp_path).splitlines()[2:] == [
        "| 1 | 0 | +2.2, -1.5 | 0.00, 0.06 | 1.00, 0.50 |",
        "| 2 | 2 | +17.0 | 1.00 | 0.00 |",
    ]


def test_the_tables_of_robots_have_a_block_for_each_task_with_its_script(tmp_path: Path):
    assert tables.robots_table(tmp_path, "seqwm_tasks") == "No results yet."
    rows = (
        "task,method,area,low,high,return,success,actor_return,actor_success,cpu_s,verdict\n"
        "A,SeqWM,1.25,1,1.5,2,0.5,-0.5,0.25,240,ahead: holds\nB,MAPPO,-0.001,-0.002,0.75,1,0,,,60,\n"
        "A or B,SeqWM,,,,,,,,,ahead: holds\nA,script,,,,3.25,1,,,,"
    )
    write_results(tmp_path, seqwm_tasks_results=rows)
    assert tables.robots_table(tmp_path, "seqwm_tasks").splitlines()[2:] == [
        "| A | SeqWM | 1.25 [1.00, 1.50] | 2.00 | 0.50 | -0.50 | 0.25 | 4.0 min |",
        "| A | script |  | 3.25 | 1.00 |  |  |  |",
        "| B | MAPPO | 0.00 [0.00, 0.75] | 1.00 | 0.00 |  |  | 1.0 min |",
    ]


def test_the_table_of_the_copy_game_has_its_bounds_below_the_modes(tmp_path: Path):
    assert tables.copy_table(tmp_path) == "No results yet."
    rows = "method,score,low,high,actor,cpu_s,verdict\nSeqWM,0.9754,0.97,0.98,0.9,30.4,\nbest,1,,,,,"
    write_results(tmp_path, seqwm_copy_results=rows)
    assert tables.copy_table(tmp_path).splitlines()[2:] == [
        "| SeqWM | 0.975 [0.970, 0.980] | 0.900 | 30 s |",
        "| best | 1.000 |  |  |",
    ]


def test_the_tables_of_ordered_heads_have_intervals_and_lines_of_reference(tmp_path: Path):
    assert tables.ordered_table(tmp_path, "humanoid") == tables.gradient_table(tmp_path) == "No results yet."
    rows = (
        "task,arm,seeds,area,low,high,mean_area,last_training_return,last_return,cpu_s,verdict\n"
        "A,Poisson,2,1234.5,1000,1500,1240,2000.4,2100,240,ahead: holds\nA,K = 11 less K = 31,,,,,20,,,,\n"
        "A,random play,,,,,,,-2.25,,"
    )
    gradient = "atoms,head,measure,mean,low,high\n11,poisson,variance,2.25,2,3\n11,poisson,over signal,9,8.5,10"
    write_results(tmp_path, humanoid_results=rows, poisson_gradient=gradient)
    assert tables.ordered_table(tmp_path, "humanoid").splitlines()[2:] == [
        "| A | Poisson | 1234 [1000, 1500] | 1240 | 2000 | 2100 | 4.0 min |",
        "| A | random play |  |  |  | -2.2 |  |",
    ]
    assert tables.deviations_table(tmp_path) == "No results yet."
    write_results(tmp_path, poisson_tuning="arm,start_std,area\nA,0.4,10.4\nB,0.4,3\nA,0.5,9\nB,0.5,4")
    assert tables.deviations_table(tmp_path).splitlines() == [
        "| policy | 0.4 | 0.5 |",
        "|---|---|---|",
        "| A | **10** | 9 |",
        "| B | 3 | **4** |",
    ]
    assert tables.gradient_table(tmp_path).splitlines()[2:] == ["| 11 | poisson | 2.2 [2.0, 3.0] | 9.0 [8.5, 10.0] |"]


def test_the_settings_that_were_tried_stand_in_a_row_for_each_method_with_the_best_in_bold(tmp_path: Path):
    assert tables.settings_table(tmp_path) == "No results yet."
    rows = 'method,setting,area\nPPO,base,0.5\nPPO,"a, b",0.75\nSeqWM,base,1.25'
    write_results(tmp_path, seqwm_tuning=rows)
    assert tables.settings_table(tmp_path).splitlines()[2:] == [
        "| PPO | base: 0.50; a, b: **0.75** |",
        "| SeqWM | base: **1.25** |",
    ]


def test_a_picture_shows_something_that_happens_while_both_sides_are_there():
    events, there = np.zeros(100, bool), np.ones((100, 2))
    assert docs.gallery.choose(events, there) == 60
    events[[9, 69, 89]] = True
    assert docs.gallery.choose(events, there) == 70
    there[50:, 1] = 0.4
    assert docs.gallery.choose(events, there) == 10
    assert docs.gallery.choose(np.zeros(100, bool), there) == 50
    assert docs.gallery.choose(events, 0 * there) == 70
    assert docs.gallery.choose(0 * events, 0 * there) == 60
