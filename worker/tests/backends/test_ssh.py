"""Output and limits of commands on a device. `sh` replaces the SSH client."""

from __future__ import annotations

import socket
import subprocess
import threading
from pathlib import Path

import pytest

from wqlab_worker.backends import ssh
from wqlab_worker.backends.console_tap import Wakeup
from wqlab_worker.measure.device_interface import ScriptOutput


def command(script: str, stdin: bytes | None = None) -> tuple[subprocess.Popen[bytes], ssh.Command, Wakeup]:
    process = subprocess.Popen(
        ["/bin/sh", "-c", script],
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wakeup = Wakeup()
    return process, ssh.Command(process, stdin, wakeup), wakeup


def answer(script: str, stdin: bytes | None = None) -> ssh.CommandResult:
    process, running, wakeup = command(script, stdin)
    try:
        assert wakeup.wait_for(lambda: running.done, 3600)
        assert running.answer is not None
        return running.answer
    finally:
        process.kill()


def test_both_outputs_and_exit_status_are_returned() -> None:
    assert answer("echo out; echo err >&2; exit 3") == ssh.CommandResult(3, b"out\n", b"err\n")


def test_large_input_is_passed_completely() -> None:
    data = bytes(range(256)) * 20_000
    assert answer("cat", data).stdout == data
    assert answer("cat", b"").stdout == b""


def test_command_may_leave_its_input_unread() -> None:
    assert answer("exec <&-; echo done", b"x" * 1_000_000).stdout == b"done\n"


@pytest.mark.parametrize(("to", "what"), [(1, "standard output"), (2, "standard error")])
def test_an_endless_output_is_cut_and_its_command_killed(monkeypatch: pytest.MonkeyPatch, to: int, what: str) -> None:
    monkeypatch.setattr(ssh, "STDOUT_LIMIT", 2 << 20)
    found = answer(f"exec yes >&{to}")
    assert found.output_excess and what in found.output_excess
    assert found.status == -9
    assert len(found.stdout) == (2 << 20 if to == 1 else 0)
    assert len(found.stderr) == (1 << 20 if to == 2 else 0)


def test_output_at_the_limit_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "STDOUT_LIMIT", 1000)
    assert answer("head -c 1000 /dev/zero") == ssh.CommandResult(0, bytes(1000), b"")
    assert answer("head -c 1001 /dev/zero").output_excess


def test_killed_command_has_no_result() -> None:
    process, running, _ = command("exec sleep 1000")
    running.kill()
    assert running.answer is None
    assert process.poll() is not None


def test_texts_are_printable() -> None:
    found = ssh.CommandResult(0, b"a\0\tb\r\n\xff", b"\x1b[0m\x7f\n")
    assert found.text == "a\ufffd\tb\n\ufffd"
    assert found.stderr_text == "\ufffd[0m\ufffd\n"
    output = ScriptOutput("fact\ta\t\0", "\x85", 0, 1.0)
    assert (output.stdout, output.stderr) == ("fact\ta\t\ufffd", "\ufffd")


@pytest.mark.parametrize(("says", "greets"), [(b"SSH-2.0-OpenSSH_9.2\r\n", True), (b"", False), (None, False)])
def test_only_an_ssh_server_greets(says: bytes | None, greets: bool) -> None:
    """A forwarded port accepts, and closes at once, for a machine that is off."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = ssh.FixedSsh(ssh.SshServer("127.0.0.1", server.getsockname()[1], "root", ""))

        def answer() -> None:
            client, _ = server.accept()
            client.sendall(says or b"")
            client.close()

        if says is None:
            server.close()
        else:
            threading.Thread(target=answer, daemon=True).start()
        assert connection.greets(2.0) == greets


@pytest.mark.parametrize(
    ("reason", "refused"),
    [
        ("root@box: Permission denied (publickey,password).", True),
        ("Received disconnect from 192.0.2.5 port 22:2: Too many authentication failures", True),
        ("ssh: connect to host box port 22: Permission denied", False),
        ("ssh: connect to host box port 22: Connection refused", False),
    ],
)
def test_error_of_a_system_call_is_no_refused_key(reason: str, refused: bool) -> None:
    assert ssh.is_key_refused(reason) == refused


@pytest.mark.parametrize("refusal", ["Host key verification failed.", "root@box: Permission denied (publickey)."])
def test_refused_key_of_either_side_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: str
) -> None:
    program = tmp_path / "ssh"
    program.write_text(f'#!/bin/sh\necho >> {tmp_path}/calls\necho "{refusal}" >&2\nexit 255\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    connection = ssh.FixedSsh(ssh.SshServer("device", 22, "root", "key"))
    assert connection.connect(Wakeup(), lambda: False, 3600) == refusal
    assert (tmp_path / "calls").read_text() == "\n"


def test_users_configuration_forwards_nothing_to_a_device(tmp_path: Path) -> None:
    """A kernel under test that gets the user's agent can log in wherever the user may."""
    settings = ("ForwardAgent yes", "ForwardX11 yes", "GSSAPIDelegateCredentials yes", "RemoteForward 8080 host:22")
    (tmp_path / "config").write_text("\n".join(["Host *", *settings, "ProxyJump gate"]))
    connection = ssh.FixedSsh(ssh.SshServer("device", 22, "root", "key", user_config=True))
    command = ["ssh", "-G", "-F", str(tmp_path / "config"), *connection._options(), "device"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert {"identitiesonly yes", "identityagent none"} <= set(shown), "the lab's key is offered first"
    for wanted in ("forwardagent no", "forwardx11 no", "gssapidelegatecredentials no", "clearallforwardings yes"):
        assert wanted in shown
    assert "proxyjump gate" in shown
