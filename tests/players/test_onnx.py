"""Files in the format ONNX: what a policy needs plays, all else is refused before a runtime sees it."""

from __future__ import annotations

import pickle
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from games import two_team_homogeneous
from games.play import played
from reliability.onnx_writer import FLOAT, INT64, field, floats, integers, model, node, tensor, value, varint

import palaestra
from palaestra.core.files import FileError
from palaestra.core.run.opponents import player_name, resolve
from palaestra.evaluation import evaluate
from palaestra.players import as_opponent, onnx_models
from palaestra.players.onnx_format import MOST_FIELDS, checked
from palaestra.replay import record

MELEE, MELEE_ID = two_team_homogeneous.game(), "test/Melee-v0"
palaestra.register(MELEE_ID, "games.two_team_homogeneous:game", family="test")
SIZE = 34
"""Numbers that a point of the melee sees; it gives two."""
TEXT = 8
"""A type of tensors."""
RNG = np.random.default_rng(0)


WEIGHT = RNG.normal(size=(SIZE, 2)).astype(np.float32)
LAYER = node("MatMul", ["seen", "weight"], "actions")
POLICY = model([LAYER], [floats("weight", WEIGHT)])


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def after(nodes: list[bytes], tensors: list[bytes], result: str) -> bytes:
    """The policy, with the sum of a tensor that other nodes compute added to what it gives."""
    last = [
        node("ReduceSum", [result], "sum", field(5, field(1, "keepdims") + field(3, 0) + field(20, 2))),
        node("MatMul", ["seen", "weight"], "own"),
        node("Add", ["own", "sum"], "actions"),
    ]
    return model([*nodes, *last], [floats("weight", WEIGHT), *tensors])


# ------------------------------------------------------------------------------------------- what a policy has to have


def test_a_policy_is_written_anew_as_it_was():
    assert checked(POLICY, 1000) == POLICY


def test_comments_are_left_out():
    commented = POLICY + field(2, "a program") + field(6, "a text") + field(14, field(1, "key") + field(2, "value"))
    assert checked(commented, 1000) == POLICY


UNFIT = {
    "a draw": node("RandomNormalLike", ["actions"], "sample"),
    "a loop": node("Loop", ["", "", "seen"], "sample", field(5, field(1, "body") + field(6, b""))),
    "an operator of others": node("Run", ["actions"], "sample", field(7, "my.operators")),
    "a circle": node("Add", ["seen", "sample"], "sample"),
    "a node with more names than one": node("Split", ["actions", "sample", ""], "sample", field(2, "other")),
}


@pytest.mark.parametrize("what", UNFIT)
def test_what_the_actions_are_not_computed_from_is_left_out(what: str):
    more = field(1, UNFIT[what]) + field(11, value("state", 5)) + field(12, value("sample", "rows"))
    assert checked(model([LAYER], [floats("weight", WEIGHT), floats("bias", WEIGHT)], more=more), 1000) == POLICY


def test_the_first_output_counts_wherever_its_nodes_stand_and_whatever_they_are_named():
    names = "StatefulPartitionedCall/policy/dense/MatMul:0", "policy/dense/MatMul/ReadVariableOp:0"
    layer = node("MatMul", ["seen", names[1]], names[0], field(3, "policy/dense/MatMul"))
    other = node("Clip", [names[0], ""], "actions")
    critic = node("ReduceSum", [names[0]], "value")
    nameless = node("Run", ["seen"], "", field(7, "my.operators"))
    content = model(
        [critic, nameless, layer, other], [floats(names[1], WEIGHT)], more=field(12, value("value", "rows"))
    )
    assert checked(content, 1000) == model([layer, other], [floats(names[1], WEIGHT)])


def test_two_nodes_of_one_name_both_stay_for_the_runtime_to_refuse(tmp_path: Path):
    pytest.importorskip("onnxruntime")
    twice = model([LAYER, node("Identity", ["seen"], "actions")], [floats("weight", WEIGHT)])
    assert checked(twice, 1000) == twice
    with pytest.raises(FileError, match=r"mine\.onnx: no ONNX file that onnxruntime can run"):
        resolve(MELEE, "red", written(tmp_path / "mine.onnx", twice))


LAST_AXIS = field(5, field(1, "axis") + field(3, -1) + field(20, 2))
KEPT = field(5, field(1, "keepdims") + field(3, 0) + field(20, 2))
AXES = field(5, field(1, "axes") + field(8, varint(-1)) + field(20, 7))


def test_the_likeliest_of_logits_plays_as_exporters_write_it(tmp_path: Path):
    pytest.importorskip("onnxruntime")
    nodes = [  # torch.distributions.Categorical: mode and log_prob
        node("MatMul", ["seen", "weight"], "scores"),
        node("ReduceLogSumExp", ["scores"], "total", AXES),
        node("Sub", ["scores", "total"], "logits"),
        node("Softmax", ["logits"], "probs", LAST_AXIS),
        node("ArgMax", ["probs"], "actions", LAST_AXIS + KEPT),
        node("GatherElements", ["logits", "actions"], "log_prob", LAST_AXIS),
        node("Multinomial", ["logits"], "sample"),
    ]
    outputs = field(12, value("log_prob", "rows")) + field(12, value("sample", "rows"))
    content = model(nodes, [floats("weight", WEIGHT)], more=outputs, gives=None, kind=INT64)
    network = onnx_models.read_file(written(tmp_path / "mine.onnx", content)).model
    rows = RNG.normal(size=(1000, SIZE)).astype(np.float32)
    np.testing.assert_array_equal(network.output(rows), (rows @ WEIGHT).argmax(1))  # type: ignore[attr-defined]


def test_a_network_for_one_row_plays_row_by_row(tmp_path: Path):
    pytest.importorskip("onnxruntime")
    path = written(tmp_path / "mine.onnx", model([LAYER], [floats("weight", WEIGHT)], rows=1))
    seen, actions = played(MELEE, path)
    np.testing.assert_allclose(actions, np.clip(seen @ WEIGHT, -1, 1), atol=1e-5)


def test_an_input_of_whole_numbers_gets_no_rounded_ones():
    session = SimpleNamespace(
        get_inputs=lambda: [SimpleNamespace(name="mask", type="tensor(int64)", shape=["rows", 2])],
        get_outputs=lambda: [SimpleNamespace(name="actions")],
        run=lambda names, given, options: [given["mask"]],
    )
    network = onnx_models.OnnxModel(session, None, "separate")
    assert network.output(np.ones((3, 2), np.int8)).dtype == np.int64
    with pytest.raises(TypeError, match="Cannot cast"):
        network.output(np.full((3, 2), 0.5, np.float32))


def test_a_file_plays_in_other_processes_and_wherever_a_player_is_named(tmp_path: Path):
    runtime = pytest.importorskip("onnxruntime")
    path = written(tmp_path / "mine.onnx", POLICY)
    seen, actions = played(MELEE, path)
    np.testing.assert_allclose(actions, np.clip(seen @ WEIGHT, -1, 1), atol=1e-5)
    copy = pickle.loads(pickle.dumps(resolve(MELEE, "red", path)))
    assert player_name(copy) == player_name(str(path)) == "mine"
    np.testing.assert_array_equal(played(MELEE, copy)[1], actions)
    np.testing.assert_array_equal(played(MELEE, as_opponent(runtime.InferenceSession(str(path))))[1], actions)
    assert evaluate(MELEE_ID, str(path), "random", matches=2, horizon=3).a == "mine"
    assert record(MELEE_ID, {"red": str(path)}, horizon=3).players["red"] == "mine"


def test_many_rows_go_through_the_network_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("onnxruntime")
    network = onnx_models.read_file(written(tmp_path / "mine.onnx", POLICY)).model
    rows = RNG.normal(size=(10, SIZE))
    whole = network.output(rows)  # type: ignore[attr-defined]
    monkeypatch.setattr(onnx_models, "MOST_ROWS", 4)
    np.testing.assert_allclose(network.output(rows), whole, atol=1e-6)  # type: ignore[attr-defined]


def test_without_onnxruntime_the_error_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    onnx_models.runtime.cache_clear()
    with pytest.raises(ImportError, match=r'pip install "palaestra\[onnx\]"'):
        resolve(MELEE, "red", written(tmp_path / "mine.onnx", POLICY))


# ------------------------------------------------------------------------------------ what a policy does not have to do

NEXT = node("Identity", ["condition"], "next")
BODY = field(1, NEXT) + field(12, value("next"))
EXTERNAL = field(1, "location") + field(2, "../../secret")
HOSTILE = {
    "numbers in another file": (
        model([LAYER], [tensor("weight", WEIGHT.shape, FLOAT, b"", field(13, EXTERNAL) + field(14, 1))]),
        r"keeps its numbers in another file \(external_data=False exports one file\)",
    ),
    "numbers in another file, of which only the place is said": (
        model([LAYER], [tensor("weight", WEIGHT.shape, FLOAT, b"", field(14, 1))]),
        "keeps its numbers in another file",
    ),
    "an operator of others": (
        model([node("Run", ["seen"], "actions", field(7, "my.operators"))], []),
        "uses the operator 'my.operators.Run', which is not among",
    ),
    "a draw": (
        model([node("RandomNormalLike", ["seen"], "actions")], []),
        r"'RandomNormalLike', which is not among .*, as it draws: export the likeliest action, .*deterministic=True",
    ),
    "a vast tensor that no action needs": (
        model([LAYER], [floats("weight", WEIGHT), tensor("other", (2**40,), FLOAT, b"1234")]),
        "has tensors that are too large",
    ),
    "a loop without end": (
        model([node("Loop", ["", "", "seen"], "actions", field(5, field(1, "body") + field(6, BODY)))], []),
        r"has a graph inside a node \(a loop or a branch\)",
    ),
    "a name that a terminal obeys": (model([node("\x1b[2J\u202e", ["seen"], "actions")], []), r"'\\x1b\[2J\\u202e'"),
    "a function": (POLICY + field(25, field(1, "f") + field(7, LAYER)), "has functions of its own"),
    "a sparse tensor": (model([LAYER], [], more=field(15, field(1, floats("weight", WEIGHT)))), "holds sparse tensors"),
    "texts": (model([LAYER], [tensor("weight", (1,), TEXT, b"")]), "has a tensor of type 8, which is no plain number"),
    "a cast to texts": (
        model([node("Cast", ["seen"], "actions", field(5, field(1, "to") + field(3, TEXT)))], []),
        "casts to a type that is no plain number",
    ),
    "a vast tensor": (model([LAYER], [tensor("weight", (2**40,), FLOAT, b"1234")]), "has tensors that are too large"),
    "a vast tensor of many axes": (
        model([LAYER], [tensor("weight", (2**12, 2**12, 2**12), FLOAT, b"1234")]),
        "has tensors that are too large",
    ),
    "a tensor of a negative size": (
        model([LAYER], [tensor("w", (-1, 0), FLOAT, b"")]),
        "has tensors that are too large",
    ),
    "a tensor of packed sizes": (
        model([LAYER], [field(1, varint(2**62) + varint(2**62)) + field(2, FLOAT) + field(8, "weight")]),
        "has tensors that are too large",
    ),
    "small integers that become large ones": (
        model([LAYER], [field(1, 5 * 2**20) + field(2, INT64) + field(7, bytes(5 * 2**20)) + field(8, "weight")]),
        "has tensors that are too large",
    ),
    "two graphs": (POLICY + POLICY, "twice"),
    "another field": (POLICY + field(99, b"x"), "has a field 99 in a model, which no policy needs"),
    "a million fields": (model([LAYER], [], more=field(10, b"") * (MOST_FIELDS + 1)), "has more than 100000 fields"),
    "a name that is no text": (
        POLICY.replace(b"seen", b"\xffeen"),
        "is damaged: a name is no text",
    ),
    "a cut file": (POLICY[:-3], "is damaged, was cut, or is something else"),
    "a text": (b"no graph", "is damaged, was cut, or is something else"),
    "the runtime's own format": (b"\x08\x00\x00\x00ORTM" + bytes(64), "has a field 0 in a model"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_file_that_does_more_than_a_policy_is_refused(what: str, tmp_path: Path):
    content, complaint = HOSTILE[what]
    path = written(tmp_path / "hostile.onnx", content)
    with pytest.raises(FileError, match=rf"hostile.onnx: this ONNX file .*{complaint}"):
        resolve(MELEE, "red", path)


LONG = (10**5, 25_000)
GROWS = {
    "ConstantOfShape": ([node("ConstantOfShape", ["size"], "vast")], [integers("size", *LONG)]),
    "Expand": ([node("Expand", ["one", "size"], "vast")], [floats("one", np.ones(1)), integers("size", *LONG)]),
    "Tile": ([node("Tile", ["one", "size"], "vast")], [floats("one", np.ones((1, 1))), integers("size", *LONG)]),
    "Range": (
        [node("Range", ["from", "to", "by"], "vast")],
        [floats(name, np.array(n)) for name, n in (("from", 0.0), ("to", 2e9), ("by", 1.0))],
    ),
    "OneHot": (
        [node("OneHot", ["one", "depth", "values"], "vast")],
        [integers("one", 1), integers("depth", 2**31), floats("values", np.arange(2.0))],
    ),
    "a size beyond all": (
        [node("Expand", ["one", "size"], "vast")],
        [floats("one", np.ones(1)), integers("size", 2**32, 2**32)],
    ),
    "an outer product": (
        [node("Mul", ["column", "row"], "vast")],
        [floats("column", np.ones((10**5, 1))), floats("row", np.ones((1, 10**5)))],
    ),
    "doubling": (
        [node("Concat", [f"t{k}", f"t{k}"], f"t{k + 1}", field(5, field(1, "axis") + field(3, 0) + field(20, 2)))
         for k in range(40)] + [node("Identity", ["t40"], "vast")],
        [floats("t0", np.ones(1))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", GROWS)
def test_a_network_that_needs_much_memory_is_refused(what: str, tmp_path: Path):
    pytest.importorskip("onnxruntime")
    nodes, tensors = GROWS[what]
    path = written(tmp_path / "hostile.onnx", after(nodes, tensors, "vast"))
    with pytest.raises(FileError, match=r"hostile.onnx: .*onnxruntime"):
        resolve(MELEE, "red", path)


def test_a_network_that_takes_long_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(onnx_models, "LONGEST_RUN_S", 0.02)
    layers = [node("MatMul", [f"t{k}", "t0"], f"t{k + 1}") for k in range(2000)]  # 20 s
    path = written(tmp_path / "hostile.onnx", after(layers, [floats("t0", np.ones((800, 800)))], "t2000"))
    with pytest.raises(FileError, match=r"hostile.onnx: .*onnxruntime takes longer than 0.02 s for 256 rows"):
        resolve(MELEE, "red", path)


@pytest.mark.slow  # torch's exporter takes ten seconds to start
def test_a_module_that_torch_exported_plays(tmp_path: Path):
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    torch, path = pytest.importorskip("torch"), tmp_path / "mine.onnx"
    module = torch.nn.Sequential(
        torch.nn.Linear(SIZE, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2)
    )
    with pytest.warns(match=""):  # whatever torch warns of in its own code
        torch.onnx.export(
            module.eval(),
            (torch.zeros(2, SIZE),),
            str(path),
            dynamic_shapes=[{0: "rows"}],
            external_data=False,
            verbose=False,
        )
    np.testing.assert_allclose(played(MELEE, path)[1], played(MELEE, as_opponent(module))[1], atol=1e-5)


EMPTY = ("ArgMax", "Hardmax", "ReduceL1", "ReduceLogSum", "ReduceLogSumExp", "Softmax", "Transpose", "TopK", "GatherND")


@pytest.mark.parametrize("operator", EMPTY)
def test_an_empty_tensor_of_a_trillion_rows_takes_no_time(operator: str, tmp_path: Path):
    pytest.importorskip("onnxruntime")
    zero = field(5, field(1, "value") + field(5, tensor("zero", (1,), INT64, bytes(8))) + field(20, 4))
    more = {"TopK": ["none"], "GatherND": ["rows"]}.get(operator, [])
    second = field(2, "places") if operator == "TopK" else b""
    nodes = [node("ConstantOfShape", ["size"], "empty"), node("ConstantOfShape", ["size"], "rows", zero)]
    nodes += [node(operator, ["empty", *more], "vast", second), node("Size", ["vast"], "count")]
    nodes.append(node("Cast", ["count"], "number", field(5, field(1, "to") + field(3, FLOAT) + field(20, 2))))
    content = after(nodes, [integers("size", 2**40, 0), integers("none", 0)], "number")
    network, start_s = onnx_models.read_file(written(tmp_path / "mine.onnx", content)).model, time.perf_counter()
    with suppress(ValueError):
        network.output(np.zeros((2, SIZE)))  # type: ignore[attr-defined]
    assert time.perf_counter() - start_s < 1.0


def test_an_error_in_a_match_names_the_file(tmp_path: Path):
    pytest.importorskip("onnxruntime")
    root = node("Sqrt", ["seen"], "root"), node("MatMul", ["root", "weight"], "actions")
    path = written(tmp_path / "mine.onnx", model(root, [floats("weight", WEIGHT)]))
    with pytest.raises(FileError, match=r"mine.onnx, red of Melee: the model gave NaN"):
        played(MELEE, path)


def test_a_network_for_a_fixed_number_of_rows_is_refused(tmp_path: Path):
    pytest.importorskip("onnxruntime")
    path = written(tmp_path / "mine.onnx", model([LAYER], [floats("weight", WEIGHT)], rows=5))
    with pytest.raises(FileError, match=r"mine.onnx: takes a fixed number of rows: export it with .*dynamic_shapes"):
        resolve(MELEE, "red", path)


def test_a_network_that_no_runtime_takes_is_refused(tmp_path: Path):
    pytest.importorskip("onnxruntime")
    path = written(tmp_path / "mine.onnx", model([node("MatMul", ["seen", "absent"], "actions")], []))
    with pytest.raises(FileError, match=r"mine\.onnx: no ONNX file that onnxruntime can run"):
        resolve(MELEE, "red", path)


@pytest.mark.check
def test_damaged_files_play_or_are_refused_by_name(refused_by_name, tmp_path: Path):
    pytest.importorskip("onnxruntime")
    path = tmp_path / "mine.onnx"
    for k in range(150):
        damaged = bytearray(POLICY[: RNG.integers(1, len(POLICY))] if k % 3 == 0 else POLICY)
        for _ in range(1 + k % 3):
            damaged[RNG.integers(len(damaged))] ^= 1 << RNG.integers(8)
        path.write_bytes(damaged)
        with refused_by_name(path):
            resolve(MELEE, "red", path)
