"""What a page of `remit-gates ls` costs in a store of a million records on Postgres.

Prints a table, and writes what it was made from to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any


ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

TARGET = 0.2
"""Seconds in which the first page is to be answered, by the command with its connecting."""

ROWS = """
INSERT INTO remit_gates
SELECT CASE WHEN n %% 7 = 0 THEN 'crewai' ELSE 'langgraph' END,
       (ARRAY['', 'billing', 'support'])[1 + n %% 3],
       md5(n::text)::uuid::text,
       1000 + n,
       CASE WHEN n %% 1000 = 1 THEN 1700000000000 + n END,
       CASE WHEN n %% 2000 = 1 THEN now() - interval '1 hour'
            WHEN n %% 1000 = 1 THEN now() + interval '1 day' END,
       now() - n * interval '1 second',
       CASE WHEN n %% 1000 = 1 THEN %(claimed)s WHEN n %% 100 = 2 THEN %(failed)s ELSE %(settled)s END
  FROM generate_series(1, %(records)s) AS n
"""
"""One in a thousand has a claim, half of those an expired one; one in a hundred failed. The
order of the rows in the table has nothing to do with that of their keys."""


def main() -> None:
    """Fill a table, measure, print and write down."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--url", help="an empty database to fill (default: an embedded server's)")
    args = parser.parse_args()
    with _database(args.url) as url:
        print(f"filling a table with {args.records} records")
        size = _fill(url, args.records)
        from remit_gates import cli  # noqa: F401 -- what Python takes to load it is its own row

        pages = {
            name: _measured(partial(_command, url, *words), args.repetitions)
            for name, words in _pages(args.records).items()
        }
        pages["first page, of an open store"] = _measured(_scan(url), args.repetitions)
        pages["first page, as a process"] = _measured(partial(_process, url), args.repetitions)
        pages["every record read: prune --dry-run"] = _measured(partial(_counted, url), 1)
    results = {
        "records": args.records,
        "bytes": size,
        "target": TARGET,
        "pages": pages,
        "machine": f"{platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores",
    }
    _print(results)
    folder = ROOT / "benchmarks" / "results"
    folder.mkdir(exist_ok=True)
    (folder / "listing.json").write_text(json.dumps(results, indent=1), encoding="utf-8")


def _pages(records: int) -> dict[str, tuple[str, ...]]:
    """What is asked for, by what it is called."""
    name = hashlib.md5(str(records // 2).encode()).hexdigest()
    late = json.dumps(["langgraph", "support", "f" + name[1:]])
    return {
        "first page": (),
        "first page of a namespace": ("--framework", "langgraph", "--namespace", "billing"),
        "a page near the end": ("--after", late),
        "first page, unchanged for 10m": ("--older-than", "10m"),
        "failed: 1 in 100": ("--phase", "failed"),
        "abandoned: 1 in 2000": ("--phase", "abandoned"),
        "abandoned for a year: none, by reading all": (
            "--phase",
            "abandoned",
            "--older-than",
            "365d",
        ),
    }


def _measured(call: Callable[[], int], repetitions: int) -> dict[str, Any]:
    seconds = []
    rows = 0
    for _ in range(repetitions):
        began = time.perf_counter()
        rows = call()
        seconds.append(time.perf_counter() - began)
    return {
        "rows": rows,
        "first": seconds[0],
        "median": statistics.median(seconds),
        "worst": max(seconds),
    }


def _command(url: str, *words: str) -> int:
    """Run `ls` in this process, connecting included; how many runs it listed."""
    return len(_output("ls", url, *words)["runs"])


def _output(*words: str) -> Any:
    from remit_gates import cli

    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = cli.main([*words, "--json"])
    if status != 0:
        raise SystemExit(f"{words[0]} ended with {status}")
    return json.loads(out.getvalue())


def _scan(url: str) -> Callable[[], int]:
    """Reads what a page takes, by a store that is connected; how many runs it got."""
    from remit_gates.stores.postgres import PostgresStore

    store = PostgresStore(url)
    store.setup()
    return lambda: len(list(islice(store.scan(), 51)))


def _process(url: str) -> int:
    """Run `ls` in a process of its own; how many runs it listed."""
    command = [sys.executable, "-m", "remit_gates.cli", "ls", url, "--json"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return len(json.loads(done.stdout)["runs"])


def _counted(url: str) -> int:
    """Read every record that has no claim; how many there are."""
    found: int = _output("prune", url, "--dry-run", "--older-than", "0s")["would_prune"]
    return found


@contextlib.contextmanager
def _database(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    from tests.servers import postgres_server

    with postgres_server() as server:
        yield server.create()


def _fill(url: str, records: int) -> int:
    """Fill the table in one statement; how many bytes it takes with its index."""
    import psycopg

    from remit_gates.stores.postgres import PostgresStore

    store = PostgresStore(url)
    store.setup()
    store.close()
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(ROWS, {**_texts(), "records": records})
        session.execute("VACUUM (ANALYZE) remit_gates")
        row = session.execute("SELECT pg_total_relation_size('remit_gates')").fetchone()
    assert row is not None
    return int(row[0])


def _texts() -> dict[str, str]:
    """A record of each kind, as a gate writes it."""
    from dataclasses import replace

    from remit_gates._codec import encode
    from remit_gates._decide import Granted, decide, settle
    from remit_gates._model import Answer, Delivery, Holder, Intent, Outcome, Record
    from remit_gates._policy import Policy

    holder = Holder("worker-7f9c#0123456789ab", 4711, "123456789", "0123456789abcdef")
    pause = "1f0c1d2e-3b4a-6c5d-8001-9e8f7a6b5c4d/0123456789abcdef0123456789abcdef"
    delivery = Delivery(
        Intent.ANSWER,
        holder,
        (Answer(pause, "f69935b078a4ee3af340de9d96324f9f"),),
        bound=True,
        id="msg-0123456789",
        actor="ann@example.org",
    )
    verdict = decide(Record(), delivery, None, Policy(), 1_700_000_000.0)
    assert isinstance(verdict, Granted)
    granted = verdict.record
    # No process of this machine holds it, so only the lease tells.
    done = Outcome("finished", "1f0c1d2e-3b4a-6c5d-8002-9e8f7a6b5c4d")
    ends = {
        "settled": settle(granted, granted.token, done, 1_700_000_001.0, True),
        "failed": settle(
            granted,
            granted.token,
            replace(done, state="failed", detail="TimeoutError"),
            1_700_000_001.0,
            True,
        ),
        "claimed": granted,
    }
    return {name: encode(record) for name, record in ends.items() if record is not None}


def _print(results: dict[str, Any]) -> None:
    print(f"\n{results['records']} records, {results['bytes'] / 2**20:.0f} MiB with the index")
    print(f"{'milliseconds, the command with its connecting':48}  first  median   worst  runs")
    for name, page in results["pages"].items():
        times = "".join(f"{page[key] * 1000:8.1f}" for key in ("first", "median", "worst"))
        print(f"  {name:44}{times}{page['rows']:6}")
    worst = results["pages"]["first page"]["worst"]
    verdict = "within" if worst < results["target"] else "OVER"
    print(
        f"first page at worst: {worst * 1000:.1f} ms, {verdict} the target of"
        f" {results['target'] * 1000:.0f} ms"
    )


if __name__ == "__main__":
    main()
