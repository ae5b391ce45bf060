"""benchmarks/compaction.py: its sessions are read as each tool's logs are, its programs by hand, and its sentences."""

from pathlib import Path
from random import Random

import compaction as program
import compactor
import pytest
from support.run_records import record
from support.stored_runs import store

import longsumbench
from longsumbench.leaderboards.table import read_table
from longsumbench.metrics.aggregate import MeasureMean
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

SESSION = "user\n\nDo this.\n\nassistant\n\nI look.\n\nuser\n\nNo, do that.\n\nIn two parts.\n"


def test_made_up_sessions_are_whole(tmp_path: Path) -> None:
    """A session of each shape has all words that were made up, in turns of users, assistants and tools; and no other."""
    program.make_sessions(tmp_path / "sessions")
    texts = longsumbench.load_dataset("sessions", path=str(tmp_path / "sessions"))
    examples = {example.id: example for example in texts.splits["test"]}
    assert len(examples) == program.SESSIONS * len(program.SHAPES)
    for shape in program.SHAPES:
        turns = list(program.make_turns(Random(f"{shape}-1")))
        example = examples[f"{shape}-1"]
        read = " ".join(example.sentences()).split()
        roles = {section.name for document in example.documents for section in document.sections}
        assert roles == {"user", "assistant", "tool"}
        assert len(read) >= sum(len(turn.text.split()) for turn in turns) >= program.SESSION_WORDS


def test_programs_by_hand() -> None:
    """The last words; and the last paragraphs of users that fit whole."""
    assert compactor.keep_last(SESSION, 3) == "In two parts."
    assert compactor.keep_instructions(SESSION, 7) == "No, do that.\nIn two parts."
    assert compactor.keep_instructions(SESSION, 5) == "In two parts."


def row(name: str, model: dict[str, str], facts: float, answers: float, margin: float) -> RunRecord:
    """Return the run of a compactor with these means."""
    measures = {
        program.SURVIVAL: MeasureMean(facts, facts - 1, facts + 1, 12),
        program.ANSWERS: MeasureMean(answers, answers - 1, answers + 1, 12),
        "answers_guessed": MeasureMean(5.0, 4.0, 6.0, 12),
        "answers_unrelated": MeasureMean(22.0, 19.0, 25.0, 12),
        "answers_source": MeasureMean(5.0 + margin, 4.0, 60.0, 12),
        "answers_margin": MeasureMean(margin, margin - 2, margin + 2, 12),
    }
    return record(
        name,
        facts,
        run_id=f"{name}-{facts}",
        dataset=program.DATASET,
        config={"model": model},
        measures=measures,
        ranked_by=program.SURVIVAL,
    )


@pytest.mark.parametrize(
    ("facts", "answers", "margin", "expected"),
    [
        (60.0, 40.0, 30.0, ("so it can tell.", "-10.0 points more often", "+8.0 points")),
        (
            10.0,
            20.0,
            1.0,
            ("which does not show that it can tell.", "+5.0 points more often", "-2.0 points"),
        ),
    ],
)
def test_sentences_follow_the_numbers(
    facts: float, answers: float, margin: float, expected: tuple[str, str, str], tmp_path: Path
) -> None:
    """What the reader reaches, and how answers and facts differ, on average over two compactors."""
    command = f"python3 {program.PROGRAM} last {{words}} {{file}}"
    runs = [
        row("command", {"command": command}, 20.0, 20.0, margin),
        row("prompt", {"reading": "ends"}, facts, answers, margin),
    ]
    store(tmp_path, *runs)
    table = read_table(Results(tmp_path), program.DATASET)
    text = " ".join(program.sentences_of(table.comparable[0].rows, table.scores))
    for sentence in expected:
        assert sentence in text
