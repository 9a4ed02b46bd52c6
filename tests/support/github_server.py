"""A fake of GitHub's API for pull request reviews on loopback, with failures on demand."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghp_test"


class GitHub:
    """The server and its reviews.

    `plan` lists the outcomes of the next posts: a status, optionally with headers, or "drop" (stores the review and closes the
    connection), "lost" (closes it without storing), "slow" (stores, and closes it when `wake` is set) or "late" (stores only
    when `commit` is set, then closes it). Later posts succeed. `good_lists` is how many lists succeed before `list_status`.
    """

    def __init__(self):
        self.plan = []
        self.reviews = {}
        self.posts = 0
        self.lists = 0
        self.keys = []  # the Idempotency-Key of each post
        self.seen_tokens = []  # of each post
        self.tokens = {TOKEN}
        self.good_lists = 0
        self.commit = threading.Event()
        self.wake = threading.Event()
        self.lock = threading.Lock()
        self.list_status = 200
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _make_handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def add_review(self, path, review):
        """Store a review and return it with its id."""
        with self.lock:
            reviews = self.reviews.setdefault(path, [])
            reviews.append({"id": 80 + len(reviews), **review})
            return reviews[-1]

    def close(self):
        self.wake.set()
        self.commit.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _make_handler(github):
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def respond(self, status, body, headers=()):
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in (("Content-Length", str(len(data))), *headers):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def check_token(self):
            if self.headers["Authorization"] in {f"Bearer {token}" for token in github.tokens}:
                return True
            self.respond(401, {"message": "Bad credentials"})
            return False

        def do_GET(self):
            url = urlsplit(self.path)
            page = int(parse_qs(url.query).get("page", ["1"])[0])
            with github.lock:
                github.lists += 1
                reviews = list(github.reviews.get(url.path, []))
                status = 200 if github.good_lists > 0 else github.list_status
                github.good_lists -= 1
            if self.check_token():
                self.respond(status, reviews[100 * (page - 1) : 100 * page])

        def do_POST(self):
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with github.lock:
                github.posts += 1
                github.keys.append(self.headers["Idempotency-Key"])
                github.seen_tokens.append(self.headers["Authorization"].removeprefix("Bearer "))
                step = github.plan.pop(0) if github.plan else 201
            if not self.check_token():
                return
            status, headers = step if isinstance(step, tuple) else (step, ())
            if status == "late":
                github.commit.wait(30)
            if status in ("drop", "slow", "late", 201, 200):
                stored = github.add_review(self.path, review)
            if status == "slow":
                github.wake.wait(30)
            if isinstance(status, str):
                self.close_connection = True
                return
            self.respond(status, stored if status in (200, 201) else {"message": f"status {status}"}, headers)

    return Handler
