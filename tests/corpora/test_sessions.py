"""Sessions: a turn is a section, whatever the format of the log."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.reading import read_texts

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Example
from longsumbench.errors import DataError

ASK = r'{"role": "user", "content": "Fix the test.\n\nIt fails on\n- Mondays"}'
SAY = (
    '{"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "I run it."},'
    ' {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "pytest -q", "n": 2}}]}'
)
RESULT = (
    '{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "2 passed\\n1 failed"},'
    ' {"type": "image", "source": {}}]}'
)
TURNS = (
    "user: Fix the test. | It fails on; - Mondays\nassistant: I run it. | Bash; command: pytest -q; n: 2\n"
    "tool: 2 passed; 1 failed"
)
CLAUDE = f"""\
{{"type": "summary", "summary": "Test repaired", "leafUuid": "u"}}
{{"type": "user", "isSidechain": true, "message": {ASK}}}
{{"type": "user", "isCompactSummary": true, "message": {ASK}}}
{{"type": "user", "message": {ASK}}}
{{"type": "assistant", "message": {SAY}}}
{{"type": "user", "message": {RESULT}}}
"""
MESSAGES = f'"messages": [{ASK}, {SAY}, {RESULT}]'
ROWS = f"""\
{{"id": "c", "title": "Repair", "summary": "Two pass. One fails.", {MESSAGES}}}
{{{MESSAGES}}}
"""
OPENAI = r"""{"messages": [
  {"role": "assistant", "content": null,
   "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1"}}]},
  {"role": "tool", "tool_call_id": "t1", "content": "3"},
  {"role": "tool", "content": [{"type": "text", "text": "4"}]}]}
"""
FUNCTION = r"""{"messages": [{"role": "assistant", "content": null, "refusal": "No.", "tool_calls": null,
  "function_call": {"name": "add", "arguments": "{}"}}, {"role": "function", "content": "3"}]}
"""
RESPONSES = """\
{"messages": [{"type": "function_call", "name": "sh", "arguments": "ls"}, {"type": "function_call_output", "output": "b"}]}
"""
CODEX = """{"id": "s", "instructions": null}
{"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}}
{"type": "response_item", "payload": {"type": "reasoning", "summary": []}}
{"type": "event_msg", "payload": {"type": "user_message", "message": "a"}}
{"type": "response_item", "payload": {"type": "custom_tool_call", "name": "sh", "input": "ls"}}
{"type": "function_call", "name": "sh", "arguments": {"command": "ls"}}
{"type": "function_call_output", "output": "b"}
"""
NESTED = r"""{"role": "assistant", "content": [
  {"type": "tool_use", "name": "Edit", "input": {"on": [{"é": null}], "all": true, "text": "a\rb"}},
  {"type": "function_call", "name": "sh", "arguments": ["ls", "-l"]}]}
""".replace("\n", "")
OBJECTS = """{"type": "function_call_output", "output": {"exit": 0, "files": ["é"]}}
{"role": "User", "content": "a"}
"""
GEMINI = """{"sessionId": "s", "messages": [{"type": "user", "content": [{"text": "a"}]}, {"type": "info", "content": "i"},
  {"type": "gemini", "content": "b", "toolCalls": [{"name": "sh"}]}, {"role": "model", "parts": [{"text": "c"}]}]}
"""
LANGCHAIN = """{"messages": [{"type": "human", "content": "a"}, {"type": "ai", "content": "b"},
  {"type": "tool", "content": "c"}, {"role": "user", "parts": [{"type": "text", "text": "d"}, {"type": "step-start"}]}]}
"""
LANGCHAIN_FILE = """[{"type": "human", "data": {"content": "a", "type": "human"}},
  {"type": "AIMessageChunk", "data": {"content": [{"type": "text", "text": "b"},
    {"type": "tool_use", "id": "1", "name": "sh", "input": {"on": 1}}], "tool_calls": [
    {"id": "1", "name": "sh", "args": {"on": 1}}, {"id": "2", "name": "ls", "args": {}}]}},
  {"type": "tool", "data": {"content": 5}}]
"""
GOOGLE = """{"messages": [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [
  {"text": "t", "thought": true}, {"functionCall": {"name": "sh", "args": {"on": 1}}}]},
  {"role": "user", "parts": [{"functionResponse": {"name": "sh", "response": {"exit": 0}}}]}]}
"""
AI_SDK = """{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [
  {"type": "tool-call", "toolName": "sh", "input": {"on": 1}}]}, {"role": "tool", "content": [
  {"type": "tool-result", "toolName": "sh", "output": {"type": "text", "value": "c"}}]}]}
"""
# Of two answers to "a", b and c, the current node d follows the second.
CHATGPT = """[{"title": "Chat", "current_node": "d", "mapping": {
  "root": {"message": null, "parent": null},
  "a": {"parent": "root", "message": {"author": {"role": "user", "name": null},
    "content": {"content_type": "multimodal_text", "parts": ["a", null, {"content_type": "image"}]}}},
  "b": {"parent": "a", "message": {"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["b"]}}},
  "c": {"parent": "a", "message": {"author": {"role": "assistant"}, "content": {"content_type": "thoughts"}}},
  "d": {"parent": "c", "message": {"author": {"role": "tool", "name": "python"},
    "content": {"content_type": "execution_output", "text": "42"}}}}}]
"""


def write_log(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


read = partial(read_texts, "sessions")


def test_formats_of_a_log_by_hand(tmp_path: Path, cache: ArtifactCache) -> None:
    """Lines of roles, Claude Code's and rows become the same turns; what is left out is counted."""
    write_log(tmp_path / "a.jsonl", f"\ufeff{ASK}\r\n{SAY}\r\n{RESULT}")
    write_log(tmp_path / "project" / "b.jsonl", CLAUDE)
    write_log(tmp_path / "rows.jsonl", ROWS)
    texts = read(tmp_path, cache)
    examples = list(texts.splits["test"])
    assert [example.id for example in examples] == ["a", "project/b", "c", "rows-2"]
    assert set(map(outline, examples)) == {TURNS}
    assert [example.title for example in examples] == [None, None, "Repair", None]
    assert examples[2].references == (("Two pass.", "One fails."),)
    assert texts.metadata["left_out"]["test"] == {
        "blocks of type image": 4,
        "blocks of type thinking": 4,
        "lines of type summary": 1,
        "lines of subagents": 1,
        "summaries of compactions": 1,
    }


def outline(example: Example) -> str:
    """Return a line for each turn; bars separate paragraphs, semicolons sentences."""
    lines = []
    for turn in example.documents[0].sections:
        paragraphs = map("; ".join, turn.paragraphs)
        lines.append(f"{turn.name}: {' | '.join(paragraphs)}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        (FUNCTION, "assistant: No. | add: {}\ntool: 3"),
        (CODEX, "user: a\nassistant: sh: ls | sh; command: ls\ntool: b"),
        (RESPONSES, "assistant: sh: ls\ntool: b"),
        (NESTED, 'assistant: Edit; on: [{"é": null}]; all: true; text: a; b | sh: ["ls", "-l"]'),
        (OBJECTS, 'tool: {"exit": 0, "files": ["é"]}\nuser: a'),
        (OPENAI, 'assistant: add: {"a": 1\ntool: 3 | 4'),
        (CHATGPT, "user: a\ntool: 42"),
        (GEMINI, "user: a\nassistant: b | c"),
        (LANGCHAIN, "user: a\nassistant: b\ntool: c\nuser: d"),
        (LANGCHAIN_FILE, "user: a\nassistant: b | sh; on: 1 | ls\ntool: 5"),
        (GOOGLE, 'user: a\nassistant: sh; on: 1\ntool: {"exit": 0}'),
        (AI_SDK, "user: a\nassistant: sh; on: 1\ntool: c"),
        (
            '{"type": "user", "content": "a"}\n{"type": "gemini", "content": "b"}',
            "user: a\nassistant: b",
        ),
    ],
)
def test_exports_by_hand(text: str, turns: str, tmp_path: Path, cache: ArtifactCache) -> None:
    """Refusals and all kinds of calls are text, and null is none; of ChatGPT's tree the way to the current node is read."""
    (example,) = read(write_log(tmp_path / "chat.json", text), cache).splits["test"]
    assert outline(example) == turns


TAKEN_BACK = """
one: d u1 a1 u2 a2 -1 u3 → d u1 a1 u3, 2
both: d u1 a1 u2 a2 -2 u3 → d u3, 4
one, and one more: d u1 a1 u2 a2 -1 -1 u3 → d u3, 4
more than there are: d u1 a1 u2 a2 -9 u3 → d u3, 4
none: u1 a1 -0 u2 → u1 a1 u2, 0
no request before: d -1 u1 → d u1, 0
what Codex adds is no request: u1 a1 u2 a2 <turn_aborted> -1 u3 → u1 a1 u3, 3
"""


@pytest.mark.parametrize("line", TAKEN_BACK.strip().splitlines())
def test_requests_that_were_taken_back(line: str, tmp_path: Path, cache: ArtifactCache) -> None:
    """Codex writes how many, and goes on; they, their answers and calls are turns of abandoned branches."""
    log, expected = line.partition(": ")[2].split(" → ")
    rows: list[dict[str, Any]] = []
    for word in log.split():
        if word.startswith("-"):
            event = {"type": "thread_rolled_back", "num_turns": int(word[1:])}
            rows.append({"type": "event_msg", "payload": event})
            continue
        role = {"d": "developer", "a": "assistant"}.get(word[0], "user")
        content = [{"type": "input_text", "text": word}]
        message = {"type": "message", "role": role, "content": content}
        rows.append({"type": "response_item", "payload": message})
    texts = read(write_log(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows))), cache)
    (example,) = texts.splits["test"]
    left_out = texts.metadata.get("left_out", {"test": {}})["test"]
    number = left_out.get("turns of abandoned branches", 0)
    assert f"{' '.join(example.sentences())}, {number}" == expected


def write_line(word: str) -> str:
    """Return a line of Claude Code's log: "name<parent@id" is a user's text, an answer with a call, or a result."""
    name, parent, identity = re.fullmatch(r"(\w+)<(\w*)@?(\w*)", word).groups()  # type: ignore[union-attr]
    kind = {"u": "user", "a": "assistant", "r": "user"}.get(name[0], "system")
    blocks: list[dict[str, Any]] = [{"type": "text", "text": name}]
    if name[0] == "a":
        blocks.append({"type": "tool_use", "id": name, "name": "Bash", "input": {}})
    elif name[0] == "r":
        blocks = [{"type": "tool_result", "tool_use_id": identity, "content": name}]
    parents = {"logicalParentUuid" if name[0] == "s" else "parentUuid": parent or None}
    message = {"id": identity or None, "role": kind, "content": blocks}
    return json.dumps({"type": kind, "uuid": name, **parents, "message": message})


WAYS = """
an edited request: u1< a1<u1 u2<a1 a2<u2 u3<a1 a3<u3 → u1 a1 u3 a3, 2
lines written twice: u1< a1<u1 u1< a1< u2<a1 u1< → u1 a1 u2, 0
parallel calls, whose results follow progress: u1< a1<u1@m p1<a1 a2<a1@m r1<p1@a1 r2<a2@a2 a3<r1 → u1 a1 a2 r1 r2 a3, 0
a compaction: u1< a1<u1 s1<a1 u2<s1 → u1 a1 u2, 0
a parent that is in no line: u1< a1<u1 u2<x a2<u2 u3<x → u1 a1 u3, 2
a line that follows itself: u1<u2 a1<u1 u2<a1 a2<a2 → a2, 3
lines in a circle: u1<u2 a1<u1 u2<a1 → u1 a1 u2, 0
"""


@pytest.mark.parametrize("line", WAYS.strip().splitlines())
def test_the_way_to_the_last_turn_is_read(line: str, tmp_path: Path, cache: ArtifactCache) -> None:
    """Of a tree of lines only dead ends are left out: whatever the last turn follows, and its results, is there."""
    log, expected = line.partition(": ")[2].split(" → ")
    path = write_log(tmp_path / "a.jsonl", "\n".join(map(write_line, log.split())))
    texts = read(path, cache)
    (example,) = texts.splits["test"]
    words = " ".join(example.sentences()).split()
    left_out = texts.metadata.get("left_out", {"test": {}})["test"]
    num_branches = left_out.get("turns of abandoned branches", 0)
    text = " ".join(word for word in words if word != "Bash")
    assert f"{text}, {num_branches}" == expected


def test_files_without_a_session_are_counted(tmp_path: Path, cache: ArtifactCache) -> None:
    """A folder is read as tools leave it: other files are counted by their kind, and hidden ones are not."""
    write_log(tmp_path / "a.jsonl", ASK)
    files = {
        "agents/b.jsonl": f'{{"type": "user", "isSidechain": true, "message": {ASK}}}',
        "title.jsonl": '{"type": "summary", "summary": "Test repaired"}',
        "user.json": '{"id": "user-1", "email": "a@b"}',
        "feedback.json": "[]",
        "chat.html": "<html>",
        "._a.jsonl": "\0",
        "__MACOSX/a.jsonl": "\0",
    }
    for name, text in files.items():
        write_log(tmp_path / name, text)
    texts = read(tmp_path, cache)
    assert texts.splits["test"].ids == ["a"]
    assert texts.metadata["left_out"]["test"] == {
        "empty files": 1,
        "files ending in .html": 1,
        "files without a session (lines of subagents)": 1,
        "files without a session (lines of type summary)": 1,
        "files without a session (lines without a role)": 1,
    }


@pytest.mark.parametrize(
    "end", ['{"role": "assist', '{"role": "user", "content": "\\ud83d', "\0\0"]
)
def test_a_log_that_is_still_written_has_its_whole_lines(
    end: str, tmp_path: Path, cache: ArtifactCache
) -> None:
    """The last line, which may be cut anywhere, is counted; a log of nothing else is an error (BAD)."""
    texts = read(write_log(tmp_path / "a.jsonl", f"{ASK}\n{end}"), cache)
    (example,) = texts.splits["test"]
    assert outline(example).startswith("user: Fix the test.")
    assert texts.metadata["left_out"]["test"] == {"last lines that are not whole": 1}


NO_WAY = ":1: no way from current_node to the first message: "
BAD = {
    f'{ASK}\n{{"role": ["user"], "content": "x"}}': ":2: unknown role: ['user']; write one of",
    f'{ASK}\n\n{{"role": "user", "cont\n{ASK}': ":3: not a JSON object on one line",
    f'{ASK}\n{{"role": "user", "role": "tool", "content": "x"}}': ":2: a key is given twice",
    f'{ASK}\n{{"role": "user", "content": "\\ud83d"}}': ":2: half a character",
    '{"role": "user", "cont': ":1: not a JSON object on one line",
    '{"role": "user", "content": 5}': ":1: the field 'content' must be text, not a",
    '{"messages": "x"}': ":1: the field 'messages' must be a list",
    '{"mapping": {"a": {"parent": "a"}}, "current_node": "a"}': f"{NO_WAY}'a'",
    '{"mapping": {"a": {"parent": ["gone"]}}, "current_node": "a"}': f"{NO_WAY}['gone']",
    '{"mapping": {}}': f"{NO_WAY}None",
    '{"role": "user", "content": " "}': ": the session has no turn with text",
    "[": ": the file cannot be read: ",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_session_is_named_or_left_out(
    text: str, tmp_path: Path, cache: ArtifactCache
) -> None:
    """The error has the file and the line; dataset.strict=false leaves the session out and counts it."""
    path = write_log(tmp_path / "logs" / "bad.jsonl", text)
    with pytest.raises(DataError, match=re.escape(f"{path}{BAD[text]}")):
        read(tmp_path, cache)
    write_log(tmp_path / "good.jsonl", ASK)
    texts = read(tmp_path, cache, strict=False)
    assert texts.splits["test"].ids == ["good"]
    assert sum(texts.metadata["skipped"]["test"].values()) == 1
