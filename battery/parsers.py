"""The parsers to fuzz: each is a function of bytes that returns or raises `WrongResult`; any other exception is a bug."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Parser = Callable[[bytes], object]
NOW = "2026-05-01T12:00:00Z"


class WrongResult(Exception):
    """A parser returned something that cannot be right."""


def load_parsers(workdir: Path) -> dict[str, Parser]:
    """Return all parsers by name; some read files in `workdir`."""
    return {
        "frontmatter": _frontmatter, "facts": _facts, "dates": _dates, "time expressions": _time_expressions, "words": _words,
        "queries": _queries(workdir), "transcripts": _transcripts(workdir), "turns": _turns, "hook input": _hook_input(workdir),
        "client events": _client_events, "jsonc edits": _jsonc_edits, "toml edits": _toml_edits, "blocks": _blocks,
        "config.toml": _config(workdir), "git and markers": _git_and_markers(workdir), "names and paths": _names_and_paths,
        "import lines": _import_lines, "hidden characters and secrets": _hidden_characters_and_secrets,
    }  # fmt: skip


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _frontmatter(data: bytes) -> None:
    from holdfast.formats import note_file, versions

    content = note_file.parse(_text(data))
    if note_file.render(content) != _text(data):
        raise WrongResult("parsed and rendered, it is another text")
    note_file.parse_header(content), note_file.past_versions(content), note_file.past_version_lines(content)
    note_file.read_current_text(_text(data))
    versions.list_versions(versions.parse_note(data, 0))


def _facts(data: bytes) -> None:
    from holdfast.formats import facts
    from holdfast.models import Scope

    text = _text(data)
    facts.parse_facts(text, "Telegram", Scope("global"), "global/notes/x.md", 1)
    facts.set_fact(text, "status", "on", "2026-03-27", False)
    facts.subject_key(text[:200]), facts.normalize_name(text)


def _dates(data: bytes) -> None:
    from holdfast.base import dates
    from holdfast.errors import HoldfastError

    for read in (dates.parse_moment, dates.parse_as_of, dates.parse_day_or_moment):
        try:
            read(_text(data), "when")
        except HoldfastError:
            pass
    dates.is_moment(_text(data))


def _time_expressions(data: bytes) -> None:
    from holdfast.search import time_expressions

    text = _text(data[:32768])
    time_expressions.find_spans(text, NOW, (2024, 2025))
    time_expressions.find_passage_spans(text, 739000)


def _words(data: bytes) -> None:
    from holdfast.index import tokenizer

    text = _text(data)
    tokenizer.index_terms(text), tokenizer.tokens(text)
    for term, word in tokenizer.query_terms(text).items():
        tokenizer.prefixes(term, word)


def _queries(workdir: Path) -> Parser:
    from holdfast import HoldfastError, Memory

    memory = Memory(workdir / "home", cwd="/", project="demo")
    memory.store("We deploy on Tuesdays, never on Fridays.", key="deploys")
    memory.fact("Telegram", "status", "[[Enabled]]", on="2026-03-27")

    def query(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        for verb in (
            lambda: memory.recall(text, mode="keyword"),
            lambda: memory.facts(text),
            lambda: memory.brief(prompt=text),
        ):
            try:
                verb()
            except HoldfastError:
                pass

    return query


def _transcripts(workdir: Path) -> Parser:
    from holdfast import HoldfastError
    from holdfast.formats.importers.detect import all_dialects, find_dialect, find_folder
    from holdfast.formats.importers.json_source import TranscriptSource

    path = workdir / "said.jsonl"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        with TranscriptSource(str(path)) as source:
            for one in all_dialects().values():
                try:
                    for said in one.parse_turns(source.read_rows(), source.stem):
                        said.text.encode("utf-8", "surrogatepass")
                except HoldfastError:
                    pass
            try:
                known = find_dialect(source, None)
                if known is not None:
                    find_folder(source, known)
            except HoldfastError:
                pass

    return read


def _turns(data: bytes) -> None:
    from holdfast import HoldfastError
    from holdfast.formats import transcript

    transcript.parse_line(data), transcript.parse_header(data), transcript.is_complete_line(data)
    text = _text(data)
    (
        transcript.replace_surrogates(transcript.strip_own_output(text)),
        transcript.parse_time_or_none(text),
        transcript.parse_role(text),
    )
    try:
        transcript.parse_time(text)
    except HoldfastError:
        pass


def _hook_input(workdir: Path) -> Parser:
    """Run a hook in this process; the errors that it does not raise are read from its log."""
    from holdfast.base import failure_log
    from holdfast.cli import main

    home = str(workdir / "home")
    hooks = (
        ("claude-code", "SessionStart"),
        ("codex", "UserPromptSubmit"),
        ("gemini", "SessionStart"),
        ("cursor", "sessionStart"),
    )

    def run_hook(data: bytes) -> None:
        client, event = hooks[len(data) % len(hooks)]
        with tempfile.TemporaryFile(dir=workdir) as stdin:
            stdin.write(data)
            stdin.seek(0)
            os.dup2(stdin.fileno(), 0)
        real, sys.stdout = sys.stdout, io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        try:
            code = main(["--home", home, "hook", client, event])
        finally:
            sys.stdout = real
        errors = [one.message for one in failure_log.read(home) if "report this" in one.fix]
        Path(failure_log.path(home)).unlink(missing_ok=True)
        if code or errors:
            raise WrongResult(f"exit {code}, and it swallowed {errors}")

    return run_hook


def _client_events(data: bytes) -> None:
    from holdfast import clients

    try:
        event_data = json.loads(data)
    except (ValueError, RecursionError):
        return
    for name in clients.names() if isinstance(event_data, dict) else ():
        client = clients.load(name)
        for event in client.events or ("start",):
            client.parse_input(event, event_data)
            client.format_output(event, str(event_data)[:500])


def _jsonc_edits(data: bytes) -> None:
    from holdfast.file_edit import json_entries, jsonc

    text, keys = _text(data), ("mcpServers", "holdfast")
    ours: Callable[[Any], bool] = lambda value: value == {"command": "holdfast"}  # noqa: E731
    for edit in (
        lambda: jsonc.parse(text), lambda: json_entries.put_if_missing(text, keys, {"a": 1}),
        lambda: json_entries.add_item(text, ("hooks",), {"a": 1}, ours),
        lambda: json_entries.remove_item(text, ("hooks",), ours), lambda: json_entries.remove(text, keys),
        lambda: json_entries.exists(text, keys),
    ):  # fmt: skip
        try:
            edit()
        except (jsonc.InvalidJson, json_entries.WrongType):
            pass
    try:
        put = json_entries.put(text, keys, {"command": "holdfast"})
    except (jsonc.InvalidJson, json_entries.WrongType):
        return
    if json_entries.get(put, keys) != {"command": "holdfast"}:
        raise WrongResult("the entry that was put in is not there")


def _toml_edits(data: bytes) -> None:
    from holdfast.file_edit import toml_block

    text, lines = data.decode("utf-8", "replace"), '[mcp_servers.holdfast]\ncommand = "holdfast"\n'
    toml_block.remove(text, lines, lambda value: True)
    try:
        put = toml_block.put(text, lines)
    except ValueError:
        return
    if lines not in put.replace("\r\n", "\n"):
        raise WrongResult("the lines that were put in are not there")


def _blocks(data: bytes) -> None:
    from holdfast.file_edit import markdown_block

    text = _text(data)
    without = markdown_block.remove(text)
    if markdown_block.remove(markdown_block.put(text, "inside\n")) not in (text, without):
        raise WrongResult("put in and taken out, the file is another")


def _config(workdir: Path) -> Parser:
    from holdfast import config
    from holdfast.errors import ConfigError

    home = workdir / "settings"
    home.mkdir(exist_ok=True)

    def read(data: bytes) -> None:
        (home / "config.toml").write_bytes(data)
        try:
            config.load(home, {"HOME": str(workdir)})
        except ConfigError:
            pass

    return read


def _git_and_markers(workdir: Path) -> Parser:
    from holdfast.project import git, resolve

    work = workdir / "work"
    (work / ".git").mkdir(parents=True, exist_ok=True)
    (work / ".holdfast").mkdir(exist_ok=True)

    def read(data: bytes) -> None:
        for name in (".git/config", ".git/HEAD", ".git/commondir", ".holdfast/project.json"):
            (work / name).write_bytes(data if name != ".git/HEAD" else b"ref: refs/heads/main\n")
        resolve.find_candidates(str(work))
        git.normalize_url(_text(data), "/")

    return read


def _names_and_paths(data: bytes) -> None:
    from holdfast.errors import HoldfastError
    from holdfast.models import parse_tags
    from holdfast.safety import validate

    text = _text(data)
    checks: tuple[Callable[[], object], ...] = (
        lambda: validate.check_path(text), lambda: validate.check_key(text), lambda: validate.check_name(text, "project"),
        lambda: validate.check_label(text),
        lambda: validate.check_tags(parse_tags(text)), lambda: validate.check_text(data, 65536),
        lambda: validate.check_line(text, "value"),
    )  # fmt: skip
    for check in checks:
        try:
            check()
        except HoldfastError as error:
            str(error).encode()


def _import_lines(data: bytes) -> None:
    from holdfast import HoldfastError
    from holdfast.cli.commands import import_notes

    try:
        list(import_notes._parse_lines(io.BytesIO(data), 65536, "nothing was imported"))
    except HoldfastError:
        pass


def _hidden_characters_and_secrets(data: bytes) -> None:
    from holdfast.base import invisible
    from holdfast.cli.output import mark_hidden
    from holdfast.safety import hidden_chars, secrets

    text = _text(data)
    hidden_chars.make_visible(text), invisible.find_kinds(text), mark_hidden(text)
    for one in secrets.find_secrets(text):
        if not 0 <= one.start < one.end <= len(text):
            raise WrongResult("a secret that is nowhere")
    secrets.redact(text)
