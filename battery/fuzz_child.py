"""Child of the part `fuzz`: `python -m battery.fuzz_child FUZZER PARSERS FOLDER SEED COUNT`.

FUZZER is hypothesis or atheris, PARSERS are names with commas between them, COUNT is the number of inputs for each. It prints
a line of JSON for each problem, with the input in hexadecimal. Time is the CPU time of the thread, since the machine may be
busy.
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

MAX_SECONDS = 1.0  # of CPU time for one input
_HANG_SECONDS = 8  # of CPU time after which a parser is interrupted
_MAX_PROBLEMS = 5

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
    """A parser takes too long; not an `Exception`, so that the parser does not catch it."""


class FuzzRun:
    """Gives inputs to parsers and prints each kind of problem once."""

    def __init__(self, parsers: dict[str, Any]) -> None:
        self.parsers = parsers
        self.inputs = 0
        self._slowest = 0.0
        self._printed: set[str] = set()

    def try_input(self, name: str, data: bytes) -> None:
        """Give one input to one parser."""
        self.inputs += 1
        start = time.thread_time()
        signal.setitimer(signal.ITIMER_PROF, _HANG_SECONDS)
        try:
            self.parsers[name](data)
        except Stuck:
            self._print_problem(f"{name} hung: more than {_HANG_SECONDS} s of work", data)
        except Exception as error:  # noqa: BLE001 - what this program looks for
            where = traceback.extract_tb(error.__traceback__)[-1]
            line = f"{os.path.basename(where.filename)}:{where.lineno}"
            self._print_problem(f"{name}, {type(error).__name__} at {line}: {str(error)[:200]}", data)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = time.thread_time() - start
        self._slowest = max(self._slowest, seconds)
        if seconds > MAX_SECONDS:
            self._print_problem(f"{name}, too slow: {seconds:.1f} s of work for {len(data):,} bytes", data)

    def _print_problem(self, problem: str, data: bytes) -> None:
        kind = problem.split(":")[0]
        if kind not in self._printed and len(self._printed) < _MAX_PROBLEMS:
            self._printed.add(kind)
            print(json.dumps({"problem": problem, "input": data[:4000].hex(), "bytes": len(data)}), flush=True)

    def print_end(self) -> None:
        """Print the number of inputs and the time of the slowest."""
        print(json.dumps({"inputs": self.inputs, "slowest": round(self._slowest, 3)}), flush=True)


def run_hypothesis(fuzz_run: FuzzRun, seed: int, count: int) -> None:
    """Combine pieces that have a meaning for one of our parsers; some inputs are long or deeply nested."""
    import hypothesis
    from hypothesis import HealthCheck, Phase, given
    from hypothesis import strategies as st

    unicode = st.text(max_size=6).map(lambda text: text.encode("utf-8", "surrogatepass"))
    piece = st.sampled_from(PIECES) | st.binary(max_size=8) | unicode
    short = st.lists(piece, max_size=24).map(b"".join)
    times = st.sampled_from((2, 50, 3000, 20_000)) | st.integers(2, 20_000)
    openings = st.sampled_from((b"[", b"{", b'{"a":', b"- ", b"[[", b"(", b"a.", b"> ", b"~~[", b"x = [", b"{a: "))
    long = st.tuples(short, piece, times, short).map(lambda parts: (parts[0] + parts[1] * parts[2] + parts[3])[:65536])
    nested = st.tuples(short | st.sampled_from((b"a = ", b"---\na: ", b'{"a": ')), openings, times).map(
        lambda parts: (parts[0] + parts[1] * parts[2])[:65536]
    )
    settings = hypothesis.settings(
        max_examples=count, database=None, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck)
    )

    def run_parser(name: str) -> None:
        @hypothesis.seed(seed)
        @settings
        @given(short | short | long | nested)
        def test(data: bytes) -> None:
            fuzz_run.try_input(name, data)

        test()

    for name in fuzz_run.parsers:
        run_parser(name)


def run_atheris(fuzz_run: FuzzRun, seed: int, count: int, folder: Path) -> None:
    """Let libFuzzer look for inputs that reach new code; it ends the process itself."""
    import atheris  # type: ignore[import-untyped]

    corpus = folder / "corpus"
    corpus.mkdir()
    rng = random.Random(seed)
    for number, piece in enumerate(PIECES):
        (corpus / f"piece-{number}").write_bytes(piece)
    for number in range(60):
        (corpus / f"some-{number}").write_bytes(b"".join(rng.choices(PIECES, k=8)))
    names = list(fuzz_run.parsers)
    inputs = count * len(names)

    def test(data: bytes) -> None:
        fuzz_run.try_input(names[data[0] % len(names) if data else 0], data[1:])  # the first byte selects the parser
        if fuzz_run.inputs >= inputs:
            fuzz_run.print_end()
            os._exit(0)

    options = [f"-seed={seed % 2**31 or 1}", f"-runs={inputs * 2}", "-max_len=4096", "-verbosity=0", str(corpus)]
    atheris.Setup([sys.argv[0], *options], test)
    atheris.Fuzz()


def main(fuzzer: str, names: str, folder: str, seed: str, count: str) -> None:
    signal.signal(signal.SIGPROF, _raise_stuck)
    if fuzzer == "atheris":
        import atheris

        with atheris.instrument_imports(include=["holdfast"]):
            from battery.parsers import load_parsers
            from holdfast.file_edit import json_entries, jsonc, markdown_block, toml_block  # noqa: F401
            from holdfast.formats.importers import detect  # noqa: F401
            from holdfast.index import tokenizer  # noqa: F401
    else:
        from battery.parsers import load_parsers
    parsers = load_parsers(Path(folder))
    fuzz_run = FuzzRun({name: parsers[name] for name in names.split(",")})
    if fuzzer == "atheris":
        run_atheris(fuzz_run, int(seed), int(count), Path(folder))
    else:
        run_hypothesis(fuzz_run, int(seed), int(count))
    fuzz_run.print_end()


def _raise_stuck(*_: object) -> None:
    raise Stuck


if __name__ == "__main__":
    main(*sys.argv[1:])
