"""What the operators' commands do, one module a command. Looking makes and changes nothing,
and whatever changes something says first what, and asks."""

from __future__ import annotations
