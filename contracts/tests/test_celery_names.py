"""Celery queues and the broker rights of lab hosts."""

from __future__ import annotations

from wqlab_contracts import celery_names


def test_lab_user_may_read_only_the_queue_of_its_lab() -> None:
    grants = celery_names.lab_grants("attic")
    assert celery_names.lab_user("attic") == "lab-attic"
    assert [rule for rule in grants if rule.startswith("~")] == ["~lab.attic"]
    assert [rule for rule in grants if rule.startswith("+")] == ["+ping", "+brpop"]
    assert "-@all" in grants
