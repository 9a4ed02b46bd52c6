"""Random documents for comparing indexes: notes with versions, files, sessions, facts, quarantined notes."""

from __future__ import annotations

import random
import zlib

import numpy as np

from holdfast.base.ids import FileId
from holdfast.formats.versions import Draft, compose
from holdfast.index.entries import IndexEntry, Passage, file_entry, note_entry, unreadable_entry
from holdfast.index.sqlite import SqliteIndex
from holdfast.models import Source

QUARANTINED_ORIGINS = ("web", "import")
SCOPES = ("global", "projects/demo", "agents/ada", "sessions/s1")
_VOCABULARY = (
    "harbour ship sail anchor rope storm captain cargo crane quay gull tide lantern chart compass pilot dock barge ferry hull "
    "snake_case camelCase v1.2.3 Datenbankverbindung Verbindung naïve café über Straße 記憶 記憶装置 港 память гавань ذاكرة "
    "🧠 ⚓ deploys deployed deploying running runs ran the and of a on it is was not"
)
WORDS = _VOCABULARY.split()
LABELS = ("state", "owner", "alias", "status")
SUBJECTS = ("Harbour", "Crane Seven", "Ada", "naïve café", "x" * 3000)


class RandomDocuments:
    """Index entries as a store makes them, in the order of their writes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.stamp = 100
        self.notes: dict[tuple[str, str], object] = {}
        self.sessions: dict[tuple[str, str], int] = {}
        self.puts: list[tuple[IndexEntry, tuple[int, int, int] | None]] = []
        self.stamps: dict[tuple[str, str, str], FileId] = {}
        self.broken: set[tuple[str, str]] = set()  # files that were once not UTF-8: PostgreSQL has U+FFFD instead

    def sentence(self, max_words: int = 30) -> str:
        weights = [1 / (place + 3) for place in range(len(WORDS))]
        text = " ".join(self.random.choices(WORDS, weights, k=self.random.randint(3, max_words)))
        return text + self.random.choice(["", ".", "!", "\n\n" + text[:40]])

    def moment(self, year: int = 2026) -> str:
        return f"{year}-{self.random.randint(1, 9):02}-{self.random.randint(1, 28):02}T{self.random.randint(0, 23):02}:00:00Z"

    def fact(self) -> str:
        subject, day = self.random.choice(("[[Harbour]]", "[[Ada]]", "open", "shut")), self.moment()[:10]
        label = self.random.choice(LABELS)
        if self.random.random() < 0.3:
            return f"- ~~[{day}] {label}: {subject}~~ superseded 2026-11-01"
        return f"- [{day}] {label}: {subject}"

    def next_stamp(self) -> FileId:
        self.stamp += 1
        return FileId(self.stamp, self.stamp * 1000, self.random.randint(10, 5000))

    def add_note(self) -> None:
        scope, key = self.random.choice(SCOPES), f"note-{self.random.randint(1, 14)}"
        old = self.notes.get((scope, key))
        text = self.sentence()
        if self.random.random() < 0.3:
            text = f"# {self.random.choice(SUBJECTS)}\n{text}\n{self.fact()}\n{self.fact()}"
        origin = self.random.choice(("user", "agent", "tool", "web", "import"))
        made_from = (f"https://example.org/{self.random.randint(1, 3)}",) if origin == "web" else ()
        source = Source(origin, self.random.choice((None, "ada")), "codex", self.random.choice((None, "s1")), made_from)
        draft = Draft(
            key, text, source, self.random.choice((None, "user", "feedback", "reference")),
            self.random.choice((None, ("ci-cd", "Ümlaut"), ("boats",))), valid_from=self.random.choice((None, self.moment())),
            pinned=self.random.choice((None, True, False)),
        )  # fmt: skip
        what, parsed = compose(draft, old, self.moment(), f"01ID{scope}{key}".replace("/", ""))
        if what == "unchanged":
            return
        known = self.stamps.get((scope, "notes", f"{key}.md"))
        newest_only = known is not None and self.random.random() < 0.7
        self.notes[scope, key] = parsed
        self.add(note_entry(scope, f"{key}.md", parsed, self.next_stamp(), newest_only), known if newest_only else None)

    def add_file(self) -> None:
        scope, name = self.random.choice(SCOPES), f"deep/page-{self.random.randint(1, 4)}.md"
        text = "\n".join([f"# Part {n}\n{self.sentence()}\n{self.fact()}" for n in range(self.random.randint(1, 4))])
        data = text.encode()
        if self.random.random() < 0.3:
            data += b"\xff\x00broken"
            self.broken.add((scope, name))
        self.add(file_entry(scope, name, data, self.next_stamp(), 1_780_000_000), None)

    def add_turns(self) -> None:
        scope, name = self.random.choice(SCOPES[:2]), f"talk-{self.random.randint(1, 3)}.jsonl"
        first = self.sessions.get((scope, name), 0)
        count = self.random.randint(1, 6)
        passages = tuple([self.turn(number) for number in range(first, first + count)])
        self.sessions[scope, name] = first + count
        ino = 9000 + len(name)
        stamp = FileId(ino, first + count, 100 * (first + count))
        self.add(
            IndexEntry(
                scope, "transcripts", name, stamp, f"mark {first + count}", "session", name, "", name, None, (),
                passages[-1].recorded, passages[-1].recorded, Source("agent"), None, None, False, "", (1, 9), first + count, "",
                passages, (),
            ),
            None,
        )  # fmt: skip

    def turn(self, number: int) -> Passage:
        speaker = self.random.choice(("user", "assistant", "Mara", "mara", "Jürgen", "tool"))
        said = f"{'tea and ' if speaker == 'Mara' else ''}{self.sentence()}"
        return Passage(
            number, False, "", said, (number + 1, number + 1), None, (), Source("user"), self.moment(), None, None, None, None,
            f"t{number}", speaker, number * 100,
        )  # fmt: skip

    def add_unreadable(self) -> None:
        self.add(unreadable_entry(self.random.choice(SCOPES), "files", "odd.bin", self.next_stamp(), problem="not text"), None)

    def add(self, doc: IndexEntry, replaced: tuple[int, int, int] | None) -> None:
        self.stamps[doc.scope, doc.part, doc.name] = doc.file_id
        self.puts.append((doc, replaced))


def make_documents(seed: int, count: int = 120) -> RandomDocuments:
    """Return the documents of this many random writes."""
    documents = RandomDocuments(seed)
    writes = [documents.add_note, documents.add_file, documents.add_turns, documents.add_unreadable]
    for _ in range(count):
        documents.random.choices(writes, [6, 2, 3, 0.2])[0]()
    return documents


def fill(index: SqliteIndex, documents: RandomDocuments) -> None:
    """Put the documents into an index in batches of at most five of one folder, and remove a few."""
    batch: list[tuple[IndexEntry, tuple[int, int, int] | None]] = []
    for number, (doc, replaced) in enumerate(documents.puts):
        same_folder = batch and (batch[0][0].scope, batch[0][0].part) == (doc.scope, doc.part)
        if batch and (not same_folder or len(batch) == 5 or doc.name in [one.name for one, _ in batch]):
            index.put(batch, lambda _: True)
            batch = []
        batch.append((doc, replaced))
        if number % 25 == 24:
            index.put(batch, lambda _: True)
            batch = []
            index.remove("global", "notes", ["note-1.md", "note-2.md", "never.md"], lambda _: True)
    index.put(batch, lambda _: True)
    index.add_folder("projects/empty", "notes")


class WordHashEmbedder:
    """An embedder whose vectors depend only on the words: texts are similar if they share words."""

    def __init__(self, setting: str = "static", dim: int = 256) -> None:
        self.setting, self.name, self.dim = setting, f"toy-{setting}", dim

    def passages(self, texts: list[str]) -> np.ndarray:
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row += np.random.default_rng(zlib.crc32((self.name + word).encode())).standard_normal(self.dim)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths == 0, 1, lengths)

    questions = words = passages
