"""The example service, running: two workers of uvicorn behind one port."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx


ROOT = Path(__file__).resolve().parents[2]

PATIENCE = 120.0
"""Seconds after which what a test waits for will not come."""


@dataclass(frozen=True)
class Service:
    """A running approval desk.

    Attributes:
        url: Where it listens.
        log: What it and its workers print.
        process: The process that was started.
    """

    url: str
    log: Path
    process: subprocess.Popen[bytes]

    def client(self, **options: Any) -> httpx.Client:
        """A client that connects anew for each request, so that any worker may answer."""
        limits = httpx.Limits(max_keepalive_connections=0)
        return httpx.Client(base_url=self.url, limits=limits, timeout=PATIENCE, **options)

    def open(self, customer: str, *steps: str) -> str:
        """The ticket of the first question of a new case."""
        with self.client() as client:
            opened = client.post("/cases", json={"customer": customer, "steps": steps})
            case = opened.raise_for_status().json()["id"]
            return str(
                next(each for each in self.cases(5) if each["id"] == case)["waits"][0]["ticket"]
            )

    def cases(self, newest: int = 500) -> list[dict[str, Any]]:
        with self.client() as client:
            found: list[dict[str, Any]] = client.get("/cases", params={"newest": newest}).json()
        return found

    def done(self, effect: str) -> list[dict[str, Any]]:
        """The entries of the ledger for `effect`."""
        with self.client() as client:
            ledger = client.get("/ledger", params={"newest": 1000}).json()
        return [entry for entry in ledger if entry["effect"] == effect]


@contextlib.contextmanager
def running(folder: Path, *args: str) -> Iterator[Service]:
    """The service while the context lasts, once both of its workers answer.

    Args:
        folder: For its log.
        args: For its command.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    environment.pop("REMIT_POSTGRES_URL", None)
    log = folder / "service.log"
    command = [sys.executable, "-m", "examples.approval_desk", "--port", str(port), *args]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    service = Service(f"http://127.0.0.1:{port}", log, process)
    try:
        _ready(service)
        yield service
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _ready(service: Service) -> None:
    until = time.monotonic() + PATIENCE
    workers: set[str] = set()
    with service.client() as client:
        while len(workers) < 2:
            told = service.log.read_text(encoding="utf-8")
            assert service.process.poll() is None, told
            assert time.monotonic() < until, told
            with contextlib.suppress(httpx.TransportError):
                workers.add(client.get("/ledger").headers["x-worker"])
