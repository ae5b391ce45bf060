"""What runs are called in a table, and what is said of all of them."""

from typing import Any

import pytest
from support.run_records import record
from support.swept_runs import trained

from longsumbench.runs.record import RunRecord
from longsumbench.runs.run_names import describe_run, describe_shared, name_runs

GGUF: dict[str, Any] = {
    "checkpoint": "/data/ada/m/Coder-0.5B.gguf",
    "input_length": 1500,
    "length": 120,
}


def typed(model: str, name: str | None = None, variant: str = "", **settings: Any) -> RunRecord:
    """A run with these typed settings of its model."""
    words = variant or ",".join(f"{key}={value}" for key, value in sorted(settings.items()))
    config = {"model": settings, "name": name}
    return record(model, 1, run_id=f"{words}-{name}", variant=words, config=config)


def prompted(reading: str, **settings: Any) -> RunRecord:
    """A prompted model with a way of reading; a default is in its settings, and not in its variant."""
    run = typed("prompt", reading=reading, **GGUF, **settings)
    if reading != "beginning":
        return run
    return record(
        "prompt",
        1,
        variant=run.variant.replace(",reading=beginning", ""),
        config={"model": run.config.model},
    )


LEAD, STEPS = typed("lead"), [trained("ea", 1, train={"max_steps": steps}) for steps in (7, 9)]


@pytest.mark.parametrize(
    ("runs", "labels", "shared"),
    [
        (
            [prompted("beginning"), prompted("select")],
            ["beginning", "select"],
            "both: Coder-0.5B (GGUF), prompts of 1,500 tokens, asked for 120 words",
        ),
        (
            [prompted("ends", shots=2), prompted("select", shots=3), LEAD, typed("lead", length=9)],
            ["prompt, ends, shots 2", "prompt, select, shots 3", "lead", "lead, 9 words"],
            "prompt (both): Coder-0.5B (GGUF), prompts of 1,500 tokens, asked for 120 words",
        ),
        # A setting that decides no outcome is not named, and the user's name says it all
        ([typed("prompt", base_url="http://h:1/v1"), LEAD], ["prompt", "lead"], ""),
        ([typed("ca", "a", x=1), typed("ca", "b", x=2)], ["a", "b"], ""),
        (
            [typed(name, variant="zero-shot, beam 5") for name in ("x", "y")],
            ["x", "y"],
            "x, y: zero-shot, beam 5",
        ),
        # Settings that nobody typed are named if no other differs; at last the id of the run
        (STEPS, ["max_steps 7", "max_steps 9"], ""),
        ([trained("ea", 1, seed) for seed in (1, 2)], ["seed 1", "seed 2"], ""),
        (
            [record("ea", 1, scale=scale) for scale in ("tiny", "paper")],
            ["scale tiny", "scale paper"],
            "",
        ),
        (
            [typed("ea", init="/a/new"), typed("ea", init="/b/new")],
            ["init new, [init=/a/]", "init new, [init=/b/]"],
            "",
        ),
    ],
)
def test_names_of_runs_in_a_table(runs: list[RunRecord], labels: list[str], shared: str) -> None:
    """What differs among the runs of a system, the most important first; what they share is said once."""
    names = name_runs(runs)
    assert [name.label for name in names] == labels
    assert describe_shared(names) == shared


def test_a_run_alone_has_all_that_was_typed() -> None:
    """A heading names its system and settings, its seed and its id."""
    assert (
        describe_run(trained("ca", 1, seed=3, run_id="1234567890", variant="x=1"))
        == "ca, x 1, seed 3 (12345678)"
    )
