"""The worker loop: read a request, do the job, send the reply; nothing else is kept between jobs.

What a job raises is a result, not a failure of the worker: it goes back as a refusal.
"""

from __future__ import annotations

import importlib
import os
import platform
import socket
import time
from collections.abc import Callable
from typing import Any

from search_engine.domain.job import (
    BaselineJob,
    BatchJob,
    BatchReply,
    CheckJob,
    CompareJob,
    CompileJob,
    HangJob,
    InspectJob,
    InterpretJob,
    Job,
    ProbeJob,
    Refusal,
    Reply,
    TimeJob,
    TraceJob,
)
from search_engine.execution.wire import (
    PROTOCOL,
    Hello,
    Ready,
    Request,
    Response,
    from_line,
    to_line,
)
from search_engine.worker.failure import refusal_for
from search_engine.worker.lifetime import apply_limits, flush_logs, make_private
from search_engine.worker.probe import import_warm

_HANDLERS: dict[type[Any], tuple[str, str]] = {
    ProbeJob: ("probe", "probe"),
    CompileJob: ("compile", "compile_source"),
    InspectJob: ("inspection", "inspect_launches"),
    TraceJob: ("trace", "trace_launches"),
    InterpretJob: ("interpreter", "interpret"),
    BaselineJob: ("baseline", "baseline"),
    CheckJob: ("correctness", "check"),
    TimeJob: ("timing", "time_sources"),
    CompareJob: ("compare", "compare"),
    HangJob: ("hang", "hang"),
}
"""Module and function for each job; imported on first use, since most workers do one kind."""


def serve(options: dict[str, Any], stage: str) -> None:
    """Announce this worker, import what was asked for, answer requests until the socket closes."""
    channel = socket.socket(fileno=int(options["socket"]))
    make_private(channel.fileno())
    apply_limits(options)
    channel.sendall(to_line(Hello(PROTOCOL, stage, platform.python_version(), os.getpgid(0))))
    channel.sendall(to_line(Ready(import_warm(tuple(options.get("warm", ()))))))
    with channel.makefile("rb") as requests:
        for line in requests:
            channel.sendall(_answer(from_line(Request, line)))


def perform(job: Job) -> Reply:
    """Do one job in this process. Raises whatever the user's code raises."""
    if isinstance(job, BatchJob):
        return _batch(job)
    module_name, function = _HANDLERS[type(job)]
    module = importlib.import_module(f"search_engine.worker.{module_name}")
    handler: Callable[[Any], Reply] = getattr(module, function)
    return handler(job)


def _batch(batch: BatchJob) -> BatchReply:
    """Do the jobs in order; the first refusal is the last reply."""
    replies: list[Any] = []
    for job in batch.jobs:
        try:
            replies.append(perform(job))
        except (Exception, SystemExit) as error:
            replies.append(refusal_for(error))
        if isinstance(replies[-1], Refusal):
            break
    return BatchReply(tuple(replies))


def _answer(request: Request) -> bytes:
    started = time.monotonic()
    try:
        reply = perform(request.job)
        line = to_line(Response(request.id, reply, time.monotonic() - started))
    except (Exception, SystemExit) as error:
        reply = refusal_for(error)
        line = to_line(Response(request.id, reply, time.monotonic() - started))
    flush_logs()
    return line
