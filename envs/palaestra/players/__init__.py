"""Policies of your own as players: models of other libraries, their files, and the shapes that players see and give.

* `palaestra.players.models`: `as_opponent` makes a player of a trained model;
* `palaestra.players.shapes`: `player_shapes`, what a player is shown and returns;
* `palaestra.players.chat_player`: ``"openai:URL#MODEL"``, language models behind chat endpoints;
* `palaestra.players.sb3_archives`, `onnx_models`: the files that can be named instead of a player.
"""

from palaestra.players.model_player import ModelPlayer
from palaestra.players.models import as_opponent
from palaestra.players.shapes import PlayerShape, player_shapes

__all__ = ["ModelPlayer", "PlayerShape", "as_opponent", "player_shapes"]
