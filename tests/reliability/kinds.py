"""Kinds of files that users pass on: how an honest one is made, spoilt and used."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from reliability.data_sets import evil_manifest, make_data_sets, use_data_set
from reliability.forge import write_sealed
from reliability.mutations import (
    ANY_FILE,
    ARCHIVES,
    PRIVATE,
    Mutation,
    Payload,
    Supply,
    archive_of,
    evil_array,
    evil_json,
    evil_text,
    members_of,
    pick,
)
from reliability.onnx_writer import FLOAT, field, floats, integers, model, node, tensor

import palaestra
from palaestra.replay import Recorder, frames, load, verify

RAID, SOCCER, CARTPOLE, PONG = (
    "test/Raid-v0",
    "palaestra/GridSoccer-v0",
    "palaestra/CartPole-v0",
    "palaestra/TeamPong-v0",
)
HUNT, BATTLE, DRAWN = "palaestra/GraphPursuit-v0", "palaestra/Skirmish-3m-v0", "palaestra/SkirmishUnshaped-Maps-v0"
palaestra.register(RAID, "games.two_team:game", family="test")
FRAMES = 5
STEPS = 5


@dataclass(frozen=True)
class Kind:
    """One kind of file.

    Attributes:
        name: For the table.
        suffix: Of its files.
        make: Writes honest files into a folder and returns them.
        mutations: Ways to spoil one.
        use: Opens a file and plays; gets the number of the honest file that it was made of.
        isolated: Whether each file needs a process of its own, as its content stays in memory.
        makes_anew_s: CPU seconds of the work that a damaged file is refused for, where that is its purpose.
    """

    name: str
    suffix: str
    make: Callable[[Path], list[Path]]
    mutations: tuple[Mutation, ...]
    use: Callable[[Path, int], None]
    isolated: bool = False
    makes_anew_s: float = 0.0


# ------------------------------------------------------------------------------------------------------------- replays


def make_replays(folder: Path) -> list[Path]:
    """Runs of compiled games, with scripts, Python players, parameters, players that change, and snapshots."""
    runs = [
        (RAID, {"opponents": {"red": "mix", "blue": resting}, "nodes": 8}),
        (SOCCER, {"opponents": {"red": "random", "blue": "mix"}}),
        (CARTPOLE, {"autoreset_mode": "off"}),
        (HUNT, {"opponents": {"pursuer": "mix", "evader": "mix"}, "graph": str(make_graphs(folder)[0])}),
    ]
    paths = []
    for number, (id, keywords) in enumerate(runs):
        sim = palaestra.make_batch(id, 2, horizon=12, **keywords)
        with Recorder(sim, check_every=1 + number) as recorder:
            sim.reset(seed=number)
            kept = sim.snapshot()
            for step in range(20):
                if step == 4:
                    sim.set_parameters([0], horizon=9)
                    if id != CARTPOLE:
                        sim.set_opponent(next(iter(sim.game.teams)), "mix:0.5", [1])
                if step == 8:
                    sim.restore(kept)
                sim.step()
        paths.append(folder / f"honest_{number}.npz")
        recorder.replay().save(paths[-1])
    return paths


def resting(observations: dict) -> dict:
    """All agents of the test game do nothing."""
    n = len(observations["scout"])
    ones = {name: np.ones((n, observations[name].shape[1]), int) for name in ("scout", "guard")}
    guard = {"move": ones["guard"], "trigger": ones["guard"], "effort": 0.5 * ones["guard"]}
    return {"scout": ones["scout"], "guard": guard}


def evil_replay(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """Other values under a right checksum."""
    content, other = _arrays(data), _arrays(pick(supply.others, rng))
    for _ in range(rng.integers(1, 3)):
        name = pick(["header", "header", "header", *content], rng)
        if name == "header":
            content[name] = np.frombuffer(evil_text(content[name].tobytes(), rng), np.uint8)
        elif name == "change_verbs" and len(content[name]) and rng.random() < 0.7:
            verbs = np.array(content[name])
            verbs[rng.integers(len(verbs)), rng.integers(3)] = pick([-4, -1, 0, 1, 2, 3, 4, 5, 6, 99, 10**9], rng)
            content[name] = verbs
        else:
            content[name] = evil_array(content[name], rng, other[name])
    return _sealed(content)


def evil_paths(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """Keywords that name files of the user, under a right checksum."""
    content = _arrays(data)
    header = json.loads(content["header"].tobytes())
    name = pick([*PRIVATE, *(f"../home/{each}" for each in PRIVATE), f"{Path.cwd()}/secret.json"], rng)
    id, keyword = pick([(HUNT, "graph"), (BATTLE, "map"), (BATTLE, "ruleset"), (DRAWN, "maps")], rng)
    value = pick([name, [name], [["petersen"], [name]], {"file": name, "sha256": "", "text": ""}, {name: 1}], rng)
    text = json.dumps({**header, "id": id, "keywords": {keyword: value}})
    content["header"] = np.frombuffer(text.encode(), np.uint8)
    return _sealed(content)


def evil_changes(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """Verbs that nobody called, with any arguments, under a right checksum."""
    content = _arrays(data)
    operations, lanes = len(content["operations"]), content["change_lanes"].shape[1]
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(content["change_operations"]) + 1))
        nearby = content["change_operations"][max(at - 1, 0) : at]
        number = int(nearby[0]) if len(nearby) else int(rng.integers(operations)) if rng.random() < 0.1 else 0
        verb = [
            int(rng.integers(-1, 8)),
            int(pick([0, 0, 1, 2, 5, -1, 10**9], rng)),
            int(pick([0, 1, -1, -3, 10**9], rng)),
        ]
        row = evil_array(np.zeros(lanes, np.int64), rng)
        values = row.astype(np.int64) if row.shape == (lanes,) and row.dtype.kind in "iu" else np.zeros(lanes, np.int64)
        for name, entry in (
            ("change_operations", number),
            ("change_verbs", verb),
            ("change_lanes", rng.random(lanes) < 0.7),
            ("change_values", values),
        ):
            content[name] = np.insert(content[name], at, entry, axis=0)
    return _sealed(content)


def _arrays(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data)) as archive:
        return {name: archive[name] for name in archive.files if name != "checksum"}


def _sealed(content: dict[str, np.ndarray]) -> bytes:
    target = io.BytesIO()
    write_sealed(target, content)
    return target.getvalue()


def use_replay(path: Path, honest: int) -> None:
    """Loads and verifies a replay, and plays its first operations."""
    replay = load(path)
    verify(replay)
    for number, sim in enumerate(frames(replay)):
        sim.state()
        if number == FRAMES:
            break


# ------------------------------------------------------------------------------------------------------------ policies

WEIGHTS = ("fm3q_team_tag", "fm3q_team_pong")
PLAYED_IN = (("palaestra/TeamTag-2v2-v0", "red"), (PONG, "red"))


def make_policies(folder: Path) -> list[Path]:
    """Bundled weights."""
    import palaestra_assets

    weights = Path(palaestra_assets.__file__).parent / "weights"
    return [Path(shutil.copy(weights / f"{name}.safetensors", folder)) for name in WEIGHTS]


def evil_safetensors(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """Other values, and metadata, under a right checksum."""
    from safetensors.numpy import load as load_arrays

    from palaestra_baselines.common.policy_file import CHECKSUM, arrays_to_bytes

    arrays, metadata = dict(load_arrays(data)), _safetensors_header(data).get("__metadata__", {})
    metadata.pop(CHECKSUM, None)
    if rng.random() < 0.4:
        key = pick(list(metadata), rng)
        text = str(pick(["", "os", "pid", "iql", "x" * 9999, "null", "[" * 50_000, "9" * 6000, "NaN", '"'], rng))
        if rng.random() < 0.4 and metadata[key][:1] in "{[":
            text = json.dumps(evil_json(json.loads(metadata[key]), rng))
        metadata[key] = text
    else:
        name = pick(list(arrays), rng)
        spoilt = evil_array(arrays[name], rng, arrays[pick(list(arrays), rng)])
        arrays[name] = spoilt if spoilt.dtype.kind in "fiub" and spoilt.dtype.isnative else arrays[name][..., :0]
    return arrays_to_bytes(arrays, metadata)


def evil_safetensors_header(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """Another header before the same bytes."""
    size = int.from_bytes(data[:8], "little")
    header = json.dumps(evil_json(_safetensors_header(data), rng)).encode()
    length = len(header) if rng.random() < 0.8 else int(rng.integers(2**40))
    return length.to_bytes(8, "little") + header + data[8 + size :]


def _safetensors_header(data: bytes) -> dict[str, Any]:
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size])


def use_policy(path: Path, honest: int) -> None:
    """Plays a saved policy for some decisions."""
    id, team = PLAYED_IN[honest]
    _play(id, {team: path})


def _play(id: str, players: dict[str, Any]) -> None:
    sim = palaestra.make_batch(id, 2)
    for team in sim.game.teams:
        sim.set_opponent(team, players.get(team, "random"))
    sim.reset(seed=0)
    for _ in range(STEPS):
        sim.step()
    sim.close()


# ----------------------------------------------------------------------------------------- policies of other libraries


def make_sb3(folder: Path) -> list[Path]:
    """Untrained models of Stable-Baselines3."""
    from stable_baselines3 import A2C, PPO

    from palaestra.adapters.sb3 import as_vec_env

    paths = []
    for number, (method, (id, _)) in enumerate(zip((A2C, PPO), PLAYED_IN, strict=True)):
        paths.append(folder / f"model_{number}.zip")
        method("MlpPolicy", as_vec_env(id, 2, opponent="random"), seed=0, device="cpu").save(paths[-1])
    return paths


def evil_sb3(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """Other entries of the data, or another program that makes the weights."""
    members = dict(members_of(data))
    if rng.random() < 0.4:
        members["data"] = evil_text(members["data"], rng)
    else:
        weights = members_of(members["policy.pth"])
        name = next(name for name, _ in weights if name.endswith("data.pkl"))
        program = bytearray(dict(weights)[name])
        for at in rng.integers(len(program), size=rng.integers(1, 4)):
            program[at] = rng.integers(256)
        changed = [(each, bytes(program) if each == name else content) for each, content in weights]
        members["policy.pth"] = archive_of(changed, zipfile.ZIP_STORED)
    return archive_of(list(members.items()), zipfile.ZIP_STORED)


OPERATORS = {
    **dict.fromkeys(("Concat", "Softmax", "LayerNormalization", "ArgMax", "GatherElements"), ("axis", "")),
    **dict.fromkeys(("MatMul", "Add", "Mul", "Div", "Pow", "Tanh", "Relu", "PRelu", "Where", "Clip"), ("", "")),
    **dict.fromkeys(("Expand", "Tile", "Reshape", "Slice", "Pad", "Squeeze", "Unsqueeze", "CumSum"), ("", "sizes")),
    **{"Gather": ("axis", "sizes"), "Split": ("axis", "sizes"), "ReduceSum": ("keepdims", "sizes")},
    **{"ConstantOfShape": ("value", "sizes"), "Cast": ("to", ""), "Gemm": ("transB", ""), "Transpose": ("perm", "")},
}
"""Some of those that play, with an attribute of theirs, and whether their second input says sizes or places."""
OTHERS = ("Loop", "If", "Scan", "Conv", "LSTM", "NonZero", "RandomNormal", "OneHot", "TopK", "Resize")
"""Some that do not play."""
SIZES = (0, 1, 2, 3, 9, 18, -1, 7, 2**16, 2**31, 2**40, 2**62, -(2**62))


def network(rng: np.random.Generator, sees: int, nodes: list[bytes]) -> bytes:
    """A network of two layers with further nodes between them."""
    layers = [node("MatMul", ["seen", "w0"], "t0"), node("Tanh", ["t0"], "t1")]
    last = node("MatMul", [f"t{1 + len(nodes)}", "w1"], "actions")
    weights = [floats("w0", rng.normal(size=(sees, 8))), floats("w1", rng.normal(size=(8, 6)))]
    sizes = [integers(f"i{k}", *(int(n) for n in rng.choice(SIZES, size=k % 4))) for k in range(5)]
    return model([*layers, *nodes, last], [*weights, *sizes], sees=sees, gives=6)


def make_onnx(folder: Path) -> list[Path]:
    """Networks of random weights for a team of two that makes one choice of three each."""
    paths = []
    for number in range(2):
        paths.append(folder / f"network_{number}.onnx")
        paths[-1].write_bytes(network(np.random.default_rng(number), 18, [node("Relu", ["t1"], "t2")] * number))
    return paths


def evil_onnx(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """Other operators with any attributes, on tensors of any size, in the middle of the network."""
    nodes = []
    for k in range(rng.integers(1, 4)):
        operator = str(pick(OTHERS if rng.random() < 0.05 else list(OPERATORS), rng))
        attribute, sizes = OPERATORS.get(operator, ("body", ""))
        others = ["i0", "i1", "i2", "i3", "i4"] if sizes else ["w0", "w1", "seen", *(f"t{j}" for j in range(k + 2))]
        inputs = [f"t{k + 1}", *(str(name) for name in rng.choice(others, size=rng.integers(0, 4)))]
        if operator == "ConstantOfShape":
            inputs = inputs[1:2]
        number, size = int(rng.choice(SIZES)), int(rng.integers(4))
        kind, content = pick(
            [
                *[(2, field(3, number))] * 8,
                (7, b"".join(field(8, int(n)) for n in rng.choice(SIZES, size=3))),
                (4, field(5, tensor("t", (size,), FLOAT, bytes(4 * size)))),
                (4, field(5, tensor("t", (number,), FLOAT, b"1234", field(14, 1)))),
                (3, field(4, "\x1b[2J")),
                (5, field(6, field(1, b""))),
            ],
            rng,
        )
        more = field(5, field(1, attribute) + content + field(20, kind)) if attribute and rng.random() < 0.7 else b""
        nodes.append(node(operator, inputs, f"t{k + 2}", more))
    return network(rng, 18, nodes)


def use_onnx(path: Path, honest: int) -> None:
    """Plays a network for some decisions."""
    _play(PONG, {"red": path})


# --------------------------------------------------------------------------------------------------------------- pools


def make_pools(folder: Path) -> list[Path]:
    """Pools of the bundled weights."""
    from palaestra.wrappers.pool import SelfPlayPool

    paths = []
    for number, (policy, (id, team)) in enumerate(zip(make_policies(folder), PLAYED_IN, strict=True)):
        pool = SelfPlayPool(id, team=team, members=[policy, policy], draw="pfsp")
        paths.append(folder / f"pool_{number}.json")
        pool.save(paths[-1])
    return paths


def evil_pool(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """A pool with another entry."""
    return evil_text(data, rng)


def use_pool(path: Path, honest: int) -> None:
    """Loads a pool, whose members lie in the folder above, and plays it."""
    from palaestra.wrappers.pool import SelfPlayPool

    id, team = PLAYED_IN[honest]
    pool = SelfPlayPool.load(path)
    if len(pool):  # an empty one may be filled later
        _play(id, {team: pool})


# --------------------------------------------------------------------------------------------------------- checkpoints


def make_checkpoints(folder: Path) -> list[Path]:
    """Matches in the middle, as trainings keep them."""
    from palaestra_baselines.common.run_outputs import save_checkpoint

    paths = []
    for number, (id, _) in enumerate(PLAYED_IN):
        sim = palaestra.make_batch(id, 4, opponents=dict.fromkeys(("red", "blue"), "random"))
        sim.reset(seed=1)
        sim.step()
        kept = sim.snapshot()
        state = {"states": kept.states.view(np.uint8), "lane_seeds": kept.lane_seeds, "steps": 7}
        paths.append(folder / f"checkpoint_{number}.safetensors")
        save_checkpoint(paths[-1], {**state, "rng": np.random.default_rng(0).bit_generator.state})
    return paths


def use_checkpoint(path: Path, honest: int) -> None:
    """Loads a checkpoint and goes on with its matches, as a resumed training does."""
    from palaestra.core.run.snapshot import Snapshot
    from palaestra_baselines.common.run_outputs import load_checkpoint

    state = load_checkpoint(path)
    sim = palaestra.make_batch(PLAYED_IN[honest][0], 4, opponents=dict.fromkeys(("red", "blue"), "random"))
    np.random.default_rng(0).bit_generator.state = state["rng"]
    states = state["states"].view(sim.game.state_dtype)
    sim.restore(Snapshot(sim.game.name, sim.rules, states, state["lane_seeds"], {}))
    for _ in range(STEPS):
        sim.step()


# --------------------------------------------------------------------------------------------------- sources of games


def make_graphs(folder: Path) -> list[Path]:
    """Files of edges, with names and with numbers."""
    texts = (
        "market gate\ngate mill\nmill market\nmill bridge # over the river\nbridge gate\n",
        "0 1\n1 2\n2 3\n3 0\n4 0\n",
    )
    return _written(folder, "city", ".edges", texts)


def make_maps(folder: Path) -> list[Path]:
    """Bundled maps: one of SMAC, and one whose units come late."""
    return _written(
        folder, "map", ".json", [_asset(name) for name in ("skirmish/maps/2s3z", "skirmish/scenarios/waves")]
    )


def make_rulesets(folder: Path) -> list[Path]:
    """The bundled ruleset."""
    return _written(folder, "rules", ".json", [_asset("skirmish/rulesets/smac-4.10")])


def _asset(name: str) -> str:
    import palaestra_assets

    return palaestra_assets.path(f"{name}.json").read_text(encoding="utf-8")


def _written(folder: Path, name: str, suffix: str, texts: Sequence[str]) -> list[Path]:
    paths = [folder / f"{name}_{number}{suffix}" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def evil_lines(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """Other names, lines twice, a hub, and far too many nodes or edges."""
    lines = data.decode().splitlines()
    for _ in range(rng.integers(1, 4)):
        word = str(pick(["gate", "\x1b[2J", "\u202e", "x" * 10**5, str(2**62), "-1", *PRIVATE, "\0", "#"], rng))
        at = int(rng.integers(len(lines)))
        how = int(rng.integers(6))
        if how == 0:
            lines += [f"{word} n{k}" for k in range(int(pick([9, 64, 70], rng)))]
        elif how == 1:
            lines += [f"{k} {k + 1}" for k in range(int(pick([9, 4000, 5000, 300_000], rng)))]
        else:
            lines[at] = pick([f"{word} {lines[at]}", f"{word} {word}", word, f"{word} mill", ""], rng)
    return "\n".join(lines).encode()


def evil_source(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """A map or a ruleset with another entry."""
    return evil_text(data, rng)


def use_graph(path: Path, honest: int) -> None:
    """Hunts, or fights, on a graph."""
    id = (HUNT, "palaestra/GraphConfront-v0")[honest]
    palaestra.make_batch(id, 1, compiled=False, graph=str(path)).reset(seed=0)


def use_map(path: Path, honest: int) -> None:
    """Fights on a map."""
    palaestra.make_batch(BATTLE, 1, compiled=False, map=str(path)).reset(seed=0)


def use_ruleset(path: Path, honest: int) -> None:
    """Fights by a ruleset."""
    palaestra.make_batch(BATTLE, 1, compiled=False, map="2s3z", ruleset=str(path)).reset(seed=0)


# --------------------------------------------------------------------------------------------------------------- cache


def make_cache(folder: Path) -> list[Path]:
    """The files of the kernel cache of a game, as one archive: spoilt is one of them, used are all."""
    import numba

    numba.config.CACHE_DIR = str(folder / "cache")  # type: ignore[attr-defined]
    _play_compiled()
    found = sorted(path for path in (folder / "cache").rglob("*") if path.suffix in (".nbi", ".nbc"))
    return [Path(shutil.copy(path, folder / path.name)) for path in found]


def _play_compiled() -> float:
    from games import duel

    from palaestra.core.run.kernel import KernelSimulation

    sim = KernelSimulation(duel.game(), 2)
    sim.set_opponent("red", "random")
    sim.set_opponent("blue", "random")
    sim.reset(seed=0)
    for _ in range(STEPS):
        sim.step()
    return hashlib.sha256(sim.states.tobytes()).digest()[0]


def payload_of_others(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """A pickle that gets a right checksum, in a folder that everybody may write to."""
    return pickle.dumps(Payload(supply.marker))


def use_cache(path: Path, honest: int) -> None:
    """Puts a file in the place of the honest one in a copy of the cache, which is this process's own, and plays."""
    import numba

    folder = path.parent.parent / "honest"
    names = sorted(file.name for file in folder.iterdir() if file.suffix in (".nbi", ".nbc"))
    original = next(file for file in (folder / "cache").rglob(names[honest]))
    own = Path(os.environ["PALAESTRA_SCRATCH"]) / "cache"
    shutil.rmtree(own, ignore_errors=True)
    shutil.copytree(folder / "cache", own)
    target = own / original.relative_to(folder / "cache")
    if payload_of_others.__name__ in path.name:
        importlib.import_module("palaestra.core.compile.disk_cache").write(target, path.read_bytes())
        target.parent.chmod(0o777)
    else:
        shutil.copy(path, target)
    numba.config.CACHE_DIR = str(own)  # type: ignore[attr-defined]
    _play_compiled()


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "replay",
            ".npz",
            make_replays,
            (*ANY_FILE, *ARCHIVES, *[evil_replay, evil_changes, evil_paths] * 4),
            use_replay,
        ),
        Kind(
            "policy",
            ".safetensors",
            make_policies,
            (*ANY_FILE, *[evil_safetensors, evil_safetensors_header] * 3),
            use_policy,
        ),
        Kind("sb3", ".zip", make_sb3, (*ANY_FILE, *ARCHIVES, *[evil_sb3] * 5), use_policy),
        Kind("graph", ".edges", make_graphs, (*ANY_FILE, *[evil_lines] * 7), use_graph),
        Kind("map", ".json", make_maps, (*ANY_FILE, *[evil_source] * 7), use_map),
        Kind("ruleset", ".json", make_rulesets, (*ANY_FILE, *[evil_source] * 7), use_ruleset),
        Kind("pool", ".json", make_pools, (*ANY_FILE, *[evil_pool] * 7), use_pool),
        Kind(
            "checkpoint",
            ".safetensors",
            make_checkpoints,
            (*ANY_FILE, *[evil_safetensors, evil_safetensors_header] * 3),
            use_checkpoint,
        ),
        Kind("cache", ".bin", make_cache, (*ANY_FILE, payload_of_others), use_cache, True, makes_anew_s=20.0),
    )
}
if find_spec("minari"):
    KINDS["data"] = Kind("data", ".part", make_data_sets, (*ANY_FILE, *[evil_manifest] * 5), use_data_set)
if find_spec("onnxruntime"):
    KINDS["onnx"] = Kind("onnx", ".onnx", make_onnx, (*ANY_FILE, *[evil_onnx] * 9), use_onnx)
