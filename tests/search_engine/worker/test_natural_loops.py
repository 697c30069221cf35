"""Loops by dominators: nesting, several back edges, waits, code that no branch reaches."""

from search_engine.worker.natural_loops import loop_depths


def test_nested_loops_add_up():
    #           0 -> 1 -> 2 -> 2 | 1 | 3
    successors = [[1], [2], [2, 1, 3], []]
    assert loop_depths(successors, [10, 10, 10, 10]) == [0, 1, 2, 0]


def test_two_back_edges_to_one_header_are_one_loop():
    successors = [[1], [2, 3], [1], [1, 4], []]
    assert loop_depths(successors, [10] * 5) == [0, 1, 1, 1, 0]


def test_a_short_wait_is_no_loop_and_code_behind_the_end_may_be_part_of_one():
    successors = [[1], [1, 2], [4], [], [2, 3]]
    assert loop_depths(successors, [20, 3, 20, 20, 20]) == [0, 0, 1, 0, 1]


def test_a_jump_to_a_lower_address_is_no_loop():
    successors = [[2], [3], [1], []]
    assert loop_depths(successors, [20] * 4) == [0, 0, 0, 0]


def test_what_no_branch_reaches_has_no_depth():
    assert loop_depths([[], [1]], [10, 10]) == [0, None]
    assert loop_depths([], []) == []
