"""Processes that measure, under this palaestra or another version of it.

The measuring code is that of this checkout in every process, so that two versions are timed alike: the process loads
the worker from this folder, and under their usual names `palaestra.cli.measure` and `palaestra.cli.random_actions` of
this palaestra, which import nothing of palaestra.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import palaestra

FOLDER = Path(__file__).parent
OURS = Path(palaestra.__file__).parents[1]
"""Folder that holds this palaestra."""
PACKAGES = ("envs", "baselines", "assets")
"""Folders of a checkout that hold packages."""

BOOT = """
import importlib.util, sys
def load(name, file):
    spec = importlib.util.spec_from_file_location(name, file)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
for name in ("measure", "random_actions"):
    load(f"palaestra.cli.{name}", f"{sys.argv[1]}/palaestra/cli/{name}.py")
load("worker", sys.argv[2]).main(sys.argv[3:])
"""
"""Nothing of palaestra is imported before the worker asks for it: ``palaestra.cli.measure`` is found by its name."""


class ChildError(RuntimeError):
    """A measuring process refused or ended."""


@dataclass(frozen=True)
class Installation:
    """A palaestra that processes can be started under.

    Attributes:
        name: For tables and errors.
        python: Interpreter.
        path: What comes first on its module path.
        home: Folder that must hold its palaestra; None where the interpreter decides.
    """

    name: str
    python: str
    path: tuple[str, ...]
    home: Path | None

    def environment(self, **variables: str) -> dict[str, str]:
        """Environment variables of its processes."""
        path = os.pathsep.join(self.path)
        return {**os.environ, "PYTHONPATH": path, **variables}

    def command(self, module: str, *arguments: str) -> list[str]:
        """The command that runs ``main(arguments)`` of a module in this folder."""
        return [self.python, "-P", "-c", BOOT, str(OURS), str(FOLDER / f"{module}.py"), *arguments]


def this_installation() -> Installation:
    """The palaestra of this process, with everything that it can import."""
    return Installation("this", sys.executable, (str(OURS), *filter(None, sys.path)), OURS)


def find_installation(place: str) -> Installation:
    """Another palaestra.

    Args:
        place: Folder of a checkout (it has ``envs/palaestra``), which runs with this interpreter; or an interpreter,
            or the folder of its virtual environment, where palaestra is installed.

    Raises:
        ValueError: It is none of these.
    """
    path = Path(place).expanduser()
    if (path / "envs" / "palaestra" / "__init__.py").is_file():
        folders = tuple(str((path / name).resolve()) for name in PACKAGES)
        rest = tuple(entry for entry in sys.path if entry and not _holds_palaestra(entry))
        return Installation(place, sys.executable, (*folders, *rest), (path / "envs").resolve())
    for python in (path, path / "bin" / "python", path / "Scripts" / "python.exe"):
        if python.is_file() and os.access(python, os.X_OK):
            kept = os.environ.get("PYTHONPATH", "").split(os.pathsep)
            own = tuple(entry for entry in kept if entry and not _holds_palaestra(entry))
            return Installation(place, str(python.absolute()), own, None)
    what = "has no envs/palaestra and no bin/python" if path.exists() else "does not exist"
    raise ValueError(f"--against {place}: it {what}; name the folder of a checkout, or the python of an installation")


def _holds_palaestra(entry: str) -> bool:
    return any((Path(entry) / name).is_dir() for name in ("palaestra", "palaestra_baselines", "palaestra_assets"))


class Child:
    """A process of ``compare_worker.py``; a context manager.

    Attributes:
        name: Of its installation.
    """

    def __init__(self, installation: Installation) -> None:
        """Starts it.

        Raises:
            ChildError: No palaestra there, or another one.
        """
        self.name = installation.name
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed by close)
        self._process = subprocess.Popen(
            installation.command("compare_worker"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=installation.environment(),
        )
        try:
            self.about = self.ask("about")
            _check_home(installation, self.about["file"])
        except BaseException:
            self.close()
            raise

    def ask(self, what: str, **keywords: Any) -> dict[str, Any]:
        """Sends one request and waits for its answer.

        Raises:
            ChildError: It refused, or it ended.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            print(json.dumps({"do": what, **keywords}), file=stdin, flush=True)
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise ChildError(_ended(self.name, self._process.wait(), self._output()))
        answer = json.loads(line)
        if "error" in answer:
            raise ChildError(f"{self.name}: {answer['error']}")
        return answer

    def _output(self) -> str:
        self._errors.seek(0)
        return self._errors.read()

    def close(self) -> None:
        """Ends it; may be called twice."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.kill()  # nothing of it is kept
        self._process.wait()
        self._errors.close()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def start(installation: Installation, measurement: str, *, cache: str | None = None, **keywords: Any) -> Any:
    """Makes one measurement of ``start_worker.py`` in a fresh process.

    Args:
        installation: Where.
        measurement: Its name.
        cache: Folder of compiled code; the user's own if None.
        **keywords: Of the measurement.

    Returns:
        What it answers.

    Raises:
        ChildError: The process ended without an answer.
    """
    variables = {"PALAESTRA_VERBOSE": "1"} if cache is None else {"PALAESTRA_VERBOSE": "1", "NUMBA_CACHE_DIR": cache}
    run = subprocess.run(
        installation.command("start_worker", measurement, json.dumps(keywords)),
        capture_output=True,
        text=True,
        env=installation.environment(**variables),
        check=False,
    )
    if run.returncode != 0 or not run.stdout:
        raise ChildError(_ended(installation.name, run.returncode, run.stderr))
    return json.loads(run.stdout)


def _check_home(installation: Installation, file: str) -> None:
    home = installation.home
    if home is not None and not Path(file).resolve().is_relative_to(home.resolve()):
        raise ChildError(f"{installation.name}: its python imports another palaestra, {file}")


def _ended(name: str, code: int, output: str) -> str:
    """Why a process ended: a missing package by its pip line, else the last line that it wrote."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return f"{name}: its process ended with code {code}: {lines[-1] if lines else 'it printed nothing'}"
