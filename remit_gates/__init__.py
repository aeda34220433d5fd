"""One pause, one answer, one continuation: consume-once gates for agent frameworks."""

from __future__ import annotations
