"""The cookie of a sign-in that has begun."""

from __future__ import annotations

from wqlab_server.accounts.oidc.cookie import LIFE_S, Begun, seal, unseal

BEGUN = Begun({"_state_oidc_x": {"data": {"nonce": "n", "code_verifier": "v"}, "exp": 2000.0}}, "/lab")


def test_cookie_is_readable_until_it_expires() -> None:
    value = seal("secret", BEGUN, now=1000.0)
    assert unseal("secret", value, now=1000.0 + LIFE_S) == BEGUN
    assert unseal("secret", value, now=1001.0 + LIFE_S) is None


def test_cookie_of_another_client_secret_or_changed_is_refused() -> None:
    value = seal("secret", BEGUN)
    assert unseal("another", value) is None
    head, *rest = value.split(".")
    assert (
        unseal("secret", ".".join([head, *(part[:-1] + ("A" if part[-1:] != "A" else "B") for part in rest)])) is None
    )
    for text in ("", "x", "a.b.c.d.e", value.encode().hex(), "é"):
        assert unseal("secret", text) is None


def test_cookie_shows_nothing_of_its_content() -> None:
    value = seal("secret", Begun({}, "/a/path/that/is/long/enough"))
    assert len(value.split(".")) == 5, "encrypted (JWE), not only signed"
