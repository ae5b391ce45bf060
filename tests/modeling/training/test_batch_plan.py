from collections import Counter
from itertools import chain, pairwise

import pytest
from hypothesis import given, settings, strategies as st
from support.toys import refuses, tiny_recipe

from longsumbench.modeling.training.batch_plan import (
    LEAST_EXAMPLES,
    MOST_EXAMPLES,
    BatchPlan,
    equal_batches,
    length_groups,
    num_unlocked,
    pack,
    pack_tokens,
    word_batches,
)
from longsumbench.modeling.training.data_parallel import own_share

WORDS = st.lists(st.integers(0, 5_000), min_size=1, max_size=200)


def test_hand_worked_groups() -> None:
    """46 to 90 words round to 64; a lone example joins the next longer group, the last one the group before."""
    assert length_groups([46, 90, 91, 181, 182]) == [[0, 1], [2, 3], [4]]
    many = [64] * 40 + [256] * 40
    assert [len(group) for group in length_groups([10, *many, 9_000])] == [41, 41]
    assert length_groups([10, *many, 9_000])[0] == list(range(41))
    assert length_groups([0]) == [[0]]


@given(WORDS)
def test_groups_hold_every_example_once_in_order_of_length(words: list[int]) -> None:
    """No example of a group is longer than one of the next, and no group is smaller than a twentieth of all."""
    groups = length_groups(words)
    assert sorted(chain.from_iterable(groups)) == list(range(len(words)))
    for shorter, longer in pairwise(groups):
        assert max(words[i] for i in shorter) < min(words[i] for i in longer)
    assert all(20 * len(group) >= len(words) for group in groups)


def test_hand_worked_unlocking() -> None:
    """Six groups over 60 % of the steps: one more after every 12 %, the last when the unlocking is over."""
    shares = (0, 0.11, 0.125, 0.25, 0.37, 0.49, 0.59, 0.6, 1)
    assert [num_unlocked(share, 0.6, 6) for share in shares] == [1, 1, 2, 3, 4, 5, 5, 6, 6]
    assert num_unlocked(0, 0.0, 6) == 6
    assert num_unlocked(0, 0.5, 1) == 1


@given(WORDS, st.integers(1, 20_000))
def test_batches_stay_within_the_words(words: list[int], batch_words: int) -> None:
    """Examples × the longest of them stay within batch_words, unless the batch has the fewest; 64 are the most."""
    batches = pack(range(len(words)), words, tiny_recipe(batch_words=batch_words))
    assert sorted(chain.from_iterable(batches)) == list(range(len(words)))
    for batch in batches:
        padded = len(batch) * max(words[index] for index in batch)
        assert padded <= batch_words or len(batch) <= LEAST_EXAMPLES
        assert len(batch) <= MOST_EXAMPLES


@given(WORDS, st.integers(1, 9), st.integers(1, 3), st.integers(0, 3))
def test_an_epoch_takes_every_example_once(
    lengths: list[int], size: int, accumulation: int, epoch: int
) -> None:
    """Batches of equal size, the longest example in the first; the same again when asked again."""
    recipe = tiny_recipe(batch_size=size, accumulation=accumulation)
    batches = list(equal_batches(lengths, recipe, epoch))
    assert sorted(chain.from_iterable(batches)) == list(range(len(lengths)))
    assert {len(batch) for batch in batches[:-1]} <= {size}
    assert lengths[batches[0][0]] == max(lengths)
    assert batches == list(equal_batches(lengths, recipe, epoch))
    plan = BatchPlan({"length": lengths}, recipe)
    assert len(list(plan.epoch(epoch))) == plan.steps_per_epoch


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_shares_make_up_the_batch(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example of a batch is in the share of one process."""
    step, shares = [[4, 2, 7, 1, 0], [3], [6, 5]], []
    monkeypatch.setattr("longsumbench.modeling.training.data_parallel.process_count", lambda: size)
    for rank in range(size):
        monkeypatch.setattr(
            "longsumbench.modeling.training.data_parallel.process_index", lambda rank=rank: rank
        )
        shares.append(own_share(step))
    assert [sorted(chain.from_iterable(batches)) for batches in zip(*shares, strict=True)] == list(
        map(sorted, step)
    )


@settings(max_examples=30)
@given(WORDS, st.integers(1, 20), st.integers(0, 9), st.integers(1, 3))
def test_a_group_is_used_up_before_it_is_used_again(
    words: list[int], size: int, seed: int, accumulation: int
) -> None:
    """At any time no example was taken two times more than another of its group, and never from two groups at once."""
    recipe = tiny_recipe(
        unlock=0.5, batch_size=size, seed=seed, max_steps=60, accumulation=accumulation
    )
    groups = length_groups(words)
    group_of = {index: group for group in groups for index in group}
    taken = Counter(dict.fromkeys(range(len(words)), 0))
    batches = list(word_batches(words, recipe))
    for batch in batches:
        group = group_of[batch[0]]
        assert set(batch) <= set(group)
        taken.update(batch)
        assert max(taken[index] for index in group) - min(taken[index] for index in group) <= 1
    assert len(batches) == 60 * accumulation


@given(WORDS, st.integers(1, 20_000))
def test_batches_stay_within_the_tokens(lengths: list[int], batch_tokens: int) -> None:
    """Examples × the longest of them stay within batch_tokens, unless one alone passes it; none is lost or doubled."""
    batches = pack_tokens(range(len(lengths)), lengths, batch_tokens)
    assert sorted(chain.from_iterable(batches)) == list(range(len(lengths)))
    for batch in batches:
        assert (
            len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= batch_tokens
        )


@pytest.mark.parametrize("other", [{"batch_words": 2_048}, {"unlock": 0.5}])
def test_tokens_or_words(other: dict[str, float]) -> None:
    """Batches go by tokens or by words; both are refused, with the setting that chooses."""
    with refuses(r"train.batch_tokens=4096 .*batch_tokens=null or train.(batch_words|unlock)="):
        tiny_recipe(batch_tokens=4_096, **other)
