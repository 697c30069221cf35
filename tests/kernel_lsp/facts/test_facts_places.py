"""Facts go where their statements are in the present text."""

import fake_facts_host
import pytest

from kernel_lsp.facts.places import keep, line_map, place
from kernel_lsp.snapshot import analyse
from search_engine.domain.facts_message import FactsRequest
from search_engine.frontends.triton import parse_module


def snapshot_of(text):
    return analyse("file:///w/k.py", "/w/k.py", "/w", 1, text)


def kept_facts(text):
    """What the fake compiler says of the kernel in ``text``."""
    request = FactsRequest("1", "/w/k.py", "/w", text)
    module = parse_module(text, "/w/k.py")
    answer = fake_facts_host.figures(request, module.units[0], module, "sm_90")
    snapshot = snapshot_of(text)
    return keep(answer, snapshot, snapshot.units[0])


def texts_at(facts, snapshot):
    """The text under each finding, by code."""
    data = snapshot.text.encode()
    return {f.code: data[f.start : f.end].decode() for f in facts.findings}


def placed(kernel, new):
    snapshot = snapshot_of(new)
    assert snapshot.units[0].hash == snapshot_of(kernel).units[0].hash, "not the same unit"
    return place(kept_facts(kernel), snapshot, snapshot.units[0]), snapshot


@pytest.mark.parametrize(
    "change",
    [
        lambda k: k,
        lambda k: "# é😀\n\n" + k,
        lambda k: k.replace("\n", "\r\n"),
        lambda k: k.replace("# kernel-lsp: workload", "# more\n# kernel-lsp: workload"),
        lambda k: k + "\n\ndef other():\n    pass\n",
    ],
    ids=["same", "above", "line ends", "between", "below"],
)
def test_a_unit_that_moved_takes_its_facts_along(kernel, change):
    facts, snapshot = placed(kernel, change(kernel))
    found = texts_at(facts, snapshot)
    assert found["KL105"] == "x = tl.load(x_ptr + offsets, mask=mask)"
    assert found["KL104"].startswith("def double_kernel(")
    assert len(facts.findings) == 7
    load = next(f for f in facts.findings if f.code == "KL105")
    (related,) = load.related
    data = snapshot.text.encode()
    assert data[related.start : related.end].startswith(b"double_kernel[")
    assert snapshot.lines[related.line].lstrip().startswith("double_kernel[")
    lines = {access.line for access in facts.summary.accesses}
    assert all("tl." in snapshot.lines[line] for line in lines) and len(lines) == 2


def test_the_order_of_definitions_does_not_matter(kernel):
    head, entry = kernel.split("# kernel-lsp: workload")
    imports, body = head.split("@triton.jit")
    turned = f"{imports}# kernel-lsp: workload{entry}\n\n@triton.jit{body}"
    facts, snapshot = placed(kernel, turned)
    assert texts_at(facts, snapshot)["KL107"].startswith("tl.store(")


def test_a_reformatted_unit_keeps_facts_on_their_statements(kernel):
    new = kernel.replace("    mask = offsets < n\n", "    # why\n\n    mask = (offsets<n)\n")
    wrapped = "tl.load(\n        x_ptr+offsets,\n        mask=mask,\n    )"
    new = new.replace("tl.load(x_ptr + offsets, mask=mask)", wrapped)
    facts, snapshot = placed(kernel, new)
    found = texts_at(facts, snapshot)
    assert found["KL105"] == "x = tl.load("
    assert found["KL112"] == "mask = (offsets<n)"
    assert found["KL107"].startswith("tl.store(")


def test_lines_outside_the_unit_have_no_place_unless_they_warn(kernel):
    above = f"X = tl.load\nmask =  1\n\n\n{kernel}"
    snapshot = snapshot_of(above)
    kept = kept_facts(kernel)
    assert all(anchor is not None for anchor in kept.anchors)
    lost = keep(kept.answer, snapshot, snapshot.units[0])  # as if it were about that text
    facts = place(lost, snapshot, snapshot.units[0])
    assert not any(f.line < 3 for f in facts.findings)
    assert "KL251" in {f.code for f in facts.findings}


def test_other_words_are_no_formatting():
    old = ("a = b\n", "c = d\n")
    assert line_map(old, ("a = b\n", "# e\n", "c = d\n")) == (0, 2)
    assert line_map(old, ("a = b\n", "c = d + e\n")) is None
