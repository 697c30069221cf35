"""Jobs that a worker runs and the replies it gives. These types cross the wire as JSON."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from search_engine.domain.access import LaunchTrace
from search_engine.domain.code import LaunchCode
from search_engine.domain.facts import CompileFacts, Traffic
from search_engine.domain.target import Device
from search_engine.domain.workload import Case, Workload


class Lane(enum.Enum):
    """Which kind of worker runs a job."""

    COMPILE = "compile"
    """Ahead of time, no device, fake driver; many at once."""
    INTERPRET = "interpret"
    """Triton's CPU interpreter; a process in which functions stay interpreted."""
    DEVICE = "device"
    """The long-lived device worker: one per device."""
    FRESH_DEVICE = "fresh device"
    """A new device process for this job alone (the warm spare)."""


@dataclass(frozen=True, slots=True)
class Source:
    """One version of the user's module and how to load it.

    ``root`` is put last on ``sys.path``; ``module`` is the original dotted name, so that
    relative imports work; ``path`` is the user's file; ``text`` is the complete text to execute;
    ``entry`` is the qualified name of the host function.
    """

    id: str
    root: str
    path: str
    module: str
    text: str
    entry: str


@dataclass(frozen=True, slots=True)
class ProbeJob:
    """What is in this interpreter: versions and devices."""


@dataclass(frozen=True, slots=True)
class CompileJob:
    """Compile every launch of the entry for one case and target, without a device.

    ``also`` are further cases to compile into the shared cache, so that a device worker finds them
    there; they say nothing about whether the version compiles.
    """

    source: Source
    workload: Workload
    case: int
    target: str
    also: tuple[Case, ...] = ()


@dataclass(frozen=True, slots=True)
class AssumedArgument:
    """One argument of a launch that nobody makes, as inferred from the text.

    ``dtype`` is Triton's (``*fp32``, ``i32``, ``fp32``), or ``constexpr`` with ``value`` as a
    Python literal or a name (``tl.float32``, a device function of the module);
    ``divisible_by_16`` is what the compiler is told.
    """

    name: str
    dtype: str
    value: str | None = None
    divisible_by_16: bool = False
    origin: str = ""
    """Where it was read, in words that follow its value (``as launched``); empty for a guess."""


@dataclass(frozen=True, slots=True)
class AssumedLaunch:
    """A launch inferred from the text. ``options`` are Triton's (``num_warps``), as literals."""

    kernel: str
    """Qualified name."""
    arguments: tuple[AssumedArgument, ...]
    options: tuple[tuple[str, int], ...] = ()
    line: int | None = None
    """Of the launch site that it was inferred from, if there is one."""
    notes: tuple[str, ...] = ()
    """What was assumed, a sentence each."""


@dataclass(frozen=True, slots=True)
class InspectJob:
    """Compile as ``CompileJob`` does and report every launch by source line.

    With ``assumed``, those launches are compiled instead of the ones that the entry makes, and
    ``workload`` is None. ``listing`` also asks for the annotated machine code.
    """

    source: Source
    workload: Workload | None
    case: int
    target: str
    assumed: tuple[AssumedLaunch, ...] = ()
    listing: bool = False


@dataclass(frozen=True, slots=True)
class TraceJob:
    """Count what a sample of each launch's programs asks of memory, at the case's real sizes."""

    source: Source
    workload: Workload
    case: int
    most_programs: int = 24
    seconds: float = 10.0
    """Time after which no further program is sampled."""


@dataclass(frozen=True, slots=True)
class InterpretJob:
    """Compare candidate and baseline with the reference on the CPU interpreter, small shapes."""

    baseline: Source
    candidate: Source
    workload: Workload
    seed: int


@dataclass(frozen=True, slots=True)
class BaselineJob:
    """Run the user's kernel: gate against its reference, determinism, roofline figures."""

    source: Source
    workload: Workload
    seed: int


class Depth(enum.Enum):
    """How much of the input plan a correctness job runs."""

    SMOKE = "smoke"
    """One small odd shape and one case."""
    FULL = "full"
    """The whole input plan."""


@dataclass(frozen=True, slots=True)
class CheckJob:
    """Compare a candidate with baseline and reference on the device."""

    baseline: Source
    candidate: Source
    workload: Workload
    depth: Depth
    seed: int


@dataclass(frozen=True, slots=True)
class TimeJob:
    """Time versions against each other, interleaved: round k runs each once, order shuffled.

    ``cold`` flushes the L2 cache before each sample.
    """

    sources: tuple[Source, ...]
    workload: Workload
    case: int
    rounds: int
    cold: bool
    seed: int


@dataclass(frozen=True, slots=True)
class CompareJob:
    """Time the declared reference in eager mode and under ``torch.compile`` beside versions."""

    sources: tuple[Source, ...]
    workload: Workload
    case: int
    rounds: int
    seed: int


@dataclass(frozen=True, slots=True)
class HangJob:
    """Test aid: sleep, crash or print, so that lifetimes can be tested for real."""

    behaviour: str
    seconds: float


SingleJob: TypeAlias = (
    ProbeJob
    | CompileJob
    | InspectJob
    | TraceJob
    | InterpretJob
    | BaselineJob
    | CheckJob
    | TimeJob
    | CompareJob
    | HangJob
)


@dataclass(frozen=True, slots=True)
class BatchJob:
    """Several jobs for one process, in order; the first refusal ends the batch."""

    jobs: tuple[SingleJob, ...]


Job: TypeAlias = SingleJob | BatchJob


@dataclass(frozen=True, slots=True)
class ProbeReply:
    """Versions are empty where a module is missing; ``problems`` names module and remedy."""

    executable: str
    python: str
    torch: str
    triton: str
    devices: tuple[Device, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompileReply:
    """Facts of a version that compiles."""

    facts: CompileFacts


@dataclass(frozen=True, slots=True)
class Listing:
    """Annotated machine code of one launch; ``lines[i]`` is the text line of row i, 0-based."""

    kernel: str
    text: str
    lines: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class InspectReply:
    """Every launch by source line, in launch order; of equal launches the first one only.

    ``failures`` are assumed launches that do not compile, as (kernel, refusal).
    """

    target: str
    launches: tuple[LaunchCode, ...]
    listings: tuple[Listing, ...]
    triton: str
    compile_seconds: float
    failures: tuple[tuple[str, Refusal], ...] = ()


@dataclass(frozen=True, slots=True)
class TraceReply:
    """One trace per launch site and kernel, in launch order."""

    launches: tuple[LaunchTrace, ...]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first element that broke the correctness rule, with everything needed to replay it."""

    case: str
    values: str
    seed: int
    output: str
    index: tuple[int, ...]
    got: float
    expected: float
    limit: float
    reason: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """One input on which candidate and baseline were compared and agreed with the rule."""

    case: str
    values: str
    seed: int
    error: float
    """Largest |candidate - reference| over its limit; at most 1."""
    baseline_error: float
    """Largest |baseline - reference| over the same limit."""


@dataclass(frozen=True, slots=True)
class CheckReply:
    """Outcome of a correctness job. ``mismatch`` is None if every comparison passed."""

    comparisons: tuple[Comparison, ...]
    mismatch: Mismatch | None
    outside_domain: tuple[str, ...]
    """Edge shapes on which the baseline itself does not run or fails its gate."""
    nondeterministic: bool
    independent_reference: bool
    not_checked: tuple[str, ...]
    device_seconds: float
    baseline_traffic: Traffic | None = None
    candidate_traffic: Traffic | None = None
    without_kernel: tuple[str, ...] = ()
    """Inputs that agreed but on which no kernel was launched: they are no comparisons."""


@dataclass(frozen=True, slots=True)
class BaselineReply:
    """The user's kernel passed its gate.

    ``noise`` is the A/A noise: half the 95 % interval of the log ratio of the baseline against
    itself. Bandwidth and rate are measured on this device, in bytes/s and operations/s.
    """

    median_us: float
    low_us: float
    high_us: float
    noise: float
    deterministic: bool
    independent_reference: bool
    compulsory_bytes: int | None
    operations: int | None
    copy_bandwidth: float
    matrix_rate: float
    peak_memory_bytes: int
    working_set_bytes: int
    device_seconds: float
    smoke_cases: tuple[Case, ...] = ()
    """Cases at the sizes that a smoke check runs, to be compiled ahead."""
    full_cases: tuple[Case, ...] = ()
    """Cases at the sizes of the whole input plan."""


@dataclass(frozen=True, slots=True)
class SourceFailure:
    """A version that could not be timed."""

    source: str
    message: str


@dataclass(frozen=True, slots=True)
class TimeReply:
    """``samples_us[i][k]`` is the time of ``sources[i]`` in round k, microseconds per call.

    Versions that failed have no samples and stand in ``failures``.
    """

    sources: tuple[str, ...]
    samples_us: tuple[tuple[float, ...], ...]
    failures: tuple[SourceFailure, ...]
    calls_per_sample: int
    peak_memory_bytes: tuple[int, ...]
    device_seconds: float


@dataclass(frozen=True, slots=True)
class CompareReply:
    """As ``TimeReply``, with ``eager`` and ``torch.compile`` behind the sources."""

    time: TimeReply
    tf32: bool


class RefusalKind(enum.Enum):
    """Why a worker could not do a job, when the job itself is to blame and not the machine."""

    COMPILE = "compile"
    """The version does not compile or import."""
    RUNTIME = "runtime"
    """The version raised, faulted or exhausted memory."""
    WORKLOAD = "workload"
    """The workload cannot be built or called."""
    REFERENCE = "reference"
    """The baseline disagrees with its reference, or the output cannot serve as an oracle."""
    UNSUPPORTED = "unsupported"
    """The interpreter or this worker cannot tell (bf16 inside a body, inline assembly)."""
    ENVIRONMENT = "environment"
    """A module is missing in this interpreter."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The job could not be done; ``line`` is 0-based in the version's text where one is known."""

    kind: RefusalKind
    message: str
    line: int | None = None
    fatal: bool = False
    """The worker's device context is lost; the worker must be replaced."""


SingleReply: TypeAlias = (
    ProbeReply
    | CompileReply
    | InspectReply
    | TraceReply
    | CheckReply
    | BaselineReply
    | TimeReply
    | CompareReply
    | Refusal
)


@dataclass(frozen=True, slots=True)
class BatchReply:
    """Replies in the order of the batch; shorter than it if the last one is a refusal."""

    replies: tuple[SingleReply, ...]


Reply: TypeAlias = SingleReply | BatchReply


@dataclass(frozen=True, slots=True)
class Completed:
    """A worker answered."""

    reply: Reply
    wall_seconds: float


@dataclass(frozen=True, slots=True)
class Crashed:
    """The worker died; it has been replaced. ``detail`` is the tail of its stderr."""

    detail: str
    wall_seconds: float


@dataclass(frozen=True, slots=True)
class Expired:
    """The deadline passed; the worker's process group was killed and replaced."""

    deadline_seconds: float
    wall_seconds: float


JobResult: TypeAlias = Completed | Crashed | Expired
