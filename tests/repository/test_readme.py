"""README and docs are correct: their code runs, their commands parse, their samples are valid, their links have targets."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from http_gateway import run_gateway

from holdfast.cli import main
from holdfast.cli.parser import parse_args
from holdfast.formats import note_file as note_file_module
from holdfast.formats import versions
from holdfast.index import entries
from holdfast.models import Scope

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
FORMAT = ROOT / "docs" / "format.md"
PAGES = [README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
STAMP = re.compile(r"\b(?!2026-0[13]-\d\dT00:00:00Z)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def read_text(path):
    return path.read_text(encoding="utf-8")


def blocks(path, kind):
    """Return the fenced blocks of a page with this info string."""
    return [body for info, body in BLOCK.findall(read_text(path)) if info == kind]


def prose(path):
    """Return a page without its fenced blocks and comments."""
    return re.sub(r"<!--.*?-->", "", BLOCK.sub("", read_text(path)), flags=re.S)


def ten_lines():
    return blocks(README, "python")[0]


def tour():
    """Return the arguments of each command of the README's tour."""
    (block,) = [body for body in blocks(README, "sh") if "holdfast store" in body]
    return [shlex.split(line)[1:] for line in block.splitlines()]


def relative_name(path):
    return path.relative_to(ROOT).as_posix()


# --- README -------------------------------------------------------------------------------------------------------------


def test_the_readme_is_short():
    assert len(read_text(README).splitlines()) <= 120


def test_the_example_of_the_readme_has_ten_lines():
    assert len([line for line in ten_lines().splitlines() if line.strip()]) == 10


def test_the_ten_lines_run_in_a_new_home_and_print_what_their_comments_say(tmp_path):
    script = tmp_path / "ten.py"
    script.write_text(ten_lines(), encoding="utf-8")
    result = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    expected = re.findall(r"print\(.*\)  # (.*)", ten_lines())
    assert len(expected) == 3
    assert result.stdout.splitlines()[: len(expected)] == expected
    assert "Telegram" in result.stdout
    assert (Path(os.environ["HOME"]) / ".holdfast/shelf/projects/demo/notes/deploys.md").exists()


def test_the_tour_runs_in_a_fresh_home(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in tour():
        assert main(words) == 0, words
        assert capsys.readouterr().out.strip() or words[0] == "doctor", words


def mask_id_and_times(text):
    """Return a note without its id and the times of its writes."""
    return STAMP.sub("<time>", re.sub(r"^id: .*$", "id: <id>", text, flags=re.M))


def test_the_note_that_the_readme_shows_is_what_the_tour_writes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in tour():
        main(words)
    (written,) = (Path(os.environ["HOME"]) / ".holdfast/shelf/projects").glob("*/notes/deploys.md")
    (shown,) = blocks(README, "markdown")
    assert mask_id_and_times(written.read_text(encoding="utf-8")) == mask_id_and_times(shown)


def test_the_readme_lists_the_promises_of_the_registry():
    from test_promises import registry

    listed = re.findall(r"^\d\. \[(.*)\]\(docs/promises\.md#(promise-\d)\)$", read_text(README), re.M)
    assert [(id, sentence) for sentence, id in listed] == list(registry()["product"].items())


def test_every_make_target_in_a_page_exists():
    targets = set(re.findall(r"^([a-z]+):", read_text(ROOT / "Makefile"), re.M))
    named = {word for path in PAGES for word in re.findall(r"(?:^|`)make ([a-z]+)", read_text(path), re.M)}
    assert {"run", "test"} <= named <= targets


# --- the code of pages --------------------------------------------------------------------------------------------------


RUN_PAGES = [
    README,
    *[ROOT / "docs" / f"{name}.md" for name in ("briefing", "facts", "files", "history", "python", "quickstart", "search")],
]
NOT_RUN = {"hook", "install", "prove", "resident", "serve", "ui", "uninstall"}  # need an agent, a terminal or a server
GATEWAY = "http://127.0.0.1:8710"


@pytest.fixture
def shop(tmp_path, monkeypatch, clock):
    """Work in a clone of github.com/acme/shop, on the day that the pages show."""
    folder = tmp_path / "shop"
    subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run(["git", "-C", folder, "remote", "add", "origin", "https://github.com/acme/shop.git"], check=True)
    monkeypatch.chdir(folder)
    clock.set("2026-05-02T09:00:00Z")


@pytest.fixture
def gateway_url(tmp_path, monkeypatch):
    with run_gateway(tmp_path / "gateway") as gateway:
        monkeypatch.setenv("HOLDFAST_TOKEN", gateway.operator.token)
        yield f"http://127.0.0.1:{gateway.port}"


def run_commands(block, clock):
    """Run the commands of a block; return whether all of them can be run here."""
    complete = True
    for line in block.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["printf"]:  # writes a file that the next command reads
            subprocess.run(line, shell=True, check=True)
        elif words[:1] == ["holdfast"] and words[1] not in NOT_RUN:
            clock.forward(1)
            assert main(words[1:]) == 0, line
        else:
            complete = False
    return complete


def check_comments(code, output):
    """Check that each `print(...)  # text` printed that text, in this order."""
    lines = iter(output.splitlines())
    for expected in re.findall(r"print\(.*\)  # (.*)$", code, re.M):
        assert expected in lines, f"{expected!r} was not printed:\n{output}"


@pytest.mark.parametrize("path", RUN_PAGES, ids=relative_name)
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(path, shop, clock, request, capsys):
    """A `text` block shows the output of the block before it; `python` blocks of a page share their names."""
    names: dict[str, object] = {}
    printed = None
    for info, body in BLOCK.findall(read_text(path)):
        if info == "text" and printed is not None:
            assert printed.strip() == body.strip()
        printed = None
        if info == "sh" and run_commands(body, clock):
            printed = capsys.readouterr().out
        if info == "python":
            if GATEWAY in body:
                body = body.replace(GATEWAY, request.getfixturevalue("gateway_url"))
            exec(compile(body, path, "exec"), names)  # noqa: S102  # our own pages
            printed = capsys.readouterr().out
            check_comments(body, printed)


# --- every page ---------------------------------------------------------------------------------------------------------


def commands():
    """Yield every `holdfast …` command in fenced blocks and in inline code, with its page."""
    for path in PAGES:
        for info, body in BLOCK.findall(read_text(path)):
            if info == "sh":
                found = re.findall(r"^(?:source <\()?(holdfast .*?)\)?$", body, re.M)
                yield from ((relative_name(path), line) for line in found)
        if path.name != "cli.md":  # its usage lines are generated from the command table
            yield from ((relative_name(path), line) for line in re.findall(r"`(holdfast [^`]+)`", prose(path)))


def test_commands_are_found_in_the_pages():
    assert {path for path, _ in commands()} >= {"README.md", "docs/cli.md", "docs/format.md"}


@pytest.mark.parametrize(("path", "line"), sorted(set(commands())))
def test_every_command_in_a_page_exists(path, line):
    command = re.split(r" (?:[|<>]|>>|&&) ", line)[0]
    words = parse_args(shlex.split(command, comments=True)[1:])
    assert words.command or words.has("help")


def anchors(path):
    """Return the anchors of the headings as code hosts make them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", read_text(path)), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=relative_name)
def test_every_link_has_a_target(path):
    links = re.findall(r"\]\(([^)\s]+)\)", prose(path))
    for link in links:
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_can_be_reached_from_the_readme():
    seen, left = set(), [README]
    while left:
        path = left.pop()
        if path in seen or path.suffix != ".md":
            continue
        seen.add(path)
        links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)) if "://" not in link]
        left += [(path.parent / link).resolve() for link in links if link]
    assert set(PAGES) <= seen


# --- the samples of docs/format.md ----------------------------------------------------------------------------------------


MODIFIED = 1777712400  # 2026-05-02T09:00:00Z


def parse_sample(sample):
    return versions.parse_note(sample.encode(), MODIFIED)


def test_every_sample_has_a_known_kind():
    kinds = {info for info, _ in BLOCK.findall(read_text(FORMAT))}
    assert kinds == {"text", "markdown note", "markdown file", "markdown listing"}


@pytest.mark.parametrize("sample", blocks(FORMAT, "markdown note"), ids=range(len(blocks(FORMAT, "markdown note"))))
def test_a_sample_note_is_valid_and_unchanged_by_the_parser(sample):
    assert note_file_module.render(note_file_module.parse(sample)) == sample
    doc = entries.note_entry("projects/demo", "sample.md", parse_sample(sample), (1, 2, 3))
    assert doc.problem == ""
    assert doc.passages[0].text.strip()


def test_the_first_sample_is_exactly_what_a_store_writes(open_memory, clock, note_file):
    sample = blocks(FORMAT, "markdown note")[0]
    memory = open_memory(agent="reviewer", client="claude-code", session="7f3a", origin="user")
    old, new = reversed(versions.list_versions(parse_sample(sample)))
    for version in (old, new):
        clock.set(version.recorded)
        memory.store(version.text, key="testing", type=version.type, tags=list(version.tags))
    written = note_file("testing").read_text(encoding="utf-8")
    assert re.sub(r"^id: \w{16}$", "id: 01KPAXEB201VA8X6", written, flags=re.M) == sample


def test_the_samples_are_parsed_as_the_page_describes():
    written, bare, rich, dated, escaped, stated = [parse_sample(sample) for sample in blocks(FORMAT, "markdown note")]
    assert (written.header.type, written.header.tags, written.past_count) == ("feedback", ("testing", "pytest"), 1)
    assert (bare.header.type, bare.header.source.origin, bare.header.updated) == ("project", "user", "2026-05-02T09:00:00Z")
    assert rich.header.tags == ("ci-cd", "größe: exakt")
    assert (rich.header.valid_to, rich.header.pinned) == ("2026-12-31T00:00:00Z", True)
    assert [version.text for version in versions.list_versions(dated)][1:] == ["We deploy on Fridays.", "Ada deploys by hand."]
    assert (
        versions.to_note_at(Scope("global"), "k", dated, as_of="2025-03-01T00:00:00Z", known_at=None).text
        == "Ada deploys by hand."
    )
    assert (escaped.past_count, escaped.text.count("\\")) == (0, 0)
    facts = entries.note_entry("global", "telegram.md", stated, (1, 2, 3)).facts
    assert [(fact.label, fact.value, fact.valid_to) for fact in facts] == [
        ("status", "disabled", "2026-03-27"), ("status", "enabled", None), ("owner", "[[Ada]]", None)
    ]  # fmt: skip
    assert facts[0].retired_by == "[2026-03-27] status: enabled"


@pytest.mark.parametrize("sample", blocks(FORMAT, "markdown file"))
def test_a_sample_file_is_a_valid_entry(sample):
    doc = entries.file_entry("global", "sample.md", sample.encode(), (1, 2, 3), 0)
    assert (doc.problem, doc.title) == ("", "Heartbeat")
    assert [fact.label for fact in doc.facts] == ["release"]


def test_the_sample_listing_is_what_a_store_writes(open_memory, clock, home):
    clock.set("2026-05-02T09:00:00Z")
    open_memory().store("Always use pytest; never unittest.", key="testing", type="feedback")
    (sample,) = blocks(FORMAT, "markdown listing")
    assert (home / "shelf/projects/demo/index.md").read_text(encoding="utf-8") == sample


def test_the_page_lists_every_field_that_the_parser_reads():
    documented = set(re.findall(r"^\| `([a-z_]+)` \|", read_text(FORMAT), re.M))
    assert documented == set(note_file_module._PARSERS)
