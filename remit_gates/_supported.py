"""The releases of a framework that can be gated. Whatever is not known to work is refused with
`UnsupportedVersion`, never served ungated."""

from __future__ import annotations

import functools
import importlib
import re
from dataclasses import dataclass
from importlib import metadata
from importlib.metadata import PackageNotFoundError
from typing import Any

from remit_gates.errors import MissingExtra, UnsupportedVersion


@functools.cache
def version(package: str) -> str:
    """The version of the distribution `package`, as it is written. Looked up once a process:
    gates are made for each request, and to parse its metadata takes longer than a claim.

    Raises:
        PackageNotFoundError: It is not installed; looked up again the next time.
    """
    return metadata.version(package)


@dataclass(frozen=True, slots=True)
class Supported:
    """The releases of a framework that this release of remit-gates gates.

    Attributes:
        name: What people call the framework.
        package: The distribution whose version counts.
        extra: Ours that brings it.
        oldest: The first release that is gated.
        next_major: The first major version that is not.
    """

    name: str
    package: str
    extra: str
    oldest: tuple[int, ...]
    next_major: int

    def text(self) -> str:
        """The installed version, as it is written.

        Raises:
            MissingExtra: There is none.
        """
        try:
            return version(self.package)
        except PackageNotFoundError:
            raise MissingExtra(
                f"{self.name} is not installed. Install it with: pip install"
                f" 'remit-gates[{self.extra}]'"
            ) from None

    def installed(self) -> tuple[int, int, int]:
        """The installed version; a pre-release counts as the release that it precedes.

        Raises:
            MissingExtra: There is none.
            UnsupportedVersion: It cannot be gated.
        """
        text = self.text()
        found = numbers(text)
        if found < self.oldest or found[0] >= self.next_major:
            raise UnsupportedVersion(
                f"{self.name} {text} is installed, and this release gates"
                f" {'.'.join(map(str, self.oldest))} up to, but not including, {self.next_major}."
                f" Nothing was wrapped. Install a supported {self.name}, or a newer remit-gates."
            )
        return found

    def hooked_class(
        self, module: str, name: str, methods: tuple[str, ...], private: tuple[str, ...] = ()
    ) -> type[Any]:
        """The class to wrap, with all that the hooks need.

        Args:
            module: Where it is.
            name: Its name.
            methods: Those of it that are wrapped.
            private: Private attributes of a pydantic model that the gate relies on.

        Raises:
            UnsupportedVersion: Something is missing.
        """
        cls = getattr(importlib.import_module(module), name, None)
        missing = [method for method in methods if not hasattr(cls, method)]
        attributes = getattr(cls, "__private_attributes__", {})
        missing += [attribute for attribute in private if attribute not in attributes]
        if not isinstance(cls, type) or missing:
            raise UnsupportedVersion(
                f"{self.name} {self.text()} has no {module}.{name}"
                f"{'.' + missing[0] if missing and cls else ''}, which the gate hooks into."
                f" Nothing was wrapped. Install a supported {self.name}, or a newer remit-gates."
            )
        return cls


def numbers(text: str) -> tuple[int, int, int]:
    """The first three numbers of a version, with 0 for what it leaves out."""
    major, minor, micro = [*map(int, re.findall(r"\d+", text)[:3]), 0, 0, 0][:3]
    return major, minor, micro
