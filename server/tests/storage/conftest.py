"""A private SeaweedFS: a real S3 server that stores objects on disk."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from obstore.exceptions import BaseError
from obstore.store import S3Store

KEY, SECRET = "wqlab-test", "not-a-secret-at-all"
BUCKET = "wqlab-artifacts"


def _free_port() -> int:
    """Return a free port; the port 10000 higher is free too, because SeaweedFS uses it for gRPC."""
    while True:
        with socket.socket() as probe, socket.socket() as higher:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
            if port > 50000:
                continue
            try:
                higher.bind(("127.0.0.1", port + 10000))
            except OSError:
                continue
            return port


@dataclass
class S3Server:
    folder: Path
    ports: dict[str, int] = field(
        default_factory=lambda: {n: _free_port() for n in ("s3", "master", "volume", "filer", "admin")}
    )
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.ports['s3']}"

    def start(self) -> None:
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        ports = [f"-{name}.port={port}" for name, port in self.ports.items()]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    "weed", f"-logdir={self.folder}", "mini", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
                    "-webdav=false", "-admin.ui=false", "-s3.port.iceberg=0", "-s3.port.lance=0", f"-bucket={BUCKET}",
                    *ports,
                ],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={
                    "PATH": os.environ["PATH"], "HOME": str(self.folder),
                    "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
                },
            )  # fmt: skip
        while not self._answers():
            if self.process.poll() is not None:
                raise RuntimeError(f"weed does not start:\n{(self.folder / 'log').read_text()[-3000:]}")
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            self.bucket().put("up", b"yes")
        except BaseError:
            return False
        return True

    def bucket(self) -> S3Store:
        return S3Store(
            BUCKET, access_key_id=KEY, secret_access_key=SECRET, endpoint=self.endpoint, region="us-east-1",
            client_options={"allow_http": True}, retry_config={"max_retries": 0},
        )  # fmt: skip

    def kill(self) -> None:
        """Kill the server, because a clean shutdown takes 20 seconds."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def options(self, folder: Path, **changed: str) -> Path:
        """Write an options file as an operator would."""
        given = {
            "aws_endpoint": self.endpoint, "aws_region": "us-east-1", "aws_allow_http": "true",
            "aws_access_key_id": KEY, "aws_secret_access_key": SECRET, **changed,
        }  # fmt: skip
        path = folder / "s3.options"
        path.write_text("# the lab's bucket\n" + "".join(f"{name.upper()}={value}\n" for name, value in given.items()))
        return path


@pytest.fixture(scope="package")
def s3() -> Iterator[S3Server]:
    server = S3Server(Path(tempfile.mkdtemp(prefix="wqlab-s3-")))
    server.start()
    yield server
    server.kill()
    shutil.rmtree(server.folder, ignore_errors=True)
