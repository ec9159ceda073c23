"""Rows that users see are the visible corners of the records that kernels write."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaestra.core.compile import batch_loop
from palaestra.core.contract import packing
from palaestra.core.contract.actions import word_table
from palaestra.game import Choice, Field, Game, Role, Table


def nothing(*arguments):
    return 0


@st.composite
def shapes(draw: Any, sized: bool) -> tuple[tuple[int, ...], int | tuple[int, ...] | None]:
    """A visible shape, and a capacity for it: none, an int or a shape."""
    shape = tuple(draw(st.lists(st.integers(1, 3), max_size=3)))
    kind = draw(st.sampled_from(["none", "int", "shape"])) if shape and sized else "none"
    if kind == "int":
        return shape, shape[0] + draw(st.integers(0, 3))
    return shape, tuple(n + draw(st.integers(0, 2)) for n in shape) if kind == "shape" else None


@st.composite
def tables(draw: Any, prefix: str, sized: bool = True) -> tuple[Field | Table, ...]:
    fields: list[Field | Table] = []
    for k in range(draw(st.integers(1, 4))):
        at: Any = draw(st.sampled_from(["step", "reset"]))
        shape, capacity = draw(shapes(sized))
        dtype = draw(st.sampled_from(["f4", "f8", "i2", "u1"]))
        if draw(st.booleans()):
            fields.append(Field(f"{prefix}{k}", shape, 0, 1, dtype=dtype, capacity=capacity, at=at))
        else:
            columns = (Field("first", (), 0, 1, dtype=dtype), Field("second", shape, 0, 1, dtype=dtype))
            rows = draw(st.integers(1, 3))
            room = rows + draw(st.integers(0, 3)) if sized and draw(st.booleans()) else None
            fields.append(Table(f"{prefix}{k}", rows, columns, capacity=room, at=at))
    return tuple(fields)


@st.composite
def games(draw: Any) -> Game:
    roles = []
    for r in range(draw(st.integers(1, 2))):
        count = draw(st.integers(1, 3))
        agents = tuple(f"{'red' if r == 0 else 'blue'}_{k}" for k in range(count))
        n = draw(st.integers(2, 4))
        choices = (
            Choice("a", n, capacity=draw(st.sampled_from([None, n, n + 3]))),
            Choice("b", 3, shape=(2,), capacity=draw(st.sampled_from([None, 5]))),
            Choice("c", 50, shape=draw(st.sampled_from([(), (2,)])), candidates=draw(st.integers(1, 3))),
        )
        room = draw(st.sampled_from([None, count, count + 2]))
        roles.append(Role(f"role{r}", agents, draw(tables("f")), choices[: draw(st.integers(1, 3))], room))
    shared = {"team_observation": draw(tables("t")), "lane_observation": draw(tables("l"))}
    fields = [f for role in roles for f in role.observation] + [f for part in shared.values() for f in part]
    hook = nothing if any(f.at == "reset" for f in fields) else None
    more: dict[str, Any] = {name: part for name, part in shared.items() if draw(st.booleans()) or hook}
    return Game(
        "Random",
        tuple(roles),
        (),
        reset=nothing,
        step=nothing,
        observe=nothing,
        observe_reset=hook,
        legal=nothing,
        **more,
    )


def packed(spans: np.ndarray, source: np.ndarray, target: np.dtype, marked: tuple[int, ...] = (0, 1)) -> np.ndarray:
    """What the spans copy out of one record, zero elsewhere."""
    row, record = np.zeros(target.itemsize, np.uint8), np.frombuffer(source.tobytes(), np.uint8)
    written = np.zeros(target.itemsize, np.uint8)
    for span in spans:
        if span["at_reset"] in marked:
            at, to, size = int(span["source"]), int(span["target"]), int(span["length"])
            row[to : to + size] = record[at : at + size]
            written[to : to + size] += 1
    assert written.max(initial=0) <= 1, "bytes are written twice"
    return row.view(target)


def arbitrary(dtype: np.dtype, seed: int) -> np.ndarray:
    return np.frombuffer(np.random.default_rng(seed).bytes(dtype.itemsize), dtype)


def parts_of(game: Game) -> list[tuple[str, int, tuple]]:
    parts: list[tuple[str, int, tuple]] = [(r.name, len(r.agents), r.observation) for r in game.roles]
    parts += [("team", len(game.teams), game.team_observation)] if game.team_observation else []
    return parts + ([("lane", 1, game.lane_observation)] if game.lane_observation else [])


def corner(memory: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The first ``shape`` elements along the last axes."""
    return memory[(..., *map(slice, shape))]


def same(mine: np.ndarray, its: np.ndarray) -> None:
    assert np.ascontiguousarray(mine).tobytes() == np.ascontiguousarray(its).tobytes()


@pytest.mark.check
@settings(max_examples=150)
@given(games(), st.integers(0, 2**32))
def test_packing_a_record_is_slicing_the_corner_of_each_field(game: Game, seed: int):
    record: Any = arbitrary(game.kernel_observation_dtype, seed)
    row: Any = packed(packing.observation_spans(game), record, game.observation_dtype)
    for name, count, fields in parts_of(game):
        kernel, visible = np.atleast_2d(record[name])[:, :count], np.atleast_2d(row[name])
        assert visible.shape == (1, count)
        for f in fields:
            if isinstance(f, Table):
                same(visible[f.name], kernel[f.name][..., : f.rows])
            else:
                same(visible[f.name], corner(kernel[f.name], f.shape))


@pytest.mark.check
@settings(max_examples=60)
@given(games(), st.integers(0, 2**32))
def test_spans_of_fields_at_reset_are_marked(game: Game, seed: int):
    record: Any = arbitrary(game.kernel_observation_dtype, seed)
    for marked, at in (((0,), "step"), ((1,), "reset")):
        row: Any = packed(packing.observation_spans(game), record, game.observation_dtype, marked)
        full: Any = packed(packing.observation_spans(game), record, game.observation_dtype)
        for name, _, fields in parts_of(game):
            for f in fields:
                expected = full[name][f.name] if f.at == at else np.zeros_like(full[name][f.name])
                same(row[name][f.name], expected)


@pytest.mark.check
@settings(max_examples=25)
@given(games(), st.integers(0, 2**32), st.booleans())
def test_plain_python_packs_as_the_kernel_does(game: Game, seed: int, started: bool):
    spans, record = packing.observation_spans(game), arbitrary(game.kernel_observation_dtype, seed).view(np.uint8)
    one, other = np.zeros((2, game.observation_dtype.itemsize), np.uint8)
    batch_loop.pack(spans.view(np.recarray), record, one, started)
    packing.pack_slices(spans, record, other, started)
    same(one, other)


@pytest.mark.check
@settings(max_examples=100)
@given(games(), st.integers(0, 2**32))
def test_packing_masks_is_slicing_them_too(game: Game, seed: int):
    record: Any = arbitrary(game.kernel_mask_dtype, seed)
    row: Any = packed(packing.mask_spans(game), record, game.mask_dtype)
    for role in game.roles:
        kernel, visible = record[role.name][:, : len(role.agents)], row[role.name]
        for choice in role.action:
            assert isinstance(choice, Choice)
            mine, its = visible[choice.name], kernel[choice.name]
            same(mine, its if choice.candidates is not None else its[..., : choice.n])


@pytest.mark.check
@settings(max_examples=60)
@given(games())
def test_the_table_of_words_says_where_the_mask_of_each_word_lies(game: Game):
    words, names, first_word = word_table(game)
    masks: Any = np.zeros(1, game.mask_dtype)
    flat = masks.view(np.uint8)
    number = 0
    for role in game.roles:
        for k in range(len(role.agents)):
            for choice in role.action:
                assert isinstance(choice, Choice)
                for at in np.ndindex(choice.shape):
                    masks.view(np.uint8)[:] = 0
                    cell = masks[0][role.name][k][choice.name]
                    if choice.candidates is not None:
                        cell = cell if choice.shape else masks[role.name][0, k : k + 1][choice.name]
                        cell["count"][at if choice.shape else 0] = 7
                    else:
                        cell[(*at, 0)] = 7
                    assert np.flatnonzero(flat)[0] == words[number]["mask_offset"]
                    assert names[number] == choice.name + (str(list(at)) if choice.shape else "")
                    number += 1
    assert number == len(words) == first_word[-1]


def test_a_game_without_capacities_is_not_sized():
    role = Role("a", ("red_0",), (Field("x", (2,), 0, 1),), (Choice("move", 2),))
    plain = Game("Plain", (role,), (), reset=nothing, step=nothing, observe=nothing)
    assert not plain.sized
    for other in (
        Role("a", ("red_0",), (Field("x", (2,), 0, 1, capacity=2),), (Choice("move", 2),)),
        Role("a", ("red_0",), (Field("x", (2,), 0, 1),), (Choice("move", 2, capacity=2),)),
        Role("a", ("red_0",), (Table("x", 2, (Field("y", (), 0, 1),), capacity=2),), (Choice("move", 2),)),
        Role("a", ("red_0",), (Field("x", (2,), 0, 1),), (Choice("move", 2),), capacity=1),
    ):
        assert Game("Sized", (other,), (), reset=nothing, step=nothing, observe=nothing).sized
    printed = Field("told", (2,), 0, 1, capacity=3)
    assert Game("Told", (role,), (), reset=nothing, step=nothing, observe=nothing, info=(printed,)).sized


def test_runs_side_by_side_are_one_span():
    role = Role("a", ("red_0", "red_1"), (Field("x", (2,), 0, 1), Field("y", (), 0, 1)), (Choice("move", 2),), 4)
    game = Game("Merged", (role,), (), reset=nothing, step=nothing, observe=nothing)
    assert packing.observation_spans(game).tolist() == [(0, 0, 24, 0)]
