"""Batches planned by the lengths of examples, for a whole training; one batch is one forward pass.

Plans by source words (`train.unlock`, `train.batch_words`) are the same for every system: all systems with a recipe see
the same batches in the same order. Plans by input tokens (`train.batch_tokens`) are those of ETADS's recipe.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch.utils.data import Sampler

from longsumbench.api.config import Recipe

LEAST_EXAMPLES, MOST_EXAMPLES = 4, 64  # bounds of a batch with `train.batch_words`
_SMALLEST_GROUP = 0.05  # share of the examples below which a group is merged with the next longer one
_ALIKE = 8  # steps per doubling to which lengths are rounded: lengths in a batch differ by about a twelfth


def whole_budget(rows: Mapping[str, Sequence[int]], recipe: Recipe) -> Sampler[list[int]] | None:
    """Return the batches of a whole training if the recipe plans by words or tokens, else None.

    `rows` has `source_words` and `length` (input tokens) of each example.
    """
    if recipe.batch_tokens is not None:
        return TokenBatches(rows["length"], recipe.batch_tokens, recipe)
    if recipe.unlock > 0 or recipe.batch_words is not None:
        return WordBatches(rows["source_words"], recipe)
    return None


def length_groups(words: Sequence[int]) -> list[list[int]]:
    """Group examples of similar length, the shortest first.

    Examples whose numbers of words round to the same power of two form a group (46–90 to 64, 91–181 to 128). A group
    with less than a twentieth of all examples is merged with the next longer one; the last, with the one before.
    """
    powers: dict[int, list[int]] = {}
    for index, count in enumerate(words):
        powers.setdefault(round(math.log2(max(1, count))), []).append(index)
    groups: list[list[int]] = []
    small: list[int] = []
    for _, members in sorted(powers.items()):
        small += members
        if len(small) >= _SMALLEST_GROUP * len(words):
            groups.append(small)
            small = []
    if small:
        groups[-1] += small
    return groups


def num_unlocked(share_done: float, unlock: float, num_groups: int) -> int:
    """Return the number of groups in use, the shortest first: it grows in equal intervals up to `unlock`.

    Args:
        share_done: share of the optimizer steps, 0–1.
        unlock: share of the steps after which all groups are in use; 0: from the start.
        num_groups: number of all groups.
    """
    if share_done >= unlock:
        return num_groups
    return 1 + int(share_done / unlock * (num_groups - 1))


def pack(members: Sequence[int], words: Sequence[int], recipe: Recipe) -> list[list[int]]:
    """Split examples into batches of similar length, about the longest first.

    With `batch_words`, the longest example times the batch's size is at most `batch_words`, but the size is between 4
    and 64; else it is `batch_size`. The last two batches have about equal sizes.

    Args:
        members: indices into `words`; about equal lengths stay in this order.
        words: number of source words of every example.
        recipe: has the batch size.
    """
    order = _about_longest_first(members, words)
    batches: list[list[int]] = []
    start = 0
    while start < len(order):
        size, left = recipe.batch_size, len(order) - start
        if recipe.batch_words is not None:
            longest = max(1, *(words[index] for index in order[start : start + MOST_EXAMPLES]))
            size = min(MOST_EXAMPLES, max(LEAST_EXAMPLES, recipe.batch_words // longest))
        if size < left < 2 * size:
            size = -(-left // 2)
        batches.append(order[start : start + size])
        start += size
    return batches


def pack_tokens(members: Sequence[int], lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Split examples into batches of similar length, about the longest first.

    Args:
        members: indices into `lengths`; about equal lengths stay in this order.
        lengths: number of input tokens of every example.
        batch_tokens: maximum tokens of a batch with padding; a longer example is a batch.
    """
    batches: list[list[int]] = []
    longest = 0
    for index in _about_longest_first(members, lengths):
        longest = max(1, longest, lengths[index])
        if not batches or longest * (len(batches[-1]) + 1) > batch_tokens:
            batches.append([])
            longest = lengths[index]
        batches[-1].append(index)
    return batches


def _about_longest_first(members: Sequence[int], lengths: Sequence[int]) -> list[int]:
    """Sort indices into `lengths`, longest first; about equal lengths (`_ALIKE`) stay in the given order."""
    return sorted(members, key=lambda index: -round(_ALIKE * math.log2(max(1, lengths[index]))))


class TokenBatches(Sampler[list[int]]):
    """The batches of a whole training; they depend only on the lengths and the recipe.

    Every pass takes all examples once, in new batches and in random order. Arguments as in `pack_tokens`.
    """

    def __init__(self, lengths: Sequence[int], batch_tokens: int, recipe: Recipe) -> None:
        self.lengths, self.batch_tokens, self.recipe = list(lengths), batch_tokens, recipe

    def __len__(self) -> int:
        return self.recipe.max_steps * self.recipe.accumulation

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed(self.recipe.seed)
        waiting: list[list[int]] = []
        for _ in range(len(self)):
            if not waiting:
                order = torch.randperm(len(self.lengths), generator=generator).tolist()
                waiting = _shuffled(pack_tokens(order, self.lengths, self.batch_tokens), generator)
            yield waiting.pop()


class WordBatches(Sampler[list[int]]):
    """The batches of a whole training; they depend only on the source words and the recipe.

    Each batch is from a group drawn uniformly among the unlocked ones, so that every length has equally many batches.
    Every pass over a group takes all its examples once. Arguments as in `pack`.
    """

    def __init__(self, words: Sequence[int], recipe: Recipe) -> None:
        self.words, self.recipe, self.groups = list(words), recipe, length_groups(words)

    def __len__(self) -> int:
        return self.recipe.max_steps * self.recipe.accumulation

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed(self.recipe.seed)
        waiting: list[list[list[int]]] = [[] for _ in self.groups]
        for number in range(len(self)):
            share_done = number // self.recipe.accumulation / self.recipe.max_steps
            open_groups = num_unlocked(share_done, self.recipe.unlock, len(self.groups))
            drawn = int(torch.randint(open_groups, (), generator=generator))
            if not waiting[drawn]:
                waiting[drawn] = self._pass(self.groups[drawn], generator)
            yield waiting[drawn].pop()

    def _pass(self, group: Sequence[int], generator: torch.Generator) -> list[list[int]]:
        order = [group[place] for place in torch.randperm(len(group), generator=generator).tolist()]
        return _shuffled(pack(order, self.words, self.recipe), generator)


def _shuffled(batches: Sequence[list[int]], generator: torch.Generator) -> list[list[int]]:
    return [batches[place] for place in torch.randperm(len(batches), generator=generator).tolist()]
