"""Password hashes and chosen passwords."""

from __future__ import annotations

import pytest
from pwdlib import PasswordHash

from wqlab_server.accounts import passwords

pytestmark = pytest.mark.integration


def test_password_hash_uses_64_mib_and_three_passes(real_passwords: PasswordHash) -> None:
    assert "$argon2id$v=19$m=65536,t=3,p=4$" in real_passwords.hash("from the start")


def test_generated_passwords_are_random_and_match_their_hash() -> None:
    first, second = passwords.generate(), passwords.generate()
    assert first != second
    assert [len(group) for group in first.split("-")] == [4] * 5
    assert passwords.weakness(first, "ada") is None
    assert passwords.matches(first, passwords.hash_password(first))
    assert not passwords.matches(second, passwords.hash_password(first))
    assert not passwords.matches("", None)


@pytest.mark.parametrize("password", ["short", "aaaaaaaaaaaaaaaa", "submitter submitter"])
def test_weak_passwords_are_refused(password: str) -> None:
    assert passwords.weakness(password, "submitter") is not None
