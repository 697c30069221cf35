"""What a worker may know of the server's environment."""

import pytest

from search_engine.execution.environment import scrubbed


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "GITHUB_TOKEN", "aws_secret_access", "DB_PASSWORD", "PYTHONHOME"]
)
def test_secrets_and_foreign_interpreter_settings_are_dropped(name: str):
    assert scrubbed({name: "x"}) == {}


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "CUDA_HOME", "TRITON_PTXAS_PATH", "TORCH_HOME", "LD_LIBRARY_PATH",
     "VIRTUAL_ENV", "PYTHONPATH"],
)  # fmt: skip
def test_what_torch_and_triton_need_is_kept(name: str):
    assert scrubbed({name: "x"}) == {name: "x"}
