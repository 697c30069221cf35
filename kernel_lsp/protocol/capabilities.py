"""What a client can do, read once from ``initialize``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from lsprotocol import types


@dataclass(frozen=True, slots=True)
class ClientFeatures:
    """Client capabilities that change what is sent."""

    document_changes: bool = False
    annotations: bool = False
    edit_metadata: bool = False
    disabled_actions: bool = False
    preferred_actions: bool = False
    resolves_edits: bool = False
    action_tags: bool = False
    progress: bool = False
    show_document: bool = False
    lens_refresh: bool = False
    configuration: bool = False
    watch_configuration: bool = False
    markdown_hover: bool = False
    diagnostic_data: bool = False
    diagnostic_related: bool = False
    diagnostic_help: bool = False
    """``codeDescription``."""
    hint_refresh: bool = False
    text_content: bool = False
    """``workspace/textDocumentContent``, registered dynamically."""
    diagnostic_versions: bool = False
    server_status: bool = False
    runs: bool = False
    """``experimental.kernelLsp.runs``: the editor draws runs itself."""
    review: bool = False
    """``experimental.kernelLsp.review``: the editor shows reviews itself."""


def read_features(capabilities: types.ClientCapabilities) -> ClientFeatures:
    """Everything unknown counts as lacking."""
    workspace = capabilities.workspace or types.WorkspaceClientCapabilities()
    document = capabilities.text_document or types.TextDocumentClientCapabilities()
    window = capabilities.window or types.WindowClientCapabilities()
    edit = workspace.workspace_edit or types.WorkspaceEditClientCapabilities()
    action = document.code_action or types.CodeActionClientCapabilities()
    diagnostics = document.publish_diagnostics or types.PublishDiagnosticsClientCapabilities()
    resolve = action.resolve_support
    hover = document.hover or types.HoverClientCapabilities()
    experimental = _mapping(capabilities.experimental)
    own = _mapping(experimental.get("kernelLsp"))
    watch = workspace.did_change_configuration
    lens = workspace.code_lens
    hints = workspace.inlay_hint
    content = workspace.text_document_content
    shows = window.show_document
    return ClientFeatures(
        document_changes=bool(edit.document_changes),
        annotations=bool(edit.document_changes and edit.change_annotation_support),
        edit_metadata=bool(edit.metadata_support),
        disabled_actions=bool(action.disabled_support),
        preferred_actions=bool(action.is_preferred_support),
        resolves_edits=bool(resolve and action.data_support and "edit" in resolve.properties),
        action_tags=bool(action.tag_support),
        progress=bool(window.work_done_progress),
        show_document=bool(shows and shows.support),
        lens_refresh=bool(lens and lens.refresh_support),
        configuration=bool(workspace.configuration),
        watch_configuration=bool(watch and watch.dynamic_registration),
        markdown_hover=types.MarkupKind.Markdown in (hover.content_format or ()),
        diagnostic_data=bool(diagnostics.data_support),
        diagnostic_related=bool(diagnostics.related_information),
        diagnostic_help=bool(diagnostics.code_description_support),
        hint_refresh=bool(hints and hints.refresh_support),
        text_content=bool(content and content.dynamic_registration),
        diagnostic_versions=bool(diagnostics.version_support),
        server_status=bool(experimental.get("serverStatusNotification")),
        runs=bool(own.get("runs")),
        review=bool(own.get("review")),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
