"""The API against its OpenAPI document: schemathesis sends generated requests to every operation.

It checks statuses, media types, headers and bodies against the document; that valid requests are accepted, invalid ones
and those without credentials refused; and sequences of requests, in which one uses what another has created.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.webhooks import WebhookFilter
from wqlab_contracts.enums import (
    Arm,
    AuditAction,
    AuditOutcome,
    DeliveryKind,
    DeliveryState,
    Scope,
    UserRole,
)
from wqlab_contracts.mail import OutgoingMail
from wqlab_server.app import create_app
from wqlab_server.http.auth import create_token
from wqlab_server.http.limits import RateLimit
from wqlab_server.models import AuditEntry, Boot, Delivery, MailAddress, Webhook
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, clock, transaction

from .support.live_server import Live
from .support.openid import mock_provider, oidc_settings
from .support.people import add_user
from .support.scene import Scene
from .support.watches import add_tree_watch

CONFIG = Path(__file__).with_name("schemathesis.toml")
HOOKS = Path(__file__).parent / "support" / "schemathesis_hooks.py"
COMMAND = Path(sys.executable).with_name("st")
FUZZER = "fuzzer"
WITHOUT_SUCCESS = {
    "change_password",  # refuses a token
    "join_lab",  # needs the secret of an invitation
    "get_run_artifact",  # needs the hash of an artifact
    "get_submission_series",  # needs a finished apply
    "propose_targets",  # needs an mbox with a patch, or a thread or branch that a worker has read
    "compare_series",  # needs two submissions whose patches were applied
    "compare_anything",  # needs two measured sides with a figure in common
    "receive_forge_event",  # needs a signature
    *("get_forge", "poll_forge"),  # need a forge, which is in the operator's file
    *(
        "get_history_line",
        "get_history_shift",
        "change_history_shift",
    ),  # need a measured head
    *("show_confirmation", "confirm_mail_address", "show_unsubscription", "unsubscribe"),  # need the token of a mail
    "switch_result_mails",  # needs a confirmed address, which another request may have removed
    "edit_mail",  # needs a mail that still waits, and mail addresses
    "create_bisection",  # needs a tree, plan, device type and metric that exist
    *("get_bisection", "cancel_bisection"),  # need a bisection
    *("create_watch", "change_watch"),  # need a tree, plan and account that exist
    "preview_watch",  # needs a watch of a list
    "start_oidc_sign_in",  # redirects
    "finish_oidc_sign_in",  # redirects, after a sign-in with the provider
}
"""Operations that answer no generated request with 2xx."""
READ_ONLY = {"create_quote", "decode_series", "inspect_series", "propose_targets"}
"""Operations without GET that change nothing."""
CHANGING_GET = {"finish_oidc_sign_in"}
"""Operations with GET that change something: the provider redirects the browser to them. tests/accounts/oidc/ covers
their entries in the audit log."""
AUDITED = {
    "sign_in": AuditAction.SIGN_IN,
    "finish_oidc_sign_in": AuditAction.SIGN_IN,
    "sign_out": AuditAction.SIGN_OUT,
    "change_password": AuditAction.CHANGE_PASSWORD,
    "create_token": AuditAction.CREATE_TOKEN,
    "revoke_token": AuditAction.REVOKE_TOKEN,
    "create_user": AuditAction.CREATE_USER,
    "update_user": AuditAction.CHANGE_USER,
    "reset_password": AuditAction.RESET_PASSWORD,
    "create_submission": AuditAction.CREATE_SUBMISSION,
    "cancel_submission": AuditAction.CANCEL_SUBMISSION,
    "retry_submission": AuditAction.RETRY_SUBMISSION,
    "pin_submission": AuditAction.PIN_SUBMISSION,
    "unpin_submission": AuditAction.UNPIN_SUBMISSION,
    "quarantine_device": AuditAction.QUARANTINE_DEVICE,
    "release_device": AuditAction.RELEASE_DEVICE,
    "start_device_check": AuditAction.CHECK_DEVICE,
    "invite_lab": AuditAction.INVITE_LAB,
    "join_lab": AuditAction.JOIN_LAB,
    "remove_lab": AuditAction.REMOVE_LAB,
    "create_webhook": AuditAction.CREATE_WEBHOOK,
    "rotate_webhook": AuditAction.ROTATE_WEBHOOK,
    "remove_webhook": AuditAction.REMOVE_WEBHOOK,
    "test_webhook": AuditAction.TEST_WEBHOOK,
    "pause_webhook": AuditAction.PAUSE_WEBHOOK,
    "resume_webhook": AuditAction.RESUME_WEBHOOK,
    "replay_delivery": AuditAction.REPLAY_DELIVERY,
    "approve_mail": AuditAction.APPROVE_MAIL,
    "edit_mail": AuditAction.EDIT_MAIL,
    "drop_mail": AuditAction.DROP_MAIL,
    "ask_mail_address": AuditAction.ASK_MAIL_ADDRESS,
    "remove_mail_address": AuditAction.REMOVE_MAIL_ADDRESS,
    "confirm_mail_address": AuditAction.CONFIRM_MAIL_ADDRESS,
    "switch_result_mails": AuditAction.SWITCH_RESULT_MAILS,
    "unsubscribe": AuditAction.SWITCH_RESULT_MAILS,
    "receive_forge_event": AuditAction.RECEIVE_FORGE_EVENT,
    "poll_forge": AuditAction.POLL_FORGE,
    "create_watch": AuditAction.CREATE_WATCH,
    "change_watch": AuditAction.CHANGE_WATCH,
    "remove_watch": AuditAction.REMOVE_WATCH,
    "enable_watch": AuditAction.ENABLE_WATCH,
    "disable_watch": AuditAction.DISABLE_WATCH,
    "check_watch": AuditAction.CHECK_WATCH,
    "change_history_shift": AuditAction.CHANGE_SHIFT,
    "create_bisection": AuditAction.CREATE_BISECTION,
    "cancel_bisection": AuditAction.CANCEL_BISECTION,
}
"""Operation -> the action that it adds to the audit log."""

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with mock_provider() as provider:
        yield provider.issuer


@pytest.fixture
def app(
    sessions: SessionFactory, settings: Settings, scene_data_dir: Path, redis: str, tmp_path: Path, issuer: str
) -> FastAPI:
    """The application with a broker and an OpenID provider, and without a rate limit, which would refuse most of the
    requests."""
    settings = oidc_settings(settings, issuer, tmp_path)
    ca = tmp_path / "ca.pem"
    ca.write_text("-----BEGIN CERTIFICATE-----\n")
    more = {
        "data_dir": scene_data_dir,
        "broker_url": redis,
        "lab_broker_url": "rediss://lab.test:6380/0",
        "ca_file": ca,
        "smtp_host": "127.0.0.1",
        "mail_from": "wqlab@lab.test",
    }
    app = create_app(settings.model_copy(update=more), sessions)
    for middleware in app.user_middleware:
        if middleware.cls is RateLimit:
            middleware.kwargs |= {"per_s": 1e6, "burst": 10**6}
    return app


@pytest.fixture
def token(sessions: SessionFactory, scene: Scene) -> tuple[int, str]:
    """Id and secret of an administrator's token, in a lab with two finished submissions and one that waits."""
    scene.devices()
    first = scene.submission()
    scene.builds(first)
    scene.measured(first, {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    scene.finish(first)
    scene.finish(scene.submission())
    scene.submission()
    with transaction(sessions) as session:
        add_deliveries(session)
        for name in ("next", "pushed", "old"):  # one for most requests, one that stays enabled, one to be removed
            add_tree_watch(session, name, owner=FUZZER, tree="t", target="flush@tiny")
        user = add_user(session, FUZZER, UserRole.ADMIN)
        address = "fuzzer@example.org"
        session.add(MailAddress(user_id=user.id, secret="s", address=address, confirmed_at=clock(session)))
        token, secret = create_token(session, FUZZER, [Scope.ADMIN], user=user)
        return token.id, secret


def add_deliveries(session: Session) -> None:
    """Add two webhooks, a webhook's delivery that was given up, and three mails that wait for review."""
    now = clock(session)
    for _ in range(2):
        session.add(
            Webhook(owner=FUZZER, url="https://hook.example/", events=["lab.lost"], filter=WebhookFilter(), secret="s")
        )
    mail = OutgoingMail(
        message_id="m@lab.test", in_reply_to=None, references=[], sender="wqlab@lab.test", to=["ada@example.org"],
        cc=[], subject="Re: x", date=now, body="figures\n",
    )  # fmt: skip
    for number in range(1, 5):
        waiting = number > 1
        session.add(
            Delivery(
                key=f"{number}", message_id=f"{number}", event="reply", destination="ada@example.org", reason="",
                tries=0,
                kind=DeliveryKind.MAIL if waiting else DeliveryKind.WEBHOOK, mail=mail if waiting else None,
                body=None if waiting else "{}",
                state=DeliveryState.WAITING_FOR_REVIEW if waiting else DeliveryState.GIVEN_UP,
            )
        )  # fmt: skip
        session.flush()


def fuzz(live: Live, token: tuple[int, str], folder: Path, *options: str) -> str:
    """Run schemathesis and return its output. Fails with the output if it finds a fault."""
    live.app.openapi()  # computed once; schemathesis waits for the document for 10 seconds only
    with live.app.state.sessions() as session:
        run_id = session.scalar(select(func.max(Boot.run_id)))
    done = subprocess.run(
        [COMMAND, "--config-file", CONFIG, "run", f"{live.url}/openapi.json", *options],
        check=False,
        text=True,
        capture_output=True,
        cwd=folder,
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": str(HOOKS),
            "WQLAB_FUZZER_TOKEN": str(token[0]),
            "WQLAB_FUZZER_USER": FUZZER,
            "WQLAB_FUZZER_RUN": str(run_id),
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def operations(live: Live, statuses: str) -> set[str]:
    """Return the operations that have answered with a status that matches the pattern `statuses`."""
    text = live.app.state.metrics.text().decode()
    return set(re.findall(rf'operation="(\w+)",status="{statuses}"', text))


@pytest.mark.parametrize(
    ("examples", "seed", "coverage"),
    [(8, 21, False), *(pytest.param(50, seed, True, marks=pytest.mark.nightly) for seed in (1, 2, 3))],
)
def test_administrators_requests(
    live: Live,
    token: tuple[int, str],
    tmp_path: Path,
    sessions: SessionFactory,
    examples: int,
    seed: int,
    coverage: bool,
) -> None:
    phases = () if coverage else ("--phases", "examples,fuzzing,stateful")
    output = fuzz(
        live, token, tmp_path, "-H", f"Authorization: Bearer {token[1]}", "-n", str(examples), "--seed", str(seed),
        *phases,
    )  # fmt: skip
    assert re.search(r"API Links: +[1-9]", output), output
    paths = live.app.openapi()["paths"].values()
    named = {operation["operationId"] for methods in paths for operation in methods.values()}
    assert named - {"create_token"} - WITHOUT_SUCCESS <= operations(live, "2..")
    with sessions() as session:
        done = set(session.scalars(select(AuditEntry.action).where(AuditEntry.outcome == AuditOutcome.DONE).distinct()))
    unaudited = {AUDITED[name] for name in AUDITED.keys() - WITHOUT_SUCCESS - {"sign_out"}} - done
    assert unaudited == set()


def test_every_operation_that_changes_something_is_audited(live: Live) -> None:
    changing = {
        operation["operationId"]
        for methods in live.app.openapi()["paths"].values()
        for method, operation in methods.items()
        if method != "get" or operation["operationId"] in CHANGING_GET
    }
    assert changing - READ_ONLY == AUDITED.keys()


@pytest.mark.parametrize("public_reading", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_requests_without_credentials(live: Live, token: tuple[int, str], tmp_path: Path, public_reading: bool) -> None:
    if public_reading:
        live.allow_public_reading()
    fuzz(live, token, tmp_path, "-n", "4", "--seed", "20", "--phases", "coverage" if public_reading else "fuzzing")
    answered = operations(live, "2..")
    assert ("get_run" in answered) is public_reading
    assert not answered & {"list_users", "list_tokens", "create_quote", "create_submission", "make_token"}


def test_token_in_a_lab_with_public_reading(live: Live, token: tuple[int, str], tmp_path: Path) -> None:
    """The document of such a lab says which operations ignore credentials."""
    live.allow_public_reading()
    fuzz(
        live, token, tmp_path, "-H", f"Authorization: Bearer {token[1]}", "--phases", "fuzzing", "-n", "2",
        "--seed", "20", "--mode", "positive", "--checks", "ignored_auth", "--include-method", "GET",
    )  # fmt: skip
