"""Jobs of KernelCI's scheduler, by its protocol for labs that it cannot reach (PULL_LABS).

The lab polls the API's events, claims a job's node by writing its `data.job_id`, measures, and writes the result back.
"""
