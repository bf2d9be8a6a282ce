"""The worker API under /api/worker/v1: workers claim jobs, report progress and finish them, and transfer artifacts.

All requests are idempotent: a worker repeats a request whose response it did not receive.
"""

from fastapi import APIRouter

from . import artifact_endpoints, job_endpoints, lab_endpoints

router = APIRouter(prefix="/api/worker/v1", tags=["worker"], include_in_schema=False)
for endpoints in (job_endpoints, lab_endpoints, artifact_endpoints):
    router.include_router(endpoints.router)
