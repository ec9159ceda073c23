"""Weights that torch has saved: read without torch; nothing in them is called, and no size in them is believed."""

from __future__ import annotations

import contextlib
import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palaestra.core.files.archive import DAMAGES
from palaestra.players.torch_weights import read_weights

torch = pytest.importorskip("torch")


def saved(tensors: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(tensors, buffer)
    return buffer.getvalue()


def rewritten(content: bytes, changes: dict[str, Any], compress: int = zipfile.ZIP_STORED) -> bytes:
    """The archive with other members, by the last part of their names."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w", compress) as new:
        for name in old.namelist():
            change = changes.get(name.split("/")[-1], lambda content: content)
            new.writestr(name, change(old.read(name)))
    return buffer.getvalue()


class Call:
    """Becomes a call of a function where it is pickled."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple:
        return self.call


def test_weights_are_what_torch_reads():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2).double(), torch.nn.Linear(2, 2).half())
    content = saved(net.state_dict())
    expected = torch.load(io.BytesIO(content), weights_only=True)
    found = read_weights(content)
    assert list(found) == list(expected)
    for name, array in found.items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, expected[name].float().numpy())


def test_parts_and_transposes_of_a_tensor_are_read():
    base = torch.arange(24.0).reshape(4, 6)
    views = {"all": base, "turned": base.T, "part": base[1:3, ::2], "one": base[2, 3]}
    found = read_weights(saved(views))
    for name, view in views.items():
        np.testing.assert_array_equal(found[name], view.numpy())


HOSTILE = {
    "a call": (lambda mark: saved({"w": Call(open, str(mark), "w")}), "a call of '.* open'"),
    "ten gigabytes": (lambda mark: saved({"w": Call(bytearray, 10**10)}), "a call of '.* bytearray'"),
    "a storage of any size": (
        lambda mark: saved({"w": Call(torch.storage.UntypedStorage, 10**10)}),
        "a call of 'torch.storage UntypedStorage'",
    ),
    "a tensor of one number, repeated": (
        lambda mark: saved({"w": torch.zeros(1).expand(2**40)}),
        "a tensor larger than its numbers",
    ),
    "no dict": (lambda mark: saved({"w": 3}), "no dict of tensors"),
    "not numbers": (lambda mark: saved({"w": torch.tensor([1.0, float("nan")])}), "'w' is not finite"),
    "integers": (lambda mark: saved({"w": torch.zeros(2, dtype=torch.int8)}), "numbers of type 'torch CharStorage'"),
    "compressed": (
        lambda mark: rewritten(saved({"w": torch.zeros(9)}), {}, zipfile.ZIP_DEFLATED),
        "'archive/data.pkl' is compressed or too large",
    ),
    "too few numbers": (
        lambda mark: rewritten(saved({"w": torch.zeros(9)}), {"0": lambda content: content[:16]}),
        "4 numbers where there should be '9'",
    ),
    "another order of bytes": (
        lambda mark: rewritten(saved({"w": torch.zeros(9)}), {"byteorder": lambda content: b"big"}),
        "numbers in another order of bytes",
    ),
    "another program": (
        lambda mark: rewritten(saved({}), {"data.pkl": lambda content: pickle.dumps([1, 2.0])}),
        "the instruction FRAME",
    ),
    "a long program": (
        lambda mark: rewritten(saved({}), {"data.pkl": lambda content: content[:2] + b"N0" * 10**6 + b"."}),
        "is compressed or too large",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_more_than_tensors_is_refused(what: str, tmp_path: Path):
    content, complaint = HOSTILE[what]
    with pytest.raises(ValueError, match=complaint):
        read_weights(content(tmp_path / "mark"))
    assert not (tmp_path / "mark").exists()


def test_numbers_that_many_tensors_share_are_not_copied_without_end():
    shared = torch.zeros(50_000)
    with pytest.raises(ValueError, match=r"too large|larger than the file"):
        read_weights(saved({str(k): shared[:] for k in range(20)}))


@pytest.mark.check
def test_damaged_weights_are_read_or_refused():
    whole = saved({"w": torch.zeros(3, 4), "b": torch.zeros(3)})
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        honest = archive.read("archive/data.pkl")
    rng = np.random.default_rng(0)
    for _ in range(500):
        damaged, program = bytearray(whole), bytearray(honest)
        damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        program[rng.integers(len(program))] = rng.integers(256)
        for content in (bytes(damaged), rewritten(whole, {"data.pkl": lambda _, new=bytes(program): new})):
            with contextlib.suppress(*DAMAGES):
                read_weights(content)
