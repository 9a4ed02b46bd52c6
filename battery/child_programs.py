"""The programs that children run: one verb, writers that are killed, concurrent writers, and races against a purge.

Run as a script in a bare interpreter, `python -I child_programs.py LIBRARIES PROGRAM ARGUMENTS...`, so it imports little.
A child prints with `writev`, the one way to write that no fault is injected into.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random
    from typing import Any

    from holdfast.api.memory import Memory

    Action = Callable[[Memory], object]

START, END = ".battery-start", ".battery-end"
NEXT_TEXT = "zqnext stored after the fault"


class Verb:
    """A verb to test: what it does, and which of its changes belong together."""

    def __init__(self, name: str, action: Action, *, empty: bool = False, delete: str = "", unit: str = "key") -> None:
        self.name = name
        self.action = action
        self.empty = empty  # starts without a home
        self.delete = delete  # a file of the home to delete first
        self.unit = unit  # "key": a note with its trashed copies; "item": each file alone; "all": all files at once


def open_memory(home: str | os.PathLike[str], **more: Any) -> Memory:
    """Open a home as the caller that all parts of the battery use."""
    from holdfast import Memory

    return Memory(home, cwd="/", project="demo", agent="smith", session="s1", **more)


def _store_many(memory: Memory) -> None:
    memory.store_many([
        {"text": "zq201 the first of many", "key": "many-one"},
        {"text": "zq202 alpha once more, by the hand that writes many", "key": "alpha"},
        {"text": "zq203 the third of many", "key": "many-three", "tags": ["bulk"]},
        {"text": "zq204 beta once more", "key": "beta"},
    ])  # fmt: skip


VERBS = {
    verb.name: verb
    for verb in (
        Verb("first-store", lambda m: m.store("zq100 the first note of a home", key="first"), empty=True),
        Verb("store", lambda m: m.store("zq101 a new note", key="newcomer", tags=["fresh"])),
        Verb("update", lambda m: m.store("zq102 alpha in its next version", key="alpha")),
        Verb("store-many", _store_many),
        Verb("fact", lambda m: m.fact("Telegram", "status", "zq103", on="2026-03-27")),
        Verb("forget", lambda m: m.forget("beta")),
        Verb("restore", lambda m: m.restore("lost")),
        Verb("purge", lambda m: m.purge("gamma"), unit="item"),
        Verb("clear", lambda m: m.clear("project")),
        Verb("retain", lambda m: m.retain()),
        Verb("file-create", lambda m: m.files.create("/memories/new/idea.md", "# Idea\nzq104 new\n"), unit="item"),
        Verb("file-replace", lambda m: m.files.str_replace("/memories/plan.md", "zq051", "zq105"), unit="item"),
        Verb("file-insert", lambda m: m.files.insert("/memories/plan.md", 1, "zq106 a line more"), unit="item"),
        Verb("file-delete", lambda m: m.files.delete("/memories/folder"), unit="item"),
        Verb("file-rename", lambda m: m.files.rename("/memories/plan.md", "/memories/far/plan.md"), unit="all"),
        Verb("recall", lambda m: m.recall("alpha beta", mode="keyword")),
        Verb("reindex", lambda m: m.reindex()),
        Verb("rebuild", lambda m: m.list(), delete="index.db"),
    )
}


def send(line: str) -> None:
    """Print one line to the parent."""
    os.writev(1, [line.replace("\n", " ").encode("utf-8", "replace") + b"\n"])


def mark_trace(home: str, name: str) -> None:
    """Leave a line in the trace by opening a file that never exists."""
    try:
        os.close(os.open(os.path.join(home, name), os.O_RDONLY))
    except OSError:
        pass


def run_verb(home: str, name: str, then: str) -> None:
    """Run one verb and send `ack` when it has returned; with `go-on`, store another note with the same memory."""
    from holdfast import HoldfastError

    mark_trace(home, START)
    try:
        memory = open_memory(home)
        VERBS[name].action(memory)
        send("ack")
    except HoldfastError as error:
        send(f"error {error.code} {error}")
    if then == "go-on":
        memory.store(NEXT_TEXT, key="next-one", scope="global")
        found = [hit.key for hit in memory.recall("zqnext", mode="keyword", scope="global")]
        send("next" if found == ["next-one"] else f"wrong the next store is found as {found}")
    memory.close()
    mark_trace(home, END)


# --- a writer that runs until it is killed ----------------------------------------------------------------------------

KEYS = 6
Step = tuple[str, tuple[tuple[str, str], ...]]  # the verb, and the keys with their texts


def generate_steps(seed: str, writer: str) -> Iterator[Step]:
    """Yield what a writer does, the same in every process for the same seed."""
    from random import Random

    rng: Random = Random(f"{seed}/{writer}")
    number = 0
    while True:
        number += 1
        kind = rng.choice(("store", "store", "store", "many", "forget", "restore", "fresh"))
        keys = [f"{writer}-key-{key}" for key in rng.sample(range(KEYS), 3 if kind == "many" else 1)]
        if kind == "fresh":
            kind, keys = "store", [f"{writer}-fresh-{seed}-{number}"]
        filler = "words " * rng.choice((1, 20, 400))
        yield kind, tuple((key, f"zq{writer}{seed}n{number} {filler}of {key}") for key in keys)


def write_until_killed(home: str, seed: str, writer: str) -> None:
    """Send `ready`, then the number of each step when it has returned, without end."""
    from holdfast import Conflict, NotFound

    memory = open_memory(home)
    send("ready")
    for number, (kind, notes) in enumerate(generate_steps(seed, writer), 1):
        key, text = notes[0]
        try:
            if kind == "store":
                memory.store(text, key=key)
            elif kind == "many":
                memory.store_many([{"text": text, "key": key} for key, text in notes])
            elif kind == "forget":
                memory.forget(key)
            else:
                memory.restore(key)
        except (NotFound, Conflict):
            if kind != "restore":
                raise
        send(str(number))


# --- concurrent processes ---------------------------------------------------------------------------------------------


def wait_for_start() -> str:
    """Send `ready`, wait until the time that the parent names and return the rest of its line; "" at the end of input."""
    import time

    send("ready")
    line = sys.stdin.readline()
    start, _, rest = line.strip().partition(" ")
    if start:
        time.sleep(max(0.0, float(start) - time.monotonic()))
    return rest if start else ""


def store_notes(home: str, writer: str, count: str) -> None:
    """Store `count` new notes."""
    from holdfast import HoldfastError

    wait_for_start()
    with open_memory(home) as memory:
        for number in range(int(count)):
            try:
                stored = memory.store(f"zqcrowd note {number} of writer {writer}", key=f"w{writer}-n{number}")
                if stored.action != "created":
                    send(f"error the note {stored.note.key} was {stored.action}")
            except HoldfastError as error:
                send(f"error {error.code} {error}")
    send("done")


def edit_note(home: str, writer: str, count: str, mode: str) -> None:
    """Edit one note `count` times, in the mode `versioned` with the version that was read before."""
    from holdfast import Conflict, HoldfastError

    wait_for_start()
    with open_memory(home) as memory:
        for number in range(int(count)):
            text = f"zqedit {number} of writer {writer}"
            try:
                seen = memory.get("shared").version if mode == "versioned" else None
                send(f"applied {memory.store(text, key='shared', expected=seen).action} {text}")
            except Conflict:
                send("conflict")
            except HoldfastError as error:
                send(f"error {error.code} {error}")
    send("done")


def open_homes(writer: str) -> None:
    """For each home that the parent names, open it in a new process and store one note."""
    import holdfast.api.memory  # noqa: F401 - before the fork, so that the new process has nothing left to load

    while home := wait_for_start():
        child = os.fork()
        if child == 0:
            _open_and_store(home, writer)
        os.waitpid(child, 0)


def _open_and_store(home: str, writer: str) -> None:
    import traceback

    try:
        with open_memory(home) as memory:
            action = memory.store(f"zqopen writer {writer} was here", key=f"opener-{writer}").action
        send("opened" if action == "created" else f"error the note was {action}")
    except BaseException:  # noqa: BLE001 - the parent must be told of any error; the process ends here
        send(f"error {traceback.format_exc()}")
    finally:
        os._exit(0)


# --- races against a purge --------------------------------------------------------------------------------------------


def make_race_line(number: str) -> str:
    """Return the line that a race purges and writes."""
    return f"zqrace{number} the harbour code of this very race is {number}"


def _write_again(memory: Memory, kind: str, number: str, file: str) -> None:
    key, line = f"race-{number}", make_race_line(number)
    if kind == "edit":
        memory.store(f"{line}\nand an edit of it", key=key)
    elif kind == "import":
        memory.store_many([{"text": line, "key": key}, {"text": f"# Other\n{line}", "key": f"{key}-too"}])
    elif kind == "restore":
        memory.restore(key)
    elif kind == "forget":
        memory.forget(key)
    elif kind == "reindex":
        memory.reindex()
    elif kind == "render":
        memory.render(file)
    elif kind == "log":
        memory.log([{"role": "user", "text": f"remember this:\n{line}", "id": f"t{number}"}], session="race", client="chat")
    elif kind == "file":
        memory.files.create(f"race-{number}.md", f"# Race\n{line}\n")


def race_purge(home: str, role: str, file: str) -> None:
    """For each race that the parent names, purge a note, or write it again three times."""
    from holdfast import HoldfastError

    with open_memory(home) as memory:
        while race := wait_for_start():
            kind, number = race.split()
            for _ in range(1 if role == "purge" else 3):
                try:
                    if role == "purge":
                        send(f"state {memory.purge(f'race-{number}', transcripts=True).state}")
                    else:
                        _write_again(memory, kind, number, file)
                        send("did")
                except HoldfastError as error:
                    send(f"error {error.code} {error}")
            send("done")


PROGRAMS = {
    "run-verb": run_verb, "race-purge": race_purge, "write-until-killed": write_until_killed, "store-notes": store_notes,
    "edit-note": edit_note, "open-homes": open_homes,
}  # fmt: skip


def main(libraries: str, program: str, *arguments: str) -> None:
    """Run a program; an error that is not one of Holdfast's is sent as `raw`."""
    sys.path[:0] = libraries.split(os.pathsep)
    try:
        PROGRAMS[program](*arguments)  # type: ignore[operator]
    except Exception as error:  # noqa: BLE001 - the outermost function
        import traceback

        send(f"raw {type(error).__name__}: {error} | {' | '.join(traceback.format_exc().splitlines()[-6:])}")
        raise SystemExit(1) from None


if __name__ == "__main__":
    main(*sys.argv[1:])
