"""Launches traced at real sizes: exact counts by line, and what is refused or noted.

Functions are interpreted from their decoration on, so the jobs run in one process of their own:
this file is also its program.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from search_engine.domain.access import LaunchTrace, LineAccess, OutOfBounds
from search_engine.domain.codec import decode, encode
from search_engine.domain.job import Refusal, RefusalKind, Source, TraceJob, TraceReply
from search_engine.domain.kernel import OperationKind
from search_engine.domain.workload import Workload
from search_engine.frontends.triton import parse_module
from search_engine.frontends.workload import parse_workloads

ROOT = Path(__file__).resolve().parents[3]
KERNELS = Path(__file__).with_name("traced_kernels.py")
TEXT = KERNELS.read_text()
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))


def _workloads(path: Path) -> list[Workload]:
    found, problems = parse_workloads(parse_module(path.read_text(), str(path)))
    assert not problems
    return list(found)


def _job(path: Path, workload: Workload, case: int = 0, **fields) -> TraceJob:
    source = Source("s", str(path.parent), str(path), path.stem, path.read_text(), workload.entry)
    return TraceJob(source, workload, case, **fields)


def _print(name: str, value, **more) -> None:
    print(json.dumps([name, encode(value), more]), flush=True)


def _serve() -> None:
    from search_engine.worker.trace import trace_launches

    before = _state()
    for workload in _workloads(KERNELS):
        _print(workload.entry, trace_launches(_job(KERNELS, workload)))
    _print("gradient", trace_launches(_gradient_job()))
    few = next(w for w in _workloads(KERNELS) if w.entry == "strided_store")
    _print("few programs", trace_launches(_job(KERNELS, few, most_programs=3)))
    _print("little time", trace_launches(_job(KERNELS, few, seconds=0.0)))
    for path in EXAMPLES:
        for workload in _workloads(path):
            started = time.monotonic()
            replies = [
                trace_launches(_job(path, workload, i, most_programs=2)) for i in workload.timed
            ]
            name = f"{path.parent.name}/{path.stem}"
            print(f"{name}: {time.monotonic() - started:.2f} s")
            _print(name, replies)
    after = _state()
    changed = [name for name in {*before, *after} if before.get(name) != after.get(name)]
    _print("left as it was", sorted(changed))
    _print("interpreted afterwards", _interpreted())
    _print("reductions", _reductions_agree())


def _gradient_job() -> TraceJob:
    from search_engine.domain.workload import WorkloadSource
    from tests.search_engine.worker.versions import case

    workload = Workload(
        "Doubled", WorkloadSource.DECLARED, (case("x=f32[1000]"),),
        call="Doubled.apply(x)", gradients=("x",),
    )  # fmt: skip
    return _job(KERNELS, workload)


def _state() -> dict[str, object]:
    """Everything that a trace replaces, after what Triton's own launches leave patched."""
    import torch
    from triton import language
    from triton.language import core
    from triton.language.extra import libdevice
    from triton.runtime import driver, interpreter

    owners = {
        "builder": interpreter.InterpreterBuilder, "executor": interpreter.GridExecutor,
        "function": interpreter.InterpretedFunction, "interpreter": interpreter,
        "reduce": interpreter.ReduceOps, "scan": interpreter.ScanOps, "language": language,
        "core": core, "tensor": core.tensor, "block": core.block_type, "cuda": torch.cuda,
        "libdevice": libdevice, "options": interpreter.interpreter_builder,
    }  # fmt: skip
    # Set by launches, by ``repair``, by Python when asked; a cache of library functions.
    names = ("grid_dim", "grid_idx", "_patch_lang_tensor", "__annotations__", "__dict__",
             "rewritten_fn")  # fmt: skip
    values = {
        f"{owner}.{name}": getattr(item, name, None)
        for owner, item in owners.items()
        for name in dir(item)
        if name not in names
    }
    values["driver"] = repr(vars(driver))
    return {
        name: value if inspect.isroutine(value) or inspect.isclass(value) else repr(value)
        for name, value in values.items()
        if not inspect.ismodule(value)
    }


def _interpreted():
    """A check of the same module after its traces."""
    from search_engine.domain.job import InterpretJob
    from search_engine.worker.interpreter import interpret
    from tests.search_engine.worker.versions import workload

    source = _job(KERNELS, _workloads(KERNELS)[0]).source
    source = Source(**{**{n: getattr(source, n) for n in Source.__slots__}, "entry": "run"})
    text = TEXT.replace("DEVICE = triton", "DEVICE = 0 and triton").replace(
        "PROCESSORS = torch", "PROCESSORS = 0 and torch"
    )
    text += "\n\ndef run(x):\n    out = torch.empty_like(x)\n"
    text += "    three_pass_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)\n    return out\n"
    source = Source(source.id, source.root, source.path, source.module, text, "run")
    declared = workload("x=f32[64,1000]", reference="torch.softmax(x, -1)")
    return interpret(InterpretJob(source, source, declared, 3))


def _reductions_agree() -> bool:
    """Combining slices gives what the interpreter computes one element after the other."""
    import torch
    from triton.runtime import interpreter

    from search_engine.worker.interpreter_hooks import replaced
    from search_engine.worker.trace_reductions import replacements
    from tests.search_engine.worker import reducing_kernels

    slow = reducing_kernels.results()
    made = replacements(lambda: None)
    assert all(owner in (interpreter.ReduceOps, interpreter.ScanOps) for owner, _, _ in made)
    with replaced(*made[0]), replaced(*made[1]):
        fast = reducing_kernels.results()
    return len(slow) > 8 and all(map(torch.equal, slow, fast))


@pytest.fixture(scope="module")
def replies():
    pytest.importorskip("triton")
    environment = {
        **os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, __file__],
        env=environment, capture_output=True, text=True, timeout=220, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    print("\n".join(line for line in done.stdout.splitlines() if not line.startswith("[")))
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return {name: value for name, value, _ in lines}


def _launches(replies, name: str) -> tuple[LaunchTrace, ...]:
    reply = decode(TraceReply | Refusal, replies[name])
    assert isinstance(reply, TraceReply), reply
    return reply.launches


def _refusal(replies, name: str) -> Refusal:
    reply = decode(TraceReply | Refusal, replies[name])
    assert isinstance(reply, Refusal), reply
    return reply


def _only(replies, name: str) -> LaunchTrace:
    (launch,) = _launches(replies, name)
    return launch


def _line(mark: str) -> int:
    (line,) = [i for i, text in enumerate(TEXT.splitlines()) if text.endswith(f"# {mark}")]
    return line


def _at(launch: LaunchTrace, mark: str) -> LineAccess:
    (access,) = [access for access in launch.accesses if access.line == _line(mark)]
    return access


def _iterations(launch: LaunchTrace) -> dict[int, tuple[float, int]]:
    return {loop.line: (loop.mean_iterations, loop.most_iterations) for loop in launch.loops}


def test_masked_lanes_and_bytes_are_counted(replies):
    launch = _only(replies, "one_block_per_image")
    assert (launch.kernel, launch.grid, launch.sampled) == ("add_kernel", (1, 1, 1), 1)
    assert launch.notes == ()
    access = _at(launch, "add x")
    assert (access.kind, access.argument) == (OperationKind.LOAD, "x_ptr")
    assert (access.lanes, access.active_lanes) == (262144, 150528)
    assert access.bytes == access.distinct_bytes == access.tensor_bytes == 4 * 150528
    assert access.sectors == access.least_sectors == 4 * 150528 // 32
    assert (access.executions, access.empty_executions, access.stride_elements) == (1, 0, 1)
    assert access.out_of_bounds is None


def test_launches_in_a_host_loop_are_counted_at_their_line(replies):
    launch = _only(replies, "one_block_per_image")
    assert launch.in_host_loop == 4
    assert launch.line == _line("add launch")


def test_a_strided_store_uses_four_of_every_32_bytes(replies):
    launch = _only(replies, "strided_store")
    assert launch.grid == (4096, 1, 1) and launch.programs == 4096
    access = _at(launch, "strided store")
    assert access.kind is OperationKind.STORE and access.argument == "out_ptr"
    assert access.stride_elements == 4096
    assert access.sectors == access.active_lanes == launch.sampled * 1024
    assert access.least_sectors * 8 == access.sectors
    assert access.distinct_bytes == access.bytes == 4 * access.active_lanes


def test_the_sample_is_limited_by_number_and_time(replies):
    assert _only(replies, "strided_store").sampled == 24
    assert _only(replies, "few programs").sampled == 3
    assert _only(replies, "little time").sampled == 1


def test_each_pass_over_a_row_reads_it(replies):
    launch = _only(replies, "three_pass")
    assert launch.sampled == 12
    loads = [access for access in launch.accesses if access.kind is OperationKind.LOAD]
    assert len(loads) == 3 and {access.argument for access in loads} == {"x_ptr"}
    for access in loads:
        assert access.bytes == access.distinct_bytes == access.tensor_bytes == 48000
        assert (access.executions, access.lanes, access.active_lanes) == (48, 12 * 1024, 12000)
    headers = [_line(f"pass {i}") for i in (1, 2, 3)]
    assert _iterations(launch) == dict.fromkeys(headers, (4.0, 4))


def test_lanes_out_of_bounds_are_counted_with_an_example(replies):
    launch = _only(replies, "out_of_bounds")
    unmasked = _at(launch, "no mask").out_of_bounds
    assert unmasked == OutOfBounds(24, "x_ptr", (7, 0, 0), 96)
    before = _at(launch, "before the start").out_of_bounds
    assert before == OutOfBounds(1, "x_ptr", (0, 0, 0), -4)
    off_by_one = _at(launch, "off by one").out_of_bounds
    assert off_by_one == OutOfBounds(1, "out_ptr", (7, 0, 0), 4)


def test_an_index_that_overflows_32_bits_lies_before_the_tensor(replies):
    launch = _only(replies, "overflowing_index")
    (access,) = launch.accesses
    assert access.tensor_bytes == 6_000_000_000
    found = access.out_of_bounds
    assert found is not None and found.argument == "x_ptr" and found.bytes_past < -(1 << 30)
    assert found.program[0] * 1024 >= 1 << 31
    assert 0 < found.lanes < access.active_lanes and found.lanes % 1024 == 0


def test_fully_masked_iterations_are_empty_executions(replies):
    launch = _only(replies, "causal")
    assert (launch.grid, launch.sampled) == ((8, 1, 1), 8)
    access = _at(launch, "causal load")
    assert (access.executions, access.empty_executions) == (64, 28)
    assert (access.lanes, access.active_lanes) == (256 * 256, 256 * 257 // 2)
    assert _iterations(launch) == {_line("causal loop"): (8.0, 8)}


def test_atomics_count_accesses_of_one_address(replies):
    access = _at(_only(replies, "one_bin"), "count")
    assert access.kind is OperationKind.ATOMIC
    assert (access.most_same_address, access.active_lanes, access.distinct_bytes) == (5000, 5000, 4)
    access = _at(_only(replies, "own_bins"), "count")
    assert (access.most_same_address, access.distinct_bytes) == (1, 20000)


def test_values_of_a_tensor_too_large_to_build_are_drawn_as_declared(replies):
    launch = _only(replies, "large_indices")
    access = _at(launch, "count")
    assert access.active_lanes == launch.sampled * 1024
    assert access.distinct_bytes == 4 * 256
    even = access.active_lanes / 256
    assert even < access.most_same_address < 2 * even
    assert launch.notes == () and access.out_of_bounds is None


def test_values_that_a_kernel_made_are_noted_where_they_decide_addresses(replies):
    first, second = _launches(replies, "indices_from_a_kernel")
    assert first.notes == ()
    assert second.line == _line("unknown indices")
    (note,) = second.notes
    assert "`x_ptr`" in note and "taken as zero" in note


def test_loops_count_iterations_of_a_program(replies):
    launch = _only(replies, "loops")
    assert launch.sampled == 4
    assert _iterations(launch) == {
        _line("outer"): (5.0, 5), _line("inner"): (15.0, 15), _line("countdown"): (1.5, 3),
        _line("never"): (0.0, 0),
    }  # fmt: skip


def test_lanes_run_along_the_axis_with_the_smallest_step(replies):
    for name in ("rows_in_order", "columns_in_order"):
        access = _at(_only(replies, name), "tile")
        assert (access.lanes, access.stride_elements) == (2048, 1), name
        assert access.sectors == access.least_sectors == 256, name
    access = _at(_only(replies, "nothing_in_order"), "tile")
    assert (access.sectors, access.least_sectors, access.stride_elements) == (2048, 256, 256)


def test_an_access_in_a_helper_is_on_the_helpers_line_by_argument(replies):
    launch = _only(replies, "helper")
    found = {a.argument: a for a in launch.accesses if a.line == _line("helper load")}
    assert set(found) == {"x_ptr", "y_ptr"}
    assert (found["x_ptr"].element_bytes, found["x_ptr"].bytes) == (2, 200)
    assert (found["y_ptr"].element_bytes, found["y_ptr"].bytes) == (4, 400)


def test_descriptors_and_block_pointers_are_seen(replies):
    launch = _only(replies, "blocks")
    load, store = _at(launch, "descriptor"), _at(launch, "block pointer")
    assert (load.argument, load.element_bytes, load.tensor_bytes) == ("described", 2, 19200)
    assert (load.lanes, load.active_lanes) == (4096, 3200)
    assert (store.argument, store.active_lanes, store.out_of_bounds) == ("out_ptr", 3200, None)


def test_an_autotuned_kernel_takes_the_first_configuration_that_pruning_leaves(replies):
    launch = _only(replies, "tuned")
    assert launch.grid == (4, 1, 1)
    assert _at(launch, "uneven").lanes == 2048
    assert not [access for access in launch.accesses if access.line == _line("even")]


def test_values_that_the_entry_computes_are_known(replies):
    launch = _only(replies, "segments")
    assert launch.sampled == 10 and launch.notes == ()
    assert _iterations(launch) == {_line("segment loop"): (100.0, 100)}


def test_pointers_from_a_table_lead_to_their_tensors(replies):
    first, second = [
        access
        for access in _only(replies, "pointer_table").accesses
        if access.kind is OperationKind.STORE
    ]
    found = {access.tensor_bytes: access for access in (first, second)}
    assert found[400].out_of_bounds == OutOfBounds(1, None, (0, 0, 0), 4)
    assert found[800].out_of_bounds is None and found[800].active_lanes == 200


def test_parts_of_one_tensor_keep_their_names(replies):
    launch = _only(replies, "parts_of_one_tensor")
    assert [access.argument for access in launch.accesses] == ["x_ptr", "y_ptr", "out_ptr"]
    for access in launch.accesses:
        assert (access.element_bytes, access.bytes, access.tensor_bytes) == (2, 256, 256)


def test_floats_that_decide_what_is_accessed_are_drawn_and_noted(replies):
    launch = _only(replies, "threshold")
    (note,) = launch.notes
    assert "loaded floats" in note and "random" in note
    access = _at(launch, "above")
    assert 0.4 < access.active_lanes / 8000 < 0.6


def test_floats_that_decide_no_access_are_not_noted(replies):
    launch = _only(replies, "compares_values_only")
    assert launch.notes == ()
    assert [access.active_lanes for access in launch.accesses] == [8000, 8000]


def test_programs_that_wait_for_others_end(replies):
    spin, locked, handed_out = _launches(replies, "synchronising")
    assert any("waits" in note for note in spin.notes)
    assert locked.notes == () and _iterations(locked) == {}
    mean, most = _iterations(handed_out)[_line("handed out")]
    assert (mean, most, handed_out.sampled) == (25.0, 100, 4)


def test_what_programs_leave_for_each_other_in_single_cells_is_kept(replies):
    launch = _only(replies, "accumulates_under_a_lock")
    assert launch.notes == () and launch.sampled == 6
    assert _at(launch, "not the first").executions == 5


def test_lanes_of_one_access_to_two_tensors_are_told_apart(replies):
    launch = _only(replies, "pointers_of_two_tensors")
    found = {a.argument: a for a in launch.accesses if a.kind is OperationKind.LOAD}
    assert set(found) == {"x_ptr", "y_ptr"}
    assert [found[n].active_lanes for n in ("x_ptr", "y_ptr")] == [16, 32]
    assert sum(access.lanes for access in found.values()) == 64
    assert all(access.out_of_bounds is None for access in found.values())


def test_inline_assembly_is_refused_where_it_decides_addresses(replies):
    launch = _only(replies, "assembly_of_values")
    assert [access.bytes for access in launch.accesses] == [256, 256] and launch.notes == ()
    refusal = _refusal(replies, "assembly_of_addresses")
    assert refusal.kind is RefusalKind.UNSUPPORTED and "inline assembly" in refusal.message
    assert refusal.line == _line("assembly launch")


def test_the_entry_may_ask_for_the_card_and_for_a_compiled_kernel(replies):
    launch = _only(replies, "asks_the_card")
    assert launch.grid == (132 * 8, 1, 1)
    assert any("registers" in note for note in launch.notes)


def test_values_on_the_host_are_built_if_they_are_few_and_declared(replies):
    assert _only(replies, "reads_a_float").grid == (1, 1, 1)
    refusal = _refusal(replies, "reads_a_float_of_many")
    assert refusal.kind is RefusalKind.UNSUPPORTED and "values" in refusal.message
    assert refusal.line == _line("reads")


def test_launches_before_a_result_is_read_are_kept(replies):
    launch = _only(replies, "reads_a_result")
    assert any("launches after that are missing" in note for note in launch.notes)


def test_what_the_version_does_wrong_is_refused(replies):
    assert _refusal(replies, "launches_nothing").kind is RefusalKind.WORKLOAD
    refusal = _refusal(replies, "raises")
    assert refusal.kind is RefusalKind.RUNTIME and "no way" in refusal.message
    refusal = _refusal(replies, "name_is_lost")
    assert refusal.kind is RefusalKind.RUNTIME and "lost" in refusal.message


def test_backward_is_traced_for_declared_gradients(replies):
    forward, backward = _launches(replies, "gradient")
    assert (forward.line, forward.grid) == (_line("forward launch"), (4, 1, 1))
    assert (backward.line, backward.grid) == (_line("backward launch"), (2, 1, 1))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_examples_are_traced_at_their_declared_sizes(path, replies):
    found = replies[f"{path.parent.name}/{path.stem}"]
    assert found
    for data in found:
        reply = decode(TraceReply | Refusal, data)
        assert isinstance(reply, TraceReply), reply
        for launch in reply.launches:
            assert launch.sampled and launch.accesses and launch.notes == ()
            assert all(access.argument is not None for access in launch.accesses)
            assert all(access.out_of_bounds is None for access in launch.accesses)


def test_a_trace_leaves_the_interpreter_as_it_was(replies):
    assert replies["left as it was"] == []
    checked = replies["interpreted afterwards"]
    assert checked["type"] == "CheckReply" and checked["mismatch"] is None, checked
    assert len(checked["comparisons"]) >= 2


def test_reductions_by_slices_agree_with_the_interpreter(replies):
    assert replies["reductions"] is True


if __name__ == "__main__":
    _serve()
