"""Policy files: whatever is wrong with one is told when it is loaded, by an error that names the file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("safetensors")
pytest.importorskip("torch")
pytest.importorskip("tyro")

from safetensors.numpy import save_file

import palaestra_assets
from palaestra import registry
from palaestra.core.files import FileError
from palaestra.core.run.opponents import load_policy
from palaestra_baselines import minimax_q
from palaestra_baselines.common.flat_networks import load_player
from palaestra_baselines.common.policy_file import read_policy, save_policy, write_arrays

pytestmark = pytest.mark.check

SOCCER, PONG = "palaestra/TeamGridSoccer-3x3-v0", "palaestra/TeamPong-v0"
METADATA = b'{"__metadata__": {"method": "fm3q"}, '
WEIGHTS = palaestra_assets.path("weights")


def small(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"layer_0.weight": rng.normal(size=(4, 3)).astype(np.float32), "layer_0.bias": np.zeros(4, np.float32)}


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A whole policy file."""
    path = tmp_path / "policy.safetensors"
    save_policy(path, small(np.random.default_rng(0)), method="mine", env_id=PONG, args={"seed": 1}, steps=5)
    return path


def team_pong(change: Callable[[dict[str, np.ndarray]], object], path: Path) -> Path:
    """The bundled policy of TeamPong with another content and a checksum that fits it."""
    arrays, notes = read_policy(WEIGHTS / "fm3q_team_pong.safetensors")
    change(arrays)
    write_arrays(path, arrays, {"method": "fm3q", "env_id": PONG, "game": notes["game"], "args": "{}"})
    return path


def game(id: str) -> registry.Game:
    return registry.make_game(id)[0]


def test_a_changed_byte_anywhere_is_an_error_of_the_file(policy: Path):
    whole, rng = policy.read_bytes(), np.random.default_rng(1)
    for place in [*range(8), *rng.integers(8, len(whole), 150).tolist()]:
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        policy.write_bytes(changed)
        if json_of(bytes(changed)) == json_of(whole) and place < len(whole) - 64:
            continue  # a blank that means nothing
        with pytest.raises(FileError, match=r"policy\.safetensors: "):
            read_policy(policy)


def json_of(content: bytes) -> object:
    size = int.from_bytes(content[:8], "little")
    try:
        return json.loads(content[8 : 8 + size])
    except ValueError:
        return None


@pytest.mark.parametrize("kept", [0, 5, 8, 60, -1])
def test_a_cut_file_is_an_error_of_the_file(policy: Path, kept: int):
    policy.write_bytes(policy.read_bytes()[:kept])
    with pytest.raises(FileError, match=r"policy\.safetensors: "):
        read_policy(policy)


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 900_000,
        b"[1, 2]",
        b'{"__metadata__": 5}',
        b'{"__metadata__": {"method": {"a": 1}}}',
        METADATA + b'"a": {"dtype": "F32", "shape": [1000000000000], "data_offsets": [0, 4]}}',
        METADATA + b'"a": {"dtype": "F32", "shape": [99999999999], "data_offsets": [0, 399999999996]}}',
        METADATA + b'"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}',
    ],
    ids=["deep", "list", "number", "nested", "shape", "larger_than_the_file", "dtype"],
)
def test_a_foreign_header_is_an_error_of_the_file_before_memory_is_taken(tmp_path: Path, header: bytes):
    path = tmp_path / "foreign.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(FileError, match=r"foreign\.safetensors: "):
        read_policy(path)


def test_a_policy_without_a_checksum_is_refused(policy: Path):
    arrays, _ = read_policy(policy)
    save_file(arrays, policy, {"method": "mine", "env_id": PONG})
    with pytest.raises(FileError, match=r"policy\.safetensors: has no checksum .* train again"):
        read_policy(policy)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_neither_saved_nor_loaded(policy: Path, value: float):
    arrays, before = small(np.random.default_rng(0)), policy.read_bytes()
    arrays["layer_0.bias"][2] = value
    with pytest.raises(ValueError, match=r"layer_0\.bias has weights that are not finite.*is not written"):
        save_policy(policy, arrays, method="mine", env_id=PONG, args={})
    assert policy.read_bytes() == before
    write_arrays(policy, arrays, {"method": "mine"})
    with pytest.raises(FileError, match=r"policy\.safetensors: 'layer_0\.bias' holds weights that are no finite"):
        read_policy(policy)


def test_a_policy_of_another_game_names_both_games_and_the_file():
    path = WEIGHTS / "fm3q_grid_soccer.safetensors"
    wanted = (
        rf"fm3q_grid_soccer.*: was trained in '{SOCCER}', the game 'TeamGridSoccer', and cannot play red of TeamPong"
    )
    with pytest.raises(FileError, match=wanted):
        load_player(path, game(PONG), "red")


def test_a_preset_of_the_same_game_is_refused_where_its_sizes_differ_only():
    path = WEIGHTS / "fm3q_team_tag.safetensors"
    load_player(path, registry.make_game("palaestra/TeamTag-2v2-v0", horizon=50)[0], "red")
    with pytest.raises(FileError, match=r"fm3q_team_tag.*for teams of 2.*it was trained in 'palaestra/TeamTag-2v2-v0'"):
        load_player(path, game("palaestra/TeamTag-v0"), "red")


WRONG: dict[str, tuple[Callable[[dict[str, np.ndarray]], object], str]] = {
    "inner": (
        lambda a: a.update({"paddle.layer_1.weight": np.zeros((64, 7), np.float32)}),
        "layer before gives 64",
    ),
    "bias": (lambda a: a.update({"paddle.layer_1.bias": np.zeros(3, np.float32)}), r"its bias \(3,\)"),
    "axes": (lambda a: a.update({"paddle.layer_0.weight": np.zeros(9, np.float32)}), r"is \(9,\)"),
    "missing": (lambda a: a.pop("paddle.layer_1.bias"), r"no paddle\.layer_1\.bias"),
    "number": (lambda a: a.update({"paddle.layer_7.weight": a.pop("paddle.layer_1.weight")}), r"no paddle\.layer_1\.w"),
    "places": (lambda a: a.update({"paddle.place_bias": np.zeros((2, 5), np.float32)}), r"place_bias is \(2, 5\)"),
    "no places": (lambda a: a.pop("paddle.place_bias"), r"place_bias is \(0,\)"),
    "nothing": (lambda a: [a.pop(name) for name in list(a)[1:]], r"has no layers|no paddle\.layer|place_bias"),
    "whole numbers": (lambda a: a.update({"paddle.layer_1.bias": np.zeros(64, np.int64)}), "no finite numbers"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_layers_that_do_not_fit_are_refused_when_the_policy_is_loaded(wrong: str, tmp_path: Path):
    change, message = WRONG[wrong]
    path = team_pong(change, tmp_path / "wrong.safetensors")
    with pytest.raises(FileError, match=r"wrong\.safetensors: .*" + message):
        load_player(path, game(PONG), "red")


@pytest.mark.parametrize("value", [-0.5, 0.0])
def test_a_table_of_no_probabilities_is_refused(value: float, tmp_path: Path):
    path, soccer = tmp_path / "table.safetensors", game("palaestra/GridSoccer-v0")
    assert soccer.enumeration is not None
    table = np.full((soccer.enumeration.positions, 5), value)
    save_policy(path, {"red": table}, method="minimax_q", env_id="palaestra/GridSoccer-v0", args={})
    with pytest.raises(FileError, match=r"table\.safetensors: the policy of red is no table of probabilities"):
        minimax_q.load_policy(path, soccer, "red")
    with pytest.raises(FileError, match=r"table\.safetensors: it holds policies of red, none of 'blue'"):
        minimax_q.load_policy(path, soccer, "blue")


@pytest.mark.skipif(os.name == "nt", reason="file modes of POSIX")
def test_a_policy_has_the_rights_of_other_new_files(policy: Path):
    (policy.parent / "other").touch()
    assert policy.stat().st_mode == (policy.parent / "other").stat().st_mode


@pytest.mark.parametrize("path", sorted(WEIGHTS.glob("*.safetensors")), ids=lambda path: path.stem)
def test_the_bundled_policies_have_checksums_and_name_their_game(path: Path):
    _, notes = read_policy(path)
    assert notes["game"] == game(notes["env_id"]).name


@pytest.mark.parametrize(
    ("method", "message"), [("mine", "which is not installed"), ("pid", "which saves no policies")]
)
def test_a_method_that_plays_no_policies_is_an_error_of_the_file(
    policy: Path, monkeypatch: pytest.MonkeyPatch, method: str, message: str
):
    arrays, _ = read_policy(policy)
    save_policy(policy, arrays, method=method, env_id=PONG, args={})
    entries = [EntryPoint("pid", "palaestra_baselines.pid", "palaestra.baselines")]
    monkeypatch.setattr("palaestra.core.run.opponents.entry_points", lambda group: entries)
    with pytest.raises(FileError, match=rf"policy\.safetensors: was made by .*{message}"):
        load_policy(policy, game(PONG), "red")


@pytest.mark.parametrize("width", [100_000, 10**30, -3, "x", None])
def test_a_network_of_graphs_is_not_made_wider_than_its_weights(width: object, tmp_path: Path):
    from palaestra_baselines.arac import NETWORK, GraphPolicy, Graphs, load_policy

    game, path = registry.make_game("palaestra/GraphPursuit-v0", observation="nodes")[0], tmp_path / "wide.safetensors"
    policy = GraphPolicy(Graphs(game), 16, 2, "sequential")
    notes = {NETWORK: {"width": width, "heads": 2, "decoder": "sequential"}}
    save_policy(path, policy.arrays(), method="arac", env_id="palaestra/GraphPursuit-v0", args={}, **notes)
    with pytest.raises(FileError, match=r"wide.safetensors: the weights do not fit"):
        load_policy(path, game, "pursuer")


def test_red_of_skirmish_plays_the_same_battle_where_both_sides_learn():
    duel = "palaestra/SkirmishDuel-v0"
    even, uneven = (registry.make_game(duel, map=name)[0] for name in ("2s3z", "5m_vs_6m"))
    for team in ("red", "blue"):
        assert load_policy(WEIGHTS / "skirmish_2s3z.safetensors", even, team).memory_size == 0
    assert load_policy(WEIGHTS / "skirmish_5m_vs_6m.safetensors", uneven, "red").memory_size == 0
    with pytest.raises(FileError, match=r"the policy has no layers unit_blue\.layer_0\.weight"):
        load_policy(WEIGHTS / "skirmish_5m_vs_6m.safetensors", uneven, "blue")
