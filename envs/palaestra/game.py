"""All that the author of a game needs, from one place: rules, tables, random draws, ids.

A game is a factory that returns a `Game`, whose hooks are plain functions of one match; `palaestra.register` or a
`Family` make it known. ``docs/guides/add_a_game.md`` walks through one.
"""

from palaestra.core.compile.apart import Array, apart
from palaestra.core.contract.actions import offer
from palaestra.core.contract.catalog import Family, Page, Preset, Row, presets
from palaestra.core.contract.codec_spaces import GraphSpace, TextSpace
from palaestra.core.contract.engines import DrawingEngine, PhysicsEngine, SavingEngine
from palaestra.core.contract.fields import ActionField, Choice, Continuous, Field, ObservationField, Parameter, Table
from palaestra.core.contract.game_parts import AgentView, Codec, Enumeration, Facts, Representation, Role
from palaestra.core.contract.keywords import (
    any_text,
    check_template,
)
from palaestra.core.contract.options import Option, with_options
from palaestra.core.contract.rules import DRAW, TERMINATED, TRUNCATED, Game
from palaestra.core.contract.task_sets import TASK_OPTIONS, TaskSet, TaskWorld, begin_task, task_set
from palaestra.core.interrupts import Importing
from palaestra.core.rng import integer, keyed_uniforms, script_integer, script_uniform, uniform

__all__ = [
    "DRAW",
    "TASK_OPTIONS",
    "TERMINATED",
    "TRUNCATED",
    "ActionField",
    "AgentView",
    "Array",
    "Choice",
    "Codec",
    "Continuous",
    "DrawingEngine",
    "Enumeration",
    "Facts",
    "Family",
    "Field",
    "Game",
    "GraphSpace",
    "Importing",
    "ObservationField",
    "Option",
    "Page",
    "Parameter",
    "PhysicsEngine",
    "Preset",
    "Representation",
    "Role",
    "Row",
    "SavingEngine",
    "Table",
    "TaskSet",
    "TaskWorld",
    "TextSpace",
    "any_text",
    "apart",
    "begin_task",
    "check_template",
    "integer",
    "keyed_uniforms",
    "offer",
    "presets",
    "script_integer",
    "script_uniform",
    "task_set",
    "uniform",
    "with_options",
]
