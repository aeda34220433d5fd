"""A saver of somebody else's make: the gate knows nothing of where it keeps things."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver


class ForeignSaver(BaseCheckpointSaver[Any]):
    """Keeps everything in another saver, under a name that no convention tells of."""

    def __init__(self, place: InMemorySaver) -> None:
        super().__init__(serde=place.serde)
        self._place = place

    def get_next_version(self, current: Any, channel: Any) -> Any:
        return self._place.get_next_version(current, channel)

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        return self._place.get_tuple(config)

    def list(self, config: Any, **options: Any) -> Iterator[CheckpointTuple]:
        return self._place.list(config, **options)

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        return self._place.put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self._place.put_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        self._place.delete_thread(thread_id)

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        return self._place.get_tuple(config)

    async def alist(self, config: Any, **options: Any) -> AsyncIterator[CheckpointTuple]:
        for found in self._place.list(config, **options):
            yield found

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        return self._place.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: Any, writes: Any, task_id: str, task_path: str = ""
    ) -> None:
        self._place.put_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        self._place.delete_thread(thread_id)


class CopyingSaver(ForeignSaver):
    """Also copies and prunes threads, which few savers do."""

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        place = self._place
        place.storage[target_thread_id] = copy.deepcopy(place.storage[source_thread_id])
        by_thread: list[Any] = [place.writes, place.blobs]
        for kept in by_thread:
            for key in [key for key in kept if key[0] == source_thread_id]:
                moved = (target_thread_id, *key[1:])
                kept[moved] = copy.deepcopy(kept[key])

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        for thread in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self.copy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self.prune(thread_ids, strategy=strategy)
