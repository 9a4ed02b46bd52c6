"""The gateway on a free port of loopback in a thread of this process, and clients that send plain HTTP to it."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from contextlib import contextmanager
from urllib.parse import unquote

import uvicorn

from holdfast import config
from holdfast.access import AccessGate
from holdfast.access.grants import KINDS, make_grants
from holdfast.server import responses
from holdfast.server.app import create_app
from holdfast.server.gateway import Gateway
from holdfast.server.logs import Logs
from holdfast.server.routes import ROUTES

EVERYTHING = {kind: ["*"] for kind in KINDS}
NO_GRANTS: dict[str, list[str]] = {}


class Response:
    """The response to one request."""

    def __init__(self, response, data):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.data = data

    @property
    def json(self):
        """Return the body as JSON."""
        return json.loads(self.data)

    @property
    def lines(self):
        """Return the body as JSON lines."""
        return [json.loads(line) for line in self.data.splitlines()]

    @property
    def code(self):
        """Return the code of an error; the body must be a complete problem document."""
        assert self.headers["content-type"] == "application/problem+json", (self.status, self.data)
        problem = self.json
        assert problem["status"] == self.status and problem["type"] == f"/problems/{problem['code']}"
        assert problem["request_id"] == self.headers["x-request-id"] and isinstance(problem["fix"], str)
        return problem["code"]

    def __repr__(self):
        return f"{self.status} {self.data[:600]!r}"


def check_documented(method, path, status):
    """Check that the OpenAPI document names this status for the route that answered."""
    for route in ROUTES:
        if route.method == method and route.path_regex.match(unquote(path.partition("?")[0])):
            assert status in responses.all_statuses(route), f"{route.name} answered {status}, which its document does not name"


class Client:
    """Send requests with one token, each on a new connection."""

    def __init__(self, port, token=None):
        self.port, self.token = port, token

    def __call__(self, method, path, body=None, *, raw=None, **headers):
        sent = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        if self.token and "Authorization" not in sent:
            sent["Authorization"] = f"Bearer {self.token}"
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
        if data is not None and "Content-Type" not in sent:
            sent["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=240)  # a flush of the disk may be slow
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            check_documented(method, path, response.status)
            return Response(response, response.read())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self("GET", path, **headers)

    def post(self, path, body=None, **headers):
        return self("POST", path, {} if body is None else body, **headers)

    def raw(self, data):
        """Send these bytes and return all bytes of the response."""
        with socket.create_connection(("127.0.0.1", self.port), 30) as connection:
            connection.sendall(data)
            received = b""
            while data := connection.recv(65536):
                received += data
            return received


class RunningGateway:
    """A running gateway and its clients."""

    def __init__(self, home, port, app):
        self.home, self.port, self.app = home, port, app
        self.gate = AccessGate(config.load(home))
        self.operator = Client(port, self.gate.first_token())
        self.anonymous = Client(port)

    def agent(self, name, role="code-review-engineer", granted=EVERYTHING):
        """Add an agent and return its client. It reaches every project, session and repository, unless the test grants less."""
        return Client(self.port, self.gate.add(name, role, granted=make_grants(granted))[1])

    def add_role(self, name, actions, scopes=("agent",), **patterns):
        """Write the file of a custom role."""
        folder = self.home / "roles"
        folder.mkdir(mode=0o700, exist_ok=True)
        fields = {"name": name, "skills": [], "allowed_actions": list(actions), "scopes": list(scopes), **patterns}
        (folder / f"{name}.yaml").write_text(json.dumps(fields))


@contextmanager
def run_app(app):
    """Run an ASGI application and yield its port."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, access_log=False, lifespan="on",
                            proxy_headers=False, timeout_graceful_shutdown=5)  # fmt: skip
    listener = config.bind_socket()
    listener.listen()
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(120)
        listener.close()


@contextmanager
def run_gateway(home, log=None, **options):
    """Run the gateway of a home."""
    app = create_app(Gateway(str(home)), logs=Logs(log), **options)
    with run_app(app) as port:
        gateway = RunningGateway(home, port, app)
        try:
            yield gateway
        finally:
            gateway.gate.close()
