"""A facts host that plays a scenario; named in the request's ``env`` as ``FAKE_FACTS``.

It speaks the real messages, so that only the compiler is fake. ``FAKE_LOG`` names a file that gets
a line for each message.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from search_engine.domain.facts_message import (
    CancelRequest,
    Done,
    FactsRequest,
    ListingFound,
    ListingRequest,
    UnitFindings,
    request_from_line,
    to_line,
)
from search_engine.domain.finding import Finding, Related, Severity
from search_engine.domain.job import Refusal, RefusalKind
from search_engine.domain.kernel import OperationKind
from search_engine.domain.summary import AccessWidth, KernelSummary
from search_engine.frontends.triton import parse_module

CHANNEL = os.fdopen(os.dup(1), "wb")
CANCELLED: set[str] = set()


def say(answer) -> None:
    CHANNEL.write(to_line(answer))
    CHANNEL.flush()


def units(request):
    module = parse_module(request.text, request.path)
    wanted = [u for u in module.units if u.kernel.qualified_name in (request.kernels or ())]
    return module, wanted


def summary(unit, target, accesses=(), **changes) -> KernelSummary:
    made = KernelSummary(
        unit.kernel.qualified_name, target, False, 1, (8, 1, 1), 4, 3, 40, 0, 98304, 0.5625,
        ("registers",), 300, 8, tuple(accesses), 8192, 2.5,
    )  # fmt: skip
    return replace(made, **changes)


class Text:
    """Places of a text by what stands there."""

    def __init__(self, module, unit, target) -> None:
        self.module, self.unit, self.target = module, unit, target
        self.lines = module.text.split("\n")

    def line(self, part: str) -> int:
        first = self.unit.kernel.span.line
        return next(i for i, s in enumerate(self.lines) if i >= first and part in s)

    def span(self, line: int) -> tuple[int, int]:
        start = len("\n".join(self.lines[:line]).encode()) + (1 if line else 0)
        text = self.lines[line]
        indent = len(text) - len(text.lstrip())
        return start + indent, start + len(text.encode())

    def finding(self, part, code, name, message, cost, **more) -> Finding:
        line = self.line(part)
        severity = more.pop("severity", Severity.HINT)
        return Finding(
            self.module.path, line, line, *self.span(line), self.unit.kernel.qualified_name,
            code, name, severity, message, self.target, {}, cost, **more,
        )  # fmt: skip


def figures(request, unit, module, target) -> UnitFindings:
    """One warning and six hints of different cost; the cheapest is not shown."""
    text = Text(module, unit, target)
    load, store = text.line("tl.load"), text.line("tl.store")
    launch = text.line("_kernel[")
    related = (Related(launch, *text.span(launch), "launched here"),)
    findings = (
        text.finding("tl.load", "KL105", "narrow-access", "loads of 4 B", 0.6,
                     rule="specialise-sizes", related=related),
        text.finding("tl.store", "KL107", "uncoalesced-access", "stride 4096", 0.5),
        text.finding("def ", "KL104", "low-occupancy", "occupancy 25 %", 0.4),
        text.finding("mask =", "KL112", "integer-division", "a division", 0.3),
        text.finding("offsets =", "KL205", "repeated-read", "read twice", 0.2),
        text.finding("tl.store", "KL113", "layout-conversion", "the cheapest", 0.1),
        text.finding("tl.load", "KL251", "unmasked-access", "24 lanes read past x", 0.0,
                     severity=Severity.WARNING),
    )  # fmt: skip
    accesses = (
        AccessWidth(load, OperationKind.LOAD, 16, 8),
        AccessWidth(load, OperationKind.LOAD, 4, 1),
        AccessWidth(store, OperationKind.STORE, 16, 8),
    )
    registers = 40 if target == "sm_90" else 64
    made = summary(unit, target, accesses, registers=registers)
    return UnitFindings(
        request.id, unit.kernel.qualified_name, unit.hash, target, made, findings,
        ("the sizes of n are those of the first case",),
    )  # fmt: skip


def nothing(request, unit, module, target) -> UnitFindings:
    return UnitFindings(request.id, unit.kernel.qualified_name, unit.hash, target, None, ())


def assumed(request, unit, module, target) -> UnitFindings:
    made = summary(unit, target, assumed=True, grid=None)
    return replace(nothing(request, unit, module, target), summary=made)


def refuse(request, unit, module, target) -> UnitFindings:
    text = Text(module, unit, target)
    error = text.finding(
        "tl.load", "KL101", "compile-error", "expected a constexpr", 0.0, severity=Severity.WARNING
    )
    refusal = Refusal(RefusalKind.COMPILE, "expected a constexpr", error.line)
    made = nothing(request, unit, module, target)
    return replace(made, findings=(error,), refusal=refusal)


def lacking(request, unit, module, target) -> UnitFindings:
    refusal = Refusal(RefusalKind.ENVIRONMENT, "module triton is missing in /usr/bin/python3")
    return replace(nothing(request, unit, module, target), refusal=refusal)


def big(request, unit, module, target) -> UnitFindings:
    """Some hundred kilobytes, as no real host sends them."""
    made = figures(request, unit, module, target)
    accesses = tuple(
        AccessWidth(unit.kernel.span.line, OperationKind.LOAD, 4, 1) for _ in range(4000)
    )
    return replace(made, summary=summary(unit, target, accesses))


SCENARIOS = {
    "nothing": nothing,
    "figures": figures,
    "assumed": assumed,
    "refuse": refuse,
    "lacking": lacking,
    "big": big,
    "slow": figures,
}


def serve(request: FactsRequest) -> None:
    """Answer one request; several are served at once."""
    scenario = request.env.get("FAKE_FACTS", "nothing")
    if scenario == "problem":
        say(Done(request.id, problem="unknown target 'sm_1'; known targets are sm_90"))
        return
    if scenario == "noise":
        CHANNEL.write(b'not json\n{}\n{"kind": "unit"}\n[1]\n')
        scenario = "figures"
    if scenario == "crash" and crashes_left(request):
        sys.stderr.write("Segmentation fault (of the fake)\n")
        sys.stderr.flush()
        os._exit(139)
    wait = float(request.env.get("FAKE_FACTS_SECONDS", "0"))
    end = time.monotonic() + wait
    while time.monotonic() < end and request.id not in CANCELLED:
        time.sleep(0.02)
    if request.id in CANCELLED:
        say(Done(request.id, cancelled=True))
        return
    make = SCENARIOS.get(scenario, figures)
    module, wanted = units(request)
    for target in request.targets or ("sm_90",):
        for unit in wanted:
            say(make(request, unit, module, target))
    say(Done(request.id))


def crashes_left(request: FactsRequest) -> bool:
    """``FAKE_CRASHES`` is how often, counted in the log."""
    log = Path(request.env["FAKE_LOG"])
    seen = log.read_text().count("facts ") if log.exists() else 0
    return seen <= int(request.env.get("FAKE_CRASHES", "1"))


def listing(request: ListingRequest) -> None:
    if request.file.env.get("FAKE_FACTS") == "lacking":
        problem = "module triton is missing in /usr/bin/python3"
        say(ListingFound(request.id, request.kernel, request.target, problem=problem))
        return
    rows = ["LDG.E.128 R4, [R2]", "STG.E.128 [R6], R4", "EXIT"]
    lines = (request.line, None, None)
    text = "".join(f"{row}\n" for row in rows)
    row = 0 if request.line is not None else None
    say(ListingFound(request.id, request.kernel, request.target, text, lines, row))


def note(request, message: str) -> None:
    file = request.file if isinstance(request, ListingRequest) else request
    path = getattr(file, "env", {}).get("FAKE_LOG")
    if path:
        with Path(path).open("a") as log:
            log.write(f"{message}\n")


def main() -> None:
    for line in sys.stdin.buffer:
        request = request_from_line(line)
        match request:
            case FactsRequest():
                pids = request.env.get("FAKE_FACTS_PIDS")
                if pids:
                    Path(pids).write_text(str(os.getpid()))
                names = ",".join(request.kernels or ())
                note(
                    request, f"facts {Path(request.path).name} {names} {','.join(request.targets)}"
                )
                threading.Thread(target=serve, args=(request,), daemon=True).start()
            case CancelRequest():
                CANCELLED.add(request.id)
            case ListingRequest():
                note(request, f"listing {request.kernel} {request.target}")
                listing(request)


if __name__ == "__main__":
    main()
