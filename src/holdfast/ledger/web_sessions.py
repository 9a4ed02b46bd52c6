"""Sessions of people in the console, and the codes of one-time sign-in links. Only digests are kept."""

from __future__ import annotations

from holdfast.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.ledger.interface import LedgerDatabase, Transaction

IDLE_SECONDS = 12 * 3600  # a session that is not used for so long has ended
MAX_SECONDS = 7 * 86400  # and so has one of this age
_TOUCH_SECONDS = 60  # how precisely the last use is kept: not every request writes


class WebSession(Record):
    """A session: the public part of its token, "" for the owner of the home; times are in seconds since 1970."""

    token: str
    created: int
    used: int
    expires: int


class WebSessions:
    """Sessions by the digest of their cookie, which only the browser has."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database

    def add(self, digest: str, token: str, now: int) -> None:
        """Begin a session, and remove those that have ended."""

        def add_row(transaction: Transaction) -> None:
            transaction.run("web_sessions.remove_ended", now=now, idle_since=now - IDLE_SECONDS)
            transaction.run("web_sessions.put", digest=digest, token=token, now=now, expires=now + MAX_SECONDS)

        self._database.write(add_row)

    def find(self, digest: str, now: int) -> WebSession | None:
        """Return a session that has not ended, and count this as a use of it."""
        rows = self._database.read_current("web_sessions.find", digest=digest)
        session = WebSession(*rows[0]) if rows else None
        if session is None or session.expires <= now or session.used + IDLE_SECONDS <= now:
            return None
        if session.used + _TOUCH_SECONDS <= now:
            self._write("web_sessions.touch", digest=digest, now=now)
        return session

    def remove(self, digest: str) -> None:
        """End a session."""
        self._write("web_sessions.remove", digest=digest)

    def _write(self, statement: str, **values: str | int) -> None:
        self._database.write(lambda transaction: transaction.run(statement, **values), durable=False)


class SignInCodes:
    """Codes of one-time links, by their digest."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database

    def add(self, digest: str, now: int, seconds: int) -> None:
        """Keep a code that is valid for `seconds`, and remove those that have ended."""

        def add_row(transaction: Transaction) -> None:
            transaction.run("sign_in_codes.remove_ended", now=now)
            transaction.run("sign_in_codes.put", digest=digest, expires=now + seconds)

        self._database.write(add_row)

    def take(self, digest: str, now: int) -> bool:
        """Use a code up; return whether it was valid. Of two that come at once, one is."""
        taken = self._database.write(lambda transaction: transaction.run("sign_in_codes.take", digest=digest, now=now))
        return bool(taken)
