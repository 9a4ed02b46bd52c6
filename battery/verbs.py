"""The programs that children run: one writing verb, a writer that goes on until it is killed, and members of a crowd.

Run as a script in a bare interpreter, `python -I verbs.py LIBRARIES PROGRAM HOME ARGUMENTS...`, so it imports little.
Everything a child says goes out by `writev`, the one way of writing that no fault is injected into.
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

    Act = Callable[[Memory], object]

START, END = ".battery-start", ".battery-end"
NEXT = "zqnext stored after the fault"


class Verb:
    """A writing verb: what it does, what is taken away before it, and which of its changes come together."""

    def __init__(self, name: str, act: Act, *, empty: bool = False, drop: str = "", unit: str = "key") -> None:
        self.name = name
        self.act = act
        self.empty = empty  # starts without any home
        self.drop = drop  # a file of the home that is deleted before
        self.unit = unit  # "key": a note with its binned copies; "item": each file alone; "all": everything at once


def caller(home: str | os.PathLike[str], **more: Any) -> Memory:
    """Who asks in every home of the battery."""
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
        Verb("rebuild", lambda m: m.list(), drop="index.db"),
    )
}


def say(line: str) -> None:
    """One line to the parent."""
    os.writev(1, [line.replace("\n", " ").encode("utf-8", "replace") + b"\n"])


def mark(home: str, name: str) -> None:
    """A line in the trace, and nothing else: this file is never there."""
    try:
        os.close(os.open(os.path.join(home, name), os.O_RDONLY))
    except OSError:
        pass


def do(home: str, name: str, then: str) -> None:
    """One verb; `ack` only when it returned. With `go-on` the same memory must serve the next store as well."""
    from holdfast import HoldfastError

    mark(home, START)
    try:
        memory = caller(home)
        VERBS[name].act(memory)
        say("ack")
    except HoldfastError as error:
        say(f"error {error.code} {error}")
    if then == "go-on":
        memory.store(NEXT, key="next-one", scope="global")
        found = [hit.key for hit in memory.recall("zqnext", mode="keyword", scope="global")]
        say("next" if found == ["next-one"] else f"wrong the next store is found as {found}")
    memory.close()
    mark(home, END)


# --- a writer that goes on until it is killed -------------------------------------------------------------------------

KEYS = 6
Step = tuple[str, tuple[tuple[str, str], ...]]  # what is done, and to which keys with which texts


def steps(seed: str, writer: str) -> Iterator[Step]:
    """What this writer does, the same for everybody who asks with its seed."""
    from random import Random

    chance: Random = Random(f"{seed}/{writer}")
    number = 0
    while True:
        number += 1
        kind = chance.choice(("store", "store", "store", "many", "forget", "restore", "fresh"))
        keys = [f"{writer}-key-{one}" for one in chance.sample(range(KEYS), 3 if kind == "many" else 1)]
        if kind == "fresh":
            kind, keys = "store", [f"{writer}-fresh-{seed}-{number}"]
        filler = "words " * chance.choice((1, 20, 400))
        yield kind, tuple((key, f"zq{writer}{seed}n{number} {filler}of {key}") for key in keys)


def write_on(home: str, seed: str, writer: str) -> None:
    """Say `ready`, then one line for each step that has come back, until the end."""
    from holdfast import Conflict, NotFound

    memory = caller(home)
    say("ready")
    for number, (kind, notes) in enumerate(steps(seed, writer), 1):
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
        say(str(number))


# --- members of a crowd -----------------------------------------------------------------------------------------------


def starting() -> str:
    """Wait until everybody is here: the parent names the moment at which all begin."""
    import time

    say("ready")
    line = sys.stdin.readline()
    moment, _, rest = line.strip().partition(" ")
    if moment:
        time.sleep(max(0.0, float(moment) - time.monotonic()))
    return rest if moment else ""


def crowd_store(home: str, writer: str, count: str) -> None:
    """Store so many new notes."""
    from holdfast import HoldfastError

    starting()
    with caller(home) as memory:
        for number in range(int(count)):
            try:
                made = memory.store(f"zqcrowd note {number} of writer {writer}", key=f"w{writer}-n{number}")
                if made.action != "created":
                    say(f"error the note {made.note.key} was {made.action}")
            except HoldfastError as error:
                say(f"error {error.code} {error}")
    say("done")


def crowd_edit(home: str, writer: str, count: str, careful: str) -> None:
    """Edit one note so many times: carefully (say which version was seen), or just so."""
    from holdfast import Conflict, HoldfastError

    starting()
    with caller(home) as memory:
        for number in range(int(count)):
            text = f"zqedit {number} of writer {writer}"
            try:
                seen = memory.get("shared").version if careful == "careful" else None
                say(f"applied {memory.store(text, key='shared', expected=seen).action} {text}")
            except Conflict:
                say("conflict")
            except HoldfastError as error:
                say(f"error {error.code} {error}")
    say("done")


def crowd_open(_: str, writer: str) -> None:
    """For every home that the parent names: a new process opens it and stores one note."""
    import holdfast.api.memory  # noqa: F401 - before the fork: everybody begins with nothing left to load

    while home := starting():
        child = os.fork()
        if child == 0:
            _open_and_store(home, writer)
        os.waitpid(child, 0)


def _open_and_store(home: str, writer: str) -> None:
    import traceback

    try:
        with caller(home) as memory:
            action = memory.store(f"zqopen writer {writer} was here", key=f"opener-{writer}").action
        say("opened" if action == "created" else f"error the note was {action}")
    except BaseException:  # noqa: BLE001 - the parent must hear of anything; the process ends here
        say(f"error {traceback.format_exc()}")
    finally:
        os._exit(0)


# --- races against a purge --------------------------------------------------------------------------------------------


def secret(number: str) -> str:
    """The line that a race is about."""
    return f"zqrace{number} the harbour code of this very race is {number}"


def _racing(memory: Memory, kind: str, number: str, file: str) -> None:
    key, line = f"race-{number}", secret(number)
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


def race(home: str, role: str, file: str) -> None:
    """Purge, or do what could bring it back, three times around the moment that the parent names."""
    from holdfast import HoldfastError

    with caller(home) as memory:
        while asked := starting():
            kind, number = asked.split()
            for _ in range(1 if role == "purge" else 3):
                try:
                    if role == "purge":
                        say(f"state {memory.purge(f'race-{number}', transcripts=True).state}")
                    else:
                        _racing(memory, kind, number, file)
                        say("did")
                except HoldfastError as error:
                    say(f"error {error.code} {error}")
            say("done")


PROGRAMS = {
    "do": do, "race": race, "write-on": write_on, "crowd-store": crowd_store, "crowd-edit": crowd_edit,
    "crowd-open": crowd_open,
}  # fmt: skip


def main(libraries: str, program: str, *arguments: str) -> None:
    """A failure that is not one of Holdfast's own errors is said as `raw`."""
    sys.path[:0] = libraries.split(os.pathsep)
    try:
        PROGRAMS[program](*arguments)  # type: ignore[operator]
    except Exception as error:  # noqa: BLE001 - this is the outermost place
        import traceback

        say(f"raw {type(error).__name__}: {error} | {' | '.join(traceback.format_exc().splitlines()[-6:])}")
        raise SystemExit(1) from None


if __name__ == "__main__":
    main(*sys.argv[1:])
