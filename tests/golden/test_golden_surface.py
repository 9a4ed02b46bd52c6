"""Help, the HTTP API, the MCP server, settings and errors are word for word what the golden files say.

`tests/golden/write.py` says how the golden files are written.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import entry_points

import pytest
from http_gateway import served
from mcp_raw import Raw

import holdfast
from golden import compare


@pytest.fixture
def printed(home, capsys, monkeypatch, tmp_path):
    """Runs the program in this process and returns what it printed."""
    monkeypatch.chdir(tmp_path)
    (script,) = entry_points(group="console_scripts", name="holdfast")
    main = script.load()

    def run(*words):
        capsys.readouterr()
        code = main(["--home", str(home), *words])
        said = capsys.readouterr()
        return f"$ holdfast {' '.join(words)}\n{said.out}{said.err}[exit {code}]\n\n"

    return run


def pretty(value):
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def test_help(printed):
    overview = printed("--help", "--json").partition("\n")[2].rpartition("[exit")[0]
    commands = [command["name"] for command in json.loads(overview)["commands"]]
    families = sorted({name.partition(" ")[0] for name in commands if " " in name})
    asked = [("--help",), ("help",), (), ("--version",), *[(*name.split(), "--help") for name in [*families, *commands]]]
    compare.check("help.txt", "".join(printed(*words) for words in asked))
    compare.check("help.json", pretty(json.loads(overview)))


def test_openapi(home):
    with served(home) as gateway:
        compare.check("openapi.json", pretty(gateway.anybody.get("/openapi.json").json))


def test_mcp(home, tmp_path):
    client = Raw(home, "--project", "demo", cwd=tmp_path / "work")
    try:
        said = {"initialize": client.greet()}
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
            answer = client.ask(method)
            said[method] = answer.get("result", answer.get("error"))
        for prompt in said["prompts/list"].get("prompts", []):
            given = {argument["name"]: "harbour" for argument in prompt.get("arguments", [])}
            answer = client.ask("prompts/get", {"name": prompt["name"], "arguments": given})
            said[f"prompts/get {prompt['name']}"] = answer.get("result", answer.get("error"))
    finally:
        client.close()
    compare.check("mcp.json", pretty(said).replace(str(home), "HOME").replace(str(tmp_path), "FOLDER"))


@pytest.mark.parametrize("name", ["api.md", "cli.md", "clients.md", "errors.md", "settings.md"])
def test_computed_pages(name):
    """The comment that names the module a page is made from may change; tests elsewhere say that the page is up to date."""
    page = (compare.GOLDEN.parent.parent / "docs" / name).read_text(encoding="utf-8")
    compare.check(f"pages/{name}", re.sub(r"<!-- Made by .*? -->", "<!-- Made by ... -->", page))


def test_errors():
    kinds = [getattr(holdfast, name) for name in sorted(holdfast.__all__)]
    errors = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)]
    rows = {
        kind.__name__: {"code": kind.code, "exit": kind.exit_code, "http": kind.http_status, "base": kind.__base__.__name__}
        for kind in errors
    }
    compare.check("errors.json", pretty(rows))


def test_public_names():
    compare.check("names.json", pretty({"holdfast": sorted(holdfast.__all__), "version": holdfast.__version__}))


def test_settings(printed):
    text = printed("config", "--json").partition("\n")[2].rpartition("[exit")[0]
    compare.check("settings.json", pretty(json.loads(text)))
