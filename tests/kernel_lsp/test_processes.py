"""Killing a whole tree, whatever groups and sessions its members have made."""

import subprocess
import sys
import time

from lsp_wire import alive

from kernel_lsp.processes import descendants, kill_tree

TREE = """
import subprocess, sys, time
children = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
            start_new_session=True) for _ in range(2)]
print(*(child.pid for child in children), flush=True)
time.sleep(600)
"""


def test_children_in_other_sessions_die_too():
    parent = subprocess.Popen(
        [sys.executable, "-c", TREE], stdout=subprocess.PIPE, start_new_session=True
    )
    children = [int(pid) for pid in parent.stdout.readline().split()]
    assert set(children) <= set(descendants(parent.pid))
    kill_tree(parent.pid)
    parent.wait(5)
    end = time.monotonic() + 5
    while any(alive(pid) for pid in children) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(alive(pid) for pid in children)


def test_a_dead_process_is_no_error():
    done = subprocess.Popen(["true"])
    done.wait()
    kill_tree(done.pid)
