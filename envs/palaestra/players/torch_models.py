"""Modules of PyTorch as players, and files of TorchScript.

TorchScript is a program. `check_script` refuses files whose code does more than arithmetic on tensors, but a program
may still take for ever: load scripts of people whom you know, or their ONNX or safetensors files.
"""

from __future__ import annotations

import ast
import io
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import torch

from palaestra.core.faces.agent_io import ChoicesMode
from palaestra.core.faces.blocks import Form
from palaestra.core.files import FileError
from palaestra.players.array_models import ArrayModel
from palaestra.players.errors import first_line
from palaestra.players.model_player import ModelPlayer

HINT = "write it by torch.jit.save(torch.jit.script(module), path), or give as_opponent(module)"
TRUST = "if you trust it, give palaestra.players.as_opponent(torch.jit.load(path))"
MOST_CODE_BYTES = 10_000_000
OPERATOR_SPACES = ("aten", "prim", "quantized", "mkldnn")
FILE_OPERATORS = ("from_file", "save")
"""Operators of torch whose arguments are names of files."""


class TorchModel(ArrayModel):
    """A module on float tensors; it is asked in evaluation mode."""

    def __init__(self, module: torch.nn.Module, observation: Form | None, choices: ChoicesMode) -> None:
        """Keeps the module."""
        super().__init__(type(module).__name__, observation, choices)
        self.module = module

    def output(self, rows: Any) -> Any:
        """The module's output as an array; tuples and other things as they are."""
        weight = next(self.module.parameters(), None)
        kind = weight.dtype if weight is not None and weight.is_floating_point() else torch.float32
        tensor = lambda a: torch.as_tensor(a, dtype=kind, device=None if weight is None else weight.device)  # noqa: E731
        given = {name: tensor(a) for name, a in rows.items()} if isinstance(rows, dict) else tensor(rows)
        training = [part for part in self.module.modules() if part.training]
        try:
            for part in training:
                part.training = False
            with torch.no_grad():
                out = self.module(given)
        finally:
            for part in training:
                part.training = True
        return out.detach().cpu().numpy() if isinstance(out, torch.Tensor) else out

    def __getstate__(self) -> dict[str, Any]:
        """TorchScript is pickled as the bytes of its file."""
        state = dict(vars(self))
        if isinstance(self.module, torch.jit.ScriptModule):
            state["module"] = script_bytes(self.module)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """See `__getstate__`."""
        vars(self).update(state)
        if isinstance(self.module, bytes):
            self.module = load_script(self.module)


def script_bytes(module: Any) -> bytes:
    """The file of a TorchScript module."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of torch.jit as a whole
        torch.jit.save(module, buffer)
    return buffer.getvalue()


def load_script(content: bytes) -> Any:
    """The TorchScript module of a file's bytes, on the processor."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        return torch.jit.load(io.BytesIO(content), map_location="cpu")


def read_file(path: Path) -> ModelPlayer:
    """Player of a TorchScript file.

    Raises:
        FileError: Not TorchScript, or a script that does more than arithmetic.
    """
    content = path.read_bytes()
    if complaint := check_script(content):
        raise FileError(f"{path}: {complaint}")
    try:
        module = load_script(content)
    except Exception as error:  # torch raises whatever it trips over
        raise FileError(f"{path}: no TorchScript file that torch can load ({first_line(error)}): {HINT}") from error
    return ModelPlayer(TorchModel(module, None, "separate"), file=path)


def check_script(content: bytes) -> str:
    """Why the bytes of a file are not loaded as TorchScript; empty if they may be."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            if not any(entry.filename.endswith("/constants.pkl") for entry in entries):
                return f"a pickled module or its weights, no TorchScript, and a pickle may run any code: {HINT}"
            code = [entry for entry in entries if entry.compress_type != zipfile.ZIP_STORED]
            if sum(entry.file_size for entry in code) > MOST_CODE_BYTES:
                return f"its code is longer than {MOST_CODE_BYTES} bytes"
            if (damaged := archive.testzip()) is not None:  # torch does not look, and crashes on some damage
                return f"damaged: {damaged} is not what was written: {HINT}"
            sources = [archive.read(entry).decode() for entry in entries if entry.filename.endswith(".py")]
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, zlib.error, UnicodeDecodeError) as error:
        return f"no TorchScript file ({first_line(error)}): {HINT}"
    return next(filter(None, map(_forbidden, sources)), "")


def _forbidden(source: str) -> str:
    """What in the code of a script reaches beyond tensors; empty if nothing does."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, RecursionError, ValueError, MemoryError):
        return f"its code cannot be read: {TRUST}"
    for node in nodes:
        if isinstance(node, ast.Attribute):
            module, _, space = ast.unparse(node.value).partition(".")
            if module == "ops" and not space and node.attr not in OPERATOR_SPACES:
                return f"its code uses the operators {node.attr}: {TRUST}"
            if module in ("torch", "ops") and node.attr in FILE_OPERATORS:
                return f"its code uses {node.attr}, which reaches files: {TRUST}"
    return ""
