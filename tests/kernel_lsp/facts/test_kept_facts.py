"""What is kept in memory, and for how long."""

from dataclasses import replace

import fake_facts_host

from kernel_lsp.facts.places import keep
from kernel_lsp.facts.store import KEPT, FactsStore, ignore_texts, unit_key
from kernel_lsp.snapshot import analyse
from search_engine.domain.facts_message import FactsRequest
from search_engine.frontends.triton import parse_module


def snapshot_of(text):
    return analyse("file:///w/k.py", "/w/k.py", "/w", 1, text)


def facts_of(text):
    module = parse_module(text, "/w/k.py")
    answer = fake_facts_host.figures(
        FactsRequest("1", "/w/k.py", "/w", text), module.units[0], module, "sm_90"
    )
    snapshot = snapshot_of(text)
    return keep(answer, snapshot, snapshot.units[0])


def test_a_store_forgets_the_least_used(kernel):
    store, kept = FactsStore(), facts_of(kernel)
    snapshot = snapshot_of(kernel)
    view = snapshot.units[0]
    store.put("first", "sm_90", kept, ())
    for number in range(KEPT - 1):
        store.put(f"k{number}", "sm_90", kept, ())
    assert store.placed(snapshot, view, "first", "sm_90") is not None
    store.put("one more", "sm_90", kept, ())
    assert len(store) == KEPT
    assert store.has("first", "sm_90", ()) and not store.has("k0", "sm_90", ())


def test_a_comment_that_is_gone_means_that_something_is_missing(kernel):
    hidden = kernel.replace("mask = offsets < n", "mask = offsets < n  # kernel-lsp: ignore[KL112]")
    before, after = ignore_texts(snapshot_of(hidden)), ignore_texts(snapshot_of(kernel))
    assert before == ("# kernel-lsp: ignore[KL112]",) and after == ()
    store = FactsStore()
    store.put("k", "sm_90", facts_of(hidden), before)
    assert store.has("k", "sm_90", before) and not store.has("k", "sm_90", after)
    store.put("k", "sm_90", facts_of(kernel), after)
    assert store.has("k", "sm_90", before), "hiding needs no compiler"


def test_facts_depend_on_sizes_and_not_on_lines(kernel):
    key = unit_key(snapshot_of(kernel).units[0], "/w")
    assert unit_key(snapshot_of("\n\n" + kernel).units[0], "/w") == key
    assert unit_key(snapshot_of(kernel).units[0], "/v") != key
    for other in ("f32[1001]", "f16[1000]"):
        changed = snapshot_of(kernel.replace("f32[1000]", other)).units[0]
        assert unit_key(changed, "/w") != key
    bare = snapshot_of(kernel.replace("# kernel-lsp: workload x=f32[1000]\n", "")).units[0]
    assert unit_key(bare, "/w") != key


def test_new_facts_replace_placed_ones(kernel):
    store, kept = FactsStore(), facts_of(kernel)
    snapshot = snapshot_of(kernel)
    view = snapshot.units[0]
    store.put("k", "sm_90", kept, ())
    assert len(store.placed(snapshot, view, "k", "sm_90").findings) == 7
    fewer = replace(kept, answer=replace(kept.answer, findings=()), anchors=(), related=())
    store.put("k", "sm_90", fewer, ())
    assert store.placed(snapshot, view, "k", "sm_90").findings == ()
