"""First file of a worker process: ``python STAGE/boot.py OPTIONS``, OPTIONS being JSON.

The process becomes a *supervisor* that imports nothing and never runs the user's code. It forks
the worker proper, dies with the executor, and ends every descendant of the worker, also those that
left its process group, before it exits itself. The parts above ``_work`` are written for any
Python 3, so that an interpreter that is too old can still say so.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time

OLDEST_PYTHON = (3, 10)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_MILLISECONDS = 500
_REAP_SECONDS = 5.0


def main() -> None:
    """Fork the worker and supervise it until it ends or the executor goes away."""
    options = json.loads(sys.argv[1])
    stage = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (no imports yet)
    _arrange_path(stage, options["root"])
    if sys.version_info[:2] < OLDEST_PYTHON:
        _refuse(options, stage)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    supervisor = os.getpid()
    wakeup = _install_wakeup()
    worker = os.fork()
    if worker == 0:
        _work(options, stage, supervisor, wakeup)
    os.close(options["socket"])
    _supervise(worker, options["lifeline"], options["parent"], wakeup[0])


def _arrange_path(stage: str, root: str) -> None:
    """Put the workspace behind the standard library and site-packages, and drop the stage.

    A ``types.py`` or ``torch.py`` of the workspace must never stand in for the real one.
    """
    last = {os.path.realpath(root), os.path.realpath(os.getcwd())}  # noqa: PTH109
    kept = [p for p in sys.path if p and os.path.realpath(p) not in (last | {stage})]
    sys.path[:] = [p for p in kept if p != stage] + [root]


def _refuse(options: "dict[str, object]", stage: str) -> None:
    version = ".".join(str(part) for part in sys.version_info[:3])
    problem = (
        f"{sys.executable} is Python {version}; workers need 3.10 or newer. "
        "Choose another interpreter with `kernelLsp.worker.python`."
    )
    hello = {
        "type": "Hello",
        "protocol": 1,
        "stage": os.path.basename(stage),  # noqa: PTH119
        "python": version,
        "group": os.getpid(),
        "problem": problem,
    }
    os.write(int(str(options["socket"])), json.dumps(hello).encode() + b"\n")
    sys.exit(3)


def _install_wakeup() -> "tuple[int, int]":
    """A pipe that becomes readable on SIGCHLD and SIGTERM."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _noticed)
    return reader, writer


_asked_to_stop = []


def _noticed(number: int, _frame: object) -> None:
    if number != signal.SIGCHLD:
        _asked_to_stop.append(number)


def _supervise(worker: int, lifeline: int, parent: int, wakeup: int) -> None:
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # the log ends when the worker's tree has ended
        os.dup2(quiet, descriptor)
    poll = select.poll()
    poll.register(lifeline, 0)
    poll.register(wakeup, select.POLLIN)
    status = None
    while status is None:
        events = dict(poll.poll(_POLL_MILLISECONDS))
        with contextlib.suppress(BlockingIOError):
            os.read(wakeup, 4096)
        status = _status_of(worker)
        if lifeline in events or os.getppid() != parent or _asked_to_stop:
            break
    ended = _end_descendants(worker, status is not None)
    os._exit(_exit_code(ended if status is None else status))


def _status_of(worker: int) -> "int | None":
    """Reap whoever ended; the wait status of the worker once it is among them."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return 0
        if pid == worker:
            return status
        if pid == 0:
            return None


def _exit_code(status: "int | None") -> int:
    if status is None:
        return 128 + signal.SIGKILL
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _end_descendants(worker: int, reaped: bool) -> "int | None":
    """Kill the worker's group, then every orphan that came to this process as its subreaper.

    Returns the worker's own wait status if it was reaped here: it may have died by itself just now.
    """
    status = None
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(worker, signal.SIGKILL)
    if not reaped:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    limit = time.monotonic() + _REAP_SECONDS
    while time.monotonic() < limit:
        for child in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == worker:
            status = ended
        if pid == 0:
            time.sleep(0.005)
    return status


def _children() -> "list[int]":
    """Process ids whose parent is this process, from /proc."""
    mine = []
    try:
        names = os.listdir("/proc")  # noqa: PTH208
    except OSError:
        return mine
    for name in filter(str.isdigit, names):
        with contextlib.suppress(OSError, IndexError, ValueError):
            with open(f"/proc/{name}/stat") as file:  # noqa: PTH123
                parent = int(file.read().rpartition(")")[2].split()[1])
            if parent == os.getpid():
                mine.append(int(name))
    return mine


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _work(
    options: "dict[str, object]", stage: str, supervisor: int, wakeup: "tuple[int, int]"
) -> None:
    """Become the worker: own session, limits, only its own descriptors; then serve until EOF."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for descriptor in (*wakeup, int(str(options["lifeline"]))):
        os.close(descriptor)
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:
        os._exit(4)
    sys.path.insert(0, stage)
    # The package remembers its folder, so the stage need not stay on the path.
    from search_engine.worker.main import serve

    sys.path.remove(stage)
    serve(options, os.path.basename(stage))  # noqa: PTH119
    os._exit(0)


if __name__ == "__main__":
    main()
