"""Models in the format ONNX as players, run by onnxruntime.

A session that the user made is run as it is. A file may be untrusted: `palaestra.players.onnx_format` writes what it
checked anew, in memory, and onnxruntime gets that, with bounds for its memory and its time.
"""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.faces.agent_io import ChoicesMode
from palaestra.core.faces.blocks import Form
from palaestra.core.files import FileError, read_limited
from palaestra.game import Importing
from palaestra.players.array_models import ArrayModel
from palaestra.players.errors import first_line
from palaestra.players.model_player import ModelPlayer
from palaestra.players.onnx_format import checked

DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    **{f"tensor({whole})": whole for whole in ("bool", "int8", "uint8", "int32", "int64")},
}
MOST_BYTES = 32 * 2**20
"""Of a file and of its weights: 8 million."""
WORK_BYTES = 32 * 2**20
"""Memory of all files' sessions together for what lies between the layers: it bounds the time of one operator, too."""
MOST_ROWS = 256
"""Rows that go through the network of a file at once, which bounds the memory of a valid one."""
LONGEST_RUN_S = 1.0
"""Time of these rows; it is looked at between two operators."""
TRUST = "if you trust it, give palaestra.players.as_opponent(onnxruntime.InferenceSession(path))"


class OnnxModel(ArrayModel):
    """A session of one input (or one input a field of a dict observation), whose first output is the answer.

    Attributes:
        row_by_row: Whether it takes one row at a time, as exporters write it for an example of one row.
        content: Bytes that `session_of` made the session of, as copies in other processes do; None if the user made it.
        stopped: That it took too long, so that it is not asked again; empty if it did not.
    """

    def __init__(
        self,
        session: Any,
        observation: Form | None,
        choices: ChoicesMode,
        name: str = "onnx",
        content: bytes | None = None,
    ) -> None:
        """Reads the names of inputs and outputs."""
        super().__init__(name, observation, choices)
        self.session, self.content, self.stopped = session, content, ""
        self.inputs = {given.name: DTYPES.get(given.type, "float32") for given in session.get_inputs()}
        self.first_output = session.get_outputs()[0].name
        self.row_by_row = 1 in _fixed_rows(session)

    def output(self, rows: Any) -> Any:
        """Runs the session.

        Raises:
            ValueError: A session of a file failed, or needs more memory or time than it gets.
        """
        parts = {name: rows[name] if isinstance(rows, dict) else rows for name in self.inputs}
        given = {name: part.astype(self.inputs[name], casting="same_kind") for name, part in parts.items()}
        count = max(len(next(iter(given.values()), ())), 1)
        if self.content is None:
            return self._in_parts(given, count, 1 if self.row_by_row else count, None)
        if self.stopped:
            raise ValueError(self.stopped)
        options = runtime().RunOptions()
        timer = threading.Timer(LONGEST_RUN_S * -(-count // MOST_ROWS), setattr, (options, "terminate", True))
        timer.daemon = True
        timer.start()
        try:
            return self._in_parts(given, count, 1 if self.row_by_row else MOST_ROWS, options)
        except Exception as error:  # onnxruntime has a class of its own for each failure
            if options.terminate:
                self.stopped = f"onnxruntime takes longer than {LONGEST_RUN_S:g} s for {MOST_ROWS} rows"
            raise ValueError(self.stopped or f"onnxruntime: {first_line(error)}") from error
        finally:
            timer.cancel()

    def _in_parts(self, given: dict[str, np.ndarray], count: int, size: int, options: Any) -> Any:
        """The output for ``count`` rows, ``size`` of them at a time."""
        outputs = [
            self.session.run([self.first_output], {n: a[k : k + size] for n, a in given.items()}, options)[0]
            for k in range(0, count, size)
        ]
        return outputs[0] if len(outputs) == 1 else np.concatenate(outputs)

    def __getstate__(self) -> dict[str, Any]:
        """Sessions cannot be pickled: a copy makes its own of the file's bytes."""
        if self.content is None:
            raise TypeError("a session of onnxruntime cannot be copied: give the path of its file instead")
        return {**vars(self), "session": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """See `__getstate__`."""
        vars(self).update(state)
        self.session = session_of(state["content"])


def _fixed_rows(session: Any) -> set[int]:
    """Numbers of rows that the inputs of a session are fixed to."""
    return {given.shape[0] for given in session.get_inputs() if given.shape and isinstance(given.shape[0], int)}


@cache
def runtime() -> Any:
    """The module onnxruntime, whose allocator for files' sessions is bounded.

    Raises:
        ImportError: It is not installed.
    """
    missing = 'a policy in the format ONNX needs onnxruntime, which is not installed: pip install "palaestra[onnx]"'
    with Importing("onnxruntime", missing):
        import onnxruntime  # pyright: ignore[reportMissingImports] (an extra)
    kinds = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    arena = onnxruntime.OrtArenaCfg({"max_mem": WORK_BYTES, "arena_extend_strategy": 1})  # 1: what is asked for
    onnxruntime.create_and_register_allocator(onnxruntime.OrtMemoryInfo("Cpu", *kinds), arena)
    return onnxruntime


def session_of(content: bytes) -> Any:
    """A session on one core for bytes that `checked` returned. Nothing is computed before the first run.

    Raises:
        ImportError: onnxruntime is not installed.
    """
    onnxruntime = runtime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised, not printed too
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # they run parts of the graph
    for name, value in (
        ("session.load_model_format", "ONNX"),  # it would take a file of its own format for one
        ("session.use_env_allocators", "1"),  # see `runtime`
        ("session.disable_prepacking", "1"),  # a copy of the weights for each operator that uses them
        ("session.use_device_allocator_for_initializers", "1"),  # weights, bounded by the file, do not count
    ):
        options.add_session_config_entry(name, value)
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def read_file(path: Path) -> ModelPlayer:
    """Player of an ONNX file.

    Raises:
        FileError: No ONNX file, one that does more than a policy needs, or one that onnxruntime cannot run.
        ImportError: onnxruntime is not installed.
    """
    try:
        content = checked(read_limited(path, MOST_BYTES), MOST_BYTES)
    except FileError:
        raise
    except ValueError as error:
        raise FileError(f"{path}: this ONNX file {error}: {TRUST}") from error
    try:
        session = session_of(content)
        model = OnnxModel(session, None, "separate", path.stem, content)
    except ImportError:
        raise
    except Exception as error:
        raise FileError(f"{path}: no ONNX file that onnxruntime can run ({first_line(error)})") from error
    if _fixed_rows(session) - {1}:
        raise FileError(
            f"{path}: takes a fixed number of rows: export it with any number, "
            'torch.onnx.export(module.eval(), ..., dynamic_shapes=[{0: "rows"}], external_data=False)'
        )
    return ModelPlayer(model, file=path)
