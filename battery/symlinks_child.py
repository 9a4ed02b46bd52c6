"""Children of the part `symlinks`: one exchanges folders and files for links, others use them at the same time.

`python symlinks_child.py swap HOME OUTSIDE COUNT SEED` and `python symlinks_child.py work HOME SEED STOP`; a worker runs until
the file STOP exists. Both print their result as a line of JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast import Memory

CANARY = "zqcanary7d1e"
_PROJECT = "shelf/projects/demo"
TARGETS = (  # what is exchanged for a link, and the path in the outside folder that the link leads to
    (f"{_PROJECT}/files", ""), (f"{_PROJECT}/files/folder", ""), (f"{_PROJECT}/files/folder/deep", "inner"),
    (f"{_PROJECT}/files/plan.md", "secret.md"), (f"{_PROJECT}/files/folder/secret.md", "secret.md"),
    (f"{_PROJECT}/files/MEMORY.md", "MEMORY.md"),
    (f"{_PROJECT}/notes", ""), (f"{_PROJECT}/notes/alpha.md", "secret.md"), (f"{_PROJECT}/notes/keep.md", "keep.md"),
    (f"{_PROJECT}/trash", ""), (f"{_PROJECT}/transcripts", ""), (_PROJECT, ""), ("shelf/projects", ""), ("shelf", ""),
)  # fmt: skip
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of <fcntl.h> and <linux/fs.h>
Action = Callable[[], object]


def swap(home: str, outside: str, count: str, seed: str) -> None:
    """Exchange something for a link and exchange it back a moment later, `count` times."""
    rng = random.Random(seed)
    folder = os.path.join(os.path.dirname(home), "links")
    os.makedirs(folder, exist_ok=True)
    links = []
    for number, (_, leads_to) in enumerate(TARGETS):
        links.append(os.path.join(folder, str(number)))
        os.symlink(os.path.join(outside, leads_to).rstrip("/"), links[-1])
    done = missed = 0
    while done < int(count):
        number = rng.randrange(len(TARGETS))
        name, leads_to = TARGETS[number]
        path = os.path.join(home, name)
        if not exchange(path, links[number]):
            missed += 1  # a worker deleted it; another one will create it again
            time.sleep(0.0005)
            if missed > 20 * int(count):
                break
            continue
        done += 1
        time.sleep(rng.choice((0, 0.0002, 0.001)))
        if not exchange(path, links[number]):
            os.rename(links[number], path)
            os.symlink(os.path.join(outside, leads_to).rstrip("/"), links[number])
    print(json.dumps({"swaps": done, "missed": missed}), flush=True)


def exchange(first: str, second: str) -> bool:
    """Exchange two names in one step; return False if one does not exist."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE)
    return bool(result == 0)


def work(home: str, seed: str, stop: str) -> None:
    """Call random verbs that use files until the race is over."""
    from holdfast import HoldfastError, Memory

    rng = random.Random(seed)
    memory = Memory(home, cwd="/", project="demo", agent="smith", session="s1")
    verbs = list(_verbs(memory, rng).items())
    memory.recall("zq", mode="keyword")
    counts: Counter[str] = Counter()
    problems: Counter[str] = Counter()
    print("ready", flush=True)
    while not os.path.exists(stop):
        name, verb = rng.choice(verbs)
        try:
            answer = repr(verb())
            counts["done"] += 1
        except HoldfastError as error:
            answer = str(error)
            counts[error.code] += 1
        except Exception as error:  # noqa: BLE001 - what this program looks for
            answer = ""
            lines = " | ".join(traceback.format_exc().splitlines()[-4:])
            problems[f"{name}: {type(error).__name__}: {error} | {lines}"] += 1
        if CANARY in answer:
            problems[f"{name} shows text from outside: {answer[:300]}"] += 1
    print(json.dumps({"counts": counts, "problems": problems}), flush=True)


def _verbs(memory: Memory, rng: random.Random) -> dict[str, Action]:
    files = memory.files

    def key() -> str:
        return rng.choice(("alpha", "keep", "secret", "other", "more"))

    def path() -> str:
        names = ("plan.md", "secret.md", "folder/secret.md", "folder/deep/secret.md", "MEMORY.md", "folder/new.md")
        return rng.choice(names)

    return {
        "store": lambda: memory.store(f"zq text {rng.random()}", key=key()),
        "recall": lambda: memory.recall("secret status", mode="keyword"),
        "recall of all": lambda: memory.recall("zq", mode="keyword", limit=50),
        "get": lambda: memory.get(key()),
        "list": memory.list,
        "fact": lambda: memory.fact("Telegram", "status", f"zq{rng.random()}"),
        "forget": lambda: memory.forget(key()),
        "restore": lambda: memory.restore(key()),
        "purge": lambda: memory.purge(key()),
        "brief": memory.brief,
        "read": lambda: memory.read(f"projects/demo/files/{path()}"),
        "read a note": lambda: memory.read(f"projects/demo/notes/{key()}.md"),
        "log": lambda: memory.log([{"role": "user", "text": f"zq said {rng.random()}"}], session="s1", client="chat"),
        "check": memory.check,
        "reindex": memory.reindex,
        "scaffold": lambda: memory.scaffold("wiki", scope="project"),
        "view": lambda: files.view(path()),
        "view all": lambda: files.view("/memories"),
        "create": lambda: files.create(path(), "# Plan\nzq new\n"),
        "create deep": lambda: files.create("folder/deep/secret.md", "zq deep\n"),
        "str_replace": lambda: files.str_replace(path(), "zq", "zq zq"),
        "insert": lambda: files.insert(path(), 0, "zq first"),
        "delete": lambda: files.delete(rng.choice((path(), "folder/deep"))),
        "rename": lambda: files.rename(path(), path()),
    }


if __name__ == "__main__":
    program, *arguments = sys.argv[1:]
    if program == "swap":
        swap(*arguments)
    else:
        work(*arguments)
