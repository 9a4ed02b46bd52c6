"""The child that fuzzes some parsers: `python -m battery.fuzzing WAY PARSERS ROOM SEED COUNT`, WAY being hypothesis or atheris,
PARSERS their names with commas between, COUNT the inputs of each.

It says a line of JSON for everything it found: the input in hexadecimal, and what happened. Time is the time this thread
worked: the machine may be busy with other things.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

LONGEST = 1.0  # seconds of work for one input
_STUCK = 8  # seconds of work after which it is called off
_MOST = 5  # findings that are told

PIECES: tuple[bytes, ...] = (
    b"---\n", b"---", b"...", b"\n", b"\r\n", b"\r", b" ", b"\t", b"\0", b"\xff", b"\xc3\x28", b"\xed\xa0\x80",
    b"\xef\xbb\xbf", b"id: x\n",
    b"type: user\n", b"tags: [a, b]\n", b"tags:\n  - a\n", b"source: {origin: user}\n", b"created: 2026-04-16T10:30:00Z\n",
    b"key: |\n  a\n",
    b"<!-- holdfast:history -->\n", b"<!-- holdfast:version {origin: user} -->\n",
    b"## 2026-01-01T00:00:00Z to 2026-02-01T00:00:00Z\n",
    b"<!-- holdfast:begin -->", b"<!-- holdfast:end -->", b'<holdfast-memory id="000000000000">\n',
    b'</holdfast-memory id="000000000000">\n',
    b"- [2026-03-27] status: on\n", b"- ~~[2026-03-20] status: off~~ superseded 2026-03-27\n", b"[[", b"]]", b"[[Acme]]",
    b"~~", b"- [",
    b"2026-03-27", b"2026-02-30", b"last Tuesday", b"two weeks before 5 June", b"in May 2023", b"Q3 2025", b"yesterday",
    b"since",
    b"the third week of ", b"99999999999", b"12:30", b"T00:00:00Z", b"+99:99", b"\xe5\x8e\xbb\xe5\xb9\xb4",
    b"between 1 and 2 May", b"-", b"/",
    b'{"type": "user", "message": {"role": "user", "content": "hi"}, "uuid": "u1", "sessionId": "s1"}\n', b"{", b"}", b"[",
    b"]", b":", b",",
    b'{"type": "session_meta", "payload": {"id": "c1", "cwd": "/x"}}\n',
    b'{"role": "assistant", "content": [{"type": "text", "text": "a"}]}\n',
    b'{"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"text": "a"}]}}\n',
    b'{"sessionId": "s", "projectHash": "h", "messages": [{"id": "1", "type": "user", "content": "a"}]}\n',
    b'{"$rewindTo": "1"}\n',
    b'{"session_id": "s1", "cwd": "/", "source": "startup", "prompt": "deploy"}', b'"cwd": ', b'"prompt": ',
    b'"transcript_path": ', b"null",
    b"true", b"1e999", b"-0", b'"', b'\\"', b"\\u0000", b"\\ud800", b"\\", b"'", b"//c\n", b"/* c */", b"/*", b",}",
    b'{"mcpServers": {}}',
    b'"hooks": []', b"[table]\n", b"[[array]]\n", b"a = 1\n", b"a.b.c = 'x'\n", b"x = [", b'"""', b"'''",
    b"retention.project_days = 3\n",
    b"[remote \"origin\"]\n\turl = git@github.com:a/b.git\n", b"url = https://u:p@h/x.git\n",
    b"[include]\n\tpath = /etc/passwd\n", b"gitdir: ..\n",
    b"git@h:a/b", b"ssh://h:99999/x", b"file:///etc", b"../", b"%2e%2e/", b"/memories/", b"~", b"C:\\", b"\xe2\x80\xae",
    b"\xf3\xa0\x81\x81",
    b"\xe2\x80\x8b", b"\x1b[31m", b"\xcc\x81", b"\xe8\xa8\x98\xe6\x86\xb6", b"\xf0\x9f\xa7\xa0", b"\xc4\xb0", b"\xc3\x9f",
    b"a", b"word ",
    b"AND", b"OR", b"NEAR(", b"*", b"^", b"\"a\" NOT b", b"-x", b"(", b")", b"AKIA", b"password = ", b"ghp_", b"-----BEGIN ",
    b"eyJ", b"=", b"0",
    b"9", b"#", b"# ", b"```", b"&a ", b"*a", b"!!x ", b"? ", b"| ", b"> ", b"@", b"`", b"%", b"<<: *a\n",
)  # fmt: skip


class Stuck(BaseException):
    """No error that anything on the way may swallow."""


class Trial:
    """Some parsers, their inputs, and what was found."""

    def __init__(self, parsers: dict[str, Any]) -> None:
        self.names = list(parsers)
        self._parsers = parsers
        self.tried = 0
        self.slowest = 0.0
        self.found: dict[str, bytes] = {}

    def one(self, name: str, data: bytes) -> None:
        """Try one input."""
        self.tried += 1
        start = time.thread_time()
        signal.setitimer(signal.ITIMER_PROF, _STUCK)
        try:
            self._parsers[name](data)
        except Stuck:
            self._note(f"{name} hung: more than {_STUCK} s of work", data)
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            where = traceback.extract_tb(error.__traceback__)[-1]
            at = f"{os.path.basename(where.filename)}:{where.lineno}"
            self._note(f"{name}, {type(error).__name__} at {at}: {str(error)[:200]}", data)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        spent = time.thread_time() - start
        self.slowest = max(self.slowest, spent)
        if spent > LONGEST:
            self._note(f"{name}, too slow: {spent:.1f} s of work for {len(data):,} bytes", data)

    def _note(self, what: str, data: bytes) -> None:
        alike = what.split(":")[0]
        if alike not in self.found and len(self.found) < _MOST:
            self.found[alike] = data
            print(json.dumps({"found": what, "input": data[:4000].hex(), "bytes": len(data)}), flush=True)

    def end(self) -> None:
        print(json.dumps({"tried": self.tried, "slowest": round(self.slowest, 3)}), flush=True)


def by_hypothesis(trial: Trial, seed: int, count: int) -> None:
    """Texts put together from what means something to one of our readers, some of them long."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    unicode = st.text(max_size=6).map(lambda text: text.encode("utf-8", "surrogatepass"))
    piece = st.sampled_from(PIECES) | st.binary(max_size=8) | unicode
    some = st.lists(piece, max_size=24).map(b"".join)
    often = st.sampled_from((2, 50, 3000, 20_000)) | st.integers(2, 20_000)
    openings = st.sampled_from((b"[", b"{", b'{"a":', b"- ", b"[[", b"(", b"a.", b"> ", b"~~[", b"x = [", b"{a: "))
    long = st.tuples(some, piece, often, some).map(lambda parts: (parts[0] + parts[1] * parts[2] + parts[3])[:65536])
    nested = st.tuples(some | st.sampled_from((b"a = ", b"---\na: ", b'{"a": ')), openings, often).map(
        lambda parts: (parts[0] + parts[1] * parts[2])[:65536]
    )

    how = settings(
        max_examples=count, database=None, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck)
    )
    for name in trial.names:
        seeded(seed)(how(given(some | some | long | nested)(_carrying(trial, name))))()


def _carrying(trial: Trial, name: str) -> Any:
    def each(data: bytes) -> None:
        trial.one(name, data)

    return each


def by_atheris(trial: Trial, seed: int, count: int, room: Path) -> None:
    """Inputs that reach new code, as libFuzzer finds them; it ends the process itself."""
    import atheris

    corpus = room / "corpus"
    corpus.mkdir()
    chance = random.Random(seed)
    for number, piece in enumerate(PIECES):
        (corpus / f"piece-{number}").write_bytes(piece)
    for number in range(60):
        (corpus / f"some-{number}").write_bytes(b"".join(chance.choices(PIECES, k=8)))

    def each(data: bytes) -> None:
        trial.one(trial.names[data[0] % len(trial.names) if data else 0], data[1:])  # the first byte says for whom it is
        if trial.tried >= count * len(trial.names):
            trial.end()
            os._exit(0)

    atheris.Setup([sys.argv[0], f"-seed={seed % 2**31 or 1}", f"-runs={count * len(trial.names) * 2}", "-max_len=4096",
        "-verbosity=0", str(corpus)], each)
    atheris.Fuzz()


def main(way: str, names: str, room: str, seed: str, count: str) -> None:
    signal.signal(signal.SIGPROF, _ring)
    if way == "atheris":
        import atheris

        with atheris.instrument_imports(include=["holdfast"]):
            from battery.parsers import parsers
            from holdfast.file_edit import json_entries, jsonc, markdown_block, toml_block  # noqa: F401
            from holdfast.formats.importers import detect  # noqa: F401
            from holdfast.index import tokenizer  # noqa: F401
    else:
        from battery.parsers import parsers
    every = parsers(Path(room))
    trial = Trial({name: every[name] for name in names.split(",")})
    if way == "atheris":
        by_atheris(trial, int(seed), int(count), Path(room))
    else:
        by_hypothesis(trial, int(seed), int(count))
    trial.end()


def _ring(*_: object) -> None:
    raise Stuck


if __name__ == "__main__":
    main(*sys.argv[1:])
