"""The language server: protocol, documents, features, diagnostics, jobs, edits."""
