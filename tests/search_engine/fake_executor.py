"""An executor whose workers answer from a table, and facts made by hand."""

from __future__ import annotations

from collections.abc import Callable

from search_engine.domain.access import LaunchTrace, LineAccess
from search_engine.domain.code import (
    InstructionCount,
    LaunchCode,
    LineCode,
    MachineOperation,
    PipelinedLoop,
)
from search_engine.domain.facts import LaunchFacts
from search_engine.domain.job import (
    Completed,
    InspectJob,
    InspectReply,
    Job,
    JobResult,
    Lane,
    Listing,
    TraceJob,
    TraceReply,
)
from search_engine.domain.kernel import OperationKind

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
KERNEL = """\
@triton.jit
def {name}_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for first in range(0, n, BLOCK):
        offsets = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n)
        tl.store(out_ptr + offsets, x * 2, mask=offsets < n)


"""
ENTRY = """\
{declaration}
def {name}(x):
    out = torch.empty_like(x)
{launches}
    return out


"""
DECLARED = "# kernel-lsp: workload x=f32[1024]"


def launch_of(name: str) -> str:
    return f"    {name}_kernel[(1,)](x, out, x.numel(), BLOCK=64)"


def text_of(*names: str, declaration: str = DECLARED) -> str:
    """A module with one entry for each name; ``a+b`` is an entry that launches two kernels."""
    parts = [HEAD]
    for name in names:
        kernels = name.split("+")
        parts += [KERNEL.format(name=kernel) for kernel in kernels]
        launches = "\n".join(launch_of(kernel) for kernel in kernels)
        entry = ENTRY.format(name=kernels[0], declaration=declaration, launches=launches)
        parts.append(entry)
    return "".join(parts)


def line_with(text: str, part: str) -> int:
    return next(i for i, line in enumerate(text.splitlines()) if part in line)


def code_of(name: str, text: str, assumed: bool = False, **changes: object) -> LaunchCode:
    """What a compiler might make of one kernel of ``text``: a narrow load in a loop."""
    start = line_with(text, f"def {name}_kernel")
    grid = (0, 0, 0) if assumed else (64, 1, 1)
    values = {
        "kernel": f"{name}_kernel", "grid": grid, "warps": 4, "stages": 3,
        "constants": (("BLOCK", "64"),), "registers": 32, "spill_bytes": 0, "shared_bytes": 1024,
        "binary_hash": "ab", "tensor_instructions": 0, "instructions": 200,
        "widest_load_bytes": 4, **changes,
    }  # fmt: skip
    load = InstructionCount(MachineOperation.GLOBAL_LOAD, 4, 8)
    store = InstructionCount(MachineOperation.GLOBAL_STORE, 16, 2)
    dot = InstructionCount(MachineOperation.MATRIX, 0, 1)
    return LaunchCode(
        LaunchFacts(**values), None if assumed else line_with(text, f"    {name}_kernel[("), (),
        (LineCode(start + 3, 1, (load, dot)), LineCode(start + 4, 1, (store,))), (), (),
        (PipelinedLoop(start + 1, start + 4, 1, 0, 3, False),), assumed=assumed,
    )  # fmt: skip


def trace_of(name: str, text: str) -> LaunchTrace:
    start = line_with(text, f"def {name}_kernel")
    access = LineAccess(
        start + 3, OperationKind.LOAD, "x_ptr", 4, 4, 0, 256, 256, 1024, 1024, 32, 32, 1, 4096, 0
    )
    store = LineAccess(
        start + 4, OperationKind.STORE, "out_ptr", 4, 4, 0, 256, 256, 1024, 1024, 32, 32, 1, 4096,
        0,
    )  # fmt: skip
    launch = line_with(text, f"    {name}_kernel[(")
    return LaunchTrace(f"{name}_kernel", launch, 1, (64, 1, 1), 16, (access, store), ())


def kernels_of(job: InspectJob | TraceJob) -> list[str]:
    """Names of the kernels that the entry of a job launches in the texts above."""
    if isinstance(job, InspectJob) and job.assumed:
        return [launch.kernel.removesuffix("_kernel") for launch in job.assumed]
    body = job.source.text.split(f"def {job.source.entry}(")[1].split("return out")[0]
    names = (line.split("_kernel[")[0].strip() for line in body.splitlines() if "_kernel[" in line)
    return list(names)


def answer(job: Job) -> JobResult:
    """What healthy workers answer."""
    if isinstance(job, TraceJob):
        traces = tuple(trace_of(name, job.source.text) for name in kernels_of(job))
        return Completed(TraceReply(traces), 0.1)
    assert isinstance(job, InspectJob)
    launches = tuple(
        code_of(name, job.source.text, assumed=bool(job.assumed)) for name in kernels_of(job)
    )
    listings: tuple[Listing, ...] = ()
    if job.listing:
        listings = tuple(
            Listing(f"{name}_kernel", "MOV\nLDG\n", (None, line_with(job.source.text, "tl.load")))
            for name in kernels_of(job)
        )
    return Completed(InspectReply(job.target, launches, listings, "3.6.0", 0.2), 0.2)


class FakeExecutor:
    """Implements ``Executor``. ``jobs`` are those that were run, with their lanes."""

    def __init__(self, reply: Callable[[Job], JobResult] = answer) -> None:
        self.reply = reply
        self.jobs: list[tuple[Lane, Job, float]] = []
        self.closed = False

    async def run(self, job: Job, lane: Lane, deadline_seconds: float) -> JobResult:
        self.jobs.append((lane, job, deadline_seconds))
        return self.reply(job)

    async def close(self) -> None:
        self.closed = True

    def inspected(self) -> list[InspectJob]:
        return [job for _, job, _ in self.jobs if isinstance(job, InspectJob)]
