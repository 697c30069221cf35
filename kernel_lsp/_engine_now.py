from search_engine.request import all_workloads, read_module
from search_engine.frontends.workload import declare, workload_refusal
from search_engine.edits import hunks, transplant, unified_diff
from search_engine.archive.sqlite import ArchiveError, SqliteArchive
def stored_runs(archive, unit_hash):
    if not archive.exists():
        return ()
    store = SqliteArchive(archive)
    try:
        return store.runs(unit_hash)
    finally:
        store.close()
