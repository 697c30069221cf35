"""The main path with a typed client, under the capabilities of real editors."""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Union

import pytest
import pytest_lsp
from conftest_kernel import KERNEL
from lsp_wire import SERVER
from lsprotocol import types as t
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

pytestmark = pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning")

EDITORS = ("visual-studio-code", "neovim@v0.11", "emacs")


def repair_code_actions(client: LanguageClient) -> None:
    """lsprotocol reads an action that carries a command as a bare command."""
    converter = client.protocol._converter

    def read(data, _):
        kind = t.Command if isinstance(data.get("command"), str) else t.CodeAction
        return converter.structure(data, kind)

    converter.register_structure_hook(Union[t.Command, t.CodeAction], read)  # noqa: UP007


@pytest_lsp.fixture(
    params=EDITORS,
    config=ClientServerConfig(
        server_command=[sys.executable, str(SERVER)],
        server_env={**os.environ, "XDG_STATE_HOME": tempfile.mkdtemp()},
    ),
)
async def client(request, lsp_client: LanguageClient):
    lsp_client.applied = []
    repair_code_actions(lsp_client)

    @lsp_client.feature(t.WORKSPACE_APPLY_EDIT)
    def _(params: t.ApplyWorkspaceEditParams):
        lsp_client.applied.append(params.edit)
        return t.ApplyWorkspaceEditResult(applied=False)

    @lsp_client.feature(t.CLIENT_REGISTER_CAPABILITY)
    def _(params: t.RegistrationParams):
        return None

    @lsp_client.feature(t.WORKSPACE_CODE_LENS_REFRESH)
    def _(params):
        return None

    lsp_client.set_configuration(
        {
            "kernelLsp": {
                "device": "0",
                "trust": "always",
                "details": "perLine",
                "worker": {"env": {"FAKE_FACTS": "figures"}},
            }
        }
    )
    await lsp_client.initialize_session(
        t.InitializeParams(capabilities=client_capabilities(request.param))
    )
    yield
    await lsp_client.shutdown_session()


async def progress_ended(client: LanguageClient) -> None:
    for _ in range(200):
        (reports,) = client.progress_reports.values()
        kinds = [report.kind for report in reports]
        if kinds[-1] == "end":
            break
        await asyncio.sleep(0.05)
    assert kinds[0] == "begin" and kinds[-1] == "end" and kinds.count("end") == 1


async def test_find_resolve_and_undo(client: LanguageClient, tmp_path):
    uri = Path(tmp_path / "k.py").as_uri()
    client.text_document_did_open(
        t.DidOpenTextDocumentParams(t.TextDocumentItem(uri, "python", 0, KERNEL))
    )
    for _ in range(400):
        shown = {d.code: d for d in client.diagnostics.get(uri, ())}
        if "KL105" in shown:
            break
        await asyncio.sleep(0.05)
    publishing = client.capabilities.text_document.publish_diagnostics
    load = shown["KL105"]
    assert bool(load.related_information) == bool(publishing.related_information)
    assert load.code_description is None or publishing.code_description_support
    here = t.Range(t.Position(8, 0), t.Position(8, 0))
    request = t.CodeActionParams(
        t.TextDocumentIdentifier(uri), here, t.CodeActionContext(diagnostics=[])
    )

    async def actions():
        found = await client.text_document_code_action_async(request)
        return {action.title: action for action in found}

    command = t.ExecuteCommandParams(
        "kernelLsp.optimize", [{"uri": uri, "kernel": "double_kernel"}]
    )
    for _ in range(100):  # settings arrive after the first answers
        started = await client.workspace_execute_command_async(command)
        if "runId" in started:
            break
        await asyncio.sleep(0.05)
    title = "Apply 1.82x rewrite of double_kernel"
    for _ in range(200):
        if title in await actions():
            break
        await asyncio.sleep(0.05)
    action = (await actions())[title]
    if action.command is not None:  # this client cannot resolve edits: a command applies instead
        argument = t.ExecuteCommandParams(action.command.command, action.command.arguments)
        assert (await client.workspace_execute_command_async(argument))["applied"] is False
        edit = client.applied[0]
    else:
        edit = (await client.code_action_resolve_async(action)).edit
    versioned = client.capabilities.workspace.workspace_edit.document_changes
    assert bool(edit.document_changes) == bool(versioned)
    if versioned:
        (change,) = edit.document_changes
        assert change.text_document.version == 0
        edits = change.edits
    else:
        edits = edit.changes[uri]
    assert "BLOCK = 256" in "".join(e.new_text for e in edits)
    await progress_ended(client)
    client.text_document_did_close(t.DidCloseTextDocumentParams(t.TextDocumentIdentifier(uri)))
