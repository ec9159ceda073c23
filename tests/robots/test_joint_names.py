"""Names of joints on pages of matches are those of the model, in its order."""

from typing import Any

import pytest

from palaestra import registry
from palaestra.core.contract.fields import part_names
from palaestra.game import Field

pytest.importorskip("mujoco")


@pytest.mark.check
@pytest.mark.parametrize("id", ["HandOver-v0", "QuadSumo-v0", "MaAnt-v0", "MaHalfCheetah-v0", "MaHopper-v0"])
def test_joints_are_named_as_in_the_model(id: str):
    game = registry.make_game(f"palaestra/{id}")[0]
    options: Any = game.physics_options
    model = options["model"](*options.get("arguments", ()))
    joints = [model.joint(k).name for k in range(model.njnt)]
    for slot, agent in enumerate(game.agents):
        (field,) = (f for f in game.roles[0].observation if isinstance(f, Field) and f.name == "joint_rad")
        own = [name.removeprefix(f"{agent}_").removeprefix(f"hand_{slot}_") for name in joints]
        names = part_names(field, slot)
        assert [name for name in own if name in names] == list(names)
