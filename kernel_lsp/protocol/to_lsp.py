"""Our values to LSP, in the negotiated encoding and for the capabilities of the client."""

from __future__ import annotations

from dataclasses import dataclass

from lsprotocol import types

from kernel_lsp.client import FileEdit
from kernel_lsp.documents import Document
from kernel_lsp.features.action import Action, Command
from kernel_lsp.features.diagnostics import SOURCE, Diagnostic
from kernel_lsp.features.hover import Hover
from kernel_lsp.features.inlay_hints import InlayHint
from kernel_lsp.features.lenses import Lens
from kernel_lsp.help_pages import help_page
from kernel_lsp.positions import Encoding, body, units
from kernel_lsp.protocol.capabilities import ClientFeatures
from kernel_lsp.snapshot import Snapshot

FALLBACK_COMMANDS = {
    "apply": "kernelLsp.apply",
    "declare": "kernelLsp.declareWorkload",
    "ignore": "kernelLsp.ignore",
}
"""For clients that cannot resolve an action's edit."""


@dataclass(frozen=True, slots=True)
class Locator:
    """Byte offsets of a snapshot to ranges in the present text.

    ``document`` None means that the snapshot is the present text.
    """

    snapshot: Snapshot
    document: Document | None
    encoding: Encoding

    def range(self, start: int, end: int) -> types.Range:
        """Range of the bytes ``[start, end)``, moved by the edits since the snapshot."""
        found = self.snapshot.range(start, end, self.encoding)
        first = self._position(found.start.line, found.start.character)
        last = self._position(found.end.line, found.end.character)
        return types.Range(first, max(first, last))

    def _position(self, line: int, character: int) -> types.Position:
        document = self.document
        if document is None or document.version == self.snapshot.version:
            return types.Position(line, character)
        now = document.current_line(line, self.snapshot.version)
        longest = units(body(document.lines[now]), self.encoding)
        return types.Position(now, min(character, longest))


def diagnostic(
    value: Diagnostic, locator: Locator, features: ClientFeatures, help_url: str | None = None
) -> types.Diagnostic:
    """One diagnostic. ``help_url`` is the user's page instead of the installed one."""
    page = help_page(value.code, help_url) if features.diagnostic_help else None
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(locator.snapshot.uri, locator.range(place.start, place.end)),
            place.message,
        )
        for place in (value.related if features.diagnostic_related else ())
    ]
    return types.Diagnostic(
        range=locator.range(value.start, value.end),
        message=value.message,
        severity=types.DiagnosticSeverity(value.severity.value),
        code=value.code,
        source=SOURCE,
        code_description=types.CodeDescription(page) if page is not None else None,
        related_information=related or None,
        data=value.data if features.diagnostic_data and value.data else None,
    )


def lens(value: Lens, locator: Locator) -> types.CodeLens:
    """One code lens."""
    return types.CodeLens(locator.range(value.start, value.end), command(value.command))


def inlay_hint(value: InlayHint, locator: Locator) -> types.InlayHint:
    """One inlay hint."""
    return types.InlayHint(
        position=locator.range(value.offset, value.offset).start,
        label=value.label,
        padding_left=True,
        tooltip=value.tooltip,
    )


def command(value: Command) -> types.Command:
    """One command with its argument object."""
    return types.Command(title=value.title, command=value.name, arguments=[value.argument])


def hover(value: Hover, locator: Locator, features: ClientFeatures) -> types.Hover:
    """Markdown where the client draws it, else plain text."""
    kind = types.MarkupKind.Markdown if features.markdown_hover else types.MarkupKind.PlainText
    text = value.markdown if features.markdown_hover else value.text
    return types.Hover(types.MarkupContent(kind, text), locator.range(value.start, value.end))


def action(
    value: Action, features: ClientFeatures, shown: tuple[types.Diagnostic, ...]
) -> types.CodeAction | None:
    """One code action; None if the client would show it wrongly."""
    if value.disabled is not None and not features.disabled_actions:
        return None  # it would be offered as if it were live
    run, data = value.command, value.data
    if data is not None and not features.resolves_edits:
        name = FALLBACK_COMMANDS.get(data["action"])
        if name is None:
            return None
        run, data = Command(value.title, name, data), None
    answered = [d for d in shown if d.code in value.codes]
    tags = [types.CodeActionTag.LlmGenerated] if value.model_made and features.action_tags else None
    return types.CodeAction(
        title=value.title,
        kind=value.kind,
        diagnostics=answered or None,
        is_preferred=True if value.preferred and features.preferred_actions else None,
        disabled=types.CodeActionDisabled(value.disabled) if value.disabled is not None else None,
        command=command(run) if run is not None else None,
        data=data,
        tags=tags,
    )


def workspace_edit(
    value: FileEdit, version: int, encoding: Encoding, features: ClientFeatures
) -> types.WorkspaceEdit:
    """Versioned edits where the client takes them, else plain ones.

    The caller has checked that the snapshot is the present text.
    """
    locator = Locator(value.snapshot, None, encoding)
    uri = value.snapshot.uri
    ranges = [(locator.range(edit.start, edit.end), edit.new_text) for edit in value.edits]
    if not features.document_changes:
        return types.WorkspaceEdit(changes={uri: [types.TextEdit(r, text) for r, text in ranges]})
    note = "kernelLsp" if features.annotations else None
    edits: list[types.TextEdit | types.AnnotatedTextEdit | types.SnippetTextEdit] = [
        types.AnnotatedTextEdit(note, r, text) if note else types.TextEdit(r, text)
        for r, text in ranges
    ]
    identifier = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
    annotation = types.ChangeAnnotation(label=value.label, needs_confirmation=False)
    return types.WorkspaceEdit(
        document_changes=[types.TextDocumentEdit(identifier, edits)],
        change_annotations={note: annotation} if note else None,
    )
