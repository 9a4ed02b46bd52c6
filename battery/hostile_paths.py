"""Hostile paths: all known ways to name a file outside of a folder, and links and special files inside of it."""

from __future__ import annotations

import os
from urllib.parse import quote

MIN_PATHS = 500
_MAX_STEPS_UP = 8  # these lead out of any tree
_RESERVED = (
    "CON", "PRN", "AUX", "NUL", "COM1", "COM9", "LPT1", "LPT9", "CONIN$", "CONOUT$", "con", "nul.txt", "aux.md",
    "COM¹", "desktop.ini", "Thumbs.db", "con.md.", "NUL:", "file.md:stream", "file.md::$DATA", "$Mft",
)  # fmt: skip
_DOTS = ("․", "‥", "．．", "。。", "｡｡", "..\u200b", ".\u2060.", "\u202e..", "..\ufe0f", "\u2024\u2024", "…", "․․")
_SLASHES = ("\\", "∕", "⁄", "／", "＼", "⧸", "⧵", "╱", "%2f", "%5c", "%252f", "%c0%af", "%e0%80%af", "%u2215", "\\/", "//")
_SCHEMES = (
    "file://{}", "file:{}", "file://localhost{}", "FILE://{}", "http://localhost{}", "https://example.com/{}", "ftp://h{}",
    "data:text/plain,{}", "jar:file:{}!/x", "gopher://h{}", "php://filter/resource={}", "expect://id {}", "dict://h{}",
    "vscode://file{}", "javascript:{}", "holdfast://notes/project/..{}", "holdfast://notes/../global{}", "smb://h{}",
)  # fmt: skip
_ABSOLUTE = (
    "/", "//", "///", "/etc/passwd", "//etc/passwd", "/etc/shadow", "/root/.ssh/id_rsa", "/proc/self/root/etc/passwd",
    "/proc/self/cwd/../etc/passwd", "/proc/self/environ", "/proc/self/mem", "/proc/self/fd/0", "/proc/1/root/etc/passwd",
    "/dev/zero", "/dev/mem", "/dev/stdin", "/dev/fd/0", "/dev/tcp/127.0.0.1/80", "/sys/kernel/notes", "/var/run/docker.sock",
    "C:\\Windows\\system.ini", "C:/Windows/system.ini", "c:windows", "C:", "z:\\x", "\\\\server\\share\\x", "//server/share/x",
    "\\\\?\\C:\\x", "\\\\.\\PhysicalDrive0", "\\??\\C:\\x", "\\Device\\HarddiskVolume1", "~", "~root", "~/x",
    "~root/.ssh/id_rsa",
    "$HOME/x", "${HOME}/x", "%USERPROFILE%\\x", "$(id)", "`id`", "|id", ";id", "&&id", "-rf", "--help", "-", "--", "*", "?",
    "[a]",
    "{a,b}", "!x", "@x", "#x",
)  # fmt: skip
_MEMORIES_PREFIXES = (
    "/memoriesX/x.md", "/memories../x.md", "/memories..", "/memories/..", "/memories/../x.md", "/memories//x.md",
    "/Memories/x.md",
    "/MEMORIES/x.md", "/memories /x.md", "/memories\t/x.md", "memories/../../x.md", "/memories/./x.md", "/memories/.",
    "/memories/",
    "//memories/x.md", "/./memories/x.md", "/memories\\x.md", "/memories/x.md/", "/memories/x.md/.", "/memories/x.md/..",
    "/memories%00/x.md", "/memories;/../x", "/memories/\u2025/x.md", "/memoriеs/x.md", "/ｍemories/x.md",
)  # fmt: skip
_DOTTED = (
    ".", "..", "...", "....", ". .", ".. ", " ..", ".\t.", ".git/config", ".ssh/id_rsa", ".holdfast-1-ab.tmp", ".env",
    "a/.hidden/b",
    "a/.git/hooks/post-checkout", "x.md.", "x.md ", " x.md", "x.md\t", "x.", "a./b", "a /b", "~x", "a/~x", ".\u200b./x",
)  # fmt: skip
_CONTROL_CODES = (*range(32), 127, 0x85, 0xA0, 0x200B, 0x200E, 0x202E, 0x2066, 0xFEFF, 0xE0041)
_CONTROL_CHARACTERS = [f"x{chr(code)}.md" for code in _CONTROL_CODES]


def list_paths(outside: str, climb: str) -> list[str]:
    """Return every path once; `outside` is the absolute path of a forbidden file, `climb` its path relative to the folder."""
    found = [
        *_upward_paths(outside, climb), *_encoded_paths(climb), *_nul_paths(outside, climb), *_long_paths(), *_RESERVED,
        *_ambiguous_names(),
        *_MEMORIES_PREFIXES, *_DOTTED, *_CONTROL_CHARACTERS, *_ABSOLUTE, *[scheme.format(outside) for scheme in _SCHEMES],
        *_special_file_paths(),
        "", " ", "\t", "\n", ".md", "index.md", "../notes/keep.md", "../../demo/notes/keep.md", "../index.md",
        "\ud800", "x\udc80.md", "x\udcff/../y",
    ]  # fmt: skip
    return list(dict.fromkeys(found))


def _upward_paths(outside: str, climb: str) -> list[str]:
    """Return paths that lead up and out, with and without a name before, and the absolute path."""
    rest = climb.replace("../", "")
    found = [outside, f"/{outside}", f"/memories{outside}", f"/memories/{outside}", f"x{outside}", outside.swapcase(), climb]
    for steps in range(1, _MAX_STEPS_UP + 1):
        up = "../" * steps
        found += [f"{up}{rest}", f"/memories/{up}{rest}", f"a/{up}{rest}", f"a/b/../{up}{rest}", f"{up}etc/passwd",
            f"./{up}{rest}"]
        found += [up.rstrip("/"), f"{up}{rest}/", f"..//{up}{rest}", f"folder/{up}{rest}"]
    for dots in _DOTS:
        found += [f"{dots}/{rest}", "/".join([dots] * 5) + f"/{rest}", f"/memories/{dots}/{rest}"]
    for slash in _SLASHES:
        found += [climb.replace("/", slash), f"..{slash}{rest}", f"/memories{slash}..{slash}{rest}"]
    return found


def _encoded_paths(climb: str) -> list[str]:
    """Return paths with percent signs once, twice and three times, overlong UTF-8, UTF-7, HTML and JavaScript escapes."""
    dots = ("%2e", "%2E", "%252e", "%25252e", "%c0%ae", "%C0%AE", "%e0%80%ae", "%f0%80%80%ae", "%u002e", "%uff0e", "&#46;",
        "&#x2e;",
           "\\u002e", "\\x2e", "\\056", "+AC4-", "%%32%65", "0x2e", "%EF%BC%8E", "=2E")  # fmt: skip
    once = quote(climb, safe="")
    found = [once, quote(once, safe=""), quote(quote(once, safe=""), safe=""), climb.encode("utf-16-le").decode("latin-1"),
             climb.encode("utf-7").decode().replace(".", "+AC4-"), climb.encode().hex(),
                 "".join(f"%{ord(c):02x}" for c in climb)]  # fmt: skip
    for dot in dots:
        found += [climb.replace(".", dot), climb.replace("..", f"{dot}."), climb.replace("..", f".{dot}"),
            f"/memories/{dot}{dot}/x.md"]
    return found


def _nul_paths(outside: str, climb: str) -> list[str]:
    found = [f"x.md\0{climb}", f"{climb}\0.md", f"\0{outside}", f"{outside}\0", "x\0", "\0", f"x.md%00{climb}",
        f"{climb}%00.md"]
    return [*found, f"/memories\0/{climb}", f"..\0/{climb}", "x.md\\0", "x.md\\x00.md", "%00", "\0/../x"]


def _long_paths() -> list[str]:
    found = ["a" * size for size in (61, 128, 129, 255, 256, 1024, 1025, 4096, 5000, 70_000)]
    found += ["/".join(["a"] * depth) for depth in (16, 32, 33, 64, 500, 512, 3000)]
    return [*found, "é" * 128, "記" * 86, "../" * 340 + "x", "../" * 5000, "/memories/" + "b" * 300, "/memories" + "/c" * 520]


def _ambiguous_names() -> list[str]:
    """Return names that some file systems treat as equal: composed and decomposed, upper and lower case."""
    return [
        "caf\u00e9.md", "cafe\u0301.md", "\u212bngstrom.md", "\u00c5ngstrom.md", "A\u030angstrom.md", "\ufb01le.md",
        "file.md", "FILE.md",
        "File.MD", "\u0131ndex.md", "INDEX.md", "Index.md", "MEMORY.MD", "memory.md", "\u017fhared.md", "stra\u00dfe.md",
        "STRASSE.md",
        "\u1e9e.md", "\u03c3\u03c2.md", "\uac00.md", "\u1100\u1161.md", "\u2126.md", "\u03a9.md", "x\u0301\u0323.md",
        "ＫＥＥＰ.md", "ｋeep",
        "kееp", "Keep", "KEEP", "keep.md", "keep ", "keep.", "keep\u200b", "keep\u0000", "k\u00adeep",
    ]  # fmt: skip


def _special_file_paths() -> list[str]:
    """Return the paths of what `create_special_files` creates."""
    names = [*_SPECIAL_FILES, "to-folder/secret.md", "to-folder/new.md", "to-folder/../secret.md", "to-root/etc/passwd",
        "to-proc/root/etc/passwd"]
    names += ["deep/to-folder/secret.md", "loop/x.md", "pipe/x.md", "to-file/x.md", "to-folder/", "to-home/config.toml"]
    return [*names, *[f"/memories/{name}" for name in names], *[f"projects/demo/files/{name}" for name in names], *_citations()]


def _citations() -> list[str]:
    """Return paths as citations show them, with and without line numbers, also of notes that are links."""
    found = ["projects/demo/notes/planted.md", "projects/demo/notes/pipe.md", "global/notes/planted.md",
        "projects/other/notes/keep.md"]
    found += ["sessions/other/notes/keep.md", "agents/other/notes/keep.md", "projects/demo/trash/x.md",
        "projects/../global/notes/keep.md"]
    found += ["transcripts/x/y.jsonl", "projects/demo/transcripts/x/../../../../../config.toml",
        "projects/demo/notes/../../../ledger.db"]
    return [*found, *[f"{path}:1-9" for path in found], "planted", "pipe", "projects/demo/index.md:1-1", "global", "projects",
        "projects/demo"]


_SPECIAL_FILES = (
    "to-file", "to-folder", "to-root", "to-proc", "to-home", "to-nowhere", "to-new", "loop", "pipe", "socket", "device",
    "hard.md",
    "deep/to-file", "deep/to-folder",
)  # fmt: skip


def create_special_files(files: str, notes: str, outside: str) -> None:
    """Create links, pipes, a socket and a device in a folder of files, and links and a pipe in a folder of notes."""
    import socket

    os.makedirs(os.path.join(files, "deep"), exist_ok=True)
    secret, home = os.path.join(outside, "secret.md"), os.path.join(files, *[os.pardir] * 4)
    links = {"to-file": secret, "to-folder": outside, "to-root": "/", "to-proc": "/proc/self", "to-home": home, "loop": "loop"}
    links |= {"to-nowhere": "/nonexistent/x", "to-new": os.path.join(outside, "new.md")}
    links |= {"deep/to-file": secret, "deep/to-folder": outside}
    for name, target in links.items():
        os.symlink(target, os.path.join(files, name))
    for folder, name in ((files, "pipe"), (notes, "pipe.md")):
        os.mkfifo(os.path.join(folder, name))
    os.symlink(secret, os.path.join(notes, "planted.md"))
    os.symlink(os.path.join(outside, "new.md"), os.path.join(notes, "dangling.md"))
    os.link(os.path.join(outside, "hard.md"), os.path.join(files, "hard.md"))
    with socket.socket(socket.AF_UNIX) as unix_socket:
        folder_fd = os.open(files, os.O_RDONLY)
        try:
            unix_socket.bind(f"/proc/self/fd/{folder_fd}/socket")  # the path of a socket may have only 108 characters
        finally:
            os.close(folder_fd)
    try:
        os.mknod(os.path.join(files, "device"), 0o666 | 0o020000, os.makedev(1, 5))  # /dev/zero
    except OSError:
        pass  # needs root, and not every file system allows it
