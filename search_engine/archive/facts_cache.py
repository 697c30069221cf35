"""Facts by content key in one SQLite file of the user's cache: safe to share, safe to lose.

Several processes may use the file at once. A file that is damaged or of another version is thrown
away and made anew; a file that cannot be used at all means that nothing is kept. The least recently
read entries go first when the file has grown over its limit.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

log = logging.getLogger(__name__)

SCHEMA_VERSION = 1
MOST_BYTES = 64 * 1024 * 1024
"""Some ten thousand kernels at a few kilobytes each."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (
  key TEXT PRIMARY KEY, used INTEGER NOT NULL, size INTEGER NOT NULL, value BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS facts_by_use ON facts (used);
"""
_BUSY_SECONDS = 2.0
_TOUCH_SECONDS = 3600
"""An entry read again within the hour keeps its time: reading then writes nothing."""
_MOST_IN_MEMORY = 1024
_EVICT_TO = 0.8
"""Share of the limit that is left, so that not every insertion evicts."""

Answer = TypeVar("Answer")


class FactsStore(Protocol):
    """Where facts are kept. Neither method raises."""

    def get(self, key: str) -> str | None:
        """What was put under ``key``, if it is still there."""
        ...

    def put(self, key: str, value: str) -> None:
        """Keep a value."""
        ...


class MemoryFacts:
    """Keeps the newest entries for the life of the process."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def get(self, key: str) -> str | None:
        """What was put under ``key``."""
        return self._values.get(key)

    def put(self, key: str, value: str) -> None:
        """Keep a value."""
        self._values[key] = value
        if len(self._values) > _MOST_IN_MEMORY:
            del self._values[next(iter(self._values))]


class FactsCache:
    """One connection to a cache file. Not to be shared between threads."""

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        """Open or create the file; whatever goes wrong is logged, never raised."""
        self._path = path
        self._most_bytes = most_bytes
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._open_or_rebuild()

    def get(self, key: str) -> str | None:
        """What was put under ``key``, by any process."""
        return self._guarded(lambda connection: self._get(connection, key))

    def put(self, key: str, value: str) -> None:
        """Keep a value; a former one of the same key is replaced."""
        self._guarded(lambda connection: self._put(connection, key, value))

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _get(self, connection: sqlite3.Connection, key: str) -> str | None:
        row = connection.execute("SELECT value, used FROM facts WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        now = int(time.time())
        if now - row[1] > _TOUCH_SECONDS:
            with connection:
                connection.execute("UPDATE facts SET used = ? WHERE key = ?", (now, key))
        try:
            return zlib.decompress(row[0]).decode()
        except (zlib.error, TypeError, ValueError):
            return None

    def _put(self, connection: sqlite3.Connection, key: str, value: str) -> None:
        data = zlib.compress(value.encode(errors="replace"), 6)
        with connection:
            connection.execute(
                "INSERT OR REPLACE INTO facts VALUES (?, ?, ?, ?)",
                (key, int(time.time()), len(data), data),
            )
            self._evict(connection)

    def _evict(self, connection: sqlite3.Connection) -> None:
        total = connection.execute("SELECT COALESCE(SUM(size), 0) FROM facts").fetchone()[0]
        if total <= self._most_bytes:
            return
        surplus = total - int(self._most_bytes * _EVICT_TO)
        rows = connection.execute("SELECT key, size FROM facts ORDER BY used, rowid").fetchall()
        for key, size in rows:
            if surplus <= 0:
                break
            connection.execute("DELETE FROM facts WHERE key = ?", (key,))
            surplus -= size

    def _guarded(self, action: Callable[[sqlite3.Connection], Answer]) -> Answer | None:
        connection = self._current()
        if connection is None:
            return None
        try:
            return action(connection)
        except sqlite3.OperationalError as error:  # busy, full, read-only: it may pass
            log.debug("%s: %s", self._path, error)
        except sqlite3.DatabaseError as error:
            log.warning("%s is damaged (%s) and is made anew", self._path, error)
            self._rebuild()
        return None

    def _current(self) -> sqlite3.Connection | None:
        """The connection, opened anew if another process threw a damaged file away."""
        if self._connection is not None and self._inode != _inode(self._path):
            self.close()
            self._open_or_rebuild()
        return self._connection

    def _open_or_rebuild(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = self._open()
        except (OSError, sqlite3.OperationalError) as error:
            log.warning("%s cannot be used (%s): no facts are kept", self._path, error)
        except sqlite3.DatabaseError as error:
            log.warning("%s is damaged (%s) and is made anew", self._path, error)
            self._rebuild()

    def _rebuild(self) -> None:
        """Throw the file away. Another process that has it open goes on with what it has."""
        self.close()
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                self._path.with_name(self._path.name + suffix).unlink()
        try:
            self._connection = self._open()
        except sqlite3.Error as error:
            log.warning("%s cannot be made anew (%s): no facts are kept", self._path, error)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")  # losing entries costs a compile
            _check_version(connection)
            with connection:
                connection.executescript(_SCHEMA)
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("SELECT COUNT(*) FROM facts")
            self._inode = _inode(self._path)
        except BaseException:
            connection.close()
            raise
        return connection


def _check_version(connection: sqlite3.Connection) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, SCHEMA_VERSION):
        raise sqlite3.DatabaseError(f"its version is {version}, not {SCHEMA_VERSION}")


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
