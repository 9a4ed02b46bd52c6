"""The verbs in random order, compared with a model that is a plain dict.

The model knows nothing of files, indexes or SQL. It is a dict from (scope folder, key) to the versions of a note, the newest
first, and a list of forgotten notes. Every version has a unique word, so that a recall of that word must find exactly the
notes whose visible version has it.

A run can be repeated: the same number of examples (`--model-examples`) is always the same examples, unless `--hypothesis-seed`
asks for others. A failing example is shown as it ran: searching for a shorter one takes up to five minutes, many times the
work of the whole run, and is done only with `--model-shrink`.
"""

from __future__ import annotations

import os
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from holdfast import Conflict, Memory, NotFound, UsageError
from holdfast.base import dates

DAY = 86400
START = 1_777_636_800  # noon of 1 May 2026
CALLERS = [("p1", "s1", "a1"), ("p1", "s2", "a2"), ("p2", "s1", "a2"), ("p2", "s2", "a1")]
KEYS = ["alpha", "gamma-ray"]
SUBJECTS = ["thing"]
TAGS = [(), ("red",), ("red", "ci-cd"), ("Blue",)]
TYPES = ["user", "feedback", "project", "reference"]
SCOPES = ["session", "project", "agent", "global"]
DAYS = st.sampled_from([-15, -8, -3, -1, 0, 1, 3, 8, 15])
LENGTHS = st.sampled_from([None, 1, 4, 10])
STARTS = st.one_of(st.none(), DAYS, DAYS)

callers = st.integers(0, len(CALLERS) - 1)
scopes = st.sampled_from(SCOPES)
some_scope = st.one_of(st.none(), scopes)
keys = st.sampled_from(KEYS)
all_keys = st.sampled_from([*KEYS, *SUBJECTS])


class Version:
    """One text of a note, with its two times."""

    def __init__(self, text, type, tags, recorded, valid_from, valid_to, agent):
        self.text, self.type, self.tags, self.agent = text, type, tags, agent
        self.recorded, self.valid_from, self.valid_to, self.closed = recorded, valid_from, valid_to, None

    def end(self, replaced, known_at):
        """Return when it ended, as far as was known."""
        return self.closed if replaced is not None and (known_at is None or replaced <= known_at) else self.valid_to


class Kept:
    """A note: its versions, newest first, and the properties of all of them."""

    def __init__(self, versions, pinned, created, facts=()):
        self.versions, self.pinned, self.created, self.facts = versions, pinned, created, list(facts)

    def at(self, as_of, known_at):
        """Return the newest version recorded by `known_at` that covers `as_of`."""
        replaced = None
        for version in self.versions:
            known = known_at is None or version.recorded <= known_at
            end = version.end(replaced, known_at)
            if known and version.valid_from <= as_of and (end is None or as_of < end):
                return version
            replaced = version.recorded
        return None


class Model(RuleBasedStateMachine):
    """Random calls of four callers in one home."""

    folder: Path

    def __init__(self):
        super().__init__()
        self.home = self.folder / "home"
        shutil.rmtree(self.home, ignore_errors=True)
        self.seconds = START
        dates.clock = lambda: self.seconds
        self.memories = {}
        self.notes = {}
        self.binned = []  # (folder, key, kept), the last forgotten last
        self.words = self.steps = 0
        self.moments = [dates.format_timestamp(START)]

    def teardown(self):
        try:
            self.home_agrees()
        finally:
            for memory in self.memories.values():
                memory.close()

    # --- setup --------------------------------------------------------------------------------------------------------

    def memory(self, caller):
        if caller not in self.memories:
            project, session, agent = CALLERS[caller]
            self.memories[caller] = Memory(self.home, project=project, session=session, agent=agent, cwd=self.folder)
        return self.memories[caller]

    def place(self, caller, scope):
        project, session, agent = CALLERS[caller]
        return {
            "global": "global",
            "project": f"projects/{project}",
            "session": f"sessions/{session}",
            "agent": f"agents/{agent}",
        }[scope]

    def places(self, caller, scope):
        return [self.place(caller, scope)] if scope else [self.place(caller, one) for one in SCOPES]

    def visible(self, caller, scope):
        return {where: kept for where, kept in self.notes.items() if where[0] in self.places(caller, scope)}

    def nearest(self, caller, scope, key):
        return next(((folder, key) for folder in self.places(caller, scope) if (folder, key) in self.notes), None)

    def word(self):
        self.words += 1
        return f"w{self.words}"

    def now(self):
        stamp = dates.format_timestamp(self.seconds)
        self.moments.append(stamp)
        return stamp

    def day(self, offset):
        return None if offset is None else dates.format_timestamp(self.seconds + offset * DAY)

    def path(self, where):
        return self.home / "shelf" / where[0] / "notes" / f"{where[1]}.md"

    # --- writing ------------------------------------------------------------------------------------------------------

    def put(self, caller, where, text, given):
        """Apply a store to the dict and return the action that it must report."""
        now, agent = self.now(), CALLERS[caller][2]
        start, end = given.get("valid_from"), given.get("valid_to")
        if where not in self.notes:
            version = Version(text, given.get("type") or "project", given.get("tags") or (), now, start or now, end, agent)
            self.notes[where] = Kept([version], bool(given.get("pinned")), now)
            return "created"
        kept = self.notes[where]
        old = kept.versions[0]
        now = max(now, old.recorded)
        same = text == old.text and all(
            given.get(name) is None or given[name] == getattr(old, name) for name in ("type", "tags", "valid_from", "valid_to")
        )
        if same and given.get("pinned") in (None, kept.pinned):
            return "unchanged"
        new = Version(
            text,
            given.get("type") or old.type,
            old.tags if given.get("tags") is None else given["tags"],
            now,
            start or now,
            end,
            agent,
        )
        old.closed = max(new.valid_from, old.valid_from)
        if old.valid_to and old.valid_from <= old.valid_to < old.closed:
            old.closed = old.valid_to
        kept.versions.insert(0, new)
        kept.created = kept.created or now
        kept.pinned = kept.pinned if given.get("pinned") is None else given["pinned"]
        kept.facts = []
        return "updated"

    @rule(
        caller=callers,
        scope=scopes,
        key=st.one_of(st.none(), keys),
        again=st.booleans(),
        type=st.sampled_from([None, *TYPES]),
        tags=st.sampled_from([None, *TAGS]),
        start=STARTS,
        length=LENGTHS,
        pinned=st.sampled_from([None, None, True, False]),
        expected=st.sampled_from([None, None, "right", "wrong"]),
    )
    def store(self, caller, scope, key, again, type, tags, start, length, pinned, expected):
        memory = self.memory(caller)
        where = (self.place(caller, scope), key)
        kept = self.notes.get(where)
        text = kept.versions[0].text if again and kept else f"{self.word()} is about something"
        if key is None:
            text = self.word()
            where = (where[0], text)
            kept = self.notes.get(where)
        given = {"type": type, "tags": tags, "pinned": pinned, "valid_from": self.day(start)}
        given["valid_to"] = self.day(start + length) if start is not None and length else None
        version = None
        if expected:
            version = memory.get(where[1], scope=scope).version if expected == "right" and kept else "0" * 32
        if expected and not (expected == "right" and kept):
            with pytest.raises(Conflict):
                memory.store(text, key=key, scope=scope, expected=version, **given)
            return
        stored = memory.store(text, key=key, scope=scope, expected=version, **given)
        assert stored.action == self.put(caller, where, text, given)
        self.agrees(stored.note, where, self.notes[where].versions[0])

    @rule(
        caller=callers,
        scope=scopes,
        key=keys,
        spans=st.lists(st.tuples(STARTS, LENGTHS), min_size=1, max_size=4),
        pause=st.sampled_from([0, 1, DAY, 3 * DAY]),
    )
    def store_a_series(self, caller, scope, key, spans, pause):
        """Store several versions of one note with different dates."""
        where = (self.place(caller, scope), key)
        for start, length in spans:
            text = f"{self.word()} of a series"
            given = {"valid_from": self.day(start)}
            given["valid_to"] = self.day(start + length) if start is not None and length else None
            stored = self.memory(caller).store(text, key=key, scope=scope, **given)
            assert stored.action == self.put(caller, where, text, given)
            self.seconds += pause

    @rule(
        caller=callers, scope=scopes, names=st.lists(keys, unique=True, max_size=2), bad=st.sampled_from([False, False, True])
    )
    def store_many(self, caller, scope, names, bad):
        folder = self.place(caller, scope)
        notes = [{"text": f"{self.word()} of many", "key": key, "tags": "bulk"} for key in names]
        if bad:
            with pytest.raises(UsageError):
                self.memory(caller).store_many([*notes, {"text": "fine", "type": "odd"}], scope=scope)
            return
        stored = self.memory(caller).store_many(notes, scope=scope)
        for one, note in zip(stored, notes, strict=True):
            assert one.action == self.put(caller, (folder, note["key"]), note["text"], {"tags": ("bulk",)})
            self.agrees(one.note, (folder, note["key"]), self.notes[folder, note["key"]].versions[0])

    @rule(
        caller=callers,
        scope=scopes,
        subject=st.sampled_from(SUBJECTS),
        label=st.sampled_from(["state", "owner"]),
        on=DAYS,
        many=st.booleans(),
        again=st.booleans(),
    )
    def fact(self, caller, scope, subject, label, on, many, again):
        where = (self.place(caller, scope), subject)
        kept = self.notes.get(where)
        lines = [dict(line) for line in kept.facts] if kept else []
        same = [line for line in lines if line["label"] == label]
        value = same[-1]["value"] if again and same else self.word()
        day = dates.format_timestamp(self.seconds + on * DAY)[:10]
        answer = self.memory(caller).fact(subject, label, value, on=day, many=many, scope=scope)
        now = max(self.now(), kept.versions[0].recorded) if kept else self.now()
        if any(
            line["value"] == value
            and (line["to"] is None if many else line["from"] <= day and (line["to"] is None or line["to"] > day))
            for line in same
        ):
            assert answer.action == "unchanged"
            return
        later = [line["from"] for line in same if line["from"] > day]
        retired = [] if many else [line for line in same if line["from"] <= day and (line["to"] is None or line["to"] > day)]
        for line in retired:
            line["to"] = day
        lines.append({"label": label, "value": value, "from": day, "to": None if many else min(later, default=None)})
        assert answer.action == ("updated" if same else "created")
        assert sorted(fact.value for fact in answer.retired) == sorted(line["value"] for line in retired)
        self.put(caller, where, answer.note.text, {})
        assert self.notes[where].versions[0].recorded == now
        self.notes[where].facts = lines

    @rule(caller=callers, scope=some_scope, key=all_keys)
    def forget(self, caller, scope, key):
        found = [where for folder in self.places(caller, scope) if (where := (folder, key)) in self.notes]
        if len(found) > 1:
            with pytest.raises(UsageError):
                self.memory(caller).forget(key, scope=scope)
            return
        answer = self.memory(caller).forget(key, scope=scope)
        assert answer.deleted == bool(found)
        if found:
            self.bin(found[0])

    def bin(self, where):
        self.binned.append((*where, self.notes.pop(where)))

    @rule(caller=callers, scope=some_scope, key=all_keys)
    def restore(self, caller, scope, key):
        for folder in self.places(caller, scope):
            found = [one for one in self.binned if one[:2] == (folder, key)]
            if not found:
                continue
            if (folder, key) in self.notes:
                with pytest.raises(Conflict):
                    self.memory(caller).restore(key, scope=scope)
                return
            last = found[-1]
            note = self.memory(caller).restore(key, scope=scope)
            self.binned.remove(last)
            self.notes[folder, key] = last[2]
            self.agrees(note, (folder, key), last[2].versions[0])
            return
        with pytest.raises(NotFound):
            self.memory(caller).restore(key, scope=scope)

    @rule(caller=callers, scope=scopes, key=all_keys, all_of_it=st.sampled_from([False, False, True]))
    def purge_or_clear(self, caller, scope, key, all_of_it):
        folder = self.place(caller, scope)
        if all_of_it:
            there = [where for where in self.notes if where[0] == folder]
            assert self.memory(caller).clear(scope) == len(there)
            for where in there:
                self.bin(where)
            return
        where = (folder, key)
        gone = [one for one in self.binned if one[:2] == where]
        receipt = self.memory(caller).purge(key, scope=scope)
        assert receipt.deleted == (where in self.notes or bool(gone))
        assert len(receipt.removed) == len(gone) + (where in self.notes)
        self.notes.pop(where, None)
        self.binned = [one for one in self.binned if one[:2] != where]

    # --- by hand ------------------------------------------------------------------------------------------------------

    @rule(caller=callers, scope=scopes, key=keys, new_key=keys, how=st.sampled_from(["edit", "edit", "move", "remove"]))
    def by_hand(self, caller, scope, key, new_key, how):
        """Change a file as a person would; create it if it does not exist."""
        where, target = (self.place(caller, scope), key), (self.place(caller, scope), new_key)
        if where not in self.notes:
            self.write_by_hand(where)
        elif how == "edit":
            self.edit_by_hand(where)
        elif how == "remove":
            self.path(where).unlink()
            del self.notes[where]
        elif target not in self.notes:
            self.path(where).rename(self.path(target))
            self.notes[target] = self.notes.pop(where)

    def write_by_hand(self, where):
        text, now = f"{self.word()} from nothing", self.now()
        self.home.mkdir(exist_ok=True, mode=0o700)
        self.path(where).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.write(where, text + "\n")
        self.notes[where] = Kept([Version(text, "project", (), now, now, None, None)], False, None)

    def edit_by_hand(self, where):
        version, text = self.notes[where].versions[0], f"{self.word()} by hand"
        self.write(where, self.path(where).read_text().replace(version.text, text, 1))
        if self.notes[where].created is None:  # it is dated by its file
            version.recorded = version.valid_from = self.now()
        version.text = text

    def write(self, where, text):
        self.path(where).write_text(text)
        os.utime(self.path(where), (self.seconds, self.seconds))

    # --- maintenance --------------------------------------------------------------------------------------------------

    @rule(caller=callers, how=st.sampled_from(["reindex", "reopen", "delete the index", "delete it but for its log"]))
    def shake(self, caller, how):
        """Do things that must change nothing."""
        if how == "reindex":
            assert self.memory(caller).reindex().notes == len(self.notes)
        elif how == "reopen":
            if caller in self.memories:
                self.memories.pop(caller).close()
        else:
            for name in ("index.db", "index.db-wal", "index.db-shm")[: 3 if how == "delete the index" else 1]:
                (self.home / name).unlink(missing_ok=True)

    @rule(seconds=st.sampled_from([1, 60, 3600, DAY, 9 * DAY, -1, -3600, -3 * DAY]))
    def turn_the_clock(self, seconds):
        self.seconds += seconds

    # --- reading ------------------------------------------------------------------------------------------------------

    def agrees(self, note, where, version):
        kept = self.notes[where]
        assert (note.scope.folder, note.key) == where
        assert (note.text, note.type, note.tags, note.pinned) == (version.text, version.type, version.tags, kept.pinned)
        assert (note.updated, note.valid_from) == (version.recorded, version.valid_from)
        assert note.source.agent == version.agent
        assert note.versions == len(kept.versions)

    def agree_on_notes(self, caller, scope):
        """Check `get`, `history` and `list`."""
        memory = self.memory(caller)
        for key in [*KEYS, *SUBJECTS]:
            where = self.nearest(caller, scope, key)
            if where is None:
                for verb in (memory.get, memory.history):
                    with pytest.raises(NotFound):
                        verb(key, scope=scope)
                continue
            versions = self.notes[where].versions
            self.agrees(memory.get(key, scope=scope), where, versions[0])
            told = memory.history(key, scope=scope)
            assert [(one.text, one.type, one.tags, one.recorded, one.valid_from, one.until) for one in told] == [
                (one.text, one.type, one.tags, one.recorded, one.valid_from, one.closed or one.valid_to) for one in versions
            ]
        told = memory.list(scope=scope)
        wanted = self.visible(caller, scope)
        assert len(told) == len(wanted)
        for note in told:
            where = (note.scope.folder, note.key)
            self.agrees(note, where, wanted[where].versions[0])
        order = [(note.pinned, note.updated) for note in told]
        assert order == sorted(order, reverse=True)

    def agree_on_then(self, caller, scope, as_of, known_at):
        """Check `get` as of a time, or as known at a time."""
        for key in [*KEYS, *SUBJECTS]:
            where = self.nearest(caller, scope, key)
            version = self.notes[where].at(as_of or known_at, known_at) if where else None
            asked = {"scope": scope, "as_of": as_of, "known_at": known_at}
            if version is None:
                with pytest.raises(NotFound):
                    self.memory(caller).get(key, **asked)
                continue
            note = self.memory(caller).get(key, **asked)
            assert (note.text, note.type, note.tags) == (version.text, version.type, version.tags)
            assert (note.updated, note.valid_from) == (version.recorded, version.valid_from)

    def agree_on_recall(self, caller, scope, words, as_of=None, known_at=None, type=None, tags=()):
        """Check that `recall` finds exactly the visible versions that have the word; without a word, all of them."""
        asked = {"scope": scope, "as_of": as_of, "known_at": known_at, "type": type, "tags": list(tags), "limit": 100}
        for word in [*words, None]:
            answer = self.memory(caller).recall(word or "", mode="keyword" if word else "recent", **asked)
            assert not answer.degraded
            found = [(hit.scope.folder, hit.key, hit.text) for hit in answer if hit.kind != "fact"]
            assert len(found) == len(set(found))
            assert set(found) == self.wanted(caller, scope, word, as_of, known_at, type, tags)
            near = self.places(caller, scope)
            for key in KEYS:
                order = [near.index(folder) for folder, name, _ in found if name == key]
                assert order == sorted(order), "a farther scope comes before a nearer one"

    def wanted(self, caller, scope, word, as_of, known_at, type, tags):
        hits = set()
        for where, kept in self.visible(caller, scope).items():
            version = self.shown(kept, as_of, known_at)
            if version is None or (type and version.type != type):
                continue
            if not {tag.casefold() for tag in tags} <= {tag.casefold() for tag in version.tags}:
                continue
            if word is None or word in re.findall(r"\w+", f"{version.text} {where[1]}"):
                hits.add((*where, version.text))
        return hits

    def shown(self, kept, as_of, known_at):
        if as_of or known_at:
            return kept.at(as_of or known_at, known_at)
        end = kept.versions[0].valid_to
        return kept.versions[0] if end is None or end > dates.format_timestamp(self.seconds) else None

    def agree_on_facts(self, caller, scope, subject, as_of, history):
        """Check facts: each note states its own; of several notes that state the same label of a subject, one of a nearer
        scope with a newer line replaces the others."""
        moment = as_of or dates.format_timestamp(self.seconds)
        told = self.memory(caller).facts(subject, as_of=as_of, scope=scope, history=history)
        if history:
            self.agree_on_every_fact(caller, scope, subject, told)
            return
        near = self.places(caller, scope)
        begun = [
            (where, line)
            for where, kept in self.visible(caller, scope).items()
            if subject in (None, where[1])
            for line in kept.facts
            if line["from"] <= moment
        ]
        wanted = []
        for where, line in begun:
            same = [(at, one) for at, one in begun if (at[1], one["label"]) == (where[1], line["label"])]
            newest = {at[0]: max(one["from"] for other, one in same if other == at) for at, _ in same}
            mine = newest[where[0]], -near.index(where[0])
            beaten = any((day, -near.index(at)) > mine and near.index(at) <= near.index(where[0]) for at, day in newest.items())
            if not beaten and (line["to"] is None or line["to"] > moment):
                wanted.append((where[0], line["label"], line["value"], line["from"]))
        found = [(fact.scope.folder, fact.label, fact.value, fact.valid_from) for fact in told]
        assert sorted(found) == sorted(wanted)

    def agree_on_every_fact(self, caller, scope, subject, told):
        wanted = [
            (where[0], line["label"], line["value"], line["from"])
            for where, kept in self.visible(caller, scope).items()
            if subject in (None, where[1])
            for line in kept.facts
        ]
        assert sorted([(fact.scope.folder, fact.label, fact.value, fact.valid_from) for fact in told]) == sorted(wanted)

    def agree_on_the_briefing(self, caller):
        brief = self.memory(caller).brief()
        visible = self.visible(caller, None)
        told = [f"{self.kind(where[0])}/{where[1]}" for where in visible if self.shown(visible[where], None, None)]
        assert set(brief.shown) <= set(told)
        counted = len(brief.shown) + len(brief.listed) + brief.left_out
        assert counted <= len(told)  # a note whose facts other notes state again is not shown
        assert len(brief.text) <= 6300

    @rule(
        caller=callers,
        scope=some_scope,
        type=st.sampled_from([None, *TYPES]),
        tags=st.sampled_from([(), ("red",), ("blue",), ("ci-cd",), ("bulk",)]),
        subject=st.sampled_from([None, *SUBJECTS]),
        history=st.booleans(),
        chance=st.randoms(use_true_random=False),
    )
    def ask(self, caller, scope, type, tags, subject, history, chance):
        """Ask one question of each kind, with filters."""
        as_of, known_at = self.moment(chance), self.moment(chance)
        self.agree_on_recall(caller, scope, self.some_words(chance), None, None, type, tags)
        self.agree_on_recall(caller, scope, self.some_words(chance), as_of, chance.choice([None, known_at]), type, tags)
        self.agree_on_facts(caller, scope, subject, chance.choice([None, as_of]), history)
        self.agree_on_notes(caller, scope)

    @invariant()
    def all_questions_agree(self):
        """After every third step, check every query; in between, changes accumulate."""
        self.steps += 1
        if self.steps % 3:
            return
        chance = Random(self.steps)
        caller = chance.randrange(len(CALLERS))
        self.agree_on_notes(caller, None)
        self.agree_on_recall(caller, None, self.some_words(chance))
        for known_at in (None, self.moment(chance)):
            as_of = self.moment(chance)
            self.agree_on_then(caller, None, as_of, known_at)
            self.agree_on_recall(caller, None, self.some_words(chance), as_of, known_at)
        self.agree_on_recall(caller, None, self.some_words(chance), None, self.moment(chance))
        self.agree_on_facts(caller, None, None, None, False)
        self.agree_on_facts(caller, None, None, self.moment(chance), False)
        self.agree_on_the_briefing(caller)

    def some_words(self, chance):
        """Yield the newest word, any word, and one of an existing note."""
        words = [f"w{self.words}", f"w{chance.randint(0, self.words)}"]
        if self.notes:
            versions = self.notes[chance.choice(sorted(self.notes))].versions
            text = chance.choice([versions[0], chance.choice(versions)]).text
            words.append(chance.choice(re.findall(r"\bw\d+\b", text)))
        return words

    def moment(self, chance):
        """Return a time near one at which something happened."""
        then = datetime.strptime(chance.choice(self.moments[-8:]), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
        return dates.format_timestamp(then + chance.choice([0, 0, -1, 1, DAY, -DAY, 5 * DAY, -5 * DAY, 15 * DAY]))

    @staticmethod
    def kind(folder):
        return {"projects": "project", "sessions": "session", "agents": "agent"}.get(folder.split("/")[0], "global")

    @initialize(first=st.lists(st.tuples(callers, scopes, keys), max_size=6))
    def begin(self, first):
        """Start some examples with a filled home."""
        for caller, scope, key in first:
            text = f"{self.word()} begins"
            self.memory(caller).store(text, key=key, scope=scope)
            self.put(caller, (self.place(caller, scope), key), text, {})

    @invariant()
    def the_shelf_has_what_the_dict_has(self):
        there = {
            (str(path.parent.parent.relative_to(self.home / "shelf")), path.stem)
            for path in (self.home / "shelf").glob("**/notes/*.md")
        }
        assert there == set(self.notes)

    def home_agrees(self):
        """At the end of an example: no temporary file, no problem to report, and a new caller sees the same."""
        if not self.home.exists():
            assert not self.notes
            return
        assert list(self.home.rglob(".holdfast-*")) == []
        for caller in range(len(CALLERS)):
            self.agree_on_notes(caller, None)
            self.memories.pop(caller).close()
            self.agree_on_notes(caller, None)
        assert self.memory(0).check() == []
        for where in self.notes:
            listing = (self.home / "shelf" / where[0] / "index.md").read_text()
            assert f"({'notes/' + where[1]}.md)" in listing


@pytest.mark.promise("N1", "N4", "N8", "N10", "T1", "T3")
@pytest.mark.timeout(1200)
@pytest.mark.hypothesis  # the battery runs many more examples
def test_the_verbs_agree_with_a_plain_dict_whatever_happens(request, tmp_path, monkeypatch):
    monkeypatch.setattr(dates, "clock", dates.clock)  # restore afterwards what each example replaces
    monkeypatch.setattr(Model, "folder", tmp_path, raising=False)
    asked = request.config.getoption
    run_state_machine_as_test(
        Model,
        settings=settings(
            max_examples=asked("--model-examples"),
            stateful_step_count=30,
            deadline=None,
            derandomize=asked("--hypothesis-seed") is None,
            phases=[Phase.generate, *([Phase.shrink] if asked("--model-shrink") else [])],
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
