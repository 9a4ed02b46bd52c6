"""A process without free descriptors: it says so once, answers on open connections, and accepts others when it can again."""

from __future__ import annotations

import http.client
import json
import resource
import socket

import pytest
from test_http_serve import holdfast_without, started

LOOPS = {"uvloop": None, "asyncio": holdfast_without("uvloop")}  # `holdfast serve` with uvloop, and with asyncio's own loop
LIMIT = 120


def request(connection, token, method, path, body=None):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request(method, path, json.dumps(body) if body else None, headers)
    said = connection.getresponse()
    return said.status, json.loads(said.read())


@pytest.mark.parametrize("loop", LOOPS)
def test_many_idle_connections_keep_no_open_one_from_being_answered(home, tmp_path, loop):
    def few_descriptors():
        resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))

    with started(home, tmp_path, "--json", command=LOOPS[loop], before=few_descriptors) as one:
        early = http.client.HTTPConnection("127.0.0.1", one.port, timeout=60)
        assert request(early, one.token, "POST", "/gateway/memory", {"key": "k", "value": "Harbour words."})[0] == 200
        idle = [socket.create_connection(("127.0.0.1", one.port), 60) for _ in range(2 * LIMIT)]
        try:
            assert "ulimit -n" in one.line("connections full")
            for number in range(20):
                stored = request(
                    early, one.token, "POST", "/gateway/memory", {"key": f"n{number}", "value": f"Words {number}."}
                )
                assert stored[0] == 200, stored
            found = request(early, one.token, "POST", "/v1/recall", {"query": "harbour", "mode": "keyword"})
            assert found[0] == 200 and found[1]["hits"][0]["text"] == "Harbour words."
        finally:
            for connection in idle:
                connection.close()
        late = http.client.HTTPConnection("127.0.0.1", one.port, timeout=60)  # waits in the queue until there is room
        assert request(late, one.token, "GET", "/gateway/memory?key=k")[1]["memory"][0]["value"] == "Harbour words."
        one.line("connections accepted again")
        early.close()
        late.close()
        assert one.stop() == 0
        assert len([line for line in one.log if "connections full" in line]) == 1
        assert not [line for line in one.log if json.loads(line)["level"] == "error" and "connections full" not in line]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_an_accept_that_fails_for_want_of_descriptors_is_tried_again_later_and_logged_once(child, loop):
    found = child(
        """
        import asyncio, io, os, resource, socket
        from holdfast.server import acceptor
        from holdfast.server.logs import Logs

        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        log, retries = io.StringIO(), []
        acceptor.RETRY_SECONDS = 0.01

        class Counted(acceptor.Acceptor):
            def _resume(self):
                retries.append(1)
                super()._resume()

        class Echo(asyncio.Protocol):
            def connection_made(self, transport):
                transport.write(b"here")

        async def run():
            loop = asyncio.get_running_loop()
            listening = socket.create_server(("127.0.0.1", 0))
            accepting = Counted(listening, Echo, Logs(log), count_open=lambda: 0, most=1000)
            accepting.start()
            client = socket.socket()
            taken = []
            try:
                while True:
                    taken.append(os.dup(0))
            except OSError:
                pass
            client.connect(listening.getsockname())
            while len(retries) < 20:  # it goes on to fail, a pause after each
                await asyncio.sleep(0.01)
            lines = log.getvalue().splitlines()
            for one in taken:
                os.close(one)
            client.setblocking(False)
            said = await loop.sock_recv(client, 10)
            while "again" not in log.getvalue():
                await asyncio.sleep(0.01)
            accepting.close()
            return lines, said.decode(), log.getvalue().splitlines()

        if args[0] == "uvloop":
            import uvloop
            answer = uvloop.run(run())
        else:
            answer = asyncio.run(run())
        """,
        loop,
    )
    full, said, lines = found
    assert [json.loads(line)["event"] for line in full] == ["connections full"] and "open files" in full[0]
    assert said == "here" and [json.loads(line)["event"] for line in lines] == [
        "connections full",
        "connections accepted again",
    ]
