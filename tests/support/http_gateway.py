"""The gateway on a free port of loopback, in a thread of this process, and clients that speak plain HTTP to it."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from contextlib import contextmanager

import uvicorn

from holdfast import config
from holdfast.access import AccessGate
from holdfast.server.app import create_app
from holdfast.server.gateway import Gateway
from holdfast.server.logs import Logs


class Said:
    """An answer."""

    def __init__(self, response, data):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.data = data

    @property
    def json(self):
        return json.loads(self.data)

    @property
    def lines(self):
        return [json.loads(line) for line in self.data.splitlines()]

    @property
    def code(self):
        """The code of a problem, which must be one in full."""
        assert self.headers["content-type"] == "application/problem+json", (self.status, self.data)
        told = self.json
        assert told["status"] == self.status and told["type"] == f"/problems/{told['code']}"
        assert told["request_id"] == self.headers["x-request-id"] and isinstance(told["fix"], str)
        return told["code"]

    def __repr__(self):
        return f"{self.status} {self.data[:600]!r}"


class Client:
    """Asks with one token; each request on a connection of its own."""

    def __init__(self, port, token=None):
        self.port, self.token = port, token

    def __call__(self, method, path, body=None, *, raw=None, **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        if self.token and "Authorization" not in sent:
            sent["Authorization"] = f"Bearer {self.token}"
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
        if data is not None and "Content-Type" not in sent:
            sent["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=240)  # a flush of the disk may take its time
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            return Said(response, response.read())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self("GET", path, **headers)

    def post(self, path, body=None, **headers):
        return self("POST", path, {} if body is None else body, **headers)

    def raw(self, data):
        """Bytes as they are, and all that comes back."""
        with socket.create_connection(("127.0.0.1", self.port), 30) as connection:
            connection.sendall(data)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
            return answer


class Served:
    """A gateway that answers, and who may come in."""

    def __init__(self, home, port, app):
        self.home, self.port, self.app = home, port, app
        self.gate = AccessGate(config.load(home))
        self.operator = Client(port, self.gate.first_token())
        self.anybody = Client(port)

    def agent(self, name, role="code-review-engineer"):
        """A client of a new agent."""
        return Client(self.port, self.gate.add(name, role)[1])

    def role(self, name, actions, scopes=("agent",)):
        """A role of the operator's own."""
        folder = self.home / "roles"
        folder.mkdir(mode=0o700, exist_ok=True)
        said = json.dumps({"name": name, "skills": [], "allowed_actions": list(actions), "scopes": list(scopes)})
        (folder / f"{name}.yaml").write_text(said)


@contextmanager
def answering(app):
    """An app on a free port, until the block ends."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, access_log=False, lifespan="on",
                            timeout_graceful_shutdown=5)  # fmt: skip
    listening = config.bind_socket()
    listening.listen()
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(120)
        listening.close()


@contextmanager
def served(home, log=None, **given):
    """The gateway of one home."""
    app = create_app(Gateway(str(home)), logs=Logs(log), **given)
    with answering(app) as port:
        one = Served(home, port, app)
        try:
            yield one
        finally:
            one.gate.close()
