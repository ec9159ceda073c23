"""The batch loop: templates whose free names (`reset`, `step`, ...) the linker binds to a game's hooks.

One match is *prepared* (scripts decide, illegal choices become no-ops), *played* (the rules, or another engine between
`command` and `judge`), *closed* (horizon, deaths, autoreset) and *seen* (observations and masks). `step_lanes` is the
whole of it for a kernel game; an engine game calls the pieces. Arrays: S matches, W action words, O observations, M
masks, all one row a lane.

The names in capitals are compile-time constants of the game; the hooks are bound by `palaestra.core.linker.link`.
Lanes are counted by unsigned integers because numba guards every signed index against negative values, a tenth of the
time of a small game.
"""

# pyright: reportUndefinedVariable=false
# ruff: noqa: F821, D103, E741  (hooks and constants are bound by the linker; the docstring above explains the pieces)

import numpy as np

from palaestra.core.rng import script_uniform

EXTERNAL, RANDOM, MIX = -1, -2, -3
"""Who plays a slot: somebody outside, the suite's uniform player, or (assigned only) a script drawn for each match."""
NEXT_STEP, SAME_STEP, OFF = 0, 1, 2
RUNNING, RESET_DUE, WAITING = 0, 1, 2
"""Values of ``s.pending``."""
HORIZON = 1
"""Number of the end reason of a truncated match."""


def is_asked(s, agent):
    """Whether the action of a slot, as somebody outside gave it, counts in this decision."""
    if s.pending != RUNNING or s.playing[agent] != EXTERNAL:
        return False
    return not MAY_FORBID or (s.alive[agent] != 0 and s.acting[agent] != 0)


def first_offender(lo, hi, S, words, WI, WF):
    """Number ``lane * WORDS + word`` of the first action outside its space, or -1."""
    for i in range(np.uint64(lo), np.uint64(hi)):
        for w in range(WORDS):
            word = words[w]
            # False for NaN
            inside = 0 <= WI[i, w] < word.n if word.n > 0 else word.low <= WF[i, w] <= word.high
            if not inside and is_asked(S[i], np.uint64(word.agent)):
                return int(i) * WORDS + w
    return -1


def begin(s, state_bytes, world):
    """Starts a match: clears the record, draws the scripts of teams that play ``"mix"``, calls the rules' reset."""
    state_bytes[CLEARED_FROM:] = 0
    s.info.winner = -1
    for team in range(TEAMS):
        draw = script_uniform(s, 0.0, 1.0)  # always drawn, so that an assignment never shifts the stream
        for a in range(AGENTS):
            if TEAM_OF[a] == team:
                s.playing[a] = int(draw * SCRIPTS) if s.assigned[a] == MIX else s.assigned[a]
    for a in range(AGENTS):
        s.alive[a] = 1
        s.acting[a] = 1
    reset(s, world)
    for a in range(AGENTS):
        s.acting[a] = s.acting[a] and s.alive[a]


def random_action(s, agent, words, wi, wf, mask_bytes):
    """Uniform over the legal alternatives and the boxes of one slot."""
    for w in range(FIRST_WORD[agent], FIRST_WORD[agent + 1]):
        word = words[w]
        draw = script_uniform(s, 0.0, 1.0)
        if word.n == 0:
            wf[w] = word.low + draw * (word.high - word.low)
        elif HAS_LEGAL:
            legal_count = 0
            for j in range(word.n):
                legal_count += mask_bytes[word.mask_offset + j]
            chosen = int(draw * legal_count)
            for j in range(word.n):
                if mask_bytes[word.mask_offset + j]:
                    if chosen == 0:
                        wi[w] = j
                    chosen -= 1
        else:
            wi[w] = int(draw * word.n)


def do_nothing(w, words, wi, wf):
    """Replaces one word of an action by its no-op."""
    if words[w].n > 0:
        wi[w] = words[w].noop
    else:
        wf[w] = words[w].noop_value


def prepare(s, world, words, actions, wi, wf, mask_bytes, rewards, gone, scratch):
    """Lets the scripts decide, replaces what may not be done by no-ops, opens the books of one decision."""
    if SCRIPTS_PLAY:
        for a in range(AGENTS):
            if s.playing[a] != EXTERNAL and s.alive[a] and s.acting[a]:
                for w in range(FIRST_WORD[a], FIRST_WORD[a + 1]):
                    do_nothing(w, words, wi, wf)
                is_random = s.playing[a] == RANDOM
                if not is_random and s.strength[a] < 1.0:
                    is_random = script_uniform(s, 0.0, 1.0) >= s.strength[a]
                if is_random:
                    random_action(s, a, words, wi, wf, mask_bytes)
                else:
                    script(s, world, a, s.playing[a], actions, scratch)
    if MAY_FORBID:
        for w in range(WORDS):
            word = words[w]
            agent = np.uint64(word.agent)
            free = s.alive[agent] and s.acting[agent]
            if HAS_LEGAL and free and word.n > 0 and not mask_bytes[word.mask_offset + wi[w]]:
                s.info.illegal[agent] += 1
                free = 0
            if not free:
                do_nothing(w, words, wi, wf)
    for a in range(AGENTS):
        rewards[a] = 0.0
        gone[a] = s.alive[a] != 0
    s.steps += 1


def close(s, over, gone):
    """Books the end of a decision: deaths, and the horizon if no rule ended it. Returns whether it was truncated."""
    for a in range(AGENTS):
        gone[a] = gone[a] and not s.alive[a]
        s.acting[a] = s.acting[a] and s.alive[a]
    if over or s.steps < s.parameters.horizon:
        return False
    s.info.end_reason = HORIZON
    return True


def see(s, world, observation_bytes, observations, mask_bytes, mask, scratch):
    """Writes observations and masks of one match."""
    if CLEAR_OBSERVATIONS:
        observation_bytes[:] = 0
    observe(s, world, observations, scratch)
    if HAS_LEGAL:
        mask_bytes[:] = 0
        legal(s, world, mask)


def forbid_idle(s, words, mask_bytes):
    """Leaves a slot that is not asked for an action its no-op alone."""
    for w in range(WORDS):
        word = words[w]
        agent = np.uint64(word.agent)
        if word.n > 0 and not (s.alive[agent] and s.acting[agent]):
            mask_bytes[word.mask_offset : word.mask_offset + word.n] = 0
            mask_bytes[word.mask_offset + word.noop] = 1


def clear_flags(i, R, TERM, TRUNC, GONE):
    TERM[i] = False
    TRUNC[i] = False
    for a in range(AGENTS):
        R[i, a] = 0.0
        GONE[i, a] = False


def step_lanes(
    lo, hi, check, mode, thread,
    S, SB, world, words, A, WI, WF, O, OB, M, MB, FO, FB, FM, FMB, FI, R, TERM, TRUNC, GONE, SCRATCH,
):  # fmt: skip
    """One decision of the lanes [lo, hi). Returns -1, or the first offending action (then nothing has moved)."""
    if check:
        offender = first_offender(lo, hi, S, words, WI, WF)
        if offender >= 0:
            return offender
    scratch = SCRATCH[thread]
    for i in range(np.uint64(lo), np.uint64(hi)):
        s = S[i]
        if s.pending == WAITING:
            for a in range(AGENTS):
                R[i, a] = 0.0
                GONE[i, a] = False
            continue
        if s.pending == RESET_DUE:
            begin(s, SB[i], world)
            clear_flags(i, R, TERM, TRUNC, GONE)
        else:
            prepare(s, world, words, A[i], WI[i], WF[i], MB[i], R[i], GONE[i], scratch)
            over = step(s, world, A[i], R[i], scratch)
            cut = close(s, over, GONE[i])
            TERM[i] = over
            TRUNC[i] = cut
            if over or cut:
                if mode == NEXT_STEP:
                    s.pending = RESET_DUE
                elif mode == OFF:
                    s.pending = WAITING
                else:
                    see(s, world, FB[i], FO[i], FMB[i], FM[i], scratch)
                    if HAS_LEGAL:
                        forbid_idle(s, words, FMB[i])
                    FI[i] = s.info
                    begin(s, SB[i], world)
        see(s, world, OB[i], O[i], MB[i], M[i], scratch)
        if HAS_LEGAL:
            forbid_idle(s, words, MB[i])
    return -1


def check_lanes(
    lo, hi,
    S, SB, world, words, A, WI, WF, O, OB, M, MB, FO, FB, FM, FMB, FI, R, TERM, TRUNC, GONE, SCRATCH,
):  # fmt: skip
    """Number of the first action outside its space, or -1."""
    return first_offender(lo, hi, S, words, WI, WF)


def reset_lanes(
    lo, hi, which, thread,
    S, SB, world, words, A, WI, WF, O, OB, M, MB, FO, FB, FM, FMB, FI, R, TERM, TRUNC, GONE, SCRATCH,
):  # fmt: skip
    """Starts a new match in the lanes of [lo, hi) where ``which`` is set."""
    for i in range(np.uint64(lo), np.uint64(hi)):
        if which[i]:
            s = S[i]
            begin(s, SB[i], world)
            clear_flags(i, R, TERM, TRUNC, GONE)
            see(s, world, OB[i], O[i], MB[i], M[i], SCRATCH[thread])
            if HAS_LEGAL:
                forbid_idle(s, words, MB[i])


def see_lanes(
    lo, hi, which, thread,
    S, SB, world, words, A, WI, WF, O, OB, M, MB, FO, FB, FM, FMB, FI, R, TERM, TRUNC, GONE, SCRATCH,
):  # fmt: skip
    """Writes observations and masks of the lanes of [lo, hi) where ``which`` is set."""
    for i in range(np.uint64(lo), np.uint64(hi)):
        if which[i]:
            see(S[i], world, OB[i], O[i], MB[i], M[i], SCRATCH[thread])
            if HAS_LEGAL:
                forbid_idle(S[i], words, MB[i])


def begin_lanes(
    lo, hi, which, thread,
    S, SB, world, words, A, WI, WF, O, OB, M, MB, FO, FB, FM, FMB, FI, R, TERM, TRUNC, GONE, SCRATCH,
):  # fmt: skip
    """Starts a new match in the rules alone: an engine loads its bodies before anything is seen."""
    for i in range(np.uint64(lo), np.uint64(hi)):
        if which[i]:
            begin(S[i], SB[i], world)


def prepare_lanes(
    lo, hi, check, mode, thread, stage,
    S, SB, world, words, A, WI, WF, O, OB, M, MB, FO, FB, FM, FMB, FI, R, TERM, TRUNC, GONE, SCRATCH,
):  # fmt: skip
    """First part of a decision of an engine game; ``stage`` says what each lane does (RUNNING, RESET_DUE, WAITING)."""
    if check:
        offender = first_offender(lo, hi, S, words, WI, WF)
        if offender >= 0:
            return offender
    for i in range(np.uint64(lo), np.uint64(hi)):
        s = S[i]
        stage[i] = s.pending
        if s.pending == RUNNING:
            TERM[i] = False
            TRUNC[i] = False
            prepare(s, world, words, A[i], WI[i], WF[i], MB[i], R[i], GONE[i], SCRATCH[thread])
        elif s.pending == RESET_DUE:
            clear_flags(i, R, TERM, TRUNC, GONE)
        else:
            for a in range(AGENTS):
                R[i, a] = 0.0
                GONE[i, a] = False
    return -1


def command_lanes(
    lo, hi, stage, thread,
    S, SB, world, words, A, WI, WF, O, OB, M, MB, FO, FB, FM, FMB, FI, R, TERM, TRUNC, GONE, SCRATCH,
):  # fmt: skip
    """Turns actions into inputs of the engine in the lanes that still play this decision."""
    for i in range(np.uint64(lo), np.uint64(hi)):
        if stage[i] == RUNNING and not TERM[i]:
            command(S[i], world, A[i], SCRATCH[thread])


def judge_lanes(
    lo, hi, stage, thread,
    S, SB, world, words, A, WI, WF, O, OB, M, MB, FO, FB, FM, FMB, FI, R, TERM, TRUNC, GONE, SCRATCH,
):  # fmt: skip
    """Applies the rules to what the engine did. Returns how many lanes still play this decision."""
    playing = 0
    for i in range(np.uint64(lo), np.uint64(hi)):
        if stage[i] == RUNNING and not TERM[i]:
            TERM[i] = judge(S[i], world, R[i], SCRATCH[thread])
            playing += not TERM[i]
    return playing


def close_lanes(
    lo, hi, mode, thread, stage,
    S, SB, world, words, A, WI, WF, O, OB, M, MB, FO, FB, FM, FMB, FI, R, TERM, TRUNC, GONE, SCRATCH,
):  # fmt: skip
    """Last part of a decision of an engine game; stage becomes RESET_DUE where a match starts anew at once."""
    for i in range(np.uint64(lo), np.uint64(hi)):
        if stage[i] != RUNNING:
            continue
        s = S[i]
        TRUNC[i] = close(s, TERM[i], GONE[i])
        if TERM[i] or TRUNC[i]:
            if mode == NEXT_STEP:
                s.pending = RESET_DUE
            elif mode == OFF:
                s.pending = WAITING
            else:
                see(s, world, FB[i], FO[i], FMB[i], FM[i], SCRATCH[thread])
                if HAS_LEGAL:
                    forbid_idle(s, words, FMB[i])
                FI[i] = s.info
                stage[i] = RESET_DUE


def state_lanes(lo, hi, thread, S, world, STATE, SCRATCH):
    """Writes the global state of each lane."""
    for i in range(np.uint64(lo), np.uint64(hi)):
        global_state(S[i], world, STATE[i])
