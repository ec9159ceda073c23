# pyright: reportMissingImports=false
"""Causal language models of Hugging Face's transformers, from a folder, with the calls of a `TinyModel`.

Nothing is downloaded and no code of the folder is run (`palaestra.core.files.model_loading`). Here a token is a number
of the model's tokenizer plus 1, so that 0 is padding as everywhere in this package. Padding is masked, and positions do
not count it. Sampled ids are kept: a turn is decoded to text for the environment, and never made of text again, since
tokenizers do not always give back the ids that a text was decoded from.

A tokenizer that has a chat template reads what the environment says as messages of the user, and turns are those of the
assistant. Other tokenizers read the text as it is.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from palaestra.cli import one_line
from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.files import FileError, escaped
from palaestra.core.files.model_loading import load_causal_model, load_tokenizer, refusing, token_ids
from palaestra.core.run.simulation import Simulation
from palaestra.game import AgentView, Role
from palaestra_baselines.common.lm.tiny_model import NEVER, PAD, draw, last_tokens

MODEL = "model"
"""Folder of the last weights of a model, beside the policy file that plays it."""
TAIL = 16
"""Tokens of the end of a turn that are searched for a closing tag."""
SAID = "this-is-the-turn"
"""Stands for a turn in a chat template, to find out what follows one."""
Dtype = Literal["float32", "bfloat16"]


class HFModel:
    """A model in a folder; `palaestra_baselines.common.lm.tiny_model.TinyModel` says what the calls do.

    Attributes:
        network: The ``AutoModelForCausalLM``, in evaluation mode: dropout would change what ratios mean.
        size: V, tokens of the tokenizer; None: all outputs are tokens. Models may have further outputs, which have no
            part in distributions and are never drawn.
    """

    def __init__(
        self, folder: str | Path, size: int | None = None, device: str = "cpu", dtype: Dtype = "float32"
    ) -> None:
        """Loads the weights.

        Args:
            folder: Of the model.
            size: See above.
            device: Where they are and all is computed. Tokens and drawn numbers come from the CPU; `log_probs` and
                `next_log_probs` stay on the device.
            dtype: Of the weights; probabilities are float32.

        Raises:
            ImportError: transformers is not installed.
            FileError: There is no model in the folder, one of fewer outputs than tokens, or something is wrong with
                it; names the file.
        """
        self.network: Any = load_causal_model(folder, dtype).to(device)
        self.size, self.device = size, torch.device(device)
        outputs = self.network.get_output_embeddings().weight.shape[0]
        if size is not None and size > outputs:
            raise FileError(f"{folder}: its tokenizer has numbers up to {size - 1}, the model {outputs} outputs")
        takes = inspect.signature(self.network.forward).parameters
        self._cache_name = "cache" if "cache" in takes else "past_key_values"  # as older versions call it
        self._keeps_logits = "logits_to_keep" in takes

    def requires_grad_(self, requires_grad: bool) -> HFModel:
        """Says whether the weights learn; returns the model."""
        self.network.requires_grad_(requires_grad)
        return self

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """The weights."""
        return self.network.parameters()

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The weights by name."""
        return self.network.state_dict()

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Restores them."""
        self.network.load_state_dict(state)

    @torch.no_grad()
    def start(self, prompts: torch.Tensor, columns: int = 0) -> None:
        """Forgets all lanes and reads prompts int64 ``[B, P]``."""
        self._ids, self._cache = prompts[:, :0].to(self.device), None
        self._last = torch.zeros(len(prompts), 1, device=self.device)
        self.force(prompts)

    @torch.no_grad()
    def force(self, ids: torch.Tensor) -> None:
        """Reads further tokens int64 ``[B, L]``."""
        past, ids = self._ids.shape[1], ids.to(self.device)
        self._ids = torch.cat([self._ids, ids], 1)
        last, lanes = last_tokens(ids)[:, -1], torch.arange(len(ids), device=self.device)
        cache = {self._cache_name: self._cache, "use_cache": True}
        read, logits = self._read(self._inputs(self._ids, past) | cache, lanes, last)
        self._cache = read[self._cache_name]
        self._last = torch.where((last >= 0)[:, None], logits, self._last)

    @torch.no_grad()
    def sample(self, generator: torch.Generator, temperature: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        """Draws a token of each lane, ids int64 ``[B]`` and logarithms of their probabilities."""
        ids, log_probs = draw(self.next_log_probs(), generator, temperature)
        return ids.cpu(), log_probs.cpu()

    @torch.no_grad()
    def next_log_probs(self) -> torch.Tensor:
        """What each lane may say next: logarithms of probabilities float32 ``[B, V + 1]``."""
        return with_padding(self._last.log_softmax(-1))

    def log_probs(self, ids: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        """Distributions of M tokens of whole sequences, float32 ``[M, V + 1]``."""
        ids, at = ids.to(self.device), at.to(self.device)
        rows, columns = at.nonzero(as_tuple=True)
        before = last_tokens(ids)[rows, columns - 1]
        _, logits = self._read(self._inputs(ids, 0) | {"use_cache": False}, rows, before)
        return with_padding(logits.log_softmax(-1))

    def _read(self, inputs: dict[str, Any], rows: torch.Tensor, columns: torch.Tensor) -> tuple[Any, torch.Tensor]:
        """What the network returns, and its logits behind M tokens, float32 ``[M, V]``.

        Columns that nobody asked for get none: with a large vocabulary these would be most of the work and memory.
        """
        kept, place = columns.unique(return_inverse=True)
        if self._keeps_logits:
            inputs = {**inputs, "logits_to_keep": kept}
        read = self.network(**inputs)
        return read, read.logits[rows, place if self._keeps_logits else columns, : self.size].float()

    def tree_log_probs(self, ids: torch.Tensor, parents: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Logarithms of the probabilities of tokens that follow those of trees, float32 ``[E]``.

        A token of a tree sees the tokens on the path to it alone, so texts that begin alike share their beginning.

        Args:
            ids: int64 ``[B, T]``, tokens; each stands behind its parent.
            parents: int64 ``[B, T]``, column of the token before each; -1 for the first ones, and for padding.
            edges: int64 ``[3, E]``: row and column of a token, and the token that follows it.
        """
        sees = ancestors(parents)
        unseen = torch.zeros(sees.shape).masked_fill(~sees, torch.finfo(torch.float32).min)
        inputs = {"input_ids": (ids - 1).clamp(min=0), "attention_mask": unseen[:, None]}
        logits = self.network(**inputs, position_ids=sees.sum(-1) - 1, use_cache=False).logits[..., : self.size].float()
        rows, columns, tokens = edges
        return logits[rows, columns, tokens - 1] - logits.logsumexp(-1)[rows, columns]

    def reads_trees(self) -> bool:
        """Whether `tree_log_probs` gives the probabilities of the same texts one by one; some models have no masks."""
        path, columns = torch.tensor([[1, 3, 2]]), torch.tensor([[1, 2, 3, 2]])
        tree = torch.tensor([[-1, 0, 0, 2]])
        try:
            with torch.no_grad():
                alone = self.log_probs(path, torch.tensor([[False, True, True]]))[[0, 1], path[0, 1:]]
                shared = self.tree_log_probs(columns, tree, torch.tensor([[0, 0], [0, 2], [3, 2]]))
        except (TypeError, ValueError, RuntimeError):  # a state space model, say, refuses such a mask
            return False
        return torch.allclose(alone, shared, rtol=1e-4, atol=1e-5)

    def _inputs(self, ids: torch.Tensor, past: int) -> dict[str, torch.Tensor]:
        is_token = ids != PAD
        return {
            "input_ids": (ids - 1).clamp(min=0)[:, past:],
            "attention_mask": is_token.long(),
            "position_ids": (is_token.cumsum(1) - 1).clamp(min=0)[:, past:],
        }


def ancestors(parents: torch.Tensor) -> torch.Tensor:
    """Which tokens are on the path to which, itself among them, bool ``[B, T, T]``; see `HFModel.tree_log_probs`."""
    rows, (lanes, length) = torch.arange(len(parents)), parents.shape
    sees = torch.zeros(lanes, length + 1, length, dtype=torch.bool)  # the last one, -1, is that of no token
    for column in range(length):
        sees[:, column] = sees[rows, parents[:, column]]
        sees[:, column, column] = True
    return sees[:, :-1]


def check_device(device: str) -> None:
    """Looks whether torch can compute on a device.

    Raises:
        ValueError: It cannot; says why.
    """
    try:
        torch.ones(1, device=device).add(1.0).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(f"--device {device}: torch cannot compute there ({one_line(error)}): give cpu") from None


def check_same_tokens(student: str | Path, teacher: str | Path) -> None:
    """Looks whether two folders have the same tokenizer, as models must whose probabilities are compared.

    Raises:
        ValueError: They have not; gives the sizes of both.
        FileError: There is no tokenizer in a folder, or something is wrong with it; names the file.
    """
    words = [load_tokenizer(folder).get_vocab() for folder in (student, teacher)]
    if words[0] != words[1]:
        raise ValueError(
            f"the tokenizer of {escaped(str(student))} has {len(words[0])} tokens, that of {escaped(str(teacher))} "
            f"{len(words[1])}, and they are "
            "not the same: give a teacher with the student's tokenizer"
        )


def with_padding(log_probs: torch.Tensor) -> torch.Tensor:
    """Distributions ``[M, V + 1]`` over tokens of this package of those over a tokenizer's, ``[M, V]``."""
    return torch.cat([torch.full_like(log_probs[:, :1], NEVER), log_probs], 1)


class TextTurns:
    """The tokenizer of a model, and turns of text.

    Attributes:
        tokenizer: Of the model.
        size: Number of its tokens, any that are left out of its numbers counted.
        special: Its special tokens, and the padding.
        longest: Most tokens of a turn.
        ends: Numbers that end a turn: the end of sequence, and what the chat template puts behind a turn.

    A turn ends behind a closing tag, at a number of `ends`, or after ``longest`` tokens.
    """

    def __init__(self, folder: str | Path, longest: int, verbs: Iterable[str] = ()) -> None:
        """Loads the tokenizer of a model's folder.

        Args:
            folder: Of the model.
            longest: See above.
            verbs: Names of the tags that end turns, see `verbs_of`.

        Raises:
            ImportError: transformers is not installed.
            FileError: There is no tokenizer in the folder, or something is wrong with it; names the file.
        """
        self.tokenizer: Any = load_tokenizer(folder)
        self.closing = [f"</{verb}>" for verb in verbs]
        self.longest, self.size = longest, 1 + max(self.tokenizer.get_vocab().values())
        self.special = [PAD, *(number + 1 for number in self.tokenizer.all_special_ids)]
        self.has_template = bool(getattr(self.tokenizer, "chat_template", None))
        self.ends = {self.tokenizer.eos_token_id}
        if self.has_template:
            self.ends |= {number for number in self.reply("", PAD)[:1] if number + 1 in self.special}

    def is_complete(self, turn: Sequence[int]) -> bool:
        """Whether the tokens of a turn are all of it."""
        if len(turn) >= self.longest or turn[-1] - 1 in self.ends:
            return True
        return any(tag in self.text_of(turn[-TAIL:]) for tag in self.closing)

    def prompt(self, text: str) -> list[int]:
        """Numbers of the tokenizer for what a match begins with."""
        if not self.has_template:
            return token_ids(self.tokenizer, text)
        return token_ids(self.tokenizer, self._rendered(text), special=False)

    def reply(self, text: str, last: int) -> list[int]:
        """Likewise for what the environment says after a turn whose last token is ``last``."""
        if not self.has_template:
            return token_ids(self.tokenizer, text, special=False)
        _, said, after = self._rendered("", SAID, text).partition(SAID)
        if not said:
            raise FileError(f"{self.tokenizer.name_or_path}: its chat template leaves out what was said: remove it")
        numbers = token_ids(self.tokenizer, after, special=False)
        return numbers[1:] if last - 1 in self.ends and numbers[:1] == [last - 1] else numbers

    def _rendered(self, *texts: str) -> str:
        """The chat of user, assistant and user, up to where the assistant speaks again."""
        messages = [{"role": ("user", "assistant")[k % 2], "content": text} for k, text in enumerate(texts)]
        folder = Path(self.tokenizer.name_or_path)
        with refusing(folder, folder):
            return self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)

    def text_of(self, turn: Sequence[int]) -> str:
        """The text of tokens."""
        return self.tokenizer.decode([token - 1 for token in turn if token != PAD], skip_special_tokens=False)


class TextTokens(TextTurns):
    """Translates between the text of an environment's first agent and tokens.

    It has the methods of `palaestra.core.contract.turn_tokens.TurnTokens`, and reads what the codec writes in place of
    observations.
    """

    def __init__(self, sim: Simulation, folder: str | Path, longest: int) -> None:
        """Loads the tokenizer of a model's folder.

        Args:
            sim: Lanes of the text form.
            folder: Of the model.
            longest: Most tokens of a turn.
        """
        self.io, self.turns = AgentIO(sim, (0,), codec="text"), int(sim.game.horizon or 1)
        super().__init__(folder, longest, verbs_of(self.io.codec, self.io.agent_view(0).role))

    def new_memory(self, lanes: int) -> np.ndarray:
        """The last tokens of turns, int64 ``[N, 1]``."""
        return np.full((lanes, 1), PAD)

    def questions(self, observations: Any, memory: np.ndarray) -> np.ndarray:
        """The prompts, int64 ``[N, P]``."""
        self.asked: list[str] = list(self.io.observe())
        return padded([self.prompt(text) for text in self.asked])

    def passages(self, observations: Any, memory: np.ndarray) -> np.ndarray:
        """What came since the last turn, int64 ``[N, L]``."""
        return padded([self.reply(text, last) for text, (last,) in zip(self.io.observe(), memory, strict=True)])

    def actions(self, turns: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """Turns int64 ``[N, L]`` as the environment takes them, ``[N, ...]``."""
        memory[:, 0] = [next((token for token in turn[::-1] if token != PAD), PAD) for turn in turns.tolist()]
        texts = list(map(self.text_of, turns.tolist()))
        return decoded(self.io.codec, self.io.agent_view(None), texts)

    def demonstration(self, records: Any, number: int) -> np.ndarray:
        """Right turns of this number as the codec writes them, int64 ``[N, L]``; paddings where a match has fewer.

        The only turn of a match has an end of sequence behind it.

        Args:
            records: Not read, as the codec reads the lanes.
            number: Of the turn; the turns are those of where the lanes stand at number 0.

        Raises:
            ValueError: The environment has none.
        """
        if number == 0:
            write = getattr(self.io.codec, "demonstration", lambda view: [])
            matches = [write(self.io.agent_view(lane)) for lane in range(self.io.sim.num_envs)]
            if not all(matches):
                raise ValueError(
                    f"{self.io.sim.game.name} has no demonstrations as text, for a model of Hugging Face to learn "
                    "from: take SearchQA or MathText"
                )
            rows = [[token_ids(self.tokenizer, text, special=False) for text in match] for match in matches]
            end = [self.tokenizer.eos_token_id] if self.turns == 1 else []
            self._right = [[[*ids, *end] for ids in turn] for turn in itertools.zip_longest(*rows, fillvalue=())]
        turns = self._right[number] if number < len(self._right) else [[]] * self.io.sim.num_envs
        return padded(turns)

    def told(self, name: str, environment: str) -> np.ndarray:
        """What the environment tells of all lanes in its `info`, objects ``[N]``.

        Args:
            name: Of the entry.
            environment: One that has it, for the error.

        Raises:
            ValueError: It has no such entry.
        """
        info = self.told_lanes()
        if name not in info:
            raise ValueError(
                f'{self.io.sim.game.name} has no info["{name}"], for a model of Hugging Face to learn from: '
                f"take {environment}"
            )
        return info[name]

    def told_lanes(self) -> dict[str, Any]:
        """The `info` of all lanes."""
        info: dict[str, Any] = {}
        self.io.tell_lanes(info, np.ones(self.io.sim.num_envs, bool))
        return info


def verbs_of(codec: Any, role: Role) -> Iterable[str]:
    """Names of the tags around what turns of a codec say; none where it has no tags."""
    return codec.tools(role) if hasattr(codec, "tools") else ()


def encoded(codec: Any, view: AgentView) -> Sequence[str]:
    """What the agents of N matches read."""
    return codec.encode_many(view) if hasattr(codec, "encode_many") else list(map(codec.encode, views_of(view)))


def decoded(codec: Any, view: AgentView, texts: Sequence[str]) -> np.ndarray:
    """Turns of N matches as the environment takes them."""
    if hasattr(codec, "decode_many"):
        return codec.decode_many(view, texts)
    return np.stack(list(map(codec.decode, views_of(view), texts)))


def views_of(view: AgentView) -> Iterator[AgentView]:
    """Each match of a view of N."""
    records = {name: getattr(view, name) for name in ("row", "team", "lane", "mask", "record")}
    for k in range(len(view.row)):
        yield dataclasses.replace(view, **{name: None if many is None else many[k] for name, many in records.items()})


def padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Numbers of a tokenizer as tokens int64 ``[N, L]``, paddings behind them."""
    table = np.full((len(rows), max(1, *map(len, rows))), PAD)
    for out, row in zip(table, rows, strict=True):
        out[: len(row)] = np.array(row, np.int64) + 1
    return table
