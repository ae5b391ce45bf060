"""Sessions: logs of agents and chats, at `dataset.path=FILE` or FOLDER.

    a session as JSON lines    {role, content, …} on each line, or a line of Claude Code's logs
    sessions as rows           {messages: [{role, content, tool_calls?}], id?, title?, summary?}: OpenAI's format
    ChatGPT's export           conversations.json: {mapping, current_node, title}; the path to the current node is read

A session becomes an example of one document. Each turn is a section with the name of its role, or "tool: NAME" for what
a tool returned. Content is text, or a list of blocks: text, tool_use, tool_result. Blank lines separate paragraphs, and
line breaks end sentences. A call is a paragraph of the tool's name and its arguments, one a line.

Thoughts, images and other blocks are left out and counted by their types. So are lines of Claude Code's logs that are no
turn of the session: titles ("type": "summary"), subagents, summaries of earlier compactions, and other types.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from longsumbench.core import Corpus, Document, Entry, Example, Row, Section, Source, Thinned
from longsumbench.corpora.reading import fields
from longsumbench.corpora.reading.files import local_source
from longsumbench.corpora.reading.row_files import FileRow, read_file
from longsumbench.errors import DataError
from longsumbench.sentences import split_summary

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_TEXTS = {"text", "input_text", "output_text", "code", "execution_output", "audio_transcription"}
_CALLS = {"tool_use", "function"}
_NO_TURN = ("isSidechain", "isCompactSummary")  # of Claude Code
_BLANK_LINE = re.compile(r"\n\s*\n")


class _Turns:
    """The turns of a session, in the order in which they are added."""

    def __init__(self) -> None:
        self.sections: list[Section] = []
        self.left_out: Counter[str] = Counter()
        self._tools: dict[Any, str] = {}  # id of a call → name of the tool

    def add(self, message: Row) -> None:
        """Add a message with a role, or a line of Claude Code's logs.

        Raises:
            BadRow: its role is unknown, or a field has the wrong type.
        """
        if "role" not in message and "type" in message:
            kind = message["type"]
            if kind not in ("user", "assistant") or any(map(message.get, _NO_TURN)):
                self.left_out[f"lines of type {kind}"] += 1
                return
            message = fields.object_in(message, "message")
        role = fields.text_in(message, "role")
        if role not in _ROLES:
            raise fields.BadRow("unknown role", f"{role!r}; write one of {', '.join(_ROLES)}")
        if role in ("tool", "function"):
            role = self._tool_section(message.get("tool_call_id"), message.get("name"))
        calls = fields.objects_in(message, "tool_calls", required=False)
        self._add_section(role, [*_blocks_in(message), *calls])

    def _add_section(self, name: str, blocks: Iterable[Any]) -> None:
        text = "\n\n".join(map(self._text_of, blocks))
        paragraphs = tuple(filter(None, map(split_summary, _BLANK_LINE.split(text))))
        if paragraphs:
            self.sections.append(Section(name, paragraphs))

    def _text_of(self, block: Any) -> str:
        """Return the text of a block; a tool's result is added as a section of its own."""
        if not isinstance(block, dict):
            return fields.text_in({"content": block}, "content")
        kind = block.get("type", block.get("content_type"))
        if kind in _TEXTS:
            return fields.text_in(block, "text")
        if kind in _CALLS:
            call = block.get("function") or block
            name = fields.text_in(call, "name")
            self._tools[block.get("id")] = name
            return _describe_call(name, call.get("input", call.get("arguments")))
        if kind == "tool_result":
            self._add_section(self._tool_section(block.get("tool_use_id")), _blocks_in(block))
        else:
            self.left_out[f"blocks of type {kind}"] += 1
        return ""

    def _tool_section(self, call: Any, name: str | None = None) -> str:
        return f"tool: {name or self._tools.get(call, 'unknown')}"


def _blocks_in(item: Row) -> list[Any]:
    content = item.get("content") or ""
    return content if isinstance(content, list) else [content]


def _describe_call(tool: str, arguments: Any) -> str:
    # those of OpenAI's format are JSON that a model wrote, which may be broken
    if not isinstance(arguments, Mapping):
        return f"{tool}: {arguments}"
    return "\n".join([tool, *(f"{name}: {value}" for name, value in arguments.items())])


def session_example(rows: Iterable[FileRow], identity: str) -> Thinned:
    """Turn the lines of a log, or one row that holds a session, into an Example.

    Raises:
        BadRow: a message cannot be read, or none has text. Its `line` is set.
    """
    turns = _Turns()
    row: Row = {}
    for line in rows:
        try:
            row = line.load()
            for message in _messages_in(row):
                turns.add(message)
        except fields.BadRow as problem:
            problem.line = line.line
            raise
    if not turns.sections:
        raise fields.BadRow("the session has no turn with text")
    facts = row if _holds_session(row) else {}
    title = fields.optional_in(facts, "title")
    references = fields.references_in([fields.any_text_in(facts, "summary") or ""])
    if facts.get("id") is not None:
        identity = fields.id_in(facts, "id")
    document = Document(None, tuple(turns.sections))
    return Thinned(Example(identity, title, None, (document,), references), turns.left_out)


def _holds_session(row: Row) -> bool:
    return "messages" in row or "mapping" in row


def _messages_in(row: Row) -> Sequence[Row]:
    if "mapping" not in row:
        return fields.objects_in(row, "messages") if "messages" in row else [row]
    # ChatGPT's export is a tree of nodes: the way from the current one to the first
    mapping, name = fields.object_in(row, "mapping"), row.get("current_node")
    path: dict[str, Row] = {}
    while name is not None:
        if name in path or name not in mapping:
            raise fields.BadRow("no way from current_node to the first message", f"{name!r}")
        path[name] = fields.object_in(mapping, name)
        name = path[name].get("parent")
    messages = []
    for node in reversed(path.values()):
        if message := node.get("message"):
            content = fields.object_in(message, "content")
            author = fields.object_in(message, "author")
            messages.append({**author, "content": content.get("parts", [content])})
    return messages


def _sessions_source(path: Path) -> Source:
    """Return the sessions of a file, or of all files below a folder."""
    files = sorted(path.rglob("*.json*")) or [path]
    return local_source(path, files, partial(_session_entries, path, files))


def _session_entries(path: Path, files: Iterable[Path], full: set[str]) -> Iterator[Entry]:
    root = path if path.is_dir() else path.parent
    for file in files:
        if "test" in full:
            return
        name = file.relative_to(root).as_posix().partition(".json")[0]
        try:
            rows = list(read_file(file))
        except DataError as error:
            refuse = partial(fields.refuse_row, "the file cannot be read", f"{error}")
            yield Entry("test", refuse, file)
            continue
        if any(map(_is_session, rows)):
            for row in rows:
                load = partial(session_example, [row], f"{name}-{row.line}")
                yield Entry("test", load, file)
        else:
            yield Entry("test", partial(session_example, rows, name), file)


def _is_session(row: FileRow) -> bool:
    try:
        return _holds_session(row.load())
    except fields.BadRow:
        return False


CORPUS = Corpus(
    name="sessions",
    title="Logs of agents and chats, to be compacted, test only: dataset.path=FILE or FOLDER with JSON lines of role and "
    "content, Claude Code's logs, OpenAI's messages or ChatGPT's export.",
    licence="yours",
    homepage="",
    release=_sessions_source,
)
