"""A search host that plays a scenario; named in the request's ``env`` as ``FAKE_HOST``.

It speaks the real protocol with the real codec, so that only the search itself is fake.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from search_engine.domain.candidate import Candidate, CandidateId, Numerics, candidate_id
from search_engine.domain.codec import encode
from search_engine.domain.event import (
    BaselineMeasured,
    CandidateEvaluated,
    Finished,
    ImprovementFound,
    Progress,
    StateChanged,
)
from search_engine.domain.job import Refusal, RefusalKind
from search_engine.domain.run import (
    Correctness,
    Evidence,
    ExitReason,
    Outcome,
    Rung,
    RunId,
    RunReport,
    RunState,
    Spend,
)
from search_engine.domain.target import Environment
from search_engine.domain.verdict import Improved, Speedup, Timing

CANCELLED = threading.Event()
SPEEDUP = Speedup(1.82, 1.79, 1.85)


def emit(event) -> None:
    sys.stdout.write(json.dumps(encode(event)) + "\n")
    sys.stdout.flush()


def watch_input() -> None:
    for line in sys.stdin:
        if json.loads(line).get("cancel"):
            CANCELLED.set()
    os._exit(0)  # the server is gone


def candidate(text: str, block: int) -> Candidate:
    new = text.replace("BLOCK = 128", f"BLOCK = {block}")
    name = candidate_id(new)
    return Candidate(
        name, new, None, CandidateId(name), "rules", (f"BLOCK 128 to {block}",), (), (),
        Numerics.EXACT,
    )  # fmt: skip


def evidence(made: Candidate, speedup: Speedup | None) -> Evidence:
    timings = (Timing("x=f32[1000]", False, 412.0, 226.0, speedup, 50),) if speedup else ()
    correctness = Correctness(
        "device" if speedup else "CPU interpreter", 24, ("x=f32[1000]",), 0.4, True, False, (),
        ("non-contiguous x",),
    )  # fmt: skip
    device = "H200" if speedup else None
    environment = Environment(device, "580", "3.11", "2.13.0", "3.6.0", "sm_90")
    return Evidence(
        made.id, correctness, speedup, timings, 0.01 if speedup else None, None, environment,
        made.steps, "2026-01-01T00:00:00Z",
    )  # fmt: skip


def report(request, outcome: Outcome, reason: ExitReason, message: str) -> RunReport:
    return RunReport(
        RunId("a1"), request["kernel"], request["path"], "", "sm_90", None, outcome, reason,
        message, None, None, None, None, Spend(1.0, 0.0, 3), {}, "",
    )  # fmt: skip


def improve(request, speedup: Speedup | None = SPEEDUP, wait: float = 0.0) -> None:
    emit(StateChanged(RunState.BASELINE, "measuring baseline", 0.1))
    if speedup:
        emit(BaselineMeasured(412.0, 410.0, 414.0, 0.01, "H200", 0.2))
    emit(StateChanged(RunState.SEARCHING, "searching", 0.3))
    made = candidate(request["text"], 256)
    verdict = Improved(speedup, (), True) if speedup else None
    emit(CandidateEvaluated(made.id, made.title, Rung.AUDIT, verdict, 0.4))
    emit(Progress(7, 1, speedup, 0.5, 60.0))
    time.sleep(wait)
    found = ImprovementFound(made, evidence(made, speedup), True, 0.6)
    if speedup:
        emit(replace(found, verified=False))
    emit(found)
    outcome = Outcome.IMPROVED if speedup else Outcome.UNMEASURED
    final = report(request, outcome, ExitReason.STALLED, "")
    emit(Finished(replace(final, best=made, evidence=evidence(made, speedup))))


def slow(request) -> None:
    """One verified candidate, then progress until cancelled."""
    emit(StateChanged(RunState.SEARCHING, "searching", 0.0))
    made = candidate(request["text"], 256)
    emit(ImprovementFound(made, evidence(made, SPEEDUP), True, 0.1))
    tried = 0
    while not CANCELLED.wait(0.05):
        tried += 1
        emit(Progress(tried, 0, SPEEDUP, 0.05 * tried, 60.0))
    emit(ImprovementFound(candidate(request["text"], 512), evidence(made, SPEEDUP), True, 9.0))


def hang(request) -> None:
    """Say nothing and hear nothing."""
    emit(StateChanged(RunState.SEARCHING, "searching", 0.0))
    time.sleep(3600)


def crash(request) -> None:
    made = candidate(request["text"], 256)
    emit(StateChanged(RunState.SEARCHING, "searching", 0.0))
    emit(ImprovementFound(made, evidence(made, SPEEDUP), True, 0.1))
    sys.stderr.write("Segmentation fault (of the fake)\n")
    sys.stderr.flush()
    os._exit(139)


def flood(request) -> None:
    """As fast as the pipe takes it, for ``FAKE_SECONDS``."""
    emit(StateChanged(RunState.SEARCHING, "searching", 0.0))
    end = time.monotonic() + float(request["env"].get("FAKE_SECONDS", "2"))
    tried = 0
    while time.monotonic() < end and not CANCELLED.is_set():
        tried += 1
        emit(Progress(tried, 0, None, 0.0, 60.0))
    emit(Finished(report(request, Outcome.NOT_IMPROVED, ExitReason.STALLED, "")))


def noise(request) -> None:
    """Things that are no events between events."""
    sys.stdout.write('not json\n{}\n[1]\nnull\n{"type": "Unknown"}\n')
    os.write(1, b"\xff\xfe raw bytes\n")
    subprocess.run([sys.executable, "-c", "print('a child prints')"], check=True)
    improve(request)


def children(request) -> None:
    """Grandchildren in sessions of their own, which end with this process's input."""
    code = (
        "import os,sys,time,threading\n"
        "threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()\n"
        "time.sleep(3600)"
    )
    made = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True
        )
        for _ in range(2)
    ]
    pids = [str(os.getpid()), *(str(child.pid) for child in made)]
    Path(request["env"]["FAKE_PIDS"]).write_text(" ".join(pids))
    slow_or_hang = hang if request["env"].get("FAKE_DEAF") else slow
    slow_or_hang(request)


def lacking(request) -> None:
    """The user's interpreter has no torch."""
    refusal = Refusal(RefusalKind.ENVIRONMENT, "module torch is missing")
    final = report(request, Outcome.FAILED, ExitReason.FAULTED, "module torch is missing")
    emit(Finished(replace(final, refusal=refusal)))


def refuse(request) -> None:
    refusal = Refusal(RefusalKind.COMPILE, "expected a constexpr", line=_kernel_line(request))
    final = report(request, Outcome.FAILED, ExitReason.FAULTED, "does not compile: constexpr")
    emit(Finished(replace(final, refusal=refusal)))


def _kernel_line(request) -> int:
    lines = request["text"].splitlines()
    return next(i for i, line in enumerate(lines) if "tl.load" in line)


SCENARIOS = {
    "improve": improve,
    "untimed": lambda request: improve(request, None),
    "late": lambda request: improve(request, wait=2.0),
    "nothing": lambda request: emit(
        Finished(report(request, Outcome.NOT_IMPROVED, ExitReason.STALLED, ""))
    ),
    "slow": slow,
    "hang": hang,
    "crash": crash,
    "flood": flood,
    "noise": noise,
    "children": children,
    "refuse": refuse,
    "lacking": lacking,
}


def main() -> None:
    if sys.argv[1:] == ["facts"]:
        import fake_facts_host

        fake_facts_host.main()
        return
    request = json.loads(sys.stdin.readline())
    scenario = request["env"].get("FAKE_HOST", "improve")
    if not request["env"].get("FAKE_DEAF"):
        threading.Thread(target=watch_input, daemon=True).start()
    SCENARIOS[scenario](request)


if __name__ == "__main__":
    main()
