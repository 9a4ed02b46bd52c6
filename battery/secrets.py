"""Secrets: a sample of every published rule is refused through every way in, ordinary notes are not; no value is on disk."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from battery import ordinary
from battery.lab import Lab
from battery.report import Report, repeat
from battery.secret_samples import FORMS, Published, password, published, re_search

LEAST_REFUSED = 0.98  # of all rules
MOST_FALSE = 0.005  # of ordinary notes
NOTES = 10_000
VALUES = 100  # of passwords, for each form they are written in


def run(lab: Lab, report: Report, share: float, seed: int) -> None:
    """Every rule, whatever the share; of the ordinary notes that share."""
    again = repeat("secrets", share, seed)
    home = lab.home("secrets")
    try:
        values = _refused(home, report, seed, again)
        with report.row("secrets: the values, in every byte of the home") as row:
            left = bytes_of(home)
            for id, value in values:
                row.tried([f"the value of {id} is on disk"] if value.encode() in left else [], again, len(values))
            row.figure(f"{len(values)} values, {len(left):,} bytes looked through")
    finally:
        lab.away(home)
    with report.row("secrets: passwords as people write them") as row:
        made, missed = written(random.Random(seed), VALUES)
        rate = 1 - len(missed) / made
        row.tried([f"only {rate:.1%}: let in {missed[0]}"] if rate < LEAST_REFUSED else [], again)
        row.figure(f"{rate:.1%} of {made:,} found, in {len(FORMS)} forms")
    with report.row("secrets: ordinary notes") as row:
        some = ordinary.notes(random.Random(seed), int(NOTES * share))
        alarms = false_alarms(some)
        rate = len(alarms) / len(some)
        row.tried([f"{rate:.2%} false alarms, such as {alarms[0]}"] if rate > MOST_FALSE else [], again)
        row.figure(f"{len(alarms)} of {len(some):,} refused ({rate:.2%})")


def _refused(home: Path, report: Report, seed: int, again: str) -> list[tuple[str, str]]:
    """The values that were refused, for a look at the disk."""
    from holdfast import Memory
    from holdfast.safety.secrets.rules import load_rules

    fixed = {rule.id for rule in load_rules() if rule.fixed}
    every = [(rule, sample_of(rule, seed)) for rule in published()]
    values: list[tuple[str, str]] = []
    with Memory(home, project="demo", cwd=home.parent) as memory:
        ways = ways_in(memory)
        memory.store("so that there is a home", key="first")
        missed = {rule.id for rule, text in every if not all(way(text) for way in ways.values())}
        values = [(rule.id, re_search(rule.regex, text)) for rule, text in every if rule.id not in missed]
    with report.row("secrets: fixed formats") as row:
        known = [rule.id for rule, _ in every if rule.id in fixed]
        for id in known:
            row.tried([f"{id} was let in"] if id in missed else [], again, len(known))
        row.figure(f"{len([id for id in known if id not in missed])} of {len(known)} refused")
    with report.row("secrets: one sample of every rule") as row:
        rate = 1 - len(missed) / len(every)
        row.tried([f"only {rate:.1%}: let in {', '.join(sorted(missed))}"] if rate < LEAST_REFUSED else [], again)
        row.figure(f"{rate:.1%} of {len(every)} refused by {len(ways)} ways in; let in: {', '.join(sorted(missed)) or 'none'}")
    return values


def sample_of(rule: Published, seed: int) -> str:
    return rule.sample(random.Random(f"{seed} {rule.id}"))


def ways_in(memory: Any) -> dict[str, Callable[[str], bool]]:
    """Each way a text can come in; true if it was turned away as a secret."""
    from holdfast import SecretFound
    from holdfast.mcp import handlers

    def refused(write: Callable[[], object]) -> bool:
        try:
            write()
        except SecretFound:
            return True
        return False

    return {
        "store": lambda text: refused(lambda: memory.store(text)),
        "store_many": lambda text: refused(lambda: memory.store_many([{"text": text}])),
        "file": lambda text: refused(lambda: memory.files.create("plan.md", text)),
        "memory_store": lambda text: refused(lambda: handlers.store(memory, {"text": text})),
        "memory_file": lambda text: refused(
            lambda: handlers.file(memory, {"command": "create", "path": "/memories/plan.md", "file_text": text})
        ),
        "log": lambda text: refused(lambda: memory.log([{"role": "user", "text": text}], session="s")),
    }


def written(chance: random.Random, count: int) -> tuple[int, list[str]]:
    """How many passwords were written down, and the texts that kept theirs."""
    from holdfast.safety import secrets

    made = [(form, password(chance)) for form in FORMS for _ in range(count)]
    return len(made), [form.format(value) for form, value in made if value in secrets.redact(form.format(value))[0]]


def false_alarms(notes: list[tuple[str, str]]) -> list[str]:
    """The rules that take one of these for a secret, with the kind of note."""
    from holdfast.safety import secrets

    return [f"{kind}: {hits[0].rule}" for kind, text in notes if (hits := secrets.find_secrets(text))]


def bytes_of(home: Path) -> bytes:
    """Everything under a home, one file after the other."""
    return b"\n".join([path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()])
