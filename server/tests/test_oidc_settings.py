"""Settings of sign-in with an OpenID provider: mistakes are named with the variable and the fix."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from wqlab_contracts.enums import UserRole
from wqlab_server.accounts.oidc.provider import Provider
from wqlab_server.accounts.oidc.service import role_of
from wqlab_server.settings import Settings, UnusableFile


def make(**changes: Any) -> Settings:
    fields: dict[str, Any] = {
        "database_url": "postgresql+psycopg:///", "broker_url": "memory://", "data_dir": Path(), "artifact_dir": Path(),
        "oidc_issuer": "https://idp.example.org/realm", "oidc_client_id": "wqlab",
        "oidc_client_secret_file": Path("secret"), "oidc_roles": "lab=submitter",
    }  # fmt: skip
    return Settings(**fields | changes)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"oidc_issuer": "http://idp.example.org"}, "is not encrypted: write an https:// URL"),
        ({"oidc_issuer": "http://127.0.0.1.example.org"}, "is not encrypted"),
        ({"oidc_issuer": "idp.example.org"}, "is not an issuer: write the URL"),
        ({"oidc_issuer": "https://user@idp.example.org"}, "is not an issuer"),
        ({"oidc_issuer": "https://idp.example.org?x=1"}, "is not an issuer"),
        ({"oidc_issuer": ""}, "WQLAB_OIDC_CLIENT_ID is set but WQLAB_OIDC_ISSUER is not"),
        ({"oidc_client_id": ""}, "WQLAB_OIDC_CLIENT_ID is not set"),
        ({"oidc_client_secret_file": ""}, "WQLAB_OIDC_CLIENT_SECRET_FILE is not set"),
        ({"oidc_roles": ""}, "nobody could sign in with the provider: set WQLAB_OIDC_ROLES"),
        ({"oidc_roles": "lab"}, "'lab' is not GROUP=ROLE"),
        ({"oidc_roles": "=admin"}, "'=admin' is not GROUP=ROLE"),
        ({"oidc_roles": "lab=root"}, "no role 'root'; the roles are viewer, submitter, maintainer, admin"),
        ({"oidc_roles": "a=admin,b=viewer"}, None),  # one group with an odd name
        ({"oidc_roles": "lab=viewer; lab=admin"}, "group 'lab' has two roles, viewer and admin: keep one"),
        ({"oidc_default_role": "root"}, "oidc_default_role"),
        ({"oidc_scopes": "profile"}, "lacks the scope openid"),
        ({"oidc_groups_claim": " "}, "the name of the claim is empty"),
        ({"oidc_label": ""}, "1 to 60 characters"),
        ({"oidc_label": "x" * 61}, "1 to 60 characters"),
        ({"oidc_label": "two\nlines"}, "in one line"),
        ({"oidc_session_s": 0}, "oidc_session_s"),
    ],
    ids=str,
)
def test_mistakes_are_named(changes: dict[str, Any], text: str | None) -> None:
    if text is None:
        assert list(make(**changes).oidc_role_of_group) == ["a=admin,b"]
        return
    with pytest.raises(ValidationError) as error:
        make(**changes)
    assert text in str(error.value)


def test_loopback_needs_no_encryption() -> None:
    for issuer in ("http://localhost:9400", "http://127.0.0.1:9400", "http://[::1]:9400"):
        assert make(oidc_issuer=issuer).oidc_issuer == issuer


def test_no_provider_by_default() -> None:
    unset = {"oidc_issuer": "", "oidc_client_id": "", "oidc_client_secret_file": "", "oidc_roles": ""}
    assert Provider.of(make(**unset, oidc_default_role="")) is None


def test_names_of_ldap_groups_and_the_highest_role() -> None:
    settings = make(oidc_roles="cn=lab,ou=groups,dc=example,dc=org = maintainer; /staff=viewer ;lab users=submitter;")
    ldap = "cn=lab,ou=groups,dc=example,dc=org"
    assert set(settings.oidc_role_of_group) == {ldap, "/staff", "lab users"}
    assert role_of(settings, frozenset({"/staff", ldap, "lab users"})) is UserRole.MAINTAINER
    assert role_of(settings, frozenset({"staff", "LAB USERS"})) is None
    with_default = make(oidc_roles="", oidc_default_role="viewer")
    assert role_of(with_default, frozenset({"anything"})) is UserRole.VIEWER


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "cannot read .*: No such file or directory; write the client secret into a file"),
        (b"", "is empty; write only the client secret into it"),
        (b"\n", "is empty"),
        (b"one\ntwo\n", "has more than one line"),
        (b"\xff\xfe", "it is not text"),
    ],
)
def test_unusable_secret_file_is_named(tmp_path: Path, content: bytes | None, text: str) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UnusableFile, match=rf"WQLAB_OIDC_CLIENT_SECRET_FILE: .*{text}"):
        Provider.of(make(oidc_client_secret_file=file))
    file.write_bytes(b" the-secret \n")
    provider = Provider.of(make(oidc_client_secret_file=file))
    assert provider is not None
    assert provider.client_secret == "the-secret"


@pytest.mark.parametrize(
    ("variables", "lines"),
    [
        (
            {"WQLAB_OIDC_ISSUER": "http://idp.example.org", "WQLAB_OIDC_LABEL": ""},
            [
                "wqlab-server: WQLAB_OIDC_ISSUER: http://idp.example.org is not encrypted: write an https:// URL "
                "(http:// is allowed on loopback only)",
                "wqlab-server: WQLAB_OIDC_LABEL: write a text of 1 to 60 characters in one line",
            ],
        ),
        (
            {"WQLAB_OIDC_ISSUER": "https://idp.example.org"},
            ["wqlab-server: WQLAB_OIDC_CLIENT_ID is not set: write the client id that the provider gave to this lab"],
        ),
        (
            {
                "WQLAB_OIDC_ISSUER": "https://idp.example.org",
                "WQLAB_OIDC_CLIENT_ID": "wqlab",
                "WQLAB_OIDC_CLIENT_SECRET_FILE": "/nonexistent/secret",
                "WQLAB_OIDC_ROLES": "lab=viewer",
            },
            [
                "wqlab-server: WQLAB_OIDC_CLIENT_SECRET_FILE: cannot read /nonexistent/secret: No such file or "
                "directory; write the client secret into a file that the server can read"
            ],
        ),
    ],
)
def test_api_does_not_start_with_wrong_settings(tmp_path: Path, variables: dict[str, str], lines: list[str]) -> None:
    environment = {
        "PATH": os.environ["PATH"], "WQLAB_DATABASE_URL": "postgresql+psycopg:///", "WQLAB_BROKER_URL": "memory://",
        "WQLAB_DATA_DIR": str(tmp_path), "WQLAB_ARTIFACT_DIR": str(tmp_path), **variables,
    }  # fmt: skip
    command = [Path(sys.executable).with_name("wqlab-server"), "api", "--uds", str(tmp_path / "api.sock")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.splitlines()) == (1, lines)
