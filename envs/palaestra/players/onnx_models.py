"""Models in the format ONNX as players, run by onnxruntime.

An ONNX file is data: a graph of standard operators. Files are read as bytes, so a graph cannot name others to be read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from palaestra.core.faces.agent_io import ChoicesMode
from palaestra.core.faces.blocks import Form
from palaestra.core.files import FileError
from palaestra.players.array_models import ArrayModel
from palaestra.players.errors import first_line
from palaestra.players.model_player import ModelPlayer

DTYPES = {"tensor(float)": "float32", "tensor(double)": "float64"}


class OnnxModel(ArrayModel):
    """A session of one input (or one input a field of a dict observation), whose first output is the answer.

    Attributes:
        content: Bytes of the file, of which copies in other processes make their own session; None if it was given as
            a session.
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
        self.session, self.content = session, content
        self.inputs = {given.name: DTYPES.get(given.type, "float32") for given in session.get_inputs()}
        self.first_output = session.get_outputs()[0].name

    def output(self, rows: Any) -> Any:
        """Runs the session."""
        if isinstance(rows, dict):
            given = {name: rows[name].astype(dtype) for name, dtype in self.inputs.items()}
        else:
            given = {name: rows.astype(dtype) for name, dtype in self.inputs.items()}
        return self.session.run([self.first_output], given)[0]

    def __getstate__(self) -> dict[str, Any]:
        """Sessions cannot be pickled: a copy makes its own of the file's bytes."""
        if self.content is None:
            raise TypeError("a session of onnxruntime cannot be copied: give the path of its file instead")
        return {**vars(self), "session": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """See `__getstate__`."""
        vars(self).update(state)
        self.session = session_of(state["content"])


def session_of(content: bytes) -> Any:
    """A session on one core.

    Raises:
        ImportError: onnxruntime is not installed.
    """
    try:
        import onnxruntime  # pyright: ignore[reportMissingImports] (optional, in no extra)
    except ImportError as error:
        raise ImportError(
            "a policy in the format ONNX needs onnxruntime, which is not installed: pip install onnxruntime"
        ) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised, not printed too
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def read_file(path: Path) -> ModelPlayer:
    """Player of an ONNX file.

    Raises:
        FileError: onnxruntime cannot read it.
        ImportError: onnxruntime is not installed.
    """
    content = path.read_bytes()
    try:
        session = session_of(content)
    except ImportError:
        raise
    except Exception as error:  # onnxruntime has a class of its own for each failure
        raise FileError(f"{path}: no ONNX file that onnxruntime can run ({first_line(error)})") from error
    return ModelPlayer(OnnxModel(session, None, "separate", path.stem, content), file=path)
