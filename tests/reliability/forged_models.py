"""Opens and uses a written list of forged folders of models, corpora, questions and indexes.

    PYTHONPATH=tests python tests/reliability/forged_models.py
    PYTHONPATH=tests python tests/reliability/forged_models.py --kinds embedder index --names "module" "offsets"

Each is used in a process of its own, forked from one that has used an honest file of its kind. A table says how many
were refused by a `palaestra.core.files.FileError` that names their file in a line that a terminal can show, how many
of those that may be played were, and how many failed, in the words of `reliability.mutated_files`: an import, a call, a
process or a connection ("ran code"), an opened or written file elsewhere, over 500 MB, over 5 s of CPU time, a refusal
that names no file or advises to install something. Folders of models need the libraries (extras ``text`` and
``baselines``): without them they are checked as far as no library is needed. The exit status is 1 unless none failed.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the folder `reliability`

from reliability import forged_corpora, forged_folders
from reliability.forged_folders import MODULE, WRITERS, Forgery
from reliability.mutated_files import (
    CRASHED,
    FAILURES,
    FOREIGN,
    HOME,
    HUNG,
    ILL_TOLD,
    LARGE,
    LARGE_BYTES,
    LONGEST_LINE,
    PLAYED,
    RAN_CODE,
    REFUSED,
    Watch,
    contents_of,
    make_home,
    most_memory,
)

HANGS_S, SILENT_S = 5.0, 60.0
MORE_MEMORY = 6 * 2**30
"""Address space that a forged file may ask for beyond what its libraries have."""
UNSEEN = "played, to be refused"
FORGERIES = [*forged_folders.FORGERIES, *forged_corpora.FORGERIES]
KINDS = tuple(dict.fromkeys(forgery.kind for forgery in FORGERIES))
NEVER_IMPORTED = (MODULE, "antigravity", "modeling_x", "generate")
HAS_LIBRARIES = all(find_spec(name) for name in ("torch", "transformers", "sentence_transformers"))


def use_model(folder: Path) -> None:
    """As a policy that learns."""
    if not HAS_LIBRARIES:
        return _check(folder, False)
    from palaestra_baselines.common.lm.hf_model import HFModel, TextTurns, check_same_tokens

    check_same_tokens(folder, folder)
    HFModel(folder, TextTurns(folder, 8).size)


def use_embedder(folder: Path) -> None:
    """As the retriever of SearchQA."""
    if not HAS_LIBRARIES:
        return _check(folder, True)
    from palaestra.games.search import DenseIndex

    DenseIndex(["a cat", "a dog"], folder).search("cat", 1)


def _check(folder: Path, sentences: bool) -> None:
    from palaestra.core.files.model_files import digest_of_folder
    from palaestra.core.files.model_folder import checked_copy

    with checked_copy(folder, sentences):
        digest_of_folder(folder)


def use_corpus(folder: Path) -> None:
    """As a world of SearchQA, and as what is served."""
    from palaestra.games.search import corpora

    if '"context"' in (text := _beginning(folder / forged_corpora.P)) or '"paragraphs"' in text:
        corpora.read(folder / forged_corpora.P)
    corpora.read(folder / forged_corpora.P, folder / forged_corpora.Q)


def _beginning(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(10_000).decode("utf-8", "replace")


def use_index(folder: Path) -> None:
    """As what is served."""
    from palaestra.games.search import Index
    from palaestra.games.search.corpus import ids_of

    index = Index.load(folder)
    found, _ = index.search("cat mat dog", 4)
    for number in found[found >= 0].tolist():
        print(index.passages[number], ids_of(index.passages)[number])


USES: dict[str, Callable[[Path], None]] = {
    "model": use_model,
    "embedder": use_embedder,
    "corpus": use_corpus,
    "index": use_index,
}


# ----------------------------------------------------------------------------------------------------- in the children


def outcome_of(forgery: Forgery, folder: Path, watch: Watch, canary: Path) -> tuple[str, str, float, int]:
    """Uses one forged folder. Returns the outcome, the error, seconds of CPU time and bytes of memory."""
    before, began = most_memory(restart=True), time.process_time()
    watch.found = None
    outcome, why = _use(forgery, folder)
    took, grown = time.process_time() - began, most_memory() - before
    if canary.exists():
        outcome = RAN_CODE
    elif (found := getattr(watch, "found", None)) is not None:  # the hook has set it
        outcome, why = found
    elif took > HANGS_S:
        outcome, why = HUNG, f"{took:.1f} s: {why}"
    elif grown > LARGE_BYTES:
        outcome, why = LARGE, f"{grown / 1e6:.0f} MB: {why}"
    return outcome, why, took, grown


def _use(forgery: Forgery, folder: Path) -> tuple[str, str]:
    from palaestra.core.files import FileError

    try:
        USES[forgery.kind](folder)
    except FileError as error:
        text = str(error)
        shown = text.isprintable() and len(text) <= LONGEST_LINE and "pip install" not in text
        chain = "".join(traceback.format_exception(error)).replace("\n", "")
        shown = shown and chain.isprintable()  # as a script that ends by it prints it
        is_named = str(folder) in text and (forgery.by_library or forgery.file in text)
        return (REFUSED if shown and is_named else ILL_TOLD), text[:LONGEST_LINE]
    except BaseException as error:
        return FOREIGN, f"{type(error).__name__}: {error}"[:300]
    if forgery.harmless or (forgery.by_library and not HAS_LIBRARIES):
        return PLAYED, ""
    return UNSEEN, ""


def use_all(kind: str, scratch: Path, names: Sequence[str]) -> None:
    """Uses all forged folders of a kind, after an honest one, and prints a line of JSON for each."""
    import resource

    honest, canary = scratch / f"honest-{kind}", Path(os.environ["CANARY"])
    honest.mkdir()
    WRITERS[kind](honest)
    USES[kind](honest)
    watch = Watch(scratch / HOME, scratch)

    def note(event: str, arguments: tuple) -> None:
        if event == "import" and arguments[0] in NEVER_IMPORTED and watch.found is None:
            watch.found = (RAN_CODE, f"import {arguments[0]}")

    sys.addaudithook(note)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + MORE_MEMORY
    for number, forgery in enumerate(forgery for forgery in FORGERIES if forgery.kind == kind):
        if names and not any(name in forgery.name for name in names):
            continue
        folder = forgery.make(scratch / f"{kind}-{number}")
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            os.write(writer, json.dumps(outcome_of(forgery, folder, watch, canary)).encode()[:8192])
            os._exit(0)
        os.close(writer)
        told = b""
        if select.select([reader], [], [], SILENT_S)[0]:
            told = os.read(reader, 8192)
        else:
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        os.close(reader)
        died = HUNG if status == signal.SIGKILL else CRASHED, f"status {status}", 0.0, 0
        outcome, why, took, grown = json.loads(told) if told else died
        canary.unlink(missing_ok=True)
        said = {"name": forgery.name, "outcome": outcome, "why": why, "took": took, "grown": grown}
        print(json.dumps(said), flush=True)


# ------------------------------------------------------------------------------------------------------- in the parent


def run_kind(kind: str, scratch: Path, names: Sequence[str], says: bool) -> tuple[Counter[str], float, int]:
    """Counts the outcomes of a kind and prints what failed. Behind it: the most seconds and bytes of one."""
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "TMPDIR": str(scratch),
        "CANARY": str(scratch / "a_payload_was_here"),
        "HF_HOME": str(scratch / "hf"),
        "XDG_CACHE_HOME": str(scratch / "cache"),
        "TOKENIZERS_PARALLELISM": "false",
        "NUMBA_DISABLE_JIT": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, str(Path(__file__).resolve()), "--child", kind, str(scratch), *names]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment,
        cwd=scratch / HOME,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{kind}: the honest one, or the command itself, is broken: {done.stderr[-2000:]}")
    counts, took, grown = Counter[str](), 0.0, 0
    for said in map(json.loads, filter(lambda line: line.startswith("{"), done.stdout.splitlines())):
        took, grown = max(took, said["took"]), max(grown, said["grown"])
        counts[said["outcome"]] += 1
        if says or said["outcome"] not in (REFUSED, PLAYED):
            print(f"{kind}: {said['name']}: {said['outcome']}: {said['why']}", flush=True)
    return counts, took, grown


def main(argv: Sequence[str] | None = None) -> int:
    """Uses all of the list, prints the table, returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["--child"]:
        use_all(words[1], Path(words[2]), words[3:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--names", nargs="+", default=[], help="only those whose names hold one of these")
    parser.add_argument("--all", action="store_true", help="print every outcome, not failures alone")
    args = parser.parse_args(words)
    began, counts, most = time.perf_counter(), dict[str, Counter[str]](), list[tuple[float, int]]()
    with tempfile.TemporaryDirectory(prefix="palaestra-forged-") as name:
        for kind in args.kinds:
            scratch = Path(name) / kind
            scratch.mkdir()
            private = make_home(scratch / HOME)
            counts[kind], took, grown = run_kind(kind, scratch, args.names, args.all)
            most.append((took, grown))
            if contents_of(scratch / HOME) != private:
                counts[kind][RAN_CODE] += 1
                print(f"{kind}: private files are others now")
    total = sum(counts.values(), Counter[str]())
    failed = sum(total[outcome] for outcome in (*FAILURES, UNSEEN))
    for kind, row in {**counts, "all": total}.items():
        print(f"{kind:10s}{sum(row.values()):5d}: " + ", ".join(f"{count} {outcome}" for outcome, count in row.items()))
    if not HAS_LIBRARIES:
        print('models were checked without the libraries: pip install "palaestra[text]"')
    slowest, largest = max(took for took, _ in most), max(grown for _, grown in most)
    print(f"the slowest took {slowest:.2f} s of CPU time, the largest {largest / 1e6:.0f} MB")
    print(f"{failed} failed, {time.perf_counter() - began:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
