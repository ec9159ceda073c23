"""What a recording does with each call, compiled: notices what was written by hand, and hashes the lanes.

The words of a lane are its match record, 64 bits at a time with zeros for padding, the bytes of its masks, and its
results: rewards and flags. Two sums stand for them. One is NH (Black, Halevi, Krawczyk, Krovetz, Rogaway, "UMAC: fast
and secure message authentication", CRYPTO 1999): the halves of each word are multiplied after a key of its own was
added, here to the word as a whole. Other words, or the same words in other places, have the same sum with a probability
of about 2**-32 over the keys. The other sum adds the words: no single word can differ without changing it. The hash of
a lane goes through the sums of all its operations:
``mix64(mix64(hash + nh) + sum)``. These are integers modulo 2**64, with the same bits on every machine. The hash finds
differences. It is no proof against somebody who looks for two runs of one hash, and needs to be none: a replay is
verified by playing it.

All that an operation writes lies beside what is valid before it, sums and hashes take turns, and the caller counts the
operation last. So one that is interrupted has not happened.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import CALLER, RUNNING, WAITING
from palaestra.core.compile.compiler import announcement, compile_cached, made_with, options
from palaestra.core.compile.linker import jit_disabled
from palaestra.core.compile.reachable import code_digest
from palaestra.core.rng import GOLDEN, mix64
from palaestra.game import Importing
from palaestra.replay.file import RESET, STEP

SET = 2
"""Any call besides `RESET` and `STEP`, which are operations."""
ZERO, ONE, HALF, LOW = np.uint64(0), np.uint64(1), np.uint64(32), np.uint64(2**32 - 1)
HASH, PENDING, COLUMNS = 7, 8, 9
"""Of the sums of a lane: its hash, and ``pending`` of its record. Before them stand both sums of record and masks, of
the words that outlive a reset, and of the results, and then the flags of an end."""


def lane_keys(count: int) -> np.ndarray:
    """Keys of the words of a lane, uint64: splitmix64 from 0."""
    with np.errstate(over="ignore"):
        return mix64(np.arange(1, count + 1, dtype=np.uint64) * GOLDEN)


def word_sums(words, padding, keys):
    """Both sums of the first words of a lane."""
    nh, total = ZERO, ZERO
    for k in range(np.uint64(len(words))):
        word = words[k] & padding[k]
        keyed = word + keys[k]
        nh += (keyed & LOW) * (keyed >> HALF)
        total += word
    return nh, total


def number_sums(numbers, keys, at):
    """Both sums of numbers of at most 32 bits, each of them a word; the keys begin at ``at``.

    Without the constant part of the terms, as the upper half of each word is 0.
    """
    nh, total = ZERO, ZERO
    for k in range(np.uint64(len(numbers))):
        word = np.uint64(numbers[k])
        nh += word * (keys[np.uint64(at) + np.uint64(k)] >> HALF)
        total += word
    return nh, total


def begin_call(
    records, masks, table, sums, outlives, pending, players, inputs, words, log, lanes, actions, call, operation, which
):
    """Compares the lanes with what the last call left. Notes lanes and actions of the next operation.

    Results, which decide nothing, are free; so is what a reset writes anew.

    Returns:
        The first lane that differs (nothing is noted then), or -1.
    """
    padding, keys, now = table[0], table[1], operation & 1
    for i in range(len(records)):
        nh, total = word_sums(records[i], padding, keys)
        mask_nh, mask_total = number_sums(masks[i], keys, records.shape[1])
        differs = nh + mask_nh != sums[now, i, 0] or total + mask_total != sums[now, i, 1]
        if differs and call == RESET and which[i]:
            nh, total = word_sums(records[i, :outlives], padding, keys)
            differs = nh != sums[now, i, 2] or total != sums[now, i, 3]
        if differs and operation > 0:
            return i
    if call != SET:
        for i in range(len(records)):
            lanes[operation, i] = which[i]
    if call == STEP:
        decision = log[operation, 1]
        for i in range(len(records)):
            is_moving = pending[i] == RUNNING and which[i]
            for w in range(len(words)):
                is_outside = is_moving and players[i, words[w, 0]] == CALLER
                actions[decision, i, w] = inputs[i, words[w, 1]] if is_outside else 0
    return -1


def finish_call(
    records, masks, table, sums, outlives, pending, rewards, left, terminated, truncated, winners, end_reasons,
    log, lanes, checks, matches, check_every, call, operation,
):  # fmt: skip
    """Sums up the lanes after a call. After an operation it adds them to the hashes and notes the matches that ended.

    Users may write into the results of a lane that does not move: there those count that its last move left.

    Returns:
        Whether there is no room for another operation.
    """
    padding, keys, now = table[0], table[1], operation & 1
    to = now if call == SET else 1 - now
    masks_at = records.shape[1]
    rewards_at = masks_at + masks.shape[1]
    left_at = rewards_at + rewards.shape[1]
    ends_at = np.uint64(left_at + left.shape[1])
    decisions, ended = log[operation, 1] + (1 if call == STEP else 0), log[operation, 2]
    for i in range(len(records)):
        before, after = sums[now, i], sums[to, i]
        was_pending, result_nh, result_total, ends = before[PENDING], before[4], before[5], before[6]
        if call == STEP or (call == RESET and lanes[operation, i]):
            reward_nh, reward_total = number_sums(rewards[i], keys, rewards_at)
            left_nh, left_total = number_sums(left[i], keys, left_at)
            result_nh, result_total = reward_nh + left_nh, reward_total + left_total
            if call != STEP or was_pending != WAITING:
                ends = np.uint64(terminated[i]) | (np.uint64(truncated[i]) << ONE)
        first_nh, first_total = word_sums(records[i, :outlives], padding, keys)
        nh, total = word_sums(records[i, outlives:], padding[outlives:], keys[outlives:])
        mask_nh, mask_total = number_sums(masks[i], keys, masks_at)
        after[0], after[1] = first_nh + nh + mask_nh, first_total + total + mask_total
        after[2], after[3] = first_nh, first_total
        after[4], after[5], after[6], after[PENDING] = result_nh, result_total, ends, pending[i]
        if call != SET:
            nh = after[0] + result_nh + ends * (keys[ends_at] >> HALF)
            after[HASH] = mix64(mix64(before[HASH] + nh) + after[1] + result_total + ends)
            if (operation + 1) % check_every == 0:
                checks[operation // check_every, i] = after[HASH]
        if call == STEP and was_pending == RUNNING and ends != ZERO:
            matches[ended, 0], matches[ended, 1] = i, decisions
            matches[ended, 2], matches[ended, 3] = winners[i], end_reasons[i]
            ended += 1
    if call != SET:
        log[operation + 1, 0], log[operation + 1, 1], log[operation + 1, 2] = call, decisions, ended
    return operation + 1 >= len(lanes) or ended + len(records) > len(matches)


_ROWS = "uint64[:,::1], uint8[:,::1], uint64[:,::1], uint64[:,:,::1], int64, uint8[:]"
_BEGIN = f"int64({_ROWS}, int64[:,:], int64[:,::1], int64[:,::1], int64[:,::1], boolean[:,::1], int64[:,:,::1], "
_BEGIN += "int64, int64, boolean[::1])"
_FINISH = f"boolean({_ROWS}, uint32[:,::1], boolean[:,::1], boolean[::1], boolean[::1], int64[::1], int64[::1], "
_FINISH += "int64[:,::1], boolean[:,::1], uint64[:,::1], int64[:,::1], int64, int64, int64)"


@functools.cache
def compiled_calls() -> tuple[Callable[..., int], Callable[..., bool]]:
    """`begin_call` and `finish_call` as machine code without checks of types, or as they are where nothing is compiled.

    They may only be called with arrays of the types above.
    """
    if jit_disabled():
        return _quiet(begin_call), _quiet(finish_call)
    with Importing("numba"):
        import numba

    scope = dict(globals())
    for function in (mix64, word_sums, number_sums):
        scope[function.__name__] = numba.njit(**options(inside=True))(function)
    with announcement("the recorder", (begin_call, word_sums, number_sums, finish_call)):
        return _compiled(begin_call, scope, _BEGIN), _compiled(finish_call, scope, _FINISH)


def _compiled(function: types.FunctionType, scope: dict[str, Any], signature: str) -> Callable[..., Any]:
    driver = types.FunctionType(function.__code__, scope, function.__name__)
    driver.__module__ = function.__module__
    # The cache watches this file alone; the name says what else the machine code depends on.
    driver.__qualname__ = f"{function.__name__}_{code_digest({function.__name__: function}, signature + made_with())}"
    dispatcher: Any = compile_cached(driver)
    dispatcher.compile(signature)
    (overload,) = dispatcher.overloads.values()
    return overload.entry_point


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    def quiet(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):  # sums wrap around
            return function(*arguments)

    return quiet
