"""The children of the race: one that swaps folders and files for links, and some that work on them meanwhile.

`python racing.py swap HOME LINKS COUNT SEED` and `python racing.py work HOME SEED STOP`; a worker goes on until the file STOP
is there. Everything they say is a line of JSON.
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

CANARY = "zqcanary7d1e"
ROOM = "shelf/projects/demo"
TARGETS = (  # what is swapped, and what in the outside folder the link in its place leads to
    (f"{ROOM}/files", ""), (f"{ROOM}/files/folder", ""), (f"{ROOM}/files/folder/deep", "inner"),
    (f"{ROOM}/files/plan.md", "secret.md"), (f"{ROOM}/files/folder/secret.md", "secret.md"), (f"{ROOM}/files/MEMORY.md",
    "MEMORY.md"),
    (f"{ROOM}/notes", ""), (f"{ROOM}/notes/alpha.md", "secret.md"), (f"{ROOM}/notes/keep.md", "keep.md"),
    (f"{ROOM}/trash", ""), (f"{ROOM}/transcripts", ""), (ROOM, ""), ("shelf/projects", ""), ("shelf", ""),
)  # fmt: skip
_EXCHANGE = 2
Act = Callable[[], object]


def swap(home: str, outside: str, count: str, seed: str) -> None:
    """Put a link in the place of something, a moment later the thing itself again; so many times."""
    chance = random.Random(seed)
    links = os.path.join(os.path.dirname(home), "links")
    os.makedirs(links, exist_ok=True)
    aside = []
    for number, (_, leads_to) in enumerate(TARGETS):
        aside.append(os.path.join(links, str(number)))
        os.symlink(os.path.join(outside, leads_to).rstrip("/"), aside[-1])
    done = missed = 0
    while done < int(count):
        number = chance.randrange(len(TARGETS))
        here = os.path.join(home, TARGETS[number][0])
        if not exchange(here, aside[number]):
            missed += 1  # a worker took it away; another will make it again
            time.sleep(0.0005)
            if missed > 20 * int(count):
                break
            continue
        done += 1
        time.sleep(chance.choice((0, 0.0002, 0.001)))
        if not exchange(here, aside[number]):
            os.rename(aside[number], here)
            os.symlink(os.path.join(outside, TARGETS[number][1]).rstrip("/"), aside[number])
    print(json.dumps({"swaps": done, "missed": missed}), flush=True)


def exchange(one: str, other: str) -> bool:
    """Two names change places in one step; False where one is not there."""
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), _EXCHANGE) == 0)


def work(home: str, seed: str, stop: str) -> None:
    """Every verb that touches files, by chance, until the race is over."""
    from holdfast import HoldfastError, Memory

    chance = random.Random(seed)
    memory = Memory(home, cwd="/", project="demo", agent="smith", session="s1")
    verbs = list(_verbs(memory, chance).items())
    memory.recall("zq", mode="keyword")
    counts: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    print("ready", flush=True)
    while not os.path.exists(stop):
        name, verb = chance.choice(verbs)
        try:
            said = repr(verb())
            counts["done"] += 1
        except HoldfastError as error:
            said = str(error)
            counts[error.code] += 1
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            said = ""
            wrong[f"{name}: {type(error).__name__}: {error} | {' | '.join(traceback.format_exc().splitlines()[-4:])}"] += 1
        if CANARY in said:
            wrong[f"{name} told what stands outside: {said[:300]}"] += 1
    print(json.dumps({"counts": counts, "wrong": wrong}), flush=True)


def _verbs(memory: object, chance: random.Random) -> dict[str, Act]:
    from holdfast import Memory

    assert isinstance(memory, Memory)
    files = memory.files

    def key() -> str:
        return chance.choice(("alpha", "keep", "secret", "other", "more"))

    def path() -> str:
        return chance.choice(("plan.md", "secret.md", "folder/secret.md", "folder/deep/secret.md", "MEMORY.md",
            "folder/new.md"))

    return {
        "store": lambda: memory.store(f"zq text {chance.random()}", key=key()),
        "recall": lambda: memory.recall("secret status", mode="keyword"),
        "recall of all": lambda: memory.recall("zq", mode="keyword", limit=50),
        "get": lambda: memory.get(key()),
        "list": memory.list,
        "fact": lambda: memory.fact("Telegram", "status", f"zq{chance.random()}"),
        "forget": lambda: memory.forget(key()),
        "restore": lambda: memory.restore(key()),
        "purge": lambda: memory.purge(key()),
        "brief": memory.brief,
        "read": lambda: memory.read(f"projects/demo/files/{path()}"),
        "read a note": lambda: memory.read(f"projects/demo/notes/{key()}.md"),
        "log": lambda: memory.log([{"role": "user", "text": f"zq said {chance.random()}"}], session="s1", client="chat"),
        "check": memory.check,
        "reindex": memory.reindex,
        "scaffold": lambda: memory.scaffold("wiki", scope="project"),
        "view": lambda: files.view(path()),
        "view all": lambda: files.view("/memories"),
        "create": lambda: files.create(path(), "# Plan\nzq new\n"),
        "create deep": lambda: files.create("folder/deep/secret.md", "zq deep\n"),
        "str_replace": lambda: files.str_replace(path(), "zq", "zq zq"),
        "insert": lambda: files.insert(path(), 0, "zq first"),
        "delete": lambda: files.delete(chance.choice((path(), "folder/deep"))),
        "rename": lambda: files.rename(path(), path()),
    }


if __name__ == "__main__":
    {"swap": swap, "work": work}[sys.argv[1]](*sys.argv[2:])
