"""MuJoCo moves the bodies of N matches: the engine of all robots.

Bodies are records of float64 members. Tables of copies say which members are inputs of MuJoCo, which are written
from its arrays, and which start a match; a copy is one assignment for all lanes.

Positions and velocities are exact after a period. What MuJoCo derives from them (sensors, forces, frames) describes
the bodies before the last substep; after `MujocoEngine.load` all of it is exact.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from palaestra.core.contract.fields import member_offset
from palaestra.core.interrupts import imported_whole
from palaestra.game import Game

DIVERGED = "diverged"
"""Field of the match record, float64: 1 from the period on in which MuJoCo has given the match up."""


class Copy(NamedTuple):
    """A member of a body and its place in MuJoCo's arrays.

    Attributes:
        field: Field of the match record: bodies of one kind.
        body: Number of the body.
        member: Name of the member, float64.
        array: Array of ``mjData``, such as ``"qpos"``.
        first: Number of its first element in a row of that array.
        part: First and last but one element of the member, where not all of it is copied.
    """

    field: str
    body: int
    member: str
    array: str
    first: int
    part: tuple[int, int] | None = None


class Scale(NamedTuple):
    """A number of a match that multiplies numbers of the model, from the start of the match on.

    Attributes:
        field: Field of the match record: bodies of one kind.
        body: Number of the body.
        member: Name of the member, float64: the factor.
        array: Array of ``mjModel`` of named elements, such as ``"body_mass"``, ``"geom_friction"`` or
            ``"dof_damping"``.
        names: Of these elements. MuJoCo names no degrees of freedom: those of a ``dof_`` array have the name of their
            joint.
        columns: Which numbers of each; of an array with one number each: ``(0,)``.
    """

    field: str
    body: int
    member: str
    array: str
    names: tuple[str, ...]
    columns: tuple[int, ...]


def import_mujoco() -> Any:
    """MuJoCo.

    Raises:
        ImportError: It is not installed; the message names the extra that brings it.
    """
    try:
        import mujoco
        import mujoco.batch
    except ImportError as error:
        raise ImportError('robots need MuJoCo 3.17 or newer: pip install "palaestra[robots]"') from error
    return mujoco


import_mujoco = imported_whole(import_mujoco)  # no decorator: digests of rules read the function with its decorators


class MujocoEngine:
    """MuJoCo's own batch. See `palaestra.game.PhysicsEngine`.

    A match whose positions, velocities or accelerations MuJoCo finds absurd keeps its last outputs and is marked by
    `DIVERGED`: the rules truncate it. Nothing is printed or written to a file.

    Attributes:
        batch: ``mujoco.batch.Batch``, a simulation a lane.
    """

    body_field = DIVERGED
    command_fields = ()

    def __init__(
        self,
        game: Game,
        lanes: int,
        threads: int,
        *,
        model: Callable[..., Any],
        arguments: tuple[Any, ...],
        substeps: int,
        inputs: Sequence[Copy],
        outputs: Sequence[Copy],
        starts: Sequence[Copy],
        scales: Sequence[Scale] = (),
    ) -> None:
        """Makes the batch.

        Args:
            game: The rules.
            lanes: N.
            threads: Threads of MuJoCo; the bits do not depend on them.
            model: Gives the ``MjModel``.
            arguments: Of the function.
            substeps: Steps of MuJoCo in a period.
            inputs: What is copied to MuJoCo before a period.
            outputs: What is copied from MuJoCo after a period and after a start.
            starts: What is copied to MuJoCo when a match starts, beside the inputs.
            scales: What multiplies numbers of the model in a match; such a batch has a model for each lane.
        """
        mujoco = import_mujoco()
        self._substeps = substeps
        made = model(*arguments)
        made.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)  # else a diverged match starts anew
        self.batch = mujoco.batch.Batch(made, lanes, threads)
        self._all_stages, self._no_stage = int(mujoco.mjtStage.mjSTAGE_ACC), int(mujoco.mjtStage.mjSTAGE_NONE)
        self._warnings = self.batch.warning  # int32 [N, kinds, 2]: last info, count
        kinds = mujoco.mjtWarning
        self._absurd = [int(kinds.mjWARN_BADQPOS), int(kinds.mjWARN_BADQVEL), int(kinds.mjWARN_BADQACC)]
        self._inputs, self._outputs, self._starts = (self._copies(game, c) for c in (inputs, outputs, starts))
        self._scales = [self._scaled(game, made, scale) for scale in scales]
        self._places_of_factors = np.array([place for place, *_ in self._scales], np.intp)
        self._factors = np.ones((lanes, len(scales)))
        self._delayed = self._delays(made)
        self._diverged = member_offset(game.state_dtype, DIVERGED) // 8
        self._lanes = lanes
        self._seen: Any = None
        quiet_log.__enter__()
        self._release = weakref.finalize(self, quiet_log.__exit__)

    def _copies(self, game: Game, copies: Sequence[Copy]) -> list[tuple[slice, np.ndarray]]:
        """The elements of a record, counted in float64, and the view of MuJoCo's array that they go to or come from."""
        found = []
        for field, body, member, array, first, part in copies:
            place = _numbers_of(game, field, body, member)
            if part is not None:
                place = slice(place.start + part[0], place.start + part[1])
            rows = self.batch.bind(array).reshape(self.batch.nsim, -1)
            found.append((place, rows[:, first : first + place.stop - place.start]))
        return found

    def _delays(self, model: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Of servos that can be delayed: the view of what all of them were told, ``[N, numbers]``; places, controls.

        MuJoCo keeps two numbers, times and values for each of them.
        """
        samples = model.actuator_history[:, 0]
        servos = np.flatnonzero(samples)
        if not servos.size:
            return None
        places = [model.actuator_historyadr[k] + 2 + samples[k] + np.arange(samples[k]) for k in servos]
        rows = self.batch.bind("history").reshape(self.batch.nsim, -1)
        return rows, np.concatenate(places), np.repeat(servos, samples[servos])

    def _scaled(self, game: Game, model: Any, scale: Scale) -> tuple[int, np.ndarray, tuple[np.ndarray, ...], Any]:
        """Where the factor stands in a record; the model's array of all lanes, places in a row of it, their numbers."""
        numbers = elements(model, game.name, scale.array, scale.names)
        rows = self.batch.expand(scale.array)
        rows = rows.reshape(*rows.shape[:2], -1)
        places = np.ix_(numbers, np.array(scale.columns))
        return _numbers_of(game, scale.field, scale.body, scale.member).start, rows, places, rows[0][places].copy()

    def _scale(self, lanes: np.ndarray, factors: np.ndarray) -> None:
        """Gives the models of lanes their factors, ``[N, scales]``."""
        changed = np.flatnonzero((self._factors[lanes] != factors).any(axis=1))
        if changed.size:
            lanes, factors = lanes[changed], factors[changed]
            for (_, rows, (numbers, columns), plain), factor in zip(self._scales, factors.T, strict=True):
                rows[lanes[:, None, None], numbers, columns] = plain * factor[:, None, None]
            self._factors[lanes] = factors
            self.batch.set_const(lanes)

    def _numbers(self, states: np.ndarray) -> np.ndarray:
        """The match records as float64 ``[N, numbers of a record]``."""
        if self._seen is None or self._seen[0] is not states:
            self._seen = states, states.view(np.float64).reshape(len(states), -1)
        return self._seen[1]

    def load(self, states: np.ndarray, lanes: np.ndarray) -> None:
        """See `palaestra.game.PhysicsEngine`."""
        numbers = self._numbers(states)
        self.batch.reset(lanes, stage=self._no_stage)
        self._warnings[lanes] = 0
        if self._scales:
            self._scale(lanes, numbers[lanes[:, None], self._places_of_factors])
        for place, array in (*self._starts, *self._inputs):
            array[lanes] = numbers[lanes, place]
        if self._delayed is not None:  # else servos are told 0 until the delay is over
            history, places, servos = self._delayed
            history[lanes[:, None], places] = self.batch.ctrl[lanes[:, None], servos]
        self.batch.forward(lanes, stage=self._all_stages)
        self._write(numbers, lanes)

    def advance(self, states: np.ndarray, lanes: np.ndarray) -> None:
        """See `palaestra.game.PhysicsEngine`."""
        numbers = self._numbers(states)
        if lanes.size == self._lanes:
            for place, array in self._inputs:
                array[...] = numbers[:, place]
            self.batch.step(None, self._substeps)
            if not np.count_nonzero(self._warnings):
                for place, array in self._outputs:
                    numbers[:, place] = array
                return
        else:
            for place, array in self._inputs:
                array[lanes] = numbers[lanes, place]
            self.batch.step(lanes, self._substeps)
        self._write(numbers, lanes)

    def _write(self, numbers: np.ndarray, lanes: np.ndarray) -> None:
        """Writes the outputs of lanes; those that have diverged keep theirs and are marked."""
        absurd = self._warnings[lanes][:, self._absurd, 1].any(axis=1)
        sound = lanes[~absurd] if absurd.any() else lanes
        for place, array in self._outputs:
            numbers[sound, place] = array[sound]
        numbers[lanes, self._diverged] = absurd

    def save(self, lanes: np.ndarray) -> dict[str, np.ndarray]:
        """See `palaestra.game.SavingEngine`."""
        return {
            "state": self.batch.state[lanes],
            "warnings": self._warnings[lanes],
            "factors": self._factors[lanes],
        }

    def load_saved(self, saved: Any, lanes: np.ndarray) -> None:
        """See `palaestra.game.SavingEngine`."""
        self._scale(lanes, saved["factors"])
        self.batch.state[lanes] = saved["state"]
        self._warnings[lanes] = saved["warnings"]

    def close(self) -> None:
        """See `palaestra.game.PhysicsEngine`."""
        self._release()


SHORT_KINDS = {"jnt": "joint", "cam": "camera", "eq": "equality"}
"""Names of kinds of elements that MuJoCo shortens in the names of its arrays."""


def elements(model: Any, game: str, array: str, names: Sequence[str]) -> np.ndarray:
    """Rows of an array of the model that belong to the named elements.

    Raises:
        ValueError: The array is not one of named elements, or the model has no such element.
    """
    mujoco = import_mujoco()
    prefix = array.partition("_")[0]
    kind = "joint" if prefix == "dof" else SHORT_KINDS.get(prefix, prefix)
    number = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}", None)
    if number is None:
        raise ValueError(f"{game}: {array!r} is no array of named elements of a model, such as 'body_mass'")
    count = model.njnt if kind == "joint" else len(getattr(model, array))
    there = [mujoco.mj_id2name(model, number, k) for k in range(count)]
    for name in names:
        if name not in there:
            raise ValueError(f"{game}: the model has no {kind} {name!r}; it has {', '.join(filter(None, there))}")
    found = [there.index(name) for name in names]
    if prefix == "dof":
        return np.flatnonzero(np.isin(model.dof_jntid, found))
    return np.array(found)


def _numbers_of(game: Game, field: str, body: int, member: str) -> slice:
    """The elements of a record that are a member of a body, counted in float64."""
    start, dtype = member_offset(game.state_dtype, field), game.state_dtype[field].base
    if start % 8 or game.state_dtype.itemsize % 8:
        raise ValueError(f"{game.name}: make the dtype of {field!r} with align=True")
    place = (start + body * dtype.itemsize + member_offset(dtype, member)) // 8
    return slice(place, place + dtype[member].itemsize // 8)


class QuietLog:
    """While anybody holds it MuJoCo writes no log. Its settings are of the process: the user's come back at the end."""

    def __init__(self) -> None:
        """Nobody holds it."""
        self._holders, self._before = 0, None

    def __enter__(self) -> None:
        """Takes it."""
        if self._holders == 0:
            log = import_mujoco().MjLogConfig
            self._before, quiet = log.get(), log.get()
            quiet.logto_file = quiet.logto_console = False
            quiet.set()
        self._holders += 1

    def __exit__(self, *error: object) -> None:
        """Gives it back."""
        self._holders -= 1
        if self._holders == 0 and self._before is not None:
            self._before.set()


quiet_log = QuietLog()
"""The only one."""


def version() -> str:
    """Version of MuJoCo: the `Game.engine_version` of robots."""
    return f"mujoco-{import_mujoco().__version__}"


def compiled(xml: str) -> Any:
    """The model of a text in MuJoCo's format (``mujoco.MjModel``), without warnings about words that are out of use."""
    mujoco = import_mujoco()
    with quiet_log, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return mujoco.MjModel.from_xml_string(xml)


def camera_axes(back: np.ndarray) -> np.ndarray:
    """To the right, upwards, backwards: rows of ``[3, 3]`` of a camera whose picture is not tilted.

    Args:
        back: From what it looks at to the camera.
    """
    back = back / np.linalg.norm(back)
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(back, right), back])


def compiled_spec(spec: Any, eye: tuple[float, float, float], target: tuple[float, float, float]) -> Any:
    """The model of a ``mujoco.MjSpec``, with a camera ``overview`` at ``eye`` that looks at ``target`` (metres)."""
    mujoco = import_mujoco()
    camera = spec.worldbody.add_camera(name="overview", pos=list(eye))
    camera.alt.type = mujoco.mjtOrientation.mjORIENTATION_XYAXES
    camera.alt.xyaxes = camera_axes(np.subtract(eye, target))[:2].reshape(-1)
    with quiet_log, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return spec.compile()
