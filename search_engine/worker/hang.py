"""Misbehave on request, so that lifetimes can be tested with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from search_engine.domain.job import HangJob, Refusal, RefusalKind, Reply


def hang(job: HangJob) -> Reply:
    """Do ``job.behaviour`` for ``job.seconds``, and say so if this process survives it.

    ``show process`` and ``show environment`` answer with what they name.
    """
    if job.behaviour == "show process":
        return Refusal(RefusalKind.UNSUPPORTED, str(os.getpid()))
    if job.behaviour == "show environment":
        return Refusal(RefusalKind.UNSUPPORTED, repr(sorted(os.environ.items())))
    _BEHAVIOURS[job.behaviour](job.seconds)
    return Refusal(RefusalKind.UNSUPPORTED, f"survived {job.behaviour}")


def _spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def _exit(_seconds: float) -> None:
    sys.stderr.write("about to leave\n")
    sys.stderr.flush()
    os._exit(7)


def _abort(_seconds: float) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _flood(_seconds: float) -> None:
    for _ in range(4096):
        sys.stdout.write("x" * 4096 + "\n")


def _print(_seconds: float) -> None:
    os.write(1, b'{"type":"Response","id":"0","reply":{"type":"CompileReply"},"seconds":0}\n')


def _leave_child(seconds: float) -> None:
    command = [sys.executable, "-c", f"import time; time.sleep({seconds})"]
    subprocess.Popen(command)


def _leave_daemon(seconds: float) -> None:
    command = [sys.executable, "-c", f"import time; time.sleep({seconds})"]
    subprocess.Popen(command, start_new_session=True, close_fds=False)


def _exhaust_memory(_seconds: float) -> None:
    kept: list[bytearray] = []
    while True:
        kept.append(bytearray(64 * 1024 * 1024))


def _leave(_seconds: float) -> None:
    sys.exit("the user's code called sys.exit")


_BEHAVIOURS = {
    "sleep": time.sleep,
    "spin": _spin,
    "exit": _exit,
    "abort": _abort,
    "flood": _flood,
    "print": _print,
    "leave child": _leave_child,
    "leave daemon": _leave_daemon,
    "exhaust memory": _exhaust_memory,
    "sys.exit": _leave,
}
