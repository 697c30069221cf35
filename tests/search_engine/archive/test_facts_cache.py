from __future__ import annotations

import logging
import multiprocessing
import random
import sqlite3
import string
import time
from pathlib import Path

import pytest

from search_engine.archive.facts_cache import FactsCache

LONG = "".join(random.Random(0).choices(string.printable, k=4000))
"""Does not compress to nothing."""


def test_what_was_put_is_there_for_another_process(tmp_path: Path) -> None:
    FactsCache(tmp_path / "new" / "facts.sqlite").put("a", '{"µ": 1}')
    assert FactsCache(tmp_path / "new" / "facts.sqlite").get("a") == '{"µ": 1}'
    assert FactsCache(tmp_path / "new" / "facts.sqlite").get("b") is None


def test_a_value_is_replaced(tmp_path: Path) -> None:
    cache = FactsCache(tmp_path / "facts.sqlite")
    cache.put("a", "1")
    cache.put("a", "2")
    assert cache.get("a") == "2"


def test_the_least_recently_read_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1e9]
    monkeypatch.setattr(time, "time", lambda: now[0])
    path = tmp_path / "facts.sqlite"
    cache = FactsCache(path, most_bytes=40_000)
    for index in range(10):
        now[0] += 10_000
        cache.put(f"{index}", f"{index}{LONG[index:]}")
    now[0] += 10_000
    assert cache.get("0") is not None
    for index in range(10, 20):
        now[0] += 10_000
        cache.put(f"{index}", f"{index}{LONG[index:]}")
        if index == 12:
            assert cache.get("0") is not None, "it was read lately"
    assert cache.get("1") is None
    assert cache.get("19") is not None
    cache.close()
    size = sqlite3.connect(path).execute("SELECT SUM(size) FROM facts").fetchone()[0]
    assert 0 < size <= 40_000


@pytest.mark.parametrize("content", [b"not a database, only some text " * 99, b"SQLite format 3\0"])
def test_a_damaged_file_is_made_anew_with_a_log_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    path = tmp_path / "facts.sqlite"
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        cache = FactsCache(path)
    assert "made anew" in caplog.text
    cache.put("a", "1")
    assert cache.get("a") == "1"
    cache.close()
    assert FactsCache(path).get("a") == "1"


def test_damage_while_it_is_open_costs_the_entries_only(tmp_path: Path) -> None:
    path = tmp_path / "facts.sqlite"
    cache = FactsCache(path)
    for index in range(50):
        cache.put(f"{index}", LONG[index:])
    cache.close()
    data = bytearray(path.read_bytes())
    data[1024:] = b"\xff" * (len(data) - 1024)
    path.write_bytes(data)
    reader = FactsCache(path)
    assert reader.get("7") is None
    reader.put("new", "1")
    reader.put("new", "1")
    assert reader.get("new") == "1"


def test_a_file_of_another_version_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "facts.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.execute("CREATE TABLE facts (other TEXT)")
    connection.close()
    cache = FactsCache(path)
    cache.put("a", "1")
    assert cache.get("a") == "1"


def test_another_process_made_it_anew(tmp_path: Path) -> None:
    path = tmp_path / "facts.sqlite"
    cache = FactsCache(path)
    cache.put("a", "1")
    for file in tmp_path.iterdir():
        file.unlink()
    other = FactsCache(path)
    other.put("b", "2")
    cache.put("c", "3")
    assert other.get("c") == "3"


def test_no_file_means_nothing_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    cache = FactsCache(tmp_path / "file" / "facts.sqlite")
    cache.put("a", "1")
    assert cache.get("a") is None
    assert "no facts are kept" in caplog.text


def put_many(path: Path, start: int) -> None:
    cache = FactsCache(path)
    for index in range(start, start + 40):
        cache.put(f"{index}", f"{index} {LONG}")


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "facts.sqlite"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=put_many, args=(path, 1000 * i)) for i in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    cache = FactsCache(path)
    kept = [cache.get(f"{1000 * i + index}") for i in range(2) for index in range(40)]
    assert all(value is not None and value.endswith(LONG) for value in kept)
