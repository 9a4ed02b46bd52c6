"""Help, the HTTP API, the MCP server, settings and errors are exactly those of the golden files.

`tests/golden/write.py` says how the golden files are written.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import entry_points

import pytest
from http_gateway import run_gateway
from mcp_raw import RawMcpClient

import holdfast
from golden import compare


@pytest.fixture
def run_cli(home, capsys, monkeypatch, tmp_path):
    """Return a function that runs a command in this process and returns its output."""
    monkeypatch.chdir(tmp_path)
    (script,) = entry_points(group="console_scripts", name="holdfast")
    main = script.load()

    def run(*arguments):
        capsys.readouterr()
        code = main(["--home", str(home), *arguments])
        output = capsys.readouterr()
        return f"$ holdfast {' '.join(arguments)}\n{output.out}{output.err}[exit {code}]\n\n"

    return run


def format_json(value):
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def test_help(run_cli):
    overview = run_cli("--help", "--json").partition("\n")[2].rpartition("[exit")[0]
    commands = [command["name"] for command in json.loads(overview)["commands"]]
    families = sorted({name.partition(" ")[0] for name in commands if " " in name})
    calls = [("--help",), ("help",), (), ("--version",), *[(*name.split(), "--help") for name in [*families, *commands]]]
    compare.check("help.txt", "".join(run_cli(*arguments) for arguments in calls))
    compare.check("help.json", format_json(json.loads(overview)))


def test_openapi(home):
    with run_gateway(home) as gateway:
        compare.check("openapi.json", format_json(gateway.anonymous.get("/openapi.json").json))


def test_mcp(home, tmp_path):
    client = RawMcpClient(home, "--project", "demo", cwd=tmp_path / "work")
    try:
        results = {"initialize": client.initialize()}
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
            response = client.ask(method)
            results[method] = response.get("result", response.get("error"))
        for prompt in results["prompts/list"].get("prompts", []):
            arguments = {argument["name"]: "harbour" for argument in prompt.get("arguments", [])}
            response = client.ask("prompts/get", {"name": prompt["name"], "arguments": arguments})
            results[f"prompts/get {prompt['name']}"] = response.get("result", response.get("error"))
    finally:
        client.close()
    compare.check("mcp.json", format_json(results).replace(str(home), "HOME").replace(str(tmp_path), "FOLDER"))


@pytest.mark.parametrize("name", ["api.md", "cli.md", "clients.md", "errors.md", "settings.md"])
def test_computed_pages(name):
    """Ignore the comment with the module that makes the page; other tests check that the page is current."""
    page = (compare.GOLDEN.parent.parent / "docs" / name).read_text(encoding="utf-8")
    compare.check(f"pages/{name}", re.sub(r"<!-- Made by .*? -->", "<!-- Made by ... -->", page))


def test_errors():
    kinds = [getattr(holdfast, name) for name in sorted(holdfast.__all__)]
    errors = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)]
    rows = {
        kind.__name__: {"code": kind.code, "exit": kind.exit_code, "http": kind.http_status, "base": kind.__base__.__name__}
        for kind in errors
    }
    compare.check("errors.json", format_json(rows))


def test_public_names():
    compare.check("names.json", format_json({"holdfast": sorted(holdfast.__all__), "version": holdfast.__version__}))


def test_settings(run_cli):
    text = run_cli("config", "--json").partition("\n")[2].rpartition("[exit")[0]
    compare.check("settings.json", format_json(json.loads(text)))
