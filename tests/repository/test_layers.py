"""Architecture tests: import layers, and which files may open files, sockets or the environment.

`python tests/repository/test_layers.py --write` writes the table of layers in docs/architecture.md.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "holdfast"
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "architecture.svg"
BEGIN = "<!-- layers: written by `make docs` from pyproject.toml and the docstrings -->\n"
END = "<!-- /layers -->\n"

FILE_ACCESS = {  # every module that opens, creates, renames or deletes files, and why
    "project/repository_id.py": "the id of a repository, in a file inside its git folder",
    "base/failure_log.py": "the log of what failed in hooks",
    "store/atomic.py": "the truth: the one place where memory files are opened and written",
    "store/files.py": "the truth: notes, trash, archive, index.md",
    "store/tree.py": "the truth: the agent's own files",
    "store/transcripts.py": "the truth: transcripts of sessions, appended",
    "home.py": "the home itself and its locks",
    "sqlite.py": "SQLite files of the home; the .sql beside a module",
    "postgres/sql.py": "the .sql beside a module",
    "postgres/migrations.py": "reads the migrations that come with it",
    "ledger/audit_chain.py": "where the audit ended, in a file beside the ledger",
    "ledger/idempotency.py": "the signs of processes, among the locks",
    "ledger/secret_file.py": "secrets of the home, each in a file beside the ledger",
    "ledger/revocations.py": "space for revocations on a full disk, in a file beside the ledger",
    "server/audit_sinks.py": "appends the audit to the file that the operator names",
    "access/role_file.py": "reads roles: those that come with it, and the operator's own",
    "access/operator_token.py": "the first operator's token, in the file that the operator names or in the home",
    "server/running.py": "the address of the running server, in the home's run folder",
    "server/gauges.py": "/proc, for the memory of this process",
    "config.py": "reads config.toml",
    "file_edit/file.py": "files of other programs that an install or a render edits, and the records of the edits",
    "clients/__init__.py": "reads which clients there are, and the rubric",
    "clients/parts.py": "reads the skills and plugins that come with it",
    "verbs/scaffold/__init__.py": "reads the templates that come with it",
    "verbs/settings.py": "writes config.toml",
    "mcp/early_handshake.py": "the client's end of stdin and stdout, and /dev/null in its place",
    "mcp/stdio.py": "the client's end of stdout",
    "mcp/token.py": "the token for HTTP, in the home's run folder",
    "project/git.py": "reads git's own files",
    "project/marker.py": "a project's marker, outside the home",
    "verbs/purge/verify_files.py": "reads every byte of the home back after a purge, and looks for git-filter-repo",
    "ledger/sqlite.py": "the flags in the home that something was purged or rejected",
    "embedders/cache.py": "prepared weights of models, in the user's cache",
    "embedders/multilingual.py": "reads the prepared table of tokens row by row",
    "embedders/install.py": "puts the file of a model that a person asked for into the folder of models",
    "embedders/weights.py": "reads the weights of a model, to check their digest",
    "formats/importers/json_source.py": "reads the transcript a person names",
    "api/resident.py": "the socket in the home, and the folder it stands in",
    "cli/commands/import_notes.py": "reads the file a person names",
    "cli/commands/edit.py": "the temporary file a person edits",
    "cli/commands/export.py": "writes the file a person names",
    "cli/commands/ledger.py": "reads and writes exports of the audit, in files a person names",
    "safety/secrets/rules.py": "reads its own table of rules",
    "cli/commands/demo.py": "shows a person a note as `cat` would",
    "cli/remote.py": "reads the file with a token that a person names",
    "cli/runner.py": "/dev/null, when a caller closed a stream",
    "cli/docs_pages.py": "writes the computed pages of docs/",
    "cli/commands/prove.py": "the folder a person names for what a proof saw",
    "holdfast_prove/sandbox.py": "the private home of a proof",
    "holdfast_prove/run.py": "the output of a program during a proof; /proc, to end all its processes",
    "holdfast_prove/recorder.py": "the input and output of Holdfast during a proof",
}
OS_CALLS = {
    "chmod", "chown", "fchmod", "link", "makedirs", "mkdir", "mkfifo", "open", "remove", "removedirs", "rename", "renames",
    "replace", "rmdir", "symlink", "truncate", "unlink", "write",
}  # fmt: skip
NETWORK_MODULES = {
    "socket", "_socket", "ssl", "http", "urllib", "ftplib", "smtplib", "socketserver", "xmlrpc", "requests", "httpx", "aiohttp",
    "urllib3", "uvicorn",
}  # fmt: skip
NETWORK_ACCESS = {  # every module that imports a network module, and why
    "api/resident.py": "a unix socket in the home",
    "mcp/http.py": "listens on loopback, when a person asks for it",
    "server/serve.py": "listens where a person asks for it, on loopback unless they say otherwise",
    "server/acceptor.py": "accepts the connections of the socket that serve.py listens on; opens none",
    "server/audit_sinks.py": "sends the audit to the syslog that the operator names",
    "api/remote/client.py": "spells a query; http_client.py connects",
    "base/http_client.py": "the gateway, GitHub, the webhook and the embedding endpoint that a person named, and nothing else",
    "holdfast_prove/model_server.py": "a model server on loopback, which opens no connection",
}
CATCHES_ALL_ERRORS = {  # besides the interfaces
    "search/vectorize.py": "the outermost frame of its thread: the error would be lost otherwise",
    "api/resident.py": "the outermost frame of its thread: the caller gets the error",
    "verbs/batching.py": "the end of its thread: the callers get the error",
    "embedders/onnx.py": "the package that reads tokenizers raises plain Exception",
}
CODE_EXECUTION = {"eval", "exec", "compile"}
OBJECT_DESERIALIZERS = {"pickle", "marshal", "shelve", "dill"}
SQL = re.compile(
    r"\b(SELECT\s.*\bFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|(CREATE|DROP|ALTER)\s+(TABLE|VIEW|INDEX|VIRTUAL))\b",
    re.S,
)
UNNAMED_STATEMENTS = {  # statements that cannot be named ones with parameters
    "postgres/migrations.py": "whole files of numbered SQL that come with it",
    "postgres/database.py": "VACUUM takes no values: the driver quotes the names of our own tables",
}
SQL_IN_CODE = {"sqlite.py": "checks whether an unknown database has any table"}


def modules():
    """Return every module of the package, and of `holdfast_prove`, by its path; benchmarks measure the bare machine."""
    inside = {path.relative_to(SRC).as_posix(): path for path in sorted(SRC.rglob("*.py"))}
    prove = {path.relative_to(SRC.parent).as_posix(): path for path in sorted((SRC.parent / "holdfast_prove").rglob("*.py"))}
    return {**inside, **prove}


@functools.cache
def trees():
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in modules().items()}


def calls(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def imports(tree):
    """Return the modules that a file imports anywhere."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def is_attribute(node, module, names):
    """Return whether the node is `module.name` with one of the names."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return False
    return node.value.id == module and node.attr in names


# --- layers -----------------------------------------------------------------------------------------------------------


def contracts():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


def layers():
    """Return the packages of each layer, the highest first, as import-linter enforces them."""
    found = next(contract["layers"] for contract in contracts() if contract["type"] == "layers")
    return [[name.strip("() ") for name in re.split(r"[|:]", layer)] for layer in found if layer != "__main__"]


def purpose(package):
    """Return the first sentence of a package's docstring."""
    path = SRC / f"{package}.py" if (SRC / f"{package}.py").exists() else SRC / package / "__init__.py"
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert text, f"{package} has no docstring"
    first = text.split("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=\.) (?=[A-Z])", first)[0].rstrip(".").replace("|", "/")


def table():
    """Return the layers as docs/architecture.md shows them."""
    lines = ["| layer | package | purpose |", "|---|---|---|"]
    for number, packages in zip(range(len(layers()) - 1, -1, -1), layers(), strict=True):
        lines += [f"| {number} | `{package}` | {purpose(package)} |" for package in packages]
    return "\n".join(lines) + "\n"


def page_with_table(text):
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    assert rest and after, "docs/architecture.md has no marks around its table"
    return before + BEGIN + table() + END + after


@pytest.mark.battery
def test_imports_go_down_only():
    lint = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[done.stdout.find("Broken contracts") :] + done.stderr


def test_the_layers_name_every_package():
    named = {package for packages in layers() for package in packages}
    existing = {path.stem for path in SRC.glob("*.py")} | {path.parent.name for path in SRC.glob("*/__init__.py")}
    assert named == existing - {"__init__", "__main__"}


def test_the_architecture_page_shows_the_layers_that_are_enforced():
    written = PAGE.read_text(encoding="utf-8")
    assert written == page_with_table(written), "run: make docs"


def test_the_drawing_shows_every_package_and_no_other():
    drawn = set(re.findall(r'class="package"[^>]*>([a-z_]+)<', PICTURE.read_text(encoding="utf-8")))
    assert drawn == {package for packages in layers() for package in packages}


# --- access to files, network and databases ---------------------------------------------------------------------------


def test_only_config_reads_the_environment():
    readers = set()
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if is_attribute(node, "os", {"environ", "environb", "getenv", "getenvb", "putenv"}):
                readers.add(name)
            if isinstance(node, ast.ImportFrom) and node.module == "os" and any("env" in one.name for one in node.names):
                readers.add(name)
    assert readers == {"config.py"}


def file_calls(tree):
    """Return the calls that open, create, rename or delete files."""
    found = set()
    for node in calls(tree):
        if isinstance(node.func, ast.Name) and node.func.id == "open":
            found.add("open")
        elif is_attribute(node.func, "os", OS_CALLS):
            found.add(f"os.{node.func.attr}")
        elif isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in ("shutil", "pathlib"):
            found.add(ast.unparse(node.func))
    return found


@pytest.mark.promise("promise-5")
def test_only_listed_modules_access_files_and_each_has_a_reason():
    found = {name: sorted(used) for name, tree in trees().items() if (used := file_calls(tree))}
    assert {name: used for name, used in found.items() if name not in FILE_ACCESS} == {}
    assert set(FILE_ACCESS) - set(found) == set(), "no longer needed in the list"


def test_only_the_store_renames_or_removes_memory_files():
    changing = {"os.rename", "os.replace", "os.unlink", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate"}
    elsewhere = {name for name, tree in trees().items() if file_calls(tree) & changing and not name.startswith("store/")}
    assert elsewhere == {
        "sqlite.py",  # databases
        "project/repository_id.py",  # holdfast-id in a git folder
        "embedders/cache.py",  # the user's cache
        "embedders/install.py",  # the folder of a model
        "project/marker.py",  # .holdfast/project.json in a person's folder
        "api/resident.py",  # its own socket
        "base/failure_log.py",  # its own log, when it is full
        "ledger/audit_chain.py",  # its own line, when it is rewritten
        "ledger/idempotency.py",  # the file of a process that has ended
        "ledger/secret_file.py",  # a secret of the home, when it is created
        "ledger/revocations.py",  # its own file, when it is allocated
        "file_edit/file.py",  # the user's files that an install or a render edits
        "server/running.py",  # the address of the running server
        "access/operator_token.py",  # the file with the first operator's token
        "verbs/settings.py",  # config.toml
        "cli/commands/edit.py",  # the temporary file of an editor
        "cli/commands/export.py",  # the file that an export is written to
    }


def test_only_interfaces_catch_all_errors_and_base_exceptions_are_raised_again():
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ExceptHandler):
                continue
            caught = {one.id for one in ast.walk(node.type) if isinstance(one, ast.Name)} if node.type else {"everything"}
            if caught & {"Exception", "everything"}:
                assert name.startswith(("cli/", "mcp/", "server/", "hooks.py")) or name in CATCHES_ALL_ERRORS, (
                    f"{name}:{node.lineno}"
                )
            if "BaseException" in caught:
                assert isinstance(node.body[-1], ast.Raise), f"{name}:{node.lineno}"


def docstrings(tree):
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, owners)]
    return {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}


@pytest.mark.promise("promise-5")
def test_sql_is_in_sql_files_only():
    for name, tree in trees().items():
        words = docstrings(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in words:
                assert not SQL.search(node.value) or name in SQL_IN_CODE, f"{name}:{node.lineno}: {node.value[:60]!r}"


def is_fixed(node):
    """Return whether a statement is not composed: a literal, a constant, or a choice of these."""
    if isinstance(node, ast.IfExp):
        return is_fixed(node.body) and is_fixed(node.orelse)
    if isinstance(node, ast.JoinedStr):  # PRAGMA takes no parameters; numbers only
        first = node.values[0]
        numbers = all(
            isinstance(one, ast.Constant) or (one.format_spec and ast.unparse(one.format_spec) == "f'd'") for one in node.values
        )
        return isinstance(first, ast.Constant) and str(first.value).startswith("PRAGMA ") and numbers
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name | ast.Attribute) and ast.unparse(node.value) in ("SQL", "self._sql")
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id.isupper())


@pytest.mark.promise("promise-5")
def test_no_statement_is_built_from_strings():
    run = [
        (name, node)
        for name, tree in trees().items()
        for node in calls(tree)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("execute", "executemany")
    ]
    assert run
    assert [
        f"{name}:{node.lineno}" for name, node in run if not is_fixed(node.args[0]) and name not in UNNAMED_STATEMENTS
    ] == []


@pytest.mark.promise("promise-5")
def test_no_text_is_executed_as_code_or_deserialized_into_objects():
    for name, tree in trees().items():
        assert not {one.split(".")[0] for one in imports(tree)} & OBJECT_DESERIALIZERS, name
        for node in calls(tree):
            assert not (isinstance(node.func, ast.Name) and node.func.id in CODE_EXECUTION), f"{name}:{node.lineno}"
            assert not is_attribute(node.func, "os", {"system", "popen"}), f"{name}:{node.lineno}"
            assert not any(key.arg == "shell" for key in node.keywords), f"{name}:{node.lineno}"
            if is_attribute(node.func, "yaml", {"load", "load_all", "full_load", "unsafe_load"}):
                assert "Loader=yaml.BaseLoader" in ast.unparse(node), f"{name}:{node.lineno}"


@pytest.mark.promise("promise-6")
def test_only_listed_modules_import_network_modules_and_each_has_a_reason():
    used = {
        name
        for name, tree in trees().items()
        if {one.split(".")[0] for one in imports(tree) - {"urllib.parse"}} & NETWORK_MODULES  # urllib.parse opens no connection
    }
    assert used == set(NETWORK_ACCESS)


def socket_families(tree):
    """Return the names of the socket families in a file."""
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr.startswith("AF_")}


@pytest.mark.promise("promise-6")
def test_the_resident_process_listens_on_a_unix_socket_only():
    used = {name: found for name, tree in trees().items() if (found := socket_families(tree))}
    assert used == {"api/resident.py": {"AF_UNIX"}, "server/audit_sinks.py": {"AF_UNIX"}}  # the second one connects only


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python tests/repository/test_layers.py --write")
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
