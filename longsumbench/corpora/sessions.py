"""Sessions: logs of agents and chats, at `dataset.path=FILE` or FOLDER.

    a session as JSON lines    {role, content, …} on each line, or a line of Claude Code's or Codex's logs
    sessions as rows           {messages: [{role, content, tool_calls?}], id?, title?, summary?}: OpenAI's format, and
                               those that call the role `type` or the content `parts`
    ChatGPT's export           conversations.json: {mapping, current_node, title}; the path to the current node is read

A session becomes an example of one document. A section is what one role says until another speaks, and has its name; of
what a tool returned it is "tool". Content is text, or a list of blocks: text, calls, results. Blank lines separate
paragraphs, and line breaks end sentences. A call is a paragraph of the tool's name and its arguments, one a line.

Thoughts, images and other blocks are left out and counted by their types. So are lines that are no turn of the session
(titles, subagents, summaries of earlier compactions), a last line that is not whole, turns of abandoned branches, and
files without a session.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from longsumbench.core import Corpus, Document, Entry, Example, PartialExample, Row, Section, Source
from longsumbench.corpora.loading import fields
from longsumbench.corpora.loading.files import local_source
from longsumbench.corpora.loading.row_files import EmptyFile, FileRow, holds_rows, read_file
from longsumbench.corpora.loading.text_files import (
    OF_A_CUT_LINE,
    describe_unread_file,
    visible_files,
)
from longsumbench.errors import DataError
from longsumbench.sentences import split_summary, unify_line_breaks

_ROLES = ("system", "developer", "user", "assistant", "tool")
# of OpenAI, LangChain and its streams, Google's API and its command
_OTHER_ROLES = {
    "function": "tool",
    "human": "user",
    **dict.fromkeys(("ai", "aimessagechunk", "model", "gemini"), "assistant"),
}
_TEXTS = ("text", "input_text", "output_text", "code", "execution_output", "audio_transcription")
_CALLS = ("tool_use", "function_call", "custom_tool_call", "local_shell_call", "tool-call")
_RESULTS = ("tool_result", "tool-result", *(f"{call}_output" for call in _CALLS))
# of OpenAI's messages, Gemini's command and Vercel's AI SDK, next to the content
_MORE_FIELDS = ("refusal", "reasoning_content", "audio", "toolCalls", "toolInvocations")
# of Google's API, where the kind of a block is a field
_GOOGLE_BLOCKS = {
    "functionCall": "function_call",
    "function_call": "function_call",
    "functionResponse": "tool_result",
    "function_response": "tool_result",
}
# of Claude Code: mark of a line → what the line is
_NO_TURN = {"isSidechain": "lines of subagents", "isCompactSummary": "summaries of compactions"}
# How texts begin that Codex adds in the name of the user
_ADDED = re.compile(
    r"\s*(?:<(?:environment_context|turn_aborted|user_\w+|skill|permissions)|# AGENTS\.md)"
)
_BRANCHES = "turns of abandoned branches"
_BLANK_LINE = re.compile(r"\n\s*\n")


def session_example(rows: Iterable[FileRow], identity: str) -> PartialExample:
    """Turn the lines of a log, or one row that holds a session, into an Example.

    Raises:
        BadRow: a message cannot be read, or none has text. Its `line` is set if it is about one line.
    """
    left_out: Counter[str] = Counter()
    log: list[tuple[int | None, Row]] = []
    turns: list[tuple[str, str]] = []
    number: int | None = None
    row: Row = {}
    try:
        lines = [*rows]
        for line in lines:
            number = line.line
            try:
                log.append((number, line.load()))
            except fields.BadRow as error:
                # the last line of a log that is still being written
                if not log or line is not lines[-1] or error.reason not in OF_A_CUT_LINE:
                    raise
                left_out["last lines that are not whole"] += 1
        for turn in _current_turns(log, left_out):
            number, row = turn
            for message in _messages_in(row, left_out):
                name = message.get("role")
                role = _find_role(name)
                if role is None:
                    problem = f"{name!r}; write one of {', '.join((*_ROLES, *_OTHER_ROLES))}"
                    raise fields.BadRow("unknown role", problem)
                turns += _turns_in(message, role, left_out)
    except fields.BadRow as error:
        error.line = number
        raise
    sections = []
    for role, of_role in groupby(turns, itemgetter(0)):
        text = unify_line_breaks("\n\n".join(text for _, text in of_role))
        paragraphs = tuple(filter(None, map(split_summary, _BLANK_LINE.split(text))))
        if paragraphs:
            sections.append(Section.written(role, paragraphs, text))
    if not sections:
        raise fields.BadRow("the session has no turn with text")
    facts = row if _holds_session(row) else {}
    title = fields.optional_in(facts, "title")
    references = fields.references_in([fields.any_text_in(facts, "summary") or ""])
    if facts.get("id") is not None:
        identity = fields.id_in(facts, "id")
    document = Document(None, tuple(sections))
    return PartialExample(Example(identity, title, None, (document,), references), +left_out)


def _holds_session(row: Row) -> bool:
    return "messages" in row or "mapping" in row


def _describe_line(row: Row) -> str:
    """Return what a line without a turn is; empty for a turn or a session."""
    for mark, description in _NO_TURN.items():
        if row.get(mark):
            return description
    # Claude Code's lines of the type "system" are about the session
    kind = row.get("type")
    has_role = _find_role(kind) not in (None, "system")
    if (
        has_role
        or kind in ("response_item", *_CALLS, *_RESULTS)
        or "role" in row
        or _holds_session(row)
    ):
        return ""
    return f"lines of type {kind}" if "type" in row else "lines without a role"


def _current_turns(
    log: Iterable[tuple[int | None, Row]], left_out: Counter[str]
) -> list[tuple[int | None, Row]]:
    """Return the lines of turns: of Claude Code's tree those on the way from the last turn to the first.

    Other lines are counted. Those without uuid are no part of the tree.

    Raises:
        NoExample: there is none.
    """
    nodes: dict[str, Row] = {}
    turns: list[tuple[int | None, Row]] = []
    taken_back = 0
    for number, row in log:
        name = _name_in(row, "uuid")
        kind = "lines written twice" if name in nodes else _describe_line(row)
        if name:
            nodes.setdefault(name, row)
        first = _first_taken_back(turns, row)
        taken_back += len(turns) - first
        del turns[first:]
        if kind:
            left_out[kind] += 1
        else:
            turns.append((number, row))
    if not turns:
        raise fields.NoExample(f"files without a session ({', '.join(sorted(left_out))})")
    path = _lines_before_last_turn(nodes)
    current = [turn for turn in turns if _name_in(turn[1], "uuid") in path]
    left_out[_BRANCHES] += taken_back + len(turns) - len(current)
    return current


def _first_taken_back(turns: Sequence[tuple[int | None, Row]], row: Row) -> int:
    """Return how many of the lines of turns stay after a line, with which Codex may take back the last requests."""
    event = row.get("payload")
    if not isinstance(event, dict) or event.get("type") != "thread_rolled_back":
        return len(turns)
    requests = [place for place, (_, turn) in enumerate(turns) if _is_request(turn)]
    number = event.get("num_turns")
    if not requests or not isinstance(number, int) or number < 1:
        return len(turns)
    return requests[-min(number, len(requests))]


def _is_request(row: Row) -> bool:
    """Return whether a line of Codex is what a user wrote, not what it adds in the name of the user."""
    message = row.get("payload", row)
    if not isinstance(message, dict) or message.get("role") != "user":
        return False
    return not any(_ADDED.match(text) for _, text in _turns_in(message, "user", Counter()))


def _name_in(row: Row, *keys: str) -> str:
    """Return the first of some names that a row has; empty if it has none."""
    return f"{next(filter(None, map(row.get, keys)), '')}"


def _lines_before_last_turn(nodes: Mapping[str, Row]) -> set[str]:
    """Return the uuids of the lines that the last turn follows.

    A step is an answer, which has several lines with one id, or all results of its calls: parallel calls have them in
    several branches. A parent that is not in the log is a step after the turn before: the log was cut, or goes on.
    """
    steps: dict[str, str] = {}
    callers: dict[str, str] = {}
    for name, row in nodes.items():
        steps[name] = _find_step(name, row, callers)
    parents: dict[str, str] = {}
    last = ""
    for name, row in nodes.items():
        parent = _name_in(row, "parentUuid", "logicalParentUuid")
        if parent not in nodes:
            parents.setdefault(parent, last)
        if steps.get(parent) != steps[name]:
            parents.setdefault(steps[name], parent)
        if not _describe_line(row):
            last = name
    path = {""}
    step = steps.get(last, "")
    while step not in path:
        path.add(step)
        parent = parents.get(step, "")
        step = steps.get(parent, parent)
    return {name for name, step in steps.items() if step in path} | {""}


def _find_step(name: str, row: Row, callers: dict[str, str]) -> str:
    """Return the step of a line; `callers` has the step of each call so far, by its id."""
    message = row.get("message")
    if not isinstance(message, dict):
        return name
    step = _name_in(message, "id") or name
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_use":
            callers[_name_in(block, "id")] = step
        if isinstance(block, dict) and block.get("type") == "tool_result":
            step = f"results of {callers.get(_name_in(block, 'tool_use_id'), name)}"
    return step


def _messages_in(row: Row, left_out: Counter[str]) -> list[Row]:
    """Return the messages of a session, or the one of a line."""
    if "mapping" in row:
        return _current_path(row, left_out)
    if "messages" in row:
        return [*map(_as_message, fields.objects_in(row, "messages"))]
    if "message" in row and "role" not in row:
        return [fields.object_in(row, "message")]
    if row.get("type") == "response_item":
        row = fields.object_in(row, "payload")
    return [_as_message(row)]


def _find_role(name: Any) -> str | None:
    """Return the suite's name of a role, in any case; None for an unknown one."""
    role = f"{name}".lower()
    return role if role in _ROLES else _OTHER_ROLES.get(role)


def _as_message(item: Row) -> Row:
    """Return a message, also of an item without a role: its type is the role, or it is a call or a result."""
    if isinstance(item.get("data"), dict):  # of LangChain's files
        item = {**item["data"], **item}
    if "role" in item or "type" not in item:
        return item
    if _find_role(item["type"]):
        return {"role": item["type"], **item}
    return {"role": "assistant", "content": [item]}


def _current_path(row: Row, left_out: Counter[str]) -> list[Row]:
    """Return the messages of ChatGPT's export, a tree of nodes: from the first to the current one."""
    nodes = dict(fields.object_in(row, "mapping"))
    name = row.get("current_node")
    messages: list[Row] = []
    while True:
        node = nodes.pop(f"{name}", None)
        if not isinstance(node, dict):
            raise fields.BadRow("no way from current_node to the first message", f"{name!r}")
        if message := node.get("message"):
            author = fields.object_in(message, "author")
            content = fields.object_in(message, "content")
            messages.insert(0, {**author, "content": content.get("parts", content)})
        name = node.get("parent")
        if name is None:
            others = [node for node in nodes.values() if isinstance(node, dict)]
            left_out[_BRANCHES] += sum(bool(node.get("message")) for node in others)
            return messages


def _turns_in(item: Row, role: str, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield role and text of each block of a message, or of a tool's result; blocks without text are counted."""
    content = item.get("content") or item.get("parts") or []
    blocks = list(content) if isinstance(content, list) else [content]
    blocks += [{"type": field, field: item[field]} for field in _MORE_FIELDS if item.get(field)]
    names = [block.get("id") for block in blocks if isinstance(block, dict)]
    calls = []
    for call in fields.objects_in(item, "tool_calls", required=False):
        if kind := next(filter(call.get, ("custom", "function")), None):
            calls.append(fields.object_in(call, kind))
        elif (call.get("id") or "") not in names:  # LangChain's may be in the content, too
            calls.append(call)
    if item.get("function_call"):
        calls.append(fields.object_in(item, "function_call"))
    blocks += [{**call, "type": "function_call"} for call in calls]
    if not blocks and not item.keys() & {"content", "parts"}:
        left_out["turns without content"] += 1
    for block in blocks:
        if not isinstance(block, dict):
            is_value = role == "tool" and block is not None
            content = _describe_value(block) if is_value else block
            yield role, fields.text_in({"content": content}, "content")
            continue
        block = _read_google_block(block)
        kind = block.get("type", block.get("content_type"))
        if kind in _TEXTS or (kind is None and "text" in block):
            yield role, fields.text_in(block, "text")
        elif kind == "refusal":
            yield role, fields.text_in(block, "refusal")
        elif kind in _CALLS:
            yield role, _describe_call(block)
        elif kind in _RESULTS:
            contents = map(block.get, ("content", "output", "response", "result"))
            content = next(filter(None, contents), None)
            # of the AI SDK
            if isinstance(content, dict) and content.keys() == {"type", "value"}:
                content = content["value"]
            yield from _turns_in({"content": content}, "tool", left_out)
        elif kind is None and role == "tool":
            yield role, _describe_value(block)
        else:
            left_out[f"blocks of type {kind}"] += 1


def _read_google_block(block: Row) -> Row:
    """Return a block with its type, also of Google's API."""
    if block.get("thought") is True:
        return {"type": "thought"}
    for field, kind in _GOOGLE_BLOCKS.items():
        if isinstance(block.get(field), dict):
            return {**block[field], "type": kind}
    return block


def _describe_call(call: Row) -> str:
    # Codex's call of the shell has no name
    tool = _name_in(call, "name", "toolName", "type")
    arguments: Any = next(filter(None, map(call.get, ("input", "arguments", "args", "action"))), {})
    # those of OpenAI's format are JSON that a model wrote, which may be broken
    if not isinstance(arguments, dict):
        return f"{tool}: {_describe_value(arguments)}"
    lines = [f"{name}: {_describe_value(value)}" for name, value in arguments.items()]
    return "\n".join([tool, *lines])


def _describe_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _sessions_source(path: Path) -> Source:
    """Return the sessions of a file, or of all files below a folder."""
    files = visible_files(path) if path.is_dir() else [path]
    return local_source(path, files, partial(_session_entries, path, files))


def _session_entries(path: Path, files: Iterable[Path], full: set[str]) -> Iterator[Entry]:
    root = path if path.is_dir() else path.parent
    refuse = partial(fields.refuse_row, error=fields.NoExample)
    for file in files:
        if "test" in full:
            return
        if path.is_dir() and not holds_rows(file.name):
            yield Entry("test", partial(refuse, describe_unread_file(file)), file)
            continue
        name = file.relative_to(root).as_posix().partition(".json")[0]
        log = []
        try:
            for row in read_file(file):
                if _is_session(row):
                    load = partial(session_example, [row], f"{name}-{row.line}")
                    yield Entry("test", load, file, row.line)
                else:
                    log.append(row)
        except EmptyFile:
            yield Entry("test", partial(refuse, "empty files"), file)
        except DataError as error:
            problem = partial(fields.refuse_row, "the file cannot be read", f"{error}")
            yield Entry("test", problem, file)
        if log:
            yield Entry("test", partial(session_example, log, name), file)


def _is_session(row: FileRow) -> bool:
    with suppress(fields.BadRow):
        return _holds_session(row.load())
    return False


CORPUS = Corpus(
    name="sessions",
    title="Logs of agents and chats, to be compacted, test only: dataset.path=FILE or FOLDER with JSON lines of role and "
    "content, Claude Code's and Codex's logs, OpenAI's messages or ChatGPT's export.",
    licence="yours",
    homepage="",
    version=3,  # calls and results of Google's API, LangChain and the AI SDK
    release=_sessions_source,
    holds_code=True,
)
