"""Machine code as read-only files, and in memory for editors that show texts of a server."""

from kernel_lsp.listings import FILES_KEPT, TEXTS_KEPT, Listings
from kernel_lsp.snapshot import analyse
from search_engine.domain.facts_message import ListingFound


def found(kernel="k", target="sm_90", row=1):
    return ListingFound("1", kernel, target, "first\nsecond\n", (None, 4), row)


def test_a_listing_is_written_read_only_and_its_row_counts_the_heading(tmp_path):
    snapshot = analyse("file:///w/k.py", "/w/k.py", "/w", 1, "")
    listings = Listings(tmp_path / "listings")
    place = listings.keep(found(), snapshot)
    lines = place.path.read_text().splitlines()
    assert lines[0] == "// k for sm_90, from /w/k.py" and lines[place.row] == "second"
    assert not place.path.stat().st_mode & 0o222
    assert listings.keep(found(row=None), snapshot).row == 0
    assert listings.text(place.uri) == place.path.read_text()
    assert listings.keep(found(target="gfx942"), snapshot).path.suffix == ".amdgcn"


def test_files_and_texts_are_bounded_and_a_full_disk_is_no_error(tmp_path):
    snapshot = analyse("file:///w/k.py", "/w/k.py", "/w", 1, "")
    listings = Listings(tmp_path / "listings")
    places = [listings.keep(found(f"k{i}"), snapshot) for i in range(FILES_KEPT + 5)]
    assert len(list((tmp_path / "listings").iterdir())) == FILES_KEPT
    kept = [place for place in places if listings.text(place.uri) is not None]
    assert kept == places[-TEXTS_KEPT:]
    (tmp_path / "file").write_text("")
    nowhere = Listings(tmp_path / "file")
    assert nowhere.text(nowhere.keep(found(), snapshot).uri) is not None
