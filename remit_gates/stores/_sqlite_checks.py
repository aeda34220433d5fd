"""What decides whether an SQLite file keeps its word: its journal, its disk, who may write."""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from remit_gates.stores._checks import Check


OLDEST: Final = (3, 35, 0)
"""The first SQLite with RETURNING."""

FAR: Final = re.compile(
    r"nfs4?|cifs|smb(fs|2|3)|afs|ncpfs|lustre|beegfs|gpfs|glusterfs|ceph"
    r"|fuse\.(sshfs|glusterfs|ceph|s3fs|rclone|gcsfuse|goofys)"
)
"""File systems that are shared between hosts."""

ESCAPED: Final = re.compile(r"\\([0-7]{3})")
"""How a blank in a mount point is written."""

FLEETING: Final = frozenset(("tmpfs", "ramfs"))


def checks(path: str, connection: sqlite3.Connection) -> Iterator[Check]:
    """What is found of the database file `path`, which `connection` has open."""
    yield _library()
    yield _writable(path)
    yield _journal(connection)
    kind = file_system(path)
    if kind is not None:
        yield _disk(kind)
    if sys.platform == "darwin":
        yield Check(
            "durability",
            "warn",
            "macOS does not flush a disk's own cache unless it is asked to",
            "use another system where a loss of power matters",
        )


def file_system(path: str, mounts: str = "/proc/self/mountinfo") -> str | None:
    """The kind of file system that `path` lies on; None where the system does not tell."""
    try:
        lines = Path(mounts).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    real = os.path.realpath(path)
    best, found = -1, None
    for line in lines:
        # proc(5): the mount point is field 5, and the kind follows a lone hyphen.
        before, _, after = line.partition(" - ")
        point = ESCAPED.sub(lambda found: chr(int(found[1], 8)), before.split()[4])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:
            best, found = len(point), after.split()[0]
    return found


def _library() -> Check:
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info >= OLDEST:
        return Check("library", "ok", f"SQLite {version}")
    return Check(
        "library",
        "fail",
        f"SQLite {version} is too old",
        "use a Python that is linked with SQLite 3.35 or newer",
    )


def _writable(path: str) -> Check:
    # Beside the file, SQLite keeps its log and an index of that, shared between processes.
    closed = [place for place in (path, str(Path(path).parent)) if not os.access(place, os.W_OK)]
    if not closed:
        return Check("permissions", "ok", "the file and its folder may be written")
    return Check(
        "permissions",
        "fail",
        f"this user may not write {' and '.join(closed)}",
        "give the user of the workers write access to the file and to its folder",
    )


def _journal(connection: sqlite3.Connection) -> Check:
    [[mode]] = connection.execute("PRAGMA journal_mode").fetchall()
    if mode == "wal":
        return Check("journal", "ok", "WAL; a claim waits for the disk (synchronous = FULL)")
    return Check(
        "journal",
        "warn",
        f"{mode}, and not WAL: a reader and a writer wait for each other",
        "run `remit-gates setup URL`, which changes it; where it stays, so does the file system",
    )


def _disk(kind: str) -> Check:
    if FAR.fullmatch(kind):
        return Check(
            "file system",
            "fail",
            f"{kind} is shared between hosts, and SQLite's log and locks do not work there",
            "move the file to a local disk, or the store to Postgres",
        )
    if kind in FLEETING:
        return Check(
            "file system",
            "warn",
            f"{kind} is memory: the records do not survive a restart of the machine",
            "move the file to a disk",
        )
    return Check("file system", "ok", kind)
