"""A last wave that runs nearly empty is named, if waves are few and programs alike."""

from __future__ import annotations

from launch_subjects import ROW_KERNEL, code, line_of, load, make_subject, run, trace

from search_engine.domain.access import LoopTrace
from search_engine.domain.finding import Finding
from search_engine.findings.wave_quantization import WaveQuantization

LAUNCH = line_of(ROW_KERNEL, "row_kernel[")
LOAD = line_of(ROW_KERNEL, "x = tl.load")


def waves(
    programs: int, *, shared: int = 160_000, n: int = 65_536, loops: tuple[LoopTrace, ...] = ()
) -> list[Finding]:
    """Programs of which ``shared`` bytes of shared memory let one or more on a processor."""
    grid = (programs, 1, 1)
    access = load(LOAD, executions=24 * n // 1024, lanes=24 * n, tensor_bytes=4 * programs * n)
    traces = (trace(LAUNCH, grid, access, loops=loops),)
    launches = (code(LAUNCH, grid, shared=shared),)
    return run(WaveQuantization(), make_subject(ROW_KERNEL, traces, launches))


def test_four_programs_too_many_cost_a_second_wave() -> None:
    (found,) = waves(136)
    assert found.message == "1.03 waves: the last runs 4 of 132 programs"
    assert ROW_KERNEL[found.start : found.end] == "(x.shape[0],)"
    assert 0.3 < found.cost < 0.5
    assert found.facts["tail"] == 4


def test_whole_waves_are_silent() -> None:
    assert waves(132) == []
    assert waves(264) == []


def test_many_waves_are_silent() -> None:
    assert waves(132 * 20 + 4) == []


def test_turns_of_a_processor_count_and_not_places() -> None:
    # 12 places a processor: 1.03 waves, but a processor has 13 turns where 12.4 would do.
    assert waves(1632, shared=18_000) == []


def test_programs_of_different_length_even_out() -> None:
    assert waves(136, loops=(LoopTrace(8, 10.0, 20),)) == []


def test_programs_that_are_over_at_once_are_silent() -> None:
    assert waves(136, n=1024) == []
