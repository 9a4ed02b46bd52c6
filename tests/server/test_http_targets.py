"""Request targets on a real connection: encoded paths and absolute-form targets, with both of uvicorn's parsers."""

from __future__ import annotations

import json
import re
import socket

import pytest
from http_gateway import Client
from test_http_serve import holdfast_without, started

PARSERS = {"httptools": None, "h11": holdfast_without("httptools")}  # `holdfast serve` with and without the faster parser
REFUSED_PATHS = [
    "/gateway%2fmemory", "/gateway%2Fmemory", "/gateway%5cmemory", "/%67ateway/memory", "/gateway/%6Demory",
    "/gate%77ay/memory",
    "/gateway/memory%00", "/gateway/memory%0d%0aX: y", "/gateway/%2e%2e/gateway/memory", "/v1/notes/agent/%2e%2e%2fk",
    "/gateway/memory%", "/gateway/memory%2", "/gateway/memory%zz", "/gateway/memory%ff", "/gateway/memory%c0%af", "/%",
    "/gateway/memory%7f", "/gateway/memory%2e",
]  # fmt: skip
UNKNOWN_PATHS = [
    "//gateway/memory", "/gateway//memory", "/gateway/./memory", "/gateway/../gateway/memory", "/gateway/memory/",
    "/gateway/memory%20", "/gateway/memory;x=y", "/gateway%252fmemory", "/GATEWAY/memory", "/gateway/memory%c3%a9",
]  # fmt: skip
OTHER_HOSTS = [
    "http://other.host", "https://other.host", "HTTP://other.host:80", "http://127.0.0.1.other.host", "http://other.host:8710",
    "http://localhost@other.host", "http://user@localhost", "http://localhost:x", "http://", "http://[::2]",
]  # fmt: skip


@pytest.fixture(scope="module", params=list(PARSERS))
def server(request, tmp_path_factory):
    """A running `holdfast serve` with one note, and the headers of the operator."""
    folder = tmp_path_factory.mktemp(request.param)
    with started(folder / "home", folder, "--json", command=PARSERS[request.param]) as one:
        client = Client(one.port, one.token)
        assert client.post("/gateway/memory", {"key": "k", "value": "Harbour words."}).status == 200
        one.token_header = f"Authorization: Bearer {one.token}\r\n"
        yield one


def ask(server, target, host="localhost", method="GET"):
    """Send a request with this target; return the status, and the code of the problem."""
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        head = f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{server.token_header}Connection: close\r\n\r\n"
        connection.sendall(head.encode("latin-1"))
        said = b""
        while piece := connection.recv(65536):
            said += piece
    head, _, body = said.partition(b"\r\n\r\n")
    status = int(re.match(rb"HTTP/1.1 (\d+)", head)[1])
    is_problem = b"application/problem+json" in head
    return status, json.loads(body)["code"] if is_problem else body.decode()


@pytest.mark.promise("promise-6")
def test_a_path_that_is_encoded_to_pass_for_another_is_refused(server):
    for path in REFUSED_PATHS:
        status, said = ask(server, path)
        assert status == 400 and "Harbour" not in said and said in ("bad_target", "Invalid HTTP request received."), (
            path,
            said,
        )
    for path in UNKNOWN_PATHS:
        assert ask(server, path) == (404, "no_route"), path
    assert "Harbour" in ask(server, "/gateway/memory")[1]
    assert ask(server, "/v1/notes/agent/k%20%C3%A9")[0] == 422  # encoded as it must be: only the key is wrong


@pytest.mark.promise("promise-6")
def test_a_target_with_another_host_is_refused_and_one_with_ours_is_answered(server):
    for host in OTHER_HOSTS:
        status, said = ask(server, f"{host}/gateway/memory")
        assert (status, said) in ((421, "wrong_host"), (400, "Invalid HTTP request received.")), (host, said)
    assert ask(server, "http://other.host/healthz") == (421, "wrong_host")
    assert ask(server, "http://other.host/gateway/memory", host="other.host") == (421, "wrong_host")
    assert ask(server, "http://localhost/gateway/memory", host="other.host") == (421, "wrong_host")
    for host in (f"http://localhost:{server.port}", "http://127.0.0.1", "HTTP://LOCALHOST"):
        status, said = ask(server, f"{host}/gateway/memory?key=k")
        assert status == 200 and "Harbour" in said, host
    assert ask(server, "http://localhost/gateway%2fmemory") == (400, "bad_target")
    for target in ("gateway/memory", "ftp://localhost/gateway/memory", "*", "localhost:80"):
        assert ask(server, target)[0] == 400, target
    assert ask(server, "localhost:80", method="CONNECT")[0] in (400, 404, 405)
