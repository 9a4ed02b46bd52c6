"""The HTTP client, against servers that send exactly the bytes that a test gives."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time

import pytest

from holdfast.base.http_client import HttpClient, JsonClient, RequestFailed, ResponseTooLarge, Timeout, parse_url
from holdfast.errors import Unreached

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
TIMEOUT = Timeout(connect=10, read=10)


class Server:
    """Answers each request with the next of `answers`, the last one again and again; keeps what was sent on each connection."""

    def __init__(self, *answers, tls=None):
        self.answers, self.connections, self._tls = list(answers), [], tls
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(30)

    @property
    def requests(self):
        return [one for connection in self.connections for one in connection]

    def _accept(self):
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            self.connections.append([])
            threading.Thread(target=self._serve, args=(client, self.connections[-1]), daemon=True).start()

    def _serve(self, client, requests):
        try:
            with self._tls.wrap_socket(client, server_side=True) if self._tls else client as inside:
                while request := _request(inside):
                    requests.append(request)
                    answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                    if answer(inside) if callable(answer) else inside.sendall(answer):
                        return
        except OSError:
            pass


def _request(client):
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := client.recv(65536)):
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += client.recv(65536)
    return head + b"\r\n\r\n" + body


def hang_up(client):
    return True


def cut_off(rest):
    return lambda client: client.sendall(b"HTTP/1.1 200 OK\r\n" + rest) or True


def drip(client):
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
    while True:
        client.sendall(b"x")
        time.sleep(0.02)


def make_client(server, timeout=TIMEOUT, **given):
    return HttpClient(parse_url(server.url, "the test"), timeout, **given)


def test_connections_are_reused_and_a_closed_client_opens_another():
    with Server(OK) as server, make_client(server) as client:
        for _ in range(3):
            assert client.request("GET", "/").json() == {}
        assert len(server.connections) == 1
        client.close()
        assert client.request("GET", "/").status == 200
        assert len(server.connections) == 2


def test_an_idle_connection_that_the_server_closed_is_replaced_before_anything_is_sent():
    closed = threading.Event()

    def close(client):
        client.sendall(OK)
        client.shutdown(socket.SHUT_RDWR)
        closed.set()
        return True

    with Server(close, OK) as server, make_client(server) as client:
        client.request("POST", "/", b"one")
        assert closed.wait(30)
        client.request("POST", "/", b"two")
        assert [request.rpartition(b"\r\n\r\n")[2] for request in server.requests] == [b"one", b"two"]


def test_a_response_that_is_not_read_to_its_end_closes_its_connection():
    with Server(OK) as server, make_client(server) as client:
        with client.stream("GET", "/"):
            pass
        assert client.request("GET", "/").status == 200
        assert len(server.connections) == 2


def test_lines_arrive_one_by_one():
    go_on = threading.Event()

    def slowly(client):
        client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\none\ntw\r\n")
        go_on.wait(30)
        client.sendall(b"6\r\no\nlast\r\n0\r\n\r\n")

    with Server(slowly) as server, make_client(server) as client, client.stream("GET", "/") as response:
        lines = response.lines()
        assert next(lines) == b"one\n"
        go_on.set()
        assert list(lines) == [b"two\n", b"last"]


def test_a_forked_child_opens_a_connection_of_its_own():
    code = (
        "import os, sys; from holdfast.base.http_client import *\n"
        "client = HttpClient(parse_url(sys.argv[1], 'x'), Timeout(10, 10))\n"
        "client.request('GET', '/parent')\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(0 if client.request('GET', '/child').status == 200 else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "client.request('GET', '/parent')\n"
    )
    with Server(OK) as server:
        subprocess.run([sys.executable, "-c", code, server.url], check=True, timeout=60)
        paths = [[request.split(b" ")[1] for request in connection] for connection in server.connections]
        assert paths == [[b"/parent", b"/parent"], [b"/child"]]


def test_a_redirect_is_returned_and_not_followed():
    with Server(OK) as other:
        moved = f"HTTP/1.1 302 Found\r\nLocation: {other.url}/\r\nContent-Length: 0\r\n\r\n".encode()
        with Server(moved) as server:
            response = JsonClient(server.url, "the test", "secret").request("GET", "/")
            assert response.status == 302 and b"Bearer secret" in server.requests[0]
        assert other.connections == []


@pytest.mark.parametrize("head", [b"Content-Length: 2000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n7d0\r\n"])
def test_a_response_that_is_too_large_is_refused(head):
    with Server(b"HTTP/1.1 200 OK\r\n" + head + b"x" * 2000) as server, make_client(server, max_bytes=1000) as client:
        with pytest.raises(ResponseTooLarge) as caught:
            client.request("GET", "/")
        assert caught.value.sent and caught.value.reason == "the response is too large"


def test_a_server_that_sends_slowly_is_given_up_at_the_deadline():
    with Server(drip) as server, make_client(server, Timeout(connect=10, read=10, total=0.2)) as client:
        with pytest.raises(RequestFailed) as caught:
            client.request("GET", "/")
        assert caught.value.reason == "TimeoutError"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (hang_up, "RemoteDisconnected"),
        (cut_off(b"Content-Length: 9\r\n\r\n{}"), "IncompleteRead"),
        (cut_off(b"Transfer-Encoding: chunked\r\n\r\n9\r\n{}"), "IncompleteRead"),
        (b"nonsense\r\n\r\n", "BadStatusLine"),
    ],
)  # fmt: skip
def test_a_request_without_a_complete_answer_may_have_been_processed(answer, reason):
    with Server(answer) as server, pytest.raises(Unreached, match=f"the test did not answer: {reason}") as caught:
        JsonClient(server.url, "the test").request("POST", "/", {})
    assert caught.value.sent and len(server.requests) == 1


def test_a_request_that_reached_nobody_was_not_sent():
    with Server(OK) as server:
        pass
    with pytest.raises(Unreached, match="the test did not answer: Connection refused") as caught:
        JsonClient(server.url, "the test").request("POST", "/", {})
    assert not caught.value.sent
    with pytest.raises(Unreached) as caught:
        JsonClient(f"http://{'a' * 70}.example", "the test").request("POST", "/", {})
    assert not caught.value.sent


def test_a_body_is_not_decompressed():
    with Server(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}") as server:
        assert JsonClient(server.url, "the test").request("GET", "").json() == {}
        assert server.requests[0].startswith(b"GET / HTTP/1.1\r\n")


def test_a_failed_handshake_is_a_failure_to_connect():
    with Server(OK) as server:
        with pytest.raises(RequestFailed) as caught:
            HttpClient(parse_url(f"https://127.0.0.1:{server.port}", "the test"), TIMEOUT).request("POST", "/", b"{}")
        assert not caught.value.sent and server.requests == []


@pytest.fixture
def certificate(tmp_path):
    """A self-signed certificate for 127.0.0.1, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


def test_a_certificate_is_checked_against_the_trusted_roots(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    code = (
        "import sys; from holdfast.base.http_client import *\n"
        "try: print(HttpClient(parse_url(sys.argv[1], 'x'), Timeout(10, 10)).request('GET', '/').status)\n"
        "except RequestFailed as error: print(error.sent, error.certificate_problem)\n"
    )
    with Server(OK, tls=context) as server:
        for roots, said in ((str(certificate[0]), "200"), ("", "False self-signed certificate")):
            env = {**os.environ, "SSL_CERT_FILE": roots} if roots else os.environ
            done = subprocess.run([sys.executable, "-c", code, server.url], capture_output=True, text=True, env=env, timeout=60)
            assert done.stdout.strip() == said, done.stderr
        assert len(server.requests) == 1
