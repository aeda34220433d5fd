"""Double submissions, all at once, against the running approval desk.

    python -m examples.approval_desk --empty &
    python -m benchmarks.submissions http://127.0.0.1:8000

Each of many cases gets its answer twice at the same moment: half of them by a webhook that
sends one message twice, the other half by two senders with a key each. Ends with 1 unless
each effect happened once, and each second response is one of the documented ones.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field

import httpx


TIMEOUT = 120.0

SERVED = "200"
REPLAYED = "200, replayed"
DOCUMENTED = frozenset((REPLAYED, "409 in-progress", "409 consumed"))
"""What the second of two equal answers may be told."""


@dataclass
class Report:
    """What came of it.

    Attributes:
        pairs: What the two responses to each case were, in no order.
        effects: How often each case's effect happened.
        seconds: How long all of it took.
    """

    pairs: list[tuple[str, str]] = field(default_factory=list)
    effects: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def faults(self) -> list[str]:
        """What should not have been."""
        found = [
            f"{effect} happened {times} times"
            for effect, times in self.effects.items()
            if times != 1
        ]
        for pair in self.pairs:
            others = [told for told in pair if told != SERVED]
            if len(others) != 1 or others[0] not in DOCUMENTED:
                found.append(f"one case was told {' and '.join(sorted(pair))}")
        return found

    def __str__(self) -> str:
        told = Counter(told for pair in self.pairs for told in pair)
        lines = [f"{len(self.pairs)} double submissions in {self.seconds:.1f} s"]
        lines += [f"  {count:5} times {kind}" for kind, count in sorted(told.items())]
        once = sum(times == 1 for times in self.effects.values())
        lines.append(f"  {once} of {len(self.effects)} effects happened once")
        return "\n".join(lines + [f"FAULT: {fault}" for fault in self.faults])


async def submit(url: str, cases: int) -> Report:
    """Open `cases` cases at the service at `url`, and answer all of them twice at once."""
    limits = httpx.Limits(max_connections=2 * cases, max_keepalive_connections=0)
    run = uuid.uuid4().hex[:8]
    report = Report()
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=TIMEOUT) as client:
        effects = [f"Refund ${number} ({run})" for number in range(cases)]
        opened = await asyncio.gather(*(_open(client, effect) for effect in effects))
        listed = (await client.get("/cases", params={"newest": cases})).raise_for_status().json()
        tickets = {case["id"]: case["waits"][0]["ticket"] for case in listed if case["waits"]}
        began = time.monotonic()
        keys = [(f"{run}-{n}", f"{run}-{n}" if n % 2 else f"{run}-{n}-other") for n in range(cases)]
        told = await asyncio.gather(
            *(
                _send(client, tickets[case], key)
                for case, pair in zip(opened, keys, strict=True)
                for key in pair
            )
        )
        report.seconds = time.monotonic() - began
        report.pairs = list(zip(told[::2], told[1::2], strict=True))
        ledger = (await client.get("/ledger", params={"newest": 1000})).raise_for_status().json()
        report.effects = Counter(dict.fromkeys(effects, 0))
        report.effects.update(
            entry["effect"] for entry in ledger if entry["effect"] in report.effects
        )
    return report


async def _open(client: httpx.AsyncClient, effect: str) -> str:
    body = {"customer": "Load", "steps": [effect]}
    opened = await client.post("/cases", json=body)
    return str(opened.raise_for_status().json()["id"])


async def _send(client: httpx.AsyncClient, ticket: str, key: str) -> str:
    """What the sender of an answer is told, in a few words."""
    body = {"ticket": ticket, "answer": "approve"}
    try:
        told = await client.post("/webhook", json=body, headers={"Idempotency-Key": f'"{key}"'})
    except httpx.TransportError as error:
        return type(error).__name__
    if told.status_code == 200:
        return REPLAYED if told.headers.get("idempotent-replayed") else SERVED
    kind = ""
    if told.headers["content-type"] == "application/problem+json":
        kind = told.json()["type"].rpartition(":")[2]
    return f"{told.status_code} {kind}".strip()


def main() -> None:
    """Submit, and say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.submissions", description=__doc__)
    parser.add_argument("url", help="where the approval desk listens")
    parser.add_argument("--cases", type=int, default=200)
    args = parser.parse_args()
    report = asyncio.run(submit(args.url, args.cases))
    print(report)
    sys.exit(bool(report.faults))


if __name__ == "__main__":
    main()
