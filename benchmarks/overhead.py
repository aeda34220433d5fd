"""What a gate costs, and what it prevents: stock LangGraph, this project and the package
remit-contract, side by side in one run.

Prints tables, and writes what they were made from to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any


ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from benchmarks.turns import BLOCK  # noqa: E402


RIVAL = "remit-contract==0.1.2"
NEEDS = (
    RIVAL,
    "langgraph",
    "langgraph-checkpoint-sqlite",
    "langgraph-checkpoint-postgres",
    "psycopg[binary,pool]",
    "wrapt",
)


def main() -> None:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--repetitions", type=int, default=25, help="of each race")
    parser.add_argument("--resumes", type=int, default=150, help="of each kind")
    parser.add_argument("--block", type=int, default=BLOCK, help="resumes of one kind in a row")
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgres", "redis"])
    parser.add_argument("--only", choices=["races", "costs", "crewai", "pydantic"])
    parser.add_argument("--without-rival", action="store_true", help="do not fetch " + RIVAL)
    parser.add_argument("--rival-as", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rival_as:
        print(json.dumps(_measured(args, json.loads(args.rival_as), ["remit"])))
        return
    if args.only == "crewai":
        _print({"crewai": _crewai(args)})
        return
    if args.only == "pydantic":
        with _databases(args.databases) as urls:
            _print({"pydantic": {kind: _pydantic(found[0], args) for kind, found in urls.items()}})
        return
    with _databases(args.databases) as urls:
        ours = {kind: found[:-1] or found for kind, found in urls.items()}
        results = _measured(args, ours, ["stock", "gate"])
        if not args.without_rival:
            known = {kind: found[-1:] for kind, found in urls.items() if kind != "redis"}
            rival = _rival(args, known)
            results["races"] += rival.get("races", [])
            results["rival"] = rival.get("costs", {}) or rival
    if args.only != "races":
        results["crewai"] = _crewai(args)
    results["machine"] = f"{platform.python_version()}, {platform.machine()}"
    _print(results)
    folder = ROOT / "benchmarks" / "results"
    folder.mkdir(exist_ok=True)
    (folder / "overhead.json").write_text(json.dumps(results, indent=1), encoding="utf-8")


def _crewai(args: argparse.Namespace) -> dict[str, float]:
    """What a gate costs on CrewAI; nothing where it is not installed."""
    if importlib.util.find_spec("crewai") is None:
        return {}
    from benchmarks import flows

    return flows.measure(args.resumes, args.block)


def _pydantic(url: str, args: argparse.Namespace) -> dict[str, float]:
    """What a gate costs on pydantic-graph and pydantic-ai."""
    from benchmarks import pydantics

    return pydantics.measure(url, args.resumes, args.block)


def _measured(args: argparse.Namespace, urls: Any, wraps: list[str]) -> dict[str, Any]:
    from benchmarks import races, resumes

    results: dict[str, Any] = {"costs": {}, "pydantic": {}, "races": []}
    supply = {kind: itertools.cycle(found) for kind, found in urls.items()}
    with tempfile.TemporaryDirectory() as folder:
        if args.only != "races":
            for kind in urls:
                url = next(supply[kind])
                results["costs"][kind] = resumes.measure(url, wraps[-1], args.resumes, args.block)
                if "gate" in wraps and find_spec("pydantic_graph") and find_spec("pydantic_ai"):
                    results["pydantic"][kind] = _pydantic(url, args)
        if args.only != "costs":
            results["races"] = races.measure(
                lambda kind: next(supply[kind]), list(urls), wraps, args.repetitions, Path(folder)
            )
    return results


@contextmanager
def _databases(kinds: list[str]) -> Iterator[dict[str, list[str]]]:
    """A few fresh databases of each kind."""
    with ExitStack() as stack:
        urls: dict[str, list[str]] = {}
        if "sqlite" in kinds:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            urls["sqlite"] = [f"sqlite:///{folder}/{number}.db" for number in range(3)]
        if "postgres" in kinds:
            from tests.servers import postgres_server

            server = stack.enter_context(postgres_server())
            _durable(server.url)
            urls["postgres"] = [server.create() for _ in range(3)]
        if "redis" in kinds:
            from tests.redis_servers import Servers, modules, redis_8

            servers = stack.enter_context(closing(Servers()))
            # As the others: what is answered is on the disk.
            found = servers.start(redis_8(), *modules(), "--appendfsync", "always")
            urls["redis"] = [found.url()]
        yield urls


def _durable(url: str) -> None:
    """Have commits wait for the disk, which a server for tests does not: the price of one
    is what the gate's is compared with."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as session:
        session.execute("ALTER SYSTEM SET fsync = on")
        session.execute("SELECT pg_reload_conf()")


def _rival(args: argparse.Namespace, urls: Any) -> dict[str, Any]:
    """The same measurements in an environment of the rival's own."""
    import envs

    folder = Path(sys.prefix) / "envs" / RIVAL.replace("==", "-")
    try:
        python = envs.executable(folder)
        if not envs.runs(python, "-c", "import remit, psycopg_pool, wrapt"):
            print(f"making {folder}")
            python = envs.create(folder, sys.executable)
            envs.install(python, *NEEDS)
    except SystemExit as error:
        return {"error": f"{RIVAL} could not be installed: {error}"}
    words = ["--repetitions", args.repetitions, "--resumes", args.resumes]
    words += ["--block", args.block, *(["--only", args.only] if args.only else [])]
    done = subprocess.run(
        [python, __file__, *map(str, words), "--rival-as", json.dumps(urls)],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        return {"error": f"{RIVAL} could not be measured: exit status {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _print(results: dict[str, Any]) -> None:
    for kind, costs in results.get("costs", {}).items():
        rival = results.get("rival", {}).get(kind, {})
        print(f"\n{kind}: median milliseconds{'':17}stock    gate    bare   remit")
        for call in ("resume", "late duplicate", "new input", "get_state"):
            cells = [costs.get(f"{name}: {call}") for name in ("stock", "gate", "bare")]
            cells.append(rival.get(f"remit: {call}"))
            print(
                f"  {call:38}", *(f"{'-' if cell is None else f'{cell:.2f}':>7}" for cell in cells)
            )
        for name in ("claim and settle", "refused: in progress", "commit"):
            print(f"  {name:38} {'':7} {costs[name]:7.2f}")
        for name in sorted(key for key in costs if key.startswith("store: ")):
            print(f"  {name:38} {'':7} {costs[name]:7.2f}")
        added = costs["gate: resume"] - costs["stock: resume"]
        if kind == "redis":
            # Each is one round trip; tests/stores/test_redis.py counts them on the wire.
            trips = costs["gate: statements / 1000"]
            verdict = "within" if trips <= 4 else "OVER"
            print(f"  added by the gate: {added:.2f} ms")
            print(f"  round trips to claim and settle: {trips:.0f}, {verdict} the target of 4")
            continue
        limit = _limit(kind, costs)
        verdict = "within" if added <= limit else "OVER"
        print(f"  added by the gate: {added:.2f} ms, {verdict} the target of {limit:.2f} ms")
        least = costs["bare: resume"] - costs["stock: resume"]
        print(f"  added by its statements, sent bare: {least:.2f} ms")
        if rival:
            added = rival["remit: resume"] - rival["stock: resume"]
            print(f"  added by {RIVAL}: {added:.2f} ms")
    if results.get("crewai"):
        from benchmarks import flows

        flows.show(results["crewai"])
    for kind, costs in results.get("pydantic", {}).items():
        from benchmarks import pydantics

        pydantics.report(kind, costs)
    if results.get("races"):
        print(
            "\nraces of 8: mean effects of `charge` (max), of `notify`, served, repetitions wrong"
        )
    for row in sorted(results.get("races", []), key=lambda row: (row["database"], row["racers"])):
        where = f"  {row['database']:9}{row['racers']:10}{row['arrival']:12}{row['gate']:6}"
        if "error" in row:
            print(f"{where} {row['error']}")
            continue
        print(
            f"{where}{row['effect']:6.2f} ({row['effect_max']}){row['next_node']:6.2f}"
            f"{row['served']:6.2f}  {row['wrong']:2} of {row['repetitions']}"
            f"  {' '.join(row['others_got'])}"
        )
    if "error" in results.get("rival", {}):
        print(results["rival"]["error"])


def _limit(kind: str, costs: dict[str, float]) -> float:
    """What the gate may add: on SQLite 0.7 ms or 15 %, on Postgres 1.3 durable commits."""
    if kind == "sqlite":
        return max(0.7, 0.15 * costs["stock: resume"])
    return 1.3 * costs["commit"]


if __name__ == "__main__":
    main()
