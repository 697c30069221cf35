"""Who decides whether code may be run."""

from kernel_lsp.settings import Settings
from kernel_lsp.trust import TrustStore


def test_nothing_is_trusted_at_first_and_a_grant_is_remembered(tmp_path):
    store = TrustStore.load(tmp_path / "deep" / "trust.json")
    assert not store.trusted("/w", Settings())
    store.grant("/w")
    again = TrustStore.load(tmp_path / "deep" / "trust.json")
    assert again.trusted("/w", Settings()) and not again.trusted("/w/other", Settings())


def test_the_setting_stands_above_the_editor_above_the_grant(tmp_path):
    store = TrustStore.load(tmp_path / "trust.json")
    store.client = True
    assert store.trusted("/w", Settings())
    assert not store.trusted("/w", Settings(trust="never"))
    store.client = False
    assert store.trusted("/w", Settings(trust="always"))
    assert not store.trusted("/w", Settings())


def test_a_broken_file_trusts_nothing(tmp_path):
    path = tmp_path / "trust.json"
    for content in ("", "[]", '{"roots": 3}', "{"):
        path.write_text(content)
        assert not TrustStore.load(path).trusted("3", Settings())
