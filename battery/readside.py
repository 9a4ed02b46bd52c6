"""The read side: orders and hidden characters are stored, then read through every door that shows. None may step out of its
block, none may be seen as it is, and every byte must come back to whoever asks for the exact text."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from battery import corpora, judging
from battery.corpora import Text
from battery.lab import Lab
from battery.report import Report, repeat

_GROUP = 8  # texts that stand in one project, so that a briefing shows them all
_BEFORE, _AFTER = "# What a person wrote\n", "The end, by a person.\n"
_CONFIG = '[brief]\nentries = 100\nscope_chars = 9000\ntotal_chars = 9000\n[search]\nembedder = "none"\n'
_SHOWING = [
    ["list"], ["get", "k0", "--history"], ["facts"], ["brief"], ["boot"], ["file", "view", "k0.md"], ["search", "order"],
    ["graph", "says k0"], ["expand", "tk0"], ["doctor"],
]  # fmt: skip
_HEADS = ("k", "says-", "HEARTBEAT.md", "MEMORY.md", "session ", "  ")


def run(lab: Lab, report: Report, share: float, seed: int) -> None:
    """Both corpora; the figure of each row says how many of how many held."""
    for what, texts in (("injection", corpora.injections(seed)), ("hidden", corpora.hidden(seed))):
        some = texts[: max(_GROUP, round(len(texts) * share))] if share >= 1 else texts[:: max(1, round(1 / share))]
        with report.row(f"read side: {what} corpus, every door that shows") as row:
            if len(texts) < corpora.LEAST:
                row.failed([f"only {len(texts)} texts"], repeat("readside", share, seed))
            failed = 0
            for size, problems in tried(lab, some):
                failed += len(problems)
                for one in range(size):  # a text each; what is wrong with its group counts once
                    row.tried([] if one else problems[:3], repeat("readside", share, seed), len(some))
            row.figure(f"{failed} escapes or unmarked characters in {len(some)} texts")


def tried(lab: Lab, texts: list[Text]) -> Iterator[tuple[int, list[str]]]:
    """Of each group of texts, how many there are and what was wrong at any door."""
    home = lab.home("readside")
    home.mkdir(parents=True, mode=0o700)
    (home / "config.toml").write_text(_CONFIG)
    with _server(lab, home) as ask:
        for place in range(0, len(texts), _GROUP):
            group = texts[place : place + _GROUP]
            yield len(group), judged(lab, home, f"p{place}", group, ask)
    lab.away(home)


def judged(lab: Lab, home: Path, project: str, group: list[Text], ask: Any) -> list[str]:
    """One project with these texts, through every door."""
    from holdfast import Memory

    keys = {f"k{number}": text for number, text in enumerate(group)}
    with Memory(home, project=project, session=f"s-{project}", cwd=home) as memory:
        wrong = _stored(memory, keys) + _told(memory, home, group) + _resources(memory, keys)
    wrong += _asked(ask, project, keys)
    wrong += _hooked(lab, home, project, group) + _printed(lab, home, project, keys)
    return [f"{project} ({', '.join(text.name for text in group)}): {one}" for one in wrong]


def _stored(memory: Any, keys: dict[str, Text]) -> list[str]:
    """Every way in, and back out byte for byte."""
    wrong = []
    for key, one in keys.items():
        flat = " ".join(one.text.split())
        tag = flat.replace(",", " ")[:90].strip()
        memory.store(one.text, key=key, tags=[tag] if _one_line(tag) else [])
        if _one_line(flat):
            memory.fact(f"says {key}", "order", flat)
        memory.files.create(f"{key}.md", one.text)
        speaker = {"speaker": tag[:60]} if _one_line(tag) else {}
        memory.log([{"id": f"t{key}", "role": "user", "text": one.text, **speaker}], session=f"log-{key}")
        hit = next(hit for hit in memory.recall(mode="recent", kind="note", limit=100) if hit.key == key)
        exact = [memory.get(key).text, memory.history(key)[0].text, memory.files.view(f"{key}.md"), hit.text]
        if "<holdfast-memory id=" not in one.text:  # which a transcript does not keep: it would be our own words (H3)
            exact.append(memory.expand(f"t{key}")[0].text)
        wrong += [f"{one.name} came back otherwise by way {way}" for way, text in enumerate(exact) if text != one.text]
        if one.smuggled and not (hit.hidden and memory.get(key).hidden):
            wrong.append(f"{one.name}: recall does not say that something is hidden")
        if not one.smuggled and set(memory.get(key).hidden) - {"mixed-script"}:
            wrong.append(f"{one.name}: recall says that something is hidden")
    memory.files.create("MEMORY.md", "\n".join([one.text for one in keys.values()]))
    memory.files.create("HEARTBEAT.md", "\n".join([one.text for one in keys.values()]))
    return wrong


def _one_line(text: str) -> bool:
    """Whether a tag or a fact may be this: without control characters and line separators."""
    return bool(text) and not any(ord(sign) < 32 or 0x7F <= ord(sign) <= 0x9F or sign in "\u2028\u2029" for sign in text)


def _told(memory: Any, home: Path, group: list[Text]) -> list[str]:
    """Briefings, boot, and the block in a person's file."""
    prompt = " ".join(sorted({word for one in group for word in one.text.split() if word.isalpha()}))[:1000]
    said = {"start": memory.brief().text, "boot": memory.boot(scope="project").text}
    said["prompt"] = memory.brief(prompt=prompt or "order", again=True).text
    wrong = []
    for where, text in said.items():
        if text or where != "prompt":
            wrong += [f"{where}: {one}" for one in judging.blocks(text)] + judging.seen(group, text, where)
        if any(one.smuggled for one in group) and text and "⟦" not in text:
            wrong.append(f"{where}: nothing is marked")
    path = home.parent / f"{memory.project}.md"
    path.write_text(_BEFORE + _AFTER)
    memory.render(path)
    with open(path, newline="") as file:
        rendered = file.read()
    start, end = "<!-- holdfast:begin -->", "<!-- holdfast:end -->"
    if rendered.count(start) != 1 or rendered.count(end) != 1:
        return [*wrong, "rendered: a mark stands there twice or not at all"]
    inside = rendered[rendered.index(start) + len(start) : rendered.index(end)].strip("\n") + "\n"
    wrong += [f"rendered: {one}" for one in judging.blocks(inside[inside.index("<holdfast-memory") :])]
    wrong += judging.seen(group, rendered, "rendered")
    outside = rendered[: rendered.index(start)] + rendered[rendered.index(end) + len(end) :]
    if not outside.startswith(_BEFORE + _AFTER):
        wrong.append("rendered: a person's text was changed")
    listing = (home / "shelf" / "projects" / memory.project / "index.md").read_text()
    return wrong + judging.seen(group, listing, "index.md") + ["index.md: a tag or fence" for _ in _open(listing)]


def _open(listing: str) -> list[str]:
    body = listing.partition("\n")[2]  # without the comment that is ours
    return [one for one in (judging.OPENS.search(body), judging.FENCE.search(body)) if one]  # type: ignore[misc]


def _resources(memory: Any, keys: dict[str, Text]) -> list[str]:
    from holdfast.mcp import resources

    wrong = []
    for key, one in keys.items():
        text = resources.read_resource(memory, f"holdfast://notes/project/{key}", "2025-11-25")["contents"][0]["text"]
        wrong += [f"resource: {said}" for said in judging.blocks(text)] + judging.seen([one], text, "resource")
    listed = json.dumps(resources.list_resources(memory), ensure_ascii=False)
    return wrong + judging.seen(list(keys.values()), listed, "resources")


def _asked(ask: Any, project: str, keys: dict[str, Text]) -> list[str]:
    """The tools of the MCP server."""
    group = list(keys.values())
    wrong = []
    calls: list[tuple[str, dict[str, Any]]] = [("memory_recall", {"query": "", "mode": "recent", "limit": 50})]
    calls += [("memory_get", {"key": key}) for key in keys] + [("memory_history", {"key": key}) for key in keys]
    calls += [("memory_file", {"command": "view", "path": f"/memories/{key}.md"}) for key in keys]
    calls += [("memory_fact", {"subject": f"says {key}"}) for key in keys] + [("memory_search", {"query": "order deploy note"})]
    for tool, given in calls:
        result = ask(tool, {**given, "project": project})
        wrong += judging.answer(result, group, tool)
        one = keys.get(given.get("key", given.get("path", "")[10:-3]))
        if one and one.smuggled and tool in ("memory_get", "memory_file") and "hidden: " not in _first(result):
            wrong.append(f"{tool}: it does not say that something is hidden")
    return wrong


def _first(result: dict[str, Any]) -> str:
    """The first line of an answer, which is ours."""
    line: str = result["content"][0]["text"].partition("\n")[0]
    return line


def _hooked(lab: Lab, home: Path, project: str, group: list[Text]) -> list[str]:
    """What two clients are told when a session starts."""
    wrong = []
    for client in ("claude-code", "gemini"):
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", "--home", str(home), "hook", client, "SessionStart"],
            input=json.dumps({"session_id": f"h-{project}", "cwd": str(home), "source": "startup"}).encode(),
            capture_output=True, timeout=60, cwd=lab.root, env={**_environment(lab), "HOLDFAST_PROJECT": project},
        )  # fmt: skip
        text = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
        wrong += [f"hook of {client}: {one}" for one in judging.blocks(text)] + judging.seen(group, text, f"hook of {client}")
    return wrong


def _printed(lab: Lab, home: Path, project: str, keys: dict[str, Text]) -> list[str]:
    """Commands, down a pipe and at a terminal."""
    group, wrong = list(keys.values()), []
    words = ["--home", str(home), "--project", project]
    recall = ["recall", "--mode", "recent", "--kind", "note", "--limit", "50"]
    for how, shown in (("pipe", _piped([*words, *recall])), ("terminal", _at_terminal(lab, [*words, *recall]))):
        wrong += judging.seen(group, shown, f"recall at a {how}") + judging.printed(shown, _HEADS, f"recall at a {how}")
        marked = shown.count("hidden: ")
        if marked < len([one for one in group if one.smuggled]):
            wrong.append(f"recall at a {how}: {marked} lines say that something is hidden")
    for more in [*_SHOWING, ["read", f"projects/{project}/files/k0.md"]]:
        wrong += judging.seen(group, _piped([*words, *more]), f"{' '.join(more)} down a pipe")
    for key, one in keys.items():
        if json.loads(_piped([*words, "get", key, "--json"]))["text"] != one.text:
            wrong.append(f"{one.name}: --json has another text")
    return wrong


def _piped(words: list[str]) -> str:
    """One command in this process; what it printed."""
    from holdfast.cli import main

    real = sys.stdout, sys.stderr
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape", newline="")
    sys.stdout, sys.stderr = out, err
    try:
        main(words)
        out.flush()
        return out.buffer.getvalue().decode("utf-8", "surrogateescape")  # type: ignore[attr-defined,no-any-return]
    finally:
        sys.stdout, sys.stderr = real


def _at_terminal(lab: Lab, words: list[str]) -> str:
    """The same in a process of its own, with a terminal."""
    import pty

    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *words], stdin=theirs, stdout=theirs, stderr=theirs, cwd=lab.root,
        env={**_environment(lab), "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    pieces: list[bytes] = []
    try:
        while piece := os.read(ours, 65536):
            pieces.append(piece)
    except OSError:
        pass  # the other side has closed: how a terminal ends
    finally:
        os.close(ours)
        child.wait(60)
    return b"".join(pieces).decode("utf-8", "replace").replace("\r\n", "\n")


def _environment(lab: Lab) -> dict[str, str]:
    return {**lab.environment(), "PYTHONPATH": str(lab.library)}


@contextmanager
def _server(lab: Lab, home: Path) -> Iterator[Any]:
    """An MCP server on pipes; gives what asks it."""
    child = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "mcp", "--home", str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, cwd=lab.root, env=_environment(lab),
    )  # fmt: skip
    assert child.stdin is not None and child.stdout is not None
    wire, answers, number = child.stdin, child.stdout, [0]

    def said(method: str, params: dict[str, Any]) -> Any:
        number[0] += 1
        wire.write(json.dumps({"jsonrpc": "2.0", "id": number[0], "method": method, "params": params}).encode() + b"\n")
        wire.flush()
        return json.loads(answers.readline())["result"]

    who = {"name": "battery", "version": "1"}
    said("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who})
    wire.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    wire.flush()
    try:
        yield lambda tool, given: said("tools/call", {"name": tool, "arguments": given})
    finally:
        wire.close()
        child.wait(60)
        answers.close()
