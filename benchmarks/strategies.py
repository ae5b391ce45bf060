"""Runs language models with strategies for long texts, and compares the strategies at equal length.

    python benchmarks/strategies.py WEIGHTS --name NAME [--parts one several questions] [--device cuda]
    python benchmarks/strategies.py --write       puts tables and sentences into docs/strategies.md; --check compares

WEIGHTS is a GGUF file, a folder or a name on the hub; NAME is what the page calls the model. Run it again to continue it:
finished runs are kept in `--work`. Each run is scored twice, at its own length and as the first words that were asked for.

What was fixed before the first run:

* Texts: PART.examples test examples, in the order of the dataset. Prompts have at most 1,500 tokens, but those of
  `beginning of 7,900`. Models write greedily, without a repeated 4-gram, so there is one answer to a prompt.
* Measure: R-Lsum of the first words that were asked for. R-Lsum at its own length is shown beside it.
* Tests: each strategy of a part minus `beginning`, for each model, all of a part together (Holm); and for each strategy the
  difference of these differences between the two models, all of a part together. Questions about a paper are one group.
* Known before: R-Lsum of Qwen2.5-Coder-0.5B with six readings of eight papers of `aclsum`, and that of SmolLM2-135M with
  eight readings of 100 papers (docs/readings.md).
"""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

from readings import (
    BUDGET,
    LARGE_BUDGET,
    SETS,
    add_common_options,
    prompted_model,
    run_points,
    words_of,
)

BASE = "beginning"
STRATEGIES: dict[str, dict[str, Any]] = {  # name → its settings
    BASE: {},
    "ends": {"reading": "ends"},
    "select": {"reading": "select"},
    "beginning of 7,900": {"input_length": LARGE_BUDGET},
    "stages": {"reading": "stages"},
    "merging with the summary before": {
        "reading": "stages",
        "merge_with": "previous",
        "shrink": 0.65,
    },
    "merging with passages": {"reading": "stages", "merge_with": "passages"},
    "refine": {"reading": "refine"},
    "chain of agents": {"reading": "refine", "final": True},
}


class Part(NamedTuple):
    """Strategies that are tested together.

    Attributes:
        texts: a name of SETS.
        examples: how many test examples are read.
        strategies: what is compared with BASE.
    """

    texts: str
    examples: int
    strategies: tuple[str, ...]

    @property
    def dataset(self) -> str:
        """The name of its texts in the results."""
        return f"strategies_{self.texts}"


PARTS = {
    "one": Part("aclsum", 40, ("ends", "select", "beginning of 7,900")),
    "several": Part(
        "aclsum",
        40,
        (
            "stages",
            "merging with the summary before",
            "merging with passages",
            "refine",
            "chain of agents",
        ),
    ),
    "questions": Part("aclsum_aspects", 99, ("ends", "select")),
}


def points_of(part: Part, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the settings of each run of a part."""
    model = prompted_model(SETS[part.texts], options)
    for name in (BASE, *part.strategies):
        settings = {f"model.{key}": value for key, value in STRATEGIES[name].items()}
        yield {**model, "model.input_length": BUDGET, **settings}


def make_runs(part: Part, options: argparse.Namespace) -> None:
    """Make the runs of a part that are missing."""
    options.examples = part.examples
    words = words_of(SETS[part.texts], part.dataset, options)
    run_points(words, points_of(part, options))


def main() -> None:
    """Make the runs of some parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_common_options(parser, "results/strategies", 0)
    parser.add_argument("--name", help="of the model, on the page")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    for name in options.parts:
        make_runs(PARTS[name], options)


if __name__ == "__main__":
    main()
