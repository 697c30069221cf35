"""Reading nvidia-smi's tables."""

from pathlib import Path

from search_engine.execution.gpu_load import gpu_load, parse

CARDS = "GPU-aaa, 97, 5120, 143771\nGPU-bbb, [N/A], 0, 143771\n"
PROCESSES = "GPU-aaa, 4242\nGPU-aaa, 17\nGPU-bbb, [N/A]\n"


def test_a_card_with_a_stranger_is_busy():
    load = parse("GPU-aaa", CARDS, PROCESSES)
    assert load is not None
    assert (load.utilization_percent, load.processes) == (97, (4242, 17))
    assert load.free_bytes == (143771 - 5120) * 1024**2
    assert load.busy(frozenset({17}))
    assert not load.busy(frozenset({17, 4242}))


def test_the_identifier_may_lack_its_prefix_and_figures_may_be_missing():
    load = parse("bbb", CARDS, PROCESSES)
    assert load is not None
    assert (load.utilization_percent, load.processes) == (0, ())
    assert not load.busy()


def test_an_unknown_card_is_none():
    assert parse("GPU-ccc", CARDS, PROCESSES) is None
    assert parse("GPU-aaa", "No devices were found\n", "") is None


async def test_without_nvidia_smi_there_is_no_answer(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await gpu_load("GPU-aaa") is None


async def test_a_failing_nvidia_smi_is_no_answer(monkeypatch, tmp_path: Path):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'couldn'\\''t communicate with the driver'\nexit 9\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await gpu_load("GPU-aaa") is None
