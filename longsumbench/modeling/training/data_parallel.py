"""A training that several processes share: which of a batch's examples are each one's, and what concerns all of them.

Inside `process_group` there are several, elsewhere one, whose share is the whole. What a step learns from
is the same however many there are, so a process may be left without an example of a small batch: it reads one all the
same, for all must compute a gradient, and learns nothing from it.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, distributed
from torch.utils.data import DataLoader, Dataset, Sampler

from longsumbench.modeling.collate import IGNORED

SPARE = "spare"  # the entry of a batch that its process reads without learning from it

Collate = Callable[[list[Any]], dict[str, Any]]


def num_processes() -> int:
    """Return how many processes train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def place() -> int:
    """Return which of them this is, from 0."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def of_all(value: Any) -> list[Any]:
    """Return every process's value, the first one's first. Values are JSON: nothing is unpickled from a network."""
    if not distributed.is_initialized():
        return [value]
    device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    own = torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8).to(device)
    lengths = [torch.zeros(1, dtype=torch.long, device=device) for _ in range(num_processes())]
    distributed.all_gather(lengths, torch.tensor([len(own)], device=device))
    longest = int(max(lengths))
    texts = [torch.zeros(longest, dtype=torch.uint8, device=device) for _ in lengths]
    distributed.all_gather(texts, torch.nn.functional.pad(own, (0, longest - len(own))))
    pairs = zip(texts, lengths, strict=True)
    return [json.loads(bytes(text[: int(length)].tolist())) for text, length in pairs]


def of_the_first(value: Any) -> Any:
    """Return the first process's value."""
    return of_all(value)[0]


def _summed(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Add up counts by name."""
    names = dict.fromkeys(name for one in counts for name in one)
    return {name: sum(one.get(name, 0) for one in counts) for name in names}


def wait() -> None:
    """Wait for all processes."""
    if distributed.is_initialized():
        distributed.barrier()


def own_share(batches: Sampler[list[int]], rows: "Dataset[Any]", collate: Collate, **settings: Any) -> DataLoader[Any]:
    """Return what loads this process's share of every batch.

    Args:
        batches: indices of rows; the same in all processes.
        rows: of the training.
        collate: rows → a batch with `labels`.
        **settings: of the loader.
    """
    return DataLoader(OwnRows(rows), batch_sampler=Shares(batches), collate_fn=Marked(collate), **settings)


class Shares(Sampler[list[int]]):
    """This process's share of each batch, by index; one that it reads without learning from it is below 0."""

    def __init__(self, batches: Any) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.batches:
            yield batch[place() :: num_processes()] or [-1 - batch[0]]


class OwnRows(Dataset[Any]):
    """Rows by index; an index below 0 is a row that is not learned from."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {**self.rows[index if index >= 0 else -1 - index], SPARE: index < 0}


class Marked:
    """Collates rows; of a batch that is not learned from, no label is real and no count above 0."""

    def __init__(self, collate: Collate) -> None:
        self.collate = collate

    def __call__(self, rows: list[Any]) -> dict[str, Any]:
        """Collate a batch."""
        batch = self.collate(rows)
        if rows[0][SPARE]:
            batch |= {name: torch.tensor(0) for name in batch if _is_count(name)}
            batch |= {"labels": torch.full_like(batch["labels"], IGNORED), SPARE: True}
        return batch


def _is_count(name: str) -> bool:
    """Tell whether an entry of a batch counts things over which a loss is a mean."""
    return name.startswith("num_")


def counted_together(batches: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Give every count in the batches of a step that of the whole step, in all processes; return what others train on.

    A loss that is a mean over such things then weighs each of them the same, as the library's own count does for target
    tokens.

    Returns:
        `examples`, `source_tokens`, `target_tokens` of the other processes.
    """
    counts = [{name: int(value) for name, value in batch.items() if _is_count(name)} for batch in batches]
    own, named = _summed([num_trained_on(batch) for batch in batches]), _summed(counts)
    whole = _summed(of_all({**own, **named}))
    for batch, its_own in zip(batches, counts, strict=True):
        batch |= {name: torch.tensor(whole[name]) for name in its_own}
    return {name: whole[name] - own[name] for name in own}


def num_trained_on(batch: Mapping[str, Tensor]) -> dict[str, int]:
    """Return what there is to learn from in a batch: `examples`, and real `source_tokens` and `target_tokens`."""
    if SPARE in batch:
        return {"examples": 0, "source_tokens": 0, "target_tokens": 0}
    return {
        "examples": len(batch["labels"]),
        "source_tokens": int(batch["unit_mask"].sum()),
        "target_tokens": int(batch["labels"].ne(IGNORED).sum()),
    }
