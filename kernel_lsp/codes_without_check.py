"""Help for the findings that no check makes, in the form of the checks' docstrings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CodeHelp:
    """One code: its name, how loud it is, and its page."""

    code: str
    name: str
    severity: str
    text: str


CODES: tuple[CodeHelp, ...] = (
    CodeHelp(
        "KL001",
        "kernel-summary",
        "information",
        """One line on a kernel's name: what is known of it, and how many findings there are.

Cause
    Something is known: a search has ended, or the compiler's facts are there.

Fix
    Nothing to fix. "Show performance details" lists the findings line by line; the setting
    `kernelLsp.details` chooses between none, a summary and lines.

Shown when
    An editor shows summaries; the command line prints figures of every kernel instead.

False positives
    A fraction of the roofline is shown only if it was measured on this machine.
""",
    ),
    CodeHelp(
        "KL002",
        "no-data",
        "information",
        """Nothing is known about a kernel, and why.

Cause
    The file does not parse; no function in it launches the kernel; the workload does not run; a
    module is missing in the chosen interpreter; the target is unknown to the installed Triton; the
    workspace is not trusted; the compiler took more than a minute.

Fix
    The message names the remedy. `kernel-lsp doctor` says what an interpreter has; `--python` or
    the setting `kernelLsp.worker.python` chooses another.

Shown when
    A kernel has no facts. It goes away with them. What is true of a whole file is said once.

False positives
    None: it says what is missing, not what is wrong.
""",
    ),
    CodeHelp(
        "KL003",
        "stale-rewrite",
        "information",
        """A rewrite that was faster is not any more.

Cause
    Driver, compiler or card have changed since it was measured.

Fix
    Search again: "Optimize" in the editor, or `kernel-lsp optimize`.

Shown when
    Not yet: the code is reserved.

False positives
    None known.
""",
    ),
    CodeHelp(
        "KL101",
        "compile-error",
        "warning",
        """The kernel does not compile for a target, or its module cannot be imported.

Cause
    What the compiler says, on the line that it names. Limits of the target count: more shared
    memory than a block may have.

Fix
    Mend the line. Where only one of several targets refuses, smaller blocks or fewer stages for it.

Shown when
    The launch that a declared or recorded workload makes is refused by the compiler. A refusal of a
    launch that was inferred from the text is shown as `no-data` instead: the assumption may be at
    fault.

False positives
    Top-level code that needs a device fails here though it runs where there is one.
""",
    ),
    CodeHelp(
        "KL801",
        "workload-syntax",
        "warning",
        """A `kernel-lsp:` comment that cannot be read.

Cause
    The message says what was expected, and at which column.

Fix
    The grammar is in [workloads.md](workloads.md).

Shown when
    A comment begins with `kernel-lsp:` and is neither a declaration nor `ignore`, or a recorded
    workload cannot be read.

False positives
    None known.
""",
    ),
    CodeHelp(
        "KL802",
        "workload-mismatch",
        "warning",
        """A declaration that does not fit the function below it.

Cause
    It names an argument that the function does not have, leaves one out, or stands above something
    that launches no kernel.

Fix
    Use the function's own parameter names; put the comment directly above its decorators.

Shown when
    The names can be compared without running anything.

False positives
    None known.
""",
    ),
    CodeHelp(
        "KL803",
        "no-workload",
        "hint",
        """Nothing says how the kernel is called.

Cause
    No workload is declared above the function that launches it, and none was recorded.

Fix
    Write one, for example `# kernel-lsp: workload x=f32[4096,4096]`, or record one from a program
    that runs: `kernel-lsp record -- python bench.py`. See [workloads.md](workloads.md).

Shown when
    A function in the file launches the kernel and has no workload. Findings then rest on a launch
    that was inferred from the text, and say so.

False positives
    A kernel that nobody wants to optimise needs none: hide the code with `ignore`.
""",
    ),
)
