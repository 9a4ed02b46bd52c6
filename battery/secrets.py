"""Part `secrets`: a sample of every published rule is refused through every way to write, and ordinary notes are not."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from battery import ordinary_notes
from battery.report import Report, repeat_command
from battery.secret_samples import PASSWORD_FORMS, PublishedRule, find_secret, load_published_rules, make_password
from battery.workspace import Workspace

MIN_REFUSED = 0.98  # share of the rules
MAX_FALSE_ALARMS = 0.005  # share of the ordinary notes
NOTES = 10_000
PASSWORDS = 100  # for each form


def run(workspace: Workspace, report: Report, share: float, seed: int) -> None:
    """Test every rule, whatever the share, and a share of the ordinary notes."""
    repeat = repeat_command("secrets", share, seed)
    home = workspace.new_home("secrets")
    try:
        values = _run_rules(home, report, seed, repeat)
        with report.start_row("secrets: the values, in every byte of the home") as row:
            data = read_all_bytes(home)
            for rule, value in values:
                row.add([f"the value of {rule} is on disk"] if value.encode() in data else [], repeat, len(values))
            row.set_figure(f"{len(values)} values, {len(data):,} bytes looked through")
    finally:
        workspace.remove_home(home)
    with report.start_row("secrets: passwords as people write them") as row:
        count, missed = find_missed_passwords(random.Random(seed), PASSWORDS)
        rate = 1 - len(missed) / count
        row.add([f"only {rate:.1%}: let in {missed[0]}"] if rate < MIN_REFUSED else [], repeat)
        row.set_figure(f"{rate:.1%} of {count:,} found, in {len(PASSWORD_FORMS)} forms")
    with report.start_row("secrets: ordinary notes") as row:
        notes = ordinary_notes.make_notes(random.Random(seed), int(NOTES * share))
        alarms = find_false_alarms(notes)
        rate = len(alarms) / len(notes)
        row.add([f"{rate:.2%} false alarms, such as {alarms[0]}"] if rate > MAX_FALSE_ALARMS else [], repeat)
        row.set_figure(f"{len(alarms)} of {len(notes):,} refused ({rate:.2%})")


def _run_rules(home: Path, report: Report, seed: int, repeat: str) -> list[tuple[str, str]]:
    """Write a sample of every rule in every way; return the rules and secrets that were refused."""
    from holdfast import Memory
    from holdfast.safety.secrets.rules import load_rules

    fixed_rules = {rule.id for rule in load_rules() if rule.fixed}
    samples = [(rule, make_sample(rule, seed)) for rule in load_published_rules()]
    with Memory(home, project="demo", cwd=home.parent) as memory:
        checks = refusal_checks(memory)
        memory.store("so that there is a home", key="first")
        missed = {rule.id for rule, text in samples if not all(is_refused(text) for is_refused in checks.values())}
    with report.start_row("secrets: fixed formats") as row:
        fixed = [rule.id for rule, _ in samples if rule.id in fixed_rules]
        for id in fixed:
            row.add([f"{id} was let in"] if id in missed else [], repeat, len(fixed))
        row.set_figure(f"{len([id for id in fixed if id not in missed])} of {len(fixed)} refused")
    with report.start_row("secrets: one sample of every rule") as row:
        rate, names = 1 - len(missed) / len(samples), ", ".join(sorted(missed))
        row.add([f"only {rate:.1%}: let in {names}"] if rate < MIN_REFUSED else [], repeat)
        row.set_figure(f"{rate:.1%} of {len(samples)} refused by {len(checks)} ways in; let in: {names or 'none'}")
    return [(rule.id, find_secret(rule.regex, text)) for rule, text in samples if rule.id not in missed]


def make_sample(rule: PublishedRule, seed: int) -> str:
    """Return a sample of a rule, the same for the same seed."""
    return rule.make_sample(random.Random(f"{seed} {rule.id}"))


def refusal_checks(memory: Any) -> dict[str, Callable[[str], bool]]:
    """Return for each way to write a text a function that writes it and returns whether it was refused as a secret."""
    from holdfast import SecretFound
    from holdfast.mcp import handlers

    def make_check(write: Callable[[str], object]) -> Callable[[str], bool]:
        def is_refused(text: str) -> bool:
            try:
                write(text)
            except SecretFound:
                return True
            return False

        return is_refused

    def create_file(text: str) -> object:
        return handlers.file(memory, {"command": "create", "path": "/memories/plan.md", "file_text": text})

    return {
        "store": make_check(memory.store),
        "store_many": make_check(lambda text: memory.store_many([{"text": text}])),
        "file": make_check(lambda text: memory.files.create("plan.md", text)),
        "memory_store": make_check(lambda text: handlers.store(memory, {"text": text})),
        "memory_file": make_check(create_file),
        "log": make_check(lambda text: memory.log([{"role": "user", "text": text}], session="s")),
    }


def find_missed_passwords(rng: random.Random, count: int) -> tuple[int, list[str]]:
    """Write `count` passwords in each form; return how many there were, and the texts whose password was not redacted."""
    from holdfast.safety import secrets

    passwords = [(form, make_password(rng)) for form in PASSWORD_FORMS for _ in range(count)]
    missed = [form.format(value) for form, value in passwords if value in secrets.redact(form.format(value))[0]]
    return len(passwords), missed


def find_false_alarms(notes: list[tuple[str, str]]) -> list[str]:
    """Return the kind of each note that seems to have a secret, and the rule that says so."""
    from holdfast.safety import secrets

    return [f"{kind}: {hits[0].rule}" for kind, text in notes if (hits := secrets.find_secrets(text))]


def read_all_bytes(home: Path) -> bytes:
    """Return the bytes of all files of a home."""
    return b"\n".join([path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()])
