"""Links of codes end at a page that is there."""

from kernel_lsp import help_pages


def test_a_users_page_goes_before_the_installed_one(tmp_path, monkeypatch):
    monkeypatch.setattr(help_pages, "_PAGES", (tmp_path / "none.md", tmp_path / "findings.md"))
    help_pages._installed.cache_clear()
    assert help_pages.help_page("KL105") is None
    (tmp_path / "findings.md").write_text("")
    help_pages._installed.cache_clear()
    assert help_pages.help_page("KL105") == (tmp_path / "findings.md").as_uri() + "#kl105"
    assert help_pages.help_page("KL105", "https://e.org/f") == "https://e.org/f#kl105"
    help_pages._installed.cache_clear()
