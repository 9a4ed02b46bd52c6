"""A server on loopback that behaves as GitHub's API does for reviews of pull requests, and misbehaves when it is told to."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghp_test"


class GitHub:
    """`plan` is what comes of the next posts, in their order: a status, with headers if any; "drop" takes the review and hangs
    up, "lost" hangs up without taking it, "slow" takes it and says nothing until `wake` is set, "late" says nothing and takes
    it only when `commit` is set. Afterwards all is well. `good_lists` is how many lists go well before `list_status` counts."""

    def __init__(self):
        self.plan = []
        self.reviews = {}
        self.posts = 0
        self.lists = 0
        self.keys = []  # the Idempotency-Key of each post
        self.tokens = {TOKEN}
        self.good_lists = 0
        self.commit = threading.Event()
        self.wake = threading.Event()
        self.guard = threading.Lock()
        self.list_status = 200
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _answers(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path, review):
        with self.guard:
            kept = self.reviews.setdefault(path, [])
            kept.append({"id": 80 + len(kept), **review})
            return kept[-1]

    def close(self):
        self.wake.set()
        self.commit.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _answers(github):
    class Answers(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def say(self, status, body, headers=()):
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in (("Content-Length", str(len(data))), *headers):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def allowed(self):
            if self.headers["Authorization"] in {f"Bearer {token}" for token in github.tokens}:
                return True
            self.say(401, {"message": "Bad credentials"})
            return False

        def do_GET(self):
            at = urlsplit(self.path)
            page = int(parse_qs(at.query).get("page", ["1"])[0])
            with github.guard:
                github.lists += 1
                kept = list(github.reviews.get(at.path, []))
                status = 200 if github.good_lists > 0 else github.list_status
                github.good_lists -= 1
            if self.allowed():
                self.say(status, kept[100 * (page - 1) : 100 * page])

        def do_POST(self):
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with github.guard:
                github.posts += 1
                github.keys.append(self.headers["Idempotency-Key"])
                step = github.plan.pop(0) if github.plan else 201
            if not self.allowed():
                return
            status, headers = step if isinstance(step, tuple) else (step, ())
            if status == "late":
                github.commit.wait(30)
            if status in ("drop", "slow", "late", 201, 200):
                taken = github.take(self.path, review)
            if status == "slow":
                github.wake.wait(30)
            if isinstance(status, str):
                self.close_connection = True
                return
            self.say(status, taken if status in (200, 201) else {"message": f"status {status}"}, headers)

    return Answers
