"""Writers that store, update, forget and restore in a loop, killed at random moments; every second time two at once."""

from __future__ import annotations

import itertools
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from battery import oracle
from battery.lab import Lab
from battery.oracle import State
from battery.report import Report
from battery.verbs import Step, steps

LIFE = 12  # moments that one home goes through
_LONGEST = 0.25  # seconds a writer may live after it said that it is ready
_ROOM = "projects/demo"
Texts = tuple[str, ...]


@dataclass
class Model:
    """What the shelf must say: each note's texts, newest first, and what lies in the trash, last forgotten last."""

    notes: dict[str, Texts] = field(default_factory=dict)
    trash: list[tuple[str, Texts]] = field(default_factory=list)

    def after(self, step: Step, taken: tuple[bool, ...] | None = None) -> Model:
        """The model after a step; of a bulk write perhaps only after the parts that were `taken`."""
        kind, notes = step
        new = Model(dict(self.notes), list(self.trash))
        for (key, text), take in zip(notes, taken or (True,) * len(notes), strict=True):
            if take:
                new._apply(kind, key, text)
        return new

    def _apply(self, kind: str, key: str, text: str) -> None:
        if kind in ("store", "many"):
            self.notes[key] = (text, *self.notes.get(key, ()))
        elif kind == "forget" and key in self.notes:
            self.trash.append((key, self.notes.pop(key)))
        elif kind == "restore" and key not in self.notes:
            last = next((place for place in range(len(self.trash) - 1, -1, -1) if self.trash[place][0] == key), None)
            if last is not None:
                self.notes[key] = self.trash.pop(last)[1]

    def says(self) -> tuple[dict[str, Texts], list[tuple[str, Texts]]]:
        """The form in which it is compared: the trash has no order on disk."""
        return self.notes, sorted(self.trash)


def run(lab: Lab, report: Report, moments: int, seed: int, *, jobs: int = 2) -> None:
    """So many moments, on homes that each live through several."""
    lives = [(f"{seed}x{life}", min(LIFE, moments - life * LIFE)) for life in range((moments + LIFE - 1) // LIFE)]
    with report.row(f"killed at random moments (seed {seed})") as row, ThreadPoolExecutor(jobs) as pool:
        for life, found in zip(lives, pool.map(lambda life: live(lab, *life), lives), strict=True):
            for problems in found:
                row.tried(problems, f"python -m battery kill --life {life[0]}", moments)


def live(lab: Lab, seed: str, moments: int = LIFE) -> list[list[str]]:
    """One home, killed so many times; the problems of each time. One that has gone wrong is replaced by a new one."""
    chance = random.Random(seed)
    found: list[list[str]] = [["no home yet"]]
    for moment in range(moments):
        if found[-1]:
            home, models = lab.home("kill"), {"a": Model(), "b": Model()}
        writers = ("a", "b") if moment % 2 else ("a",)
        acknowledged = _killed(lab, home, f"{seed}m{moment}", {one: chance.uniform(0, _LONGEST) for one in writers})
        problems = []
        state = oracle.read(home)
        for writer, said in acknowledged.items():
            model, wrong = _settled(models[writer], f"{seed}m{moment}", writer, said, state)
            models[writer] = model
            problems += wrong
        problems += oracle.torn(state) + oracle.reopened(home, state)
        found.append(problems)
        if problems or moment == moments - 1:
            lab.away(home)
    return found[1:]


def _killed(lab: Lab, home: Path, seed: str, delays: dict[str, float]) -> dict[str, list[str]]:
    """Start the writers, kill each after its delay, and give what they said until then."""
    children = {writer: lab.start("write-on", str(home), seed, writer) for writer in delays}
    said: dict[str, list[str]] = {}

    def end(writer: str) -> None:
        child = children[writer]
        assert child.stdout is not None
        first = child.stdout.readline().strip()
        time.sleep(delays[writer])
        child.kill()
        said[writer] = [first, *child.stdout.read().splitlines()]
        child.communicate()

    threads = [threading.Thread(target=end, args=(writer,)) for writer in children]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return said


def _settled(model: Model, seed: str, writer: str, said: list[str], state: State) -> tuple[Model, list[str]]:
    """The model after all that was acknowledged, and after as much of the step under way as the shelf shows."""
    strange = [line for line in said[1:] if not line.isdigit()]
    if said[:1] != ["ready"] or strange:
        return model, [f"writer {writer} said {said[:1]} and {strange}"]
    plan = steps(seed, writer)
    for step in itertools.islice(plan, len(said) - 1):
        model = model.after(step)
    under_way = next(plan)
    there = _shown(state, writer)
    for taken in itertools.product((False, True), repeat=len(under_way[1])):
        candidate = model.after(under_way, taken)
        if candidate.says() == there:
            return candidate, []
    what = _difference(model, there)
    return model, [f"writer {writer}, {len(said) - 1} steps acknowledged, then {under_way[0]}: {what}"]


def _shown(state: State, writer: str) -> tuple[dict[str, Texts], list[tuple[str, Texts]]]:
    notes: dict[str, Texts] = {}
    trash: list[tuple[str, Texts]] = []
    for item, data in state.items():
        key = oracle.key_of(item)
        if item.startswith(_ROOM) and key.startswith(f"{writer}-"):
            if oracle.part_of(item) == "notes":
                notes[key] = oracle.texts_of(data)
            else:
                trash.append((key, oracle.texts_of(data)))
    return notes, sorted(trash)


def _difference(model: Model, there: tuple[dict[str, Texts], list[tuple[str, Texts]]]) -> str:
    notes, trash = there
    keys = [key for key in sorted({*notes, *model.notes}) if notes.get(key) != model.notes.get(key)]
    lines = [f"{key} has {_short(notes.get(key))}, acknowledged {_short(model.notes.get(key))}" for key in keys[:3]]
    if sorted(model.trash) != trash:
        here, told = ([text.split(" ", 1)[0] for _, (text, *_) in one] for one in (trash, sorted(model.trash)))
        lines.append(f"the trash has {here}, acknowledged {told}")
    return "; ".join(lines)


def _short(texts: Texts | None) -> object:
    return None if texts is None else [text.split(" ", 1)[0] for text in texts[:4]]
