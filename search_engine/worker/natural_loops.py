"""Loops of a control-flow graph, found by dominators.

A branch to a lower address is no proof of a loop: the code that waits for a barrier stands behind
the end of a kernel and branches back.
"""

from __future__ import annotations

from collections.abc import Sequence

LEAST_INSTRUCTIONS = 8
"""Smaller loops are waits for a barrier, not loops of the source."""


def loop_depths(successors: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[int | None]:
    """Number of loops around each block; block 0 is the entry, None marks unreachable blocks.

    ``sizes`` are instructions per block. Loops of one header count as one.
    """
    order = _reverse_postorder(successors)
    dominators = _dominators(successors, order)
    bodies: dict[int, set[int]] = {}
    predecessors = _predecessors(successors, dominators)
    for block in order:
        for header in successors[block]:
            if _dominates(header, block, dominators):
                body = bodies.setdefault(header, {header})
                _collect(block, body, predecessors)
    kept = [b for b in bodies.values() if sum(sizes[i] for i in b) >= LEAST_INSTRUCTIONS]
    return [
        sum(block in body for body in kept) if block in dominators else None
        for block in range(len(successors))
    ]


def _reverse_postorder(successors: Sequence[Sequence[int]]) -> list[int]:
    seen = {0}
    order: list[int] = []
    stack = [(0, iter(successors[0]))] if successors else []
    while stack:
        block, rest = stack[-1]
        following = next((item for item in rest if item not in seen), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(successors[following])))
    return order[::-1]


def _predecessors(
    successors: Sequence[Sequence[int]], reachable: dict[int, int]
) -> dict[int, list[int]]:
    predecessors: dict[int, list[int]] = {}
    for block in reachable:
        for following in successors[block]:
            predecessors.setdefault(following, []).append(block)
    return predecessors


def _dominators(successors: Sequence[Sequence[int]], order: list[int]) -> dict[int, int]:
    """Immediate dominator of each reachable block (Cooper, Harvey and Kennedy)."""
    position = {block: index for index, block in enumerate(order)}
    predecessors = _predecessors(successors, position)
    parent = {0: 0} if order else {}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [item for item in predecessors[block] if item in parent]
            found = known[0]
            for other in known[1:]:
                found = _meet(found, other, parent, position)
            if parent.get(block) != found:
                parent[block] = found
                changed = True
    return parent


def _meet(one: int, other: int, parent: dict[int, int], position: dict[int, int]) -> int:
    while one != other:
        while position[one] > position[other]:
            one = parent[one]
        while position[other] > position[one]:
            other = parent[other]
    return one


def _dominates(above: int, block: int, parent: dict[int, int]) -> bool:
    while block != above and parent[block] != block:
        block = parent[block]
    return block == above


def _collect(block: int, body: set[int], predecessors: dict[int, list[int]]) -> None:
    """Add to a loop's body every block from which ``block`` is reached without its header."""
    pending = [block]
    while pending:
        item = pending.pop()
        if item not in body:
            body.add(item)
            pending.extend(predecessors.get(item, ()))
