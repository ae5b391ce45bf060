"""Sessions: a turn is a section, whatever the format of the log."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.json_files import write_json

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, Example, Section
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import DataError

ASK = {"role": "user", "content": "Fix the test.\n\nIt fails on\n- Mondays"}
CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "pytest -q", "n": 2}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "2 passed\n1 failed"}
IMAGE = {"type": "image", "source": {}}
THOUGHT = {"type": "thinking", "thinking": "Hm."}
SAY = {"type": "text", "text": "I run it."}
EXPECTED = (
    Section("user", (("Fix the test.",), ("It fails on", "- Mondays"))),
    Section("assistant", (("I run it.",), ("Bash", "command: pytest -q", "n: 2"))),
    Section("tool: Bash", (("2 passed", "1 failed"),)),
)
LOG: list[dict[str, Any]] = [
    ASK,
    {"role": "assistant", "content": [THOUGHT, SAY, CALL]},
    {"role": "user", "content": [RESULT, IMAGE]},
]


def write_lines(path: Path, rows: Sequence[Any]) -> Path:
    """Write JSON lines; a row that is text is written as it is."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))
    return path


def read(path: Path, stages: ArtifactCache, **settings: Any) -> Texts:
    return load_texts(DatasetSettings(name="sessions", path=str(path), **settings), stages)


def examples_of(path: Path, stages: ArtifactCache) -> list[Example]:
    return list(read(path, stages).splits["test"])


def claude_lines() -> list[Any]:
    """Return the log as Claude Code writes it, with lines that are no turn."""
    lines: list[Any] = [
        {"type": message["role"], "sessionId": "s", "message": message} for message in LOG
    ]
    others = [
        {"type": "summary", "summary": "Test repaired", "leafUuid": "u"},
        {"type": "file-history-snapshot", "snapshot": {}},
        {**lines[0], "isSidechain": True},
        {**lines[0], "isCompactSummary": True},
    ]
    return [*others, *lines]


def test_formats_of_a_log_by_hand(tmp_path: Path, stages: ArtifactCache) -> None:
    """Lines of roles, Claude Code's and rows become the same turns; what is left out is counted."""
    write_lines(tmp_path / "a.jsonl", LOG)
    write_lines(tmp_path / "project" / "b.jsonl", claude_lines())
    rows = [{"id": "c", "title": "Repair", "summary": "Two pass. One fails.", "messages": LOG}]
    write_lines(tmp_path / "rows.jsonl", [*rows, {"messages": LOG}])
    texts = read(tmp_path, stages)
    examples = {example.id: example for example in texts.splits["test"]}
    assert list(examples) == ["a", "project/b", "c", "rows-2"]
    for example in examples.values():
        assert example.documents[0].sections == EXPECTED
    assert (examples["a"].title, examples["a"].references) == (None, ((),))
    assert examples["c"].title == "Repair"
    assert examples["c"].references == (("Two pass.", "One fails."),)
    assert texts.facts["left_out"]["test"] == {
        "blocks of type image": 4,
        "blocks of type thinking": 4,
        "lines of type file-history-snapshot": 1,
        "lines of type summary": 1,
        "lines of type user": 2,
    }


def test_calls_of_openai(tmp_path: Path, stages: ArtifactCache) -> None:
    """A call without content keeps its arguments as written; a result has the name of the call with its id."""
    call = {"id": "t1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1'}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t1", "content": "3"},
        {"role": "tool", "content": [{"type": "text", "text": "4"}]},
    ]
    path = tmp_path / "chat.json"
    write_json(path, {"messages": messages})
    (example,) = examples_of(path, stages)
    assert example.documents[0].sections == (
        Section("assistant", (('add: {"a": 1',),)),
        Section("tool: add", (("3",),)),
        Section("tool: unknown", (("4",),)),
    )


def exported(current: str | None, **parents: str | None) -> dict[str, Any]:
    """Return a conversation of ChatGPT's export; the texts of its nodes are their names."""
    mapping: dict[str, Any] = {"root": {"message": None, "parent": None}}
    for name, parent in parents.items():
        content = {"content_type": "multimodal_text", "parts": [name, {"content_type": "image"}]}
        message = {"author": {"role": "user", "name": None}, "content": content}
        mapping[name] = {"message": message, "parent": parent}
    return {"id": "x", "title": "Chat", "mapping": mapping, "current_node": current}


def test_the_export_of_chatgpt_is_read_along_its_current_path(
    tmp_path: Path, stages: ArtifactCache
) -> None:
    """Of two answers to "a" the current one is read; code of a tool, and thoughts, have their own fields."""
    chat = exported("d", a="root", b="a", c="a", d="c")
    chat["mapping"]["d"]["message"] = {
        "author": {"role": "tool", "name": "python"},
        "content": {"content_type": "execution_output", "text": "42"},
    }
    chat["mapping"]["c"]["message"]["content"] = {"content_type": "thoughts", "thoughts": []}
    path = tmp_path / "conversations.json"
    write_json(path, [chat, exported("b", a="root", b="a") | {"id": "y"}])
    first, second = examples_of(path, stages)
    assert first.documents[0].sections == (
        Section("user", (("a",),)),
        Section("tool: python", (("42",),)),
    )
    assert list(second.sentences()) == ["a", "b"]
    assert first.title == "Chat"


BAD: dict[str, tuple[list[Any], str]] = {
    "role": ([ASK, {"role": "robot", "content": "x"}], ":2: unknown role: 'robot'; write one of"),
    "json": ([ASK, "", '{"role": "user", "cont'], ":3: not a JSON object on one line"),
    "content": ([{"role": "user", "content": 5}], ":1: the field 'content' must be text, not a"),
    "messages": ([{"messages": "x"}], ":1: the field 'messages' must be a list"),
    "loop": ([exported("a", a="b", b="a")], ":1: no way from current_node to the first message"),
    "nothing": ([{"role": "user", "content": " "}], ": the session has no turn with text"),
    "empty": ([], ": the file cannot be read: "),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_session_is_named_or_left_out(
    name: str, tmp_path: Path, stages: ArtifactCache
) -> None:
    """The error has the file and the line; dataset.strict=false leaves the session out and counts it."""
    rows, problem = BAD[name]
    path = write_lines(tmp_path / "logs" / "bad.jsonl", rows)
    with pytest.raises(DataError, match=re.escape(f"{path}{problem}")):
        read(tmp_path, stages)
    write_lines(tmp_path / "good.jsonl", LOG)
    texts = read(tmp_path, stages, strict=False)
    assert texts.splits["test"].ids == ["good"]
    assert sum(texts.facts["skipped"]["test"].values()) == 1
