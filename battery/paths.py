"""Part `paths`: hostile paths, keys, names and ids through every interface; no file outside the home may be opened."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from battery import access_trace, hostile_paths, strace
from battery.child_programs import open_memory
from battery.mcp_client import McpServer
from battery.report import Report, repeat_command
from battery.watched_folder import CANARY, WatchedFolder
from battery.workspace import Workspace

INTERFACES = ("library", "cli", "mcp", "hook", "imports")
_TIMEOUT = 1500  # seconds for one interface
_READS_NAMED_FILES = ("imports", "hook")  # interfaces that may open a file that is named to be read
_CHILD = Path(__file__).with_name("paths_child.py")
_FILES, _NOTES = "shelf/projects/demo/files", "shelf/projects/demo/notes"
McpRequest = tuple[str, dict[str, Any]]  # method and params
Calls = list[tuple[str, int, str]]  # verb, number of the path, what is wrong


@dataclass(frozen=True)
class Result:
    """One interface: the paths, the result of each call, and what was touched outside the home."""

    paths: list[str]
    calls: Calls
    opens: int  # files that the child opened, as far as it was traced
    outside: list[str]


def run(workspace: Workspace, report: Report, share: float, seed: int) -> None:
    """Test all interfaces; a share below 1 takes a sample of the paths."""
    reason = strace.unavailable_reason()
    if reason:
        report.add_not_tried("paths: opens, seen from outside with strace", reason)
    repeat = repeat_command("paths", share, seed)
    for interface in INTERFACES:
        with report.start_row(f"paths: {interface}") as row:
            result = run_interface(workspace, interface, share, seed, traced=not reason)
            for verb, number, problem in result.calls:
                problems = [f"{verb} {result.paths[number]!r:.120}: {problem}"] if problem else []
                row.add(problems, repeat, len(result.calls))
            for problem in result.outside:
                row.add([problem], repeat)
            count = len([problem for problem in result.outside if "outside" in problem])
            watched = f" of {result.opens:,} watched" if result.opens else ", not watched"
            row.set_figure(f"{len(result.paths)} paths, {count} opens outside{watched}")


def run_interface(workspace: Workspace, interface: str, share: float, seed: int, *, traced: bool) -> Result:
    """Pass the paths to every verb of one interface."""
    with _create_home(workspace) as (home, outside):
        paths = _choose_paths(outside, home, share, seed)
        if interface == "imports":  # a folder may be imported, and some of these are most of the machine
            paths = [path for path in paths if _is_file_or_missing(home, path)]
        log = home.parent / "trace"
        call = _call_mcp if interface == "mcp" else _run_child
        calls = call(workspace, interface, home, paths, log if traced else None)
        problems = [] if interface in _READS_NAMED_FILES else outside.find_changes()
        problems += _find_hook_failures(home) if interface == "hook" else []
        opens = access_trace.count_opens(log) if traced else 0
        if traced:
            problems += access_trace.find_violations(log, _allowed_paths(workspace, interface, home, outside))
            problems += [] if opens else ["nothing was watched: not one file was opened"]
        return Result(paths, calls, opens, problems)


@contextmanager
def _create_home(workspace: Workspace) -> Iterator[tuple[Path, WatchedFolder]]:
    """Create a home with a few notes and with links and special files that lead to a watched folder."""
    home = Path(os.path.realpath(workspace.new_home("paths")))
    with open_memory(home) as memory:
        memory.store("zqkeep a note to keep", key="keep")
        memory.store("zqkeep for everybody", key="keep", scope="global")
        memory.files.create("folder/x.md", "zq in a folder\n")
    with WatchedFolder(home.parent) as outside:
        hostile_paths.create_special_files(str(home / _FILES), str(home / _NOTES), str(outside.root))
        outside.find_changes()  # drop the event of the hard link just created
        yield home, outside
    workspace.remove_home(home)


def _choose_paths(outside: WatchedFolder, home: Path, share: float, seed: int) -> list[str]:
    """Return all hostile paths and random combinations of them, or a sample of these."""
    climb = os.path.relpath(outside.secret, home / _FILES)
    paths = hostile_paths.list_paths(str(outside.secret), climb)
    rng = random.Random(seed)
    short = [path for path in paths if len(path) < 200]
    paths += ["".join(rng.choice(short) for _ in range(2)) for _ in range(40)]
    paths += ["/".join(rng.choice(short) for _ in range(3)) for _ in range(40)]
    paths = list(dict.fromkeys(paths))
    return paths if share >= 1 else rng.sample(paths, max(12, round(len(paths) * share / 2)))


def _is_file_or_missing(home: Path, path: str) -> bool:
    try:
        return path != "-" and ((home / path).is_file() or not (home / path).exists())
    except (OSError, ValueError):
        return True


def _allowed_paths(
    workspace: Workspace, interface: str, home: Path, outside: WatchedFolder
) -> access_trace.AllowedPaths:  # fmt: skip
    reads = [str(workspace.package_root), str(_CHILD.parent)]
    if interface in _READS_NAMED_FILES:
        reads += [str(outside.root), "/etc/passwd", "/etc/shadow", "/dev", "/proc", "/sys"]
    return access_trace.AllowedPaths(str(home), tuple(reads))


def _environment(workspace: Workspace, home: Path) -> dict[str, str]:
    return {**workspace.full_environment(), "HOME": str(home), "HOLDFAST_HOME": str(home)}


def _run_child(workspace: Workspace, interface: str, home: Path, paths: list[str], log: Path | None) -> Calls:
    """Make all calls of an interface in one child."""
    child = [sys.executable, str(_CHILD), interface, str(home)]
    done = subprocess.run(
        access_trace.trace_command(log, child) if log else child, input=json.dumps(paths), capture_output=True, text=True,
        check=False, env=_environment(workspace, home), cwd=home, timeout=_TIMEOUT,
    )  # fmt: skip
    calls = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    if not calls or calls[-1][0] != "done":
        return [*calls, ("the end", 0, f"it did not finish: {done.stderr[-800:]}")]
    return calls[:-1]


def _call_mcp(workspace: Workspace, interface: str, home: Path, paths: list[str], log: Path | None) -> Calls:
    """Make all calls to an MCP server."""
    arguments = ("--home", str(home), "--project", "demo")
    with McpServer(*arguments, environment=_environment(workspace, home), cwd=home, log=log) as server:
        return [
            (verb, number, _check_response(server, make_request(path)))
            for verb, make_request in _mcp_requests().items()
            for number, path in enumerate(paths)
        ]


def _check_response(server: McpServer, request: McpRequest) -> str:
    """Send a request and return what is wrong with the response: none, a crash, or one that has text from outside."""
    response = server.request(*request)
    if "result" not in response and "error" not in response:
        return f"no answer: {str(response)[:200]}"
    text = json.dumps(response, ensure_ascii=False)
    if "Run it again with --debug" in text or "Traceback" in text or "Internal error" in text:
        return text[:400]
    return "it shows text from outside" if CANARY in text and CANARY not in json.dumps(request) else ""


def _mcp_requests() -> dict[str, Callable[[str], McpRequest]]:
    """Return the requests of each tool that takes a path, a key or an id, and of the resources; "{}" is the path."""

    def tool(name: str, **given: Any) -> Callable[[str], McpRequest]:
        def make_request(path: str) -> McpRequest:
            arguments = {field: path if value == "{}" else value for field, value in given.items()}
            return "tools/call", {"name": name, "arguments": arguments}

        return make_request

    return {
        "view": tool("memory_file", command="view", path="{}"),
        "get by path": tool("memory_get", path="{}"),
        "get by key": tool("memory_get", key="{}"),
        "versions": tool("memory_history", key="{}"),
        "turns": tool("memory_history", turn="{}"),
        "recall": tool("memory_recall", query="{}", mode="keyword"),
        "search": tool("memory_search", query="{}"),
        "in a project": tool("memory_recall", query="zq", mode="keyword", project="{}"),
        "in a folder": tool("memory_recall", query="zq", mode="keyword", folder="{}"),
        "resource": lambda path: ("resources/read", {"uri": f"holdfast://notes/project/{path}"}),
        "resource, whole": lambda path: ("resources/read", {"uri": path}),
        "fact": tool("memory_fact", subject="{}", label="is", value="zq"),
        "store": tool("memory_store", text="zq a text", key="{}"),
        "create": tool("memory_file", command="create", path="{}", file_text="zq text\n"),
        "str_replace": tool("memory_file", command="str_replace", path="{}", old_str="zq", new_str="qz"),
        "insert": tool("memory_file", command="insert", path="{}", insert_line=0, insert_text="zq"),
        "rename to": tool("memory_file", command="rename", old_path="folder/x.md", new_path="{}"),
        "rename from": tool("memory_file", command="rename", old_path="{}", new_path="moved.md"),
        "forget": tool("memory_forget", key="{}"),
        "delete": tool("memory_file", command="delete", path="{}"),
    }


def _find_hook_failures(home: Path) -> list[str]:
    """Return the failures that hooks logged and that no known problem explains."""
    from holdfast.base import failure_log

    return [f"hook: {one.event}: {one.message}" for one in failure_log.read(str(home)) if "report this" in one.fix]
