"""Claims and results of the jobs that read something for the server."""

from __future__ import annotations

from wqlab_contracts.messages.branch_readings import BranchReadingClaim, BranchReadingResult, FinishBranchReading
from wqlab_contracts.messages.commit_lists import CommitListClaim, CommitListResult, FinishCommitList
from wqlab_contracts.messages.forge_readings import FinishForgeReading, ForgeReadingClaim, ForgeReadingResult
from wqlab_contracts.messages.list_reads import FinishListRead, ListReadClaim, ListReadResult
from wqlab_contracts.messages.lookups import FinishLookup, LookupClaim, LookupResult
from wqlab_contracts.messages.thread_lookups import FinishThreadLookup, ThreadLookupClaim, ThreadLookupResult

from .connection import Connection, JobRef


class ReadingCalls(Connection):
    """Calls on the jobs that read something for the server."""

    def claim_lookup(self, id_: int) -> LookupClaim | None:
        return self._claim("lookups", id_, LookupClaim)

    def claim_thread_lookup(self, id_: int) -> ThreadLookupClaim | None:
        return self._claim("thread_lookups", id_, ThreadLookupClaim)

    def claim_branch_reading(self, id_: int) -> BranchReadingClaim | None:
        return self._claim("branch_readings", id_, BranchReadingClaim)

    def claim_forge_reading(self, id_: int) -> ForgeReadingClaim | None:
        return self._claim("forge_readings", id_, ForgeReadingClaim)

    def claim_commit_list(self, id_: int) -> CommitListClaim | None:
        return self._claim("commit_lists", id_, CommitListClaim)

    def claim_list_read(self, id_: int) -> ListReadClaim | None:
        return self._claim("list_reads", id_, ListReadClaim)

    def finish_lookup(self, job: JobRef, result: LookupResult) -> None:
        self._post(f"lookups/{job.id}/finish", FinishLookup(fence=job.fence, result=result))

    def finish_thread_lookup(self, job: JobRef, result: ThreadLookupResult) -> None:
        self._post(f"thread_lookups/{job.id}/finish", FinishThreadLookup(fence=job.fence, result=result))

    def finish_branch_reading(self, job: JobRef, result: BranchReadingResult) -> None:
        self._post(f"branch_readings/{job.id}/finish", FinishBranchReading(fence=job.fence, result=result))

    def finish_forge_reading(self, job: JobRef, result: ForgeReadingResult) -> None:
        self._post(f"forge_readings/{job.id}/finish", FinishForgeReading(fence=job.fence, result=result))

    def finish_commit_list(self, job: JobRef, result: CommitListResult) -> None:
        self._post(f"commit_lists/{job.id}/finish", FinishCommitList(fence=job.fence, result=result))

    def finish_list_read(self, job: JobRef, result: ListReadResult) -> None:
        self._post(f"list_reads/{job.id}/finish", FinishListRead(fence=job.fence, result=result))
