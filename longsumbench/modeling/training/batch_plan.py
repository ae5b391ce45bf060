"""Which examples are trained on together, where a recipe goes by their lengths: one batch a forward pass, all planned.

By the source's words (`train.unlock`, `train.batch_words`), which are the same for every system: all systems under a
recipe see the same examples in the same batches, in the same order. Or by the tokens that a system reads
(`train.batch_tokens`), as ETADS's recipe has it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch.utils.data import Sampler

from longsumbench.api.config import Recipe

LEAST_EXAMPLES, MOST_EXAMPLES = 4, 64  # of a batch made by `train.batch_words`: long examples learn from few, too
_SMALLEST_GROUP = 0.05  # share of the examples below which a group is joined with the next longer one
_ALIKE = 8  # lengths to a doubling that are told apart when batches are made: a batch differs by about a twelfth


def whole_budget(rows: Mapping[str, Sequence[int]], recipe: Recipe) -> Sampler[list[int]] | None:
    """Return the batches of a whole training, where the recipe goes by words or tokens; else None.

    Args:
        rows: `source_words` and `length` (tokens read) of each example.
        recipe: how batches are made.
    """
    if recipe.batch_tokens is not None:
        return TokenBatches(rows["length"], recipe.batch_tokens, recipe)
    if recipe.unlock > 0 or recipe.batch_words is not None:
        return WordBatches(rows["source_words"], recipe)
    return None


def length_groups(words: Sequence[int]) -> list[list[int]]:
    """Group examples of similar length, the shortest first.

    Examples whose words round to the same power of two are of one group (46–90 to 64, 91–181 to 128): each group is
    twice as long as the one before. A group of less than a twentieth of all examples is joined with the next longer
    one; the last, with the one before.

    Args:
        words: of each example's source.
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
    """Return how many groups are let in, the shortest first: one more after every equal share of the unlocking.

    Args:
        share_done: of the optimizer steps, 0–1.
        unlock: the share of the steps after which all groups are in; 0: from the start.
        num_groups: all of them.
    """
    if share_done >= unlock:
        return num_groups
    return 1 + int(share_done / unlock * (num_groups - 1))


def pack(members: Sequence[int], words: Sequence[int], recipe: Recipe) -> list[list[int]]:
    """Deal examples into batches of similar length, about the longest first.

    With `batch_words`, a batch holds as many examples as its longest one times their number stays within it, though
    at least 4 and at most 64; else `batch_size`. The last two share what is left for them evenly.

    Args:
        members: indices into `words`; those of about one length are dealt in the order given.
        words: of every example's source.
        recipe: says how large a batch is.
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
    """Deal examples into batches of similar length, about the longest first.

    A batch holds as many examples as its longest one times their number stays within `batch_tokens`, but one at least.

    Args:
        members: indices into `lengths`; those of about one length are dealt in the order given.
        lengths: tokens of every example's source that the system reads.
        batch_tokens: the most of a batch, padding counted.
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
    """Sort indices into `lengths`, longest first; about equal lengths, by `_ALIKE`, stay in the order given."""
    return sorted(members, key=lambda index: -round(_ALIKE * math.log2(max(1, lengths[index]))))


class TokenBatches(Sampler[list[int]]):
    """The batches of a whole training, one a forward pass; decided by the lengths and the recipe alone.

    All examples are taken once before any is taken again. They are dealt anew for each pass, whose batches come in a
    drawn order.

    Args:
        lengths: tokens of each example's source that the system reads.
        batch_tokens: the most of a batch, padding counted.
        recipe: its seed and its steps.
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
    """The batches of a whole training, one a forward pass; decided by the source's words and the recipe alone.

    Each draws a group uniformly among those unlocked, so that every length is trained on equally often in batches. All
    examples of a group are taken once before any is taken again.

    Args:
        words: of each example's source.
        recipe: its seed, its steps, and how large batches are.
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
        """Return the batches of one pass over a group, in a drawn order."""
        order = [group[place] for place in torch.randperm(len(group), generator=generator).tolist()]
        return _shuffled(pack(order, self.words, self.recipe), generator)


def _shuffled(batches: Sequence[list[int]], generator: torch.Generator) -> list[list[int]]:
    """Return batches in a drawn order."""
    return [batches[place] for place in torch.randperm(len(batches), generator=generator).tolist()]
