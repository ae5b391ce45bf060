"""Batches planned by the lengths of examples; one batch is one forward pass.

Plans by source words (`train.unlock`, `train.batch_words`) are the same for every system: all systems with a recipe see
the same batches in the same order. Plans by input tokens (`train.batch_tokens`) are those of ETADS's recipe.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TypeVar

import torch

from longsumbench.core import TrainConfig
from longsumbench.modeling.training.data_parallel import Step

LEAST_EXAMPLES, MOST_EXAMPLES = 4, 64  # bounds of a batch with `train.batch_words`
# share of the examples below which a group is merged with the next longer one
_SMALLEST_GROUP = 0.05
# steps per doubling to which lengths are rounded: lengths in a batch differ by about a twelfth
_ALIKE = 8
# optimizer steps whose examples are sorted by length together, with batches of equal size
_MOST_SORTED = 50

_T = TypeVar("_T")


class BatchPlan:
    """The steps of a training; they depend only on the lengths and the recipe.

    Planned by words or tokens, the whole training is one epoch. `rows` has the `length` (input tokens) of each example,
    and its `source_words` if the recipe plans by words.
    """

    def __init__(self, rows: Mapping[str, Sequence[int]], recipe: TrainConfig) -> None:
        self.recipe, self.by_words = recipe, recipe.unlock > 0 or recipe.batch_words is not None
        self.lengths = list(rows["source_words" if self.by_words else "length"])
        one_epoch = self.by_words or recipe.batch_tokens is not None
        passes = -(-len(self.lengths) // recipe.batch_size)
        self.steps_per_epoch = recipe.max_steps if one_epoch else -(-passes // recipe.accumulation)

    def epoch(self, number: int) -> Iterator[Step]:
        """Yield the steps of an epoch, counted from 0."""
        if self.recipe.batch_tokens is not None:
            batches = token_batches(self.lengths, self.recipe)
        elif self.by_words:
            batches = word_batches(self.lengths, self.recipe)
        else:
            batches = equal_batches(self.lengths, self.recipe, number)
        while step := list(islice(batches, self.recipe.accumulation)):
            yield step


def equal_batches(lengths: Sequence[int], recipe: TrainConfig, epoch: int) -> Iterator[list[int]]:
    """Yield the batches of an epoch, of `batch_size` examples each; the last one may be smaller.

    The order is random, but the examples of up to 50 steps are sorted by length together. The longest example is the
    first, so that a lack of memory shows at once.
    """
    generator = torch.Generator().manual_seed(recipe.seed * 1_000_003 + epoch)
    order = _shuffled(range(len(lengths)), generator)
    step = recipe.batch_size * recipe.accumulation
    size = step * max(1, min(len(lengths) // (4 * step), _MOST_SORTED))
    parts = []
    for start in range(0, len(order), size):
        parts.append(sorted(order[start : start + size], key=lambda index: -lengths[index]))
    longest = max(parts, key=lambda part: lengths[part[0]])
    parts[0][0], longest[0] = longest[0], parts[0][0]
    order = list(chain.from_iterable(parts))
    for start in range(0, len(order), recipe.batch_size):
        yield order[start : start + recipe.batch_size]


def length_groups(words: Sequence[int]) -> list[list[int]]:
    """Group the indices of examples of similar length, the shortest first.

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

    With `unlock` 0, all are in use from the start.
    """
    if share_done >= unlock:
        return num_groups
    return 1 + int(share_done / unlock * (num_groups - 1))


def pack(members: Sequence[int], words: Sequence[int], recipe: TrainConfig) -> list[list[int]]:
    """Split examples into batches of similar length, about the longest first.

    With `batch_words`, the longest example times the batch's size is at most `batch_words`, but the size is between 4
    and 64; else it is `batch_size`. The last two batches have about equal sizes. `members` are indices into `words`;
    about equal lengths stay in this order.
    """
    order = _about_longest_first(members, words)
    batches: list[list[int]] = []
    start = 0
    while start < len(order):
        size, remaining = recipe.batch_size, len(order) - start
        if recipe.batch_words is not None:
            longest = max(1, *(words[index] for index in order[start : start + MOST_EXAMPLES]))
            size = min(MOST_EXAMPLES, max(LEAST_EXAMPLES, recipe.batch_words // longest))
        if size < remaining < 2 * size:
            size = -(-remaining // 2)
        batches.append(order[start : start + size])
        start += size
    return batches


def pack_tokens(
    members: Sequence[int], lengths: Sequence[int], batch_tokens: int
) -> list[list[int]]:
    """Split examples into batches of similar length, about the longest first.

    `members` are indices into `lengths`; about equal lengths stay in this order. A batch has at most `batch_tokens`
    tokens with padding; a longer example is a batch.
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


def token_batches(lengths: Sequence[int], recipe: TrainConfig) -> Iterator[list[int]]:
    """Yield batches without end, as `pack_tokens`; every pass takes all examples once, in random order."""
    assert recipe.batch_tokens is not None
    generator = torch.Generator().manual_seed(recipe.seed)
    while True:
        order = _shuffled(range(len(lengths)), generator)
        yield from reversed(_shuffled(pack_tokens(order, lengths, recipe.batch_tokens), generator))


def word_batches(words: Sequence[int], recipe: TrainConfig) -> Iterator[list[int]]:
    """Yield the batches of a whole training, as `pack`.

    Each batch is from a group drawn uniformly among the unlocked ones, so that every length has equally many batches.
    Every pass over a group takes all its examples once.
    """
    generator = torch.Generator().manual_seed(recipe.seed)
    groups = length_groups(words)
    waiting: list[list[list[int]]] = [[] for _ in groups]
    for number in range(recipe.max_steps * recipe.accumulation):
        share_done = number // recipe.accumulation / recipe.max_steps
        unlocked = num_unlocked(share_done, recipe.unlock, len(groups))
        group = int(torch.randint(unlocked, (), generator=generator))
        if not waiting[group]:
            order = _shuffled(groups[group], generator)
            waiting[group] = _shuffled(pack(order, words, recipe), generator)
        yield waiting[group].pop()


def _shuffled(items: Sequence[_T], generator: torch.Generator) -> list[_T]:
    return [items[place] for place in torch.randperm(len(items), generator=generator).tolist()]
