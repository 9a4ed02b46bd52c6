"""Part `kill`: writers store, update, forget and restore in a loop and are killed at random moments."""

from __future__ import annotations

import itertools
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from battery import invariants
from battery.child_programs import Step, generate_steps
from battery.invariants import State
from battery.report import Report
from battery.workspace import Workspace

KILLS_PER_HOME = 12
_MAX_DELAY = 0.25  # seconds between the start of a writer's work and its end
_SCOPE = "projects/demo"
Texts = tuple[str, ...]  # of one note, newest first
Notes = tuple[dict[str, Texts], list[tuple[str, Texts]]]  # current notes by key, and trashed notes sorted by key


@dataclass
class Model:
    """The expected content of the store: the texts of each note and of the trash, the last forgotten note last."""

    notes: dict[str, Texts] = field(default_factory=dict)
    trash: list[tuple[str, Texts]] = field(default_factory=list)

    def apply_step(self, step: Step, done: tuple[bool, ...] | None = None) -> Model:
        """Return the model after a step; `done` says which notes of a bulk write were written."""
        kind, notes = step
        new = Model(dict(self.notes), list(self.trash))
        for (key, text), is_done in zip(notes, done or (True,) * len(notes), strict=True):
            if is_done:
                new._apply(kind, key, text)
        return new

    def _apply(self, kind: str, key: str, text: str) -> None:
        if kind in ("store", "many"):
            self.notes[key] = (text, *self.notes.get(key, ()))
        elif kind == "forget" and key in self.notes:
            self.trash.append((key, self.notes.pop(key)))
        elif kind == "restore" and key not in self.notes:
            numbers = [number for number, (trashed, _) in enumerate(self.trash) if trashed == key]
            if numbers:
                self.notes[key] = self.trash.pop(numbers[-1])[1]

    def to_notes(self) -> Notes:
        """Return the model in the form of `_read_notes`: the trash has no order on disk."""
        return self.notes, sorted(self.trash)


def run(workspace: Workspace, report: Report, moments: int, seed: int, *, jobs: int = 2) -> None:
    """Kill writers at `moments` moments, on homes that are each used for several."""
    count = (moments + KILLS_PER_HOME - 1) // KILLS_PER_HOME
    homes = [(f"{seed}x{home}", min(KILLS_PER_HOME, moments - home * KILLS_PER_HOME)) for home in range(count)]
    with report.start_row(f"killed at random moments (seed {seed})") as row, ThreadPoolExecutor(jobs) as pool:
        for home, results in zip(homes, pool.map(lambda home: run_home(workspace, *home), homes), strict=True):
            for problems in results:
                row.add(problems, f"python -m battery kill --life {home[0]}", moments)


def run_home(workspace: Workspace, seed: str, moments: int = KILLS_PER_HOME) -> list[list[str]]:
    """Kill the writers of one home `moments` times and return the problems of each; a broken home is replaced."""
    rng = random.Random(seed)
    results: list[list[str]] = [["no home yet"]]
    for moment in range(moments):
        if results[-1]:
            home, models = workspace.new_home("kill"), {"a": Model(), "b": Model()}
        writers = ("a", "b") if moment % 2 else ("a",)
        delays = {writer: rng.uniform(0, _MAX_DELAY) for writer in writers}
        outputs = _run_and_kill(workspace, home, f"{seed}m{moment}", delays)
        problems = []
        state = invariants.read_store(home)
        for writer, output in outputs.items():
            model, wrong = _update_model(models[writer], f"{seed}m{moment}", writer, output, home=home, state=state)
            models[writer] = model
            problems += wrong
        problems += invariants.find_torn(state) + invariants.check_reopened(home, state, several_writers=True)
        results.append(problems)
        if problems or moment == moments - 1:
            workspace.remove_home(home)
    return results[1:]


def _run_and_kill(workspace: Workspace, home: Path, seed: str, delays: dict[str, float]) -> dict[str, list[str]]:
    """Start the writers, kill each after its delay and return what each printed."""
    children = {writer: workspace.start_child("write-until-killed", str(home), seed, writer) for writer in delays}
    outputs: dict[str, list[str]] = {}

    def kill_later(writer: str) -> None:
        child = children[writer]
        assert child.stdout is not None
        first = child.stdout.readline().strip()
        time.sleep(delays[writer])
        child.kill()
        outputs[writer] = [first, *child.stdout.read().splitlines()]
        child.communicate()

    threads = [threading.Thread(target=kill_later, args=(writer,)) for writer in children]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outputs


def _update_model(
    model: Model, seed: str, writer: str, output: list[str], *, home: Path, state: State
) -> tuple[Model, list[str]]:
    """Return the model after all acknowledged steps and as much of the interrupted one as the store has."""
    unexpected = [line for line in output[1:] if not line.isdigit()]
    if output[:1] != ["ready"] or unexpected:
        return model, [f"writer {writer} printed {output[:1]} and {unexpected}"]
    steps = generate_steps(seed, writer)
    for step in itertools.islice(steps, len(output) - 1):
        model = model.apply_step(step)
    interrupted = next(steps)
    notes = _read_notes(home, state, writer)
    for done in itertools.product((False, True), repeat=len(interrupted[1])):
        candidate = model.apply_step(interrupted, done)
        if candidate.to_notes() == notes:
            return candidate, []
    difference = _describe_difference(model, notes)
    return model, [f"writer {writer}, {len(output) - 1} steps acknowledged, then {interrupted[0]}: {difference}"]


def _read_notes(home: Path, state: State, writer: str) -> Notes:
    """Return the notes of one writer that the store has."""
    notes: dict[str, Texts] = {}
    trash: list[tuple[str, Texts]] = []
    for item, data in state.items():
        key = invariants.key_of(item)
        if item.startswith(_SCOPE) and key.startswith(f"{writer}-") and invariants.part_of(item) != "history":
            texts = invariants.read_all_texts(home, item, data)
            if invariants.part_of(item) == "notes":
                notes[key] = texts
            else:
                trash.append((key, texts))
    return notes, sorted(trash)


def _describe_difference(model: Model, stored: Notes) -> str:
    notes, trash = stored
    own_notes, own_trash = model.to_notes()
    keys = [key for key in sorted({*notes, *own_notes}) if notes.get(key) != own_notes.get(key)]
    lines = [f"{key} has {_shorten(notes.get(key))}, acknowledged {_shorten(own_notes.get(key))}" for key in keys[:3]]
    if own_trash != trash:
        here, expected = ([text.split(" ", 1)[0] for _, (text, *_) in notes] for notes in (trash, own_trash))
        lines.append(f"the trash has {here}, acknowledged {expected}")
    return "; ".join(lines)


def _shorten(texts: Texts | None) -> list[str] | None:
    return None if texts is None else [text.split(" ", 1)[0] for text in texts[:4]]
