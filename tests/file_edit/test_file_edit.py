"""Edits of other programs' files: Holdfast's part is added and removed, and every other byte stays."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Conflict, DiskTrouble, Refused
from holdfast.file_edit import file, json_entries, markdown_block, toml_block
from holdfast.file_edit.jsonc import InvalidJson, parse

SERVER = {"command": "/bin/holdfast", "args": ["mcp"]}
KEYS = ("mcpServers", "holdfast")
HOOK = {"hooks": [{"type": "command", "command": "/bin/holdfast hook x start"}]}


def find_block(text, begin=markdown_block.BEGIN, end=markdown_block.END):
    """Return the content of the block."""
    return text.split(f"{begin}\n".replace("\n", "\r\n" if f"{begin}\r\n" in text else "\n"))[1].split(end)[0]


def is_own(value):
    return "holdfast hook x" in json.dumps(value)


# --- JSON as people keep it ---------------------------------------------------------------------------------------------

TEXTS = [
    "{}",
    "{ }",
    "{\n}\n",
    '{"a": 1}',
    '{"a": 1, "mcpServers": {"other": {"command": "o"}}}',
    '{\n  "a": 1\n}\n',
    '{\n    "a": 1,\n}\n',
    '{\r\n\t"a": 1, // why\r\n\t/* b */\r\n}\r\n',
    '\ufeff{\n  "a": [1, 2, 3], // why\n  // last words\n}',
    '{\n  "mcpServers": {\n    // nothing yet\n  }\n}\n',
    '{\n  "mcpServers": {}\n}\n',
    '{"mcpServers": {"other": {"command": "o"}}, "hooks": {"start": [{"hooks": [{"command": "theirs"}]}]}}\n',
    '{\n  "hooks": {\n    "start": [\n      {"hooks": [{"command": "theirs"}]}, // keep\n    ]\n  },\n}\n',
    "// header\n{\n  gateway: { mode: 'local' }, // five\n}\n",
    "// mine",
    "// mine\r\n/* all of it */",
    '{"a": "// no comment", "b": "/* nor this */", "c": "\\"}{"}\n',
]


@pytest.mark.parametrize("text", TEXTS)
def test_an_entry_goes_in_and_comes_out_without_a_trace(text):
    new = json_entries.put(text, KEYS, SERVER)
    assert parse(new).value["mcpServers"]["holdfast"] == SERVER
    assert json_entries.put(new, KEYS, SERVER) == new
    back = json_entries.remove(new, KEYS)
    if not json_entries.exists(text, KEYS[:1]):
        back = json_entries.remove(back, KEYS[:1])
    was = parse(text)
    assert parse(back).value == (was.value if was else {})
    assert [line.strip() for line in text.split("\n") if "//" in line or "/*" in line] == [
        line.strip() for line in back.split("\n") if "//" in line or "/*" in line
    ]


FULL = [text for text in TEXTS if parse(text) and "nothing yet" not in text and text not in ("{ }", "{\n}\n")]


@pytest.mark.parametrize("text", FULL)
def test_where_there_was_something_else_the_very_bytes_come_back(text):
    new = json_entries.add_item(json_entries.put(text, KEYS, SERVER), ("hooks", "start"), HOOK, is_own)
    back = json_entries.remove(json_entries.remove_item(new, ("hooks", "start"), is_own), KEYS)
    for keys in (("hooks", "start"), ("hooks",), KEYS[:1]):
        if not json_entries.exists(text, keys):
            back = json_entries.remove(back, keys)
    assert back == text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('ab"\\/{}[],:é', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["a", "b", "hooks", "mcpServers", "ü"]), VALUES, max_size=4),
    st.sampled_from([None, 1, 2, "\t"]),
    st.booleans(),
    st.sampled_from(["", "\ufeff", "// c\n", "/* c */ "]),
)
def test_whatever_the_document_the_rest_of_it_means_the_same(document, indent, crlf, before):
    text = before + json.dumps(document, indent=indent, ensure_ascii=False)
    text = text.replace("\n", "\r\n") if crlf else text
    if not isinstance(document.get("mcpServers", {}), dict) or not isinstance(document.get("hooks", {}), dict):
        with pytest.raises(json_entries.WrongType):
            json_entries.add_item(json_entries.put(text, KEYS, SERVER), ("hooks", "start"), HOOK, is_own)
        return
    new = json_entries.add_item(json_entries.put(text, KEYS, SERVER), ("hooks", "start"), HOOK, is_own)
    wanted = json.loads(json.dumps(document))
    wanted.setdefault("mcpServers", {})["holdfast"] = SERVER
    wanted.setdefault("hooks", {})["start"] = [HOOK]
    assert parse(new).value == wanted
    assert "\n" not in new.replace("\r\n", "") or not crlf or "\r\n" not in text
    back = json_entries.remove(json_entries.remove_item(new, ("hooks", "start"), is_own), KEYS)
    left = parse(back).value
    assert {name: value for name, value in left.items() if name not in ("hooks", "mcpServers")} == {
        name: value for name, value in document.items() if name not in ("hooks", "mcpServers")
    }


def test_of_two_entries_of_one_name_the_one_that_counts_is_edited():
    text = '{"mcpServers": {"a": {}}, "mcpServers": {"b": {}}}'
    new = json_entries.put(text, KEYS, SERVER)
    assert json.loads(new)["mcpServers"] == {"b": {}, "holdfast": SERVER}
    assert new.startswith('{"mcpServers": {"a": {}}, ')


def test_what_somebody_put_into_our_group_of_hooks_stays():
    theirs = {"type": "command", "command": "theirs"}
    text = json.dumps({"hooks": {"start": [{"hooks": [HOOK["hooks"][0], theirs]}]}}, indent=2)
    renewed = json_entries.add_item(text, ("hooks", "start"), {"hooks": [{"command": "/new/holdfast hook x start"}]}, is_own)
    assert json.loads(renewed)["hooks"]["start"] == [{"hooks": [{"command": "/new/holdfast hook x start"}, theirs]}]
    assert json.loads(json_entries.remove_item(text, ("hooks", "start"), is_own)) == {"hooks": {"start": [{"hooks": [theirs]}]}}


def test_a_comment_never_swallows_what_follows():
    text = '{"a": 1, // note\n "holdfast": 2 }'
    assert parse(json_entries.remove(text, ("holdfast",))).value == {"a": 1}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": }', '{"a": 1', "{a b}", "[1 2]", '{"a": 01x}', "{} {}", '{"a": "\n"}', "/* no end", "[" * 500, '{"a": "\\q"}',
        f'{{"a": {"9" * 20_000}}}',
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused_with_its_place(text):
    with pytest.raises(InvalidJson, match=r"line \d+, column \d+"):
        json_entries.put(text, KEYS, SERVER)


def test_an_empty_file_becomes_one_with_our_entry():
    assert json.loads(json_entries.put("", KEYS, SERVER)) == {"mcpServers": {"holdfast": SERVER}}
    assert parse("  // nothing\n") is None


# --- TOML -----------------------------------------------------------------------------------------------------------------

TABLE = '[mcp_servers.holdfast]\ncommand = "/bin/holdfast"'


@pytest.mark.parametrize("text", ["", 'model = "x"', 'model = "x"  # y\n\n[a]\nb = 1\n', 'a = 1\r\n[b]\r\nc = """\r\nx"""\r\n'])
def test_lines_of_ours_go_into_toml_and_come_out(text):
    new = toml_block.put(text, TABLE)
    assert new.startswith(text)
    assert toml_block.put(new, TABLE) == new
    assert toml_block.remove(new, TABLE, is_own) == text


def test_lines_that_a_program_wrote_anew_without_our_marks_are_found_by_name():
    text = 'model = "x" # why\n\n[mcp_servers.other]\ncommand = "o"\n\n[mcp_servers.holdfast]\ncommand = "/bin/holdfast"\n'
    assert toml_block.remove(text, TABLE, is_own) == 'model = "x" # why\n\n[mcp_servers.other]\ncommand = "o"\n\n'
    hooks = '[[hooks]]\nevent = "a"\ncommand = "theirs"\n\n[[hooks]]\nevent = "b"\ncommand = "/bin/holdfast hook x start"\n'
    left = toml_block.remove(hooks, '[[hooks]]\nevent = "b"\ncommand = "/bin/holdfast hook x start"', is_own)
    assert "theirs" in left
    assert "holdfast" not in left


def test_toml_that_would_not_hold_our_lines_is_refused():
    for text in ("mcp_servers = {}\n", "= 1", '[mcp_servers.holdfast]\ncommand = "mine"\n'):
        with pytest.raises(ValueError, match=r"."):
            toml_block.put(text, TABLE)


# --- blocks ---------------------------------------------------------------------------------------------------------------

PERSONS = ["", "a", "a\n", "a\n\n", "\n", " ", "a\r\nb", "a\r\nb\r\n", "\ufeff", "\ufeffa\n", "a\r", "a\n ", "# T\n\na\n\n\n"]


@pytest.mark.promise("B5")
@pytest.mark.parametrize("text", PERSONS)
def test_a_block_goes_in_and_comes_out_byte_for_byte(text):
    new = markdown_block.put(text, "what is known\nand more")
    assert new.startswith(text)
    assert find_block(new).replace("\r", "") == "what is known\nand more\n"
    assert markdown_block.put(new, "what is known\nand more") == new
    changed = markdown_block.put(new, "something else")
    assert find_block(changed).strip() == "something else"
    assert markdown_block.remove(changed) == text
    assert markdown_block.put(changed, "") == text


@pytest.mark.promise("B5")
@given(st.text("ab\n\r \ufeff\u2028", max_size=20), st.text("xy\n", max_size=8), st.text("cd\n\r ", max_size=12))
def test_text_on_both_sides_of_a_block_is_never_touched(before, find_block, after):
    held = markdown_block.put(before, find_block + "z") + after
    again = markdown_block.put(held, "other")
    assert again.startswith(before)
    assert again.endswith(after)
    if after:
        assert markdown_block.remove(held).endswith(after)
    assert markdown_block.remove(held).startswith(before)


@pytest.mark.promise("B5")
@pytest.mark.parametrize(
    "text",
    [
        f"mine\n{markdown_block.BEGIN}\nmine too\n",
        f"mine\n{markdown_block.END}\nmine too\n",
        f"{markdown_block.END}\nmine\n{markdown_block.BEGIN}\n",
        f"see {markdown_block.BEGIN} in the docs\nmine\nand {markdown_block.END} too\n",
    ],
)
def test_a_stray_mark_never_eats_a_persons_text(text):
    assert markdown_block.remove(text) == text
    new = markdown_block.put(text, "ours")
    assert new.startswith(text)
    assert markdown_block.remove(new) == text


@pytest.mark.promise("B5")
def test_after_a_stray_begin_only_the_real_block_is_ours():
    text = f"{markdown_block.BEGIN}\na person's\n{markdown_block.BEGIN}\nours\n{markdown_block.END}\nmore\n"
    assert (
        markdown_block.put(text, "new")
        == f"{markdown_block.BEGIN}\na person's\n{markdown_block.BEGIN}\nnew\n{markdown_block.END}\nmore\n"
    )
    assert markdown_block.remove(text) == f"{markdown_block.BEGIN}\na person's\nmore\n"


@pytest.mark.promise("B5")
def test_what_is_told_cannot_close_the_block():
    new = markdown_block.put("mine\n", f"a\n{markdown_block.END}\nb\n{markdown_block.BEGIN}\nc")
    assert find_block(new) == "a\nb\nc\n"
    assert markdown_block.remove(new) == "mine\n"


# --- files ----------------------------------------------------------------------------------------------------------------


def test_a_file_is_replaced_whole_with_its_rights_and_its_link(tmp_path):
    real, link = tmp_path / "dotfiles" / "real.json", tmp_path / "link.json"
    real.parent.mkdir()
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    file.replace(file.read(str(link)), b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in real.parent.iterdir()) == ["real.json"]


def test_a_file_that_changed_since_it_was_read_is_a_conflict(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    found = file.read(str(path))
    path.write_bytes(b"theirs")
    with pytest.raises(Conflict):
        file.replace(found, b"new")
    assert path.read_bytes() == b"theirs"


def test_what_cannot_be_edited_safely_is_refused(tmp_path):
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "twice").write_bytes(b"x")
    os.link(tmp_path / "twice", tmp_path / "again")
    with open(tmp_path / "huge", "wb") as huge:
        huge.truncate(11 * 1024 * 1024)
    for name in ("dangling", "pipe", "twice", "huge", "."):
        with pytest.raises(Refused):
            file.read(str(tmp_path / name))
    with pytest.raises((Refused, DiskTrouble)):
        file.read(str(tmp_path / "loop"))


def test_read_only_files_and_folders_are_told_before_anything_is_written(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x")
    path.chmod(0o444)
    with pytest.raises(DiskTrouble, match="read-only"):
        file.check_writable(file.read(str(path)))
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    with pytest.raises(DiskTrouble, match="read-only"):
        file.check_writable(file.read(str(closed / "inner" / "b")))


def test_a_copy_of_a_block_does_not_stay_behind():
    """A merge or a paste left two: both are renewed as one, and both go."""
    once = markdown_block.put("# Mine\n", "stale")
    twice = once + "\nmore of mine\n\n" + markdown_block.put("", "stale, too")
    new = markdown_block.put(twice, "new")
    assert (new.count(markdown_block.BEGIN), "stale" in new, find_block(new)) == (1, False, "new\n")
    assert "more of mine" in new
    assert markdown_block.remove(twice) == "# Mine\n\nmore of mine\n"


@pytest.mark.parametrize("text", ["", "# Mine\n", "# Mine", "# Mine\r\n\r\nTabs.\r\n", "# Mine\r\n\r\nTabs."])
@pytest.mark.parametrize("first", [0, 1])
def test_a_briefing_and_what_an_install_says_stand_side_by_side(text, first):
    about = markdown_block.ABOUT_BEGIN, markdown_block.ABOUT_END
    both = markdown_block.put(markdown_block.put(text, "how to use it", *about), "what is known")
    assert find_block(both).strip() == "what is known"
    assert find_block(both, *about).strip() == "how to use it"
    marks = [about, (markdown_block.BEGIN, markdown_block.END)]
    assert markdown_block.remove(markdown_block.remove(both, *marks[first]), *marks[1 - first]) == text


def test_what_somebody_writes_while_we_write_is_not_lost(tmp_path, monkeypatch):
    """Their program saves the file at the worst moment: when all of ours is on the disk, and only the name is missing."""
    path = tmp_path / "a.json"
    path.write_text("old")
    flush = os.fsync

    def save(fd):
        path.write_text("theirs")
        flush(fd)

    monkeypatch.setattr(os, "fsync", save)
    with pytest.raises(Conflict):
        file.replace(file.read(str(path)), b"ours")
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_new_file_is_never_made_over_another(tmp_path):
    path = tmp_path / "a.kept"
    file.create(str(path), b"first")
    with pytest.raises(Conflict):
        file.create(str(path), b"second")
    assert path.read_bytes() == b"first"
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(DiskTrouble):
        file.create(str(tmp_path / "missing" / "a"), b"")
