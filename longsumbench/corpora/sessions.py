"""Sessions: logs of agents and chats, at `dataset.path=FILE` or FOLDER.

    a session as JSON lines    {role, content, …} on each line, or a line of Claude Code's logs
    sessions as rows           {messages: [{role, content, tool_calls?}], id?, title?, summary?}: OpenAI's format
    ChatGPT's export           conversations.json: {mapping, current_node, title}; the path to the current node is read

A session becomes an example of one document. A section is what one role says until another speaks, and has its name; of
what a tool returned it is "tool". Content is text, or a list of blocks: text, tool_use, tool_result. Blank lines separate
paragraphs, and line breaks end sentences. A call is a paragraph of the tool's name and its arguments, one a line.

Thoughts, images and other blocks are left out and counted by their types. So are lines of Claude Code's logs that are no
turn of the session: titles ("type": "summary"), subagents, summaries of earlier compactions, and other types.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from longsumbench.core import Corpus, Document, Entry, Example, Row, Section, Source, Thinned
from longsumbench.corpora.reading import fields
from longsumbench.corpora.reading.files import local_source
from longsumbench.corpora.reading.row_files import FileRow, read_file
from longsumbench.errors import DataError
from longsumbench.sentences import split_summary

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_TEXTS = ("text", "input_text", "output_text", "code", "execution_output", "audio_transcription")
_NO_TURN = ("isSidechain", "isCompactSummary")  # of Claude Code
_BLANK_LINE = re.compile(r"\n\s*\n")


def session_example(rows: Iterable[FileRow], identity: str) -> Thinned:
    """Turn the lines of a log, or one row that holds a session, into an Example.

    Raises:
        BadRow: a message cannot be read, or none has text. Its `line` is set if it is about one line.
    """
    left_out: Counter[str] = Counter()
    turns: list[tuple[str, str]] = []
    row: Row = {}
    for line in rows:
        try:
            row = line.load()
            for message in _messages_in(row, left_out):
                role = message.get("role")
                if role not in _ROLES:
                    problem = f"{role!r}; write one of {', '.join(_ROLES)}"
                    raise fields.BadRow("unknown role", problem)
                turns += _turns_in(message, role, left_out)
        except fields.BadRow as error:
            error.line = line.line
            raise
    sections = []
    for role, of_role in groupby(turns, itemgetter(0)):
        text = "\n\n".join(text for _, text in of_role)
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
    return Thinned(Example(identity, title, None, (document,), references), left_out)


def _holds_session(row: Row) -> bool:
    return "messages" in row or "mapping" in row


def _messages_in(row: Row, left_out: Counter[str]) -> list[Row]:
    """Return the messages of a session, or the one of a line; a line that is no turn is counted."""
    if "mapping" in row:
        return _current_path(row)
    if "messages" in row:
        return fields.objects_in(row, "messages")
    if "role" in row or "type" not in row:
        return [row]
    if row["type"] in ("user", "assistant") and not any(map(row.get, _NO_TURN)):
        return [fields.object_in(row, "message")]
    left_out[f"lines of type {row['type']}"] += 1
    return []


def _current_path(row: Row) -> list[Row]:
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
            return messages


def _turns_in(item: Row, role: str, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield role and text of each block of a message, or of a tool's result; blocks without text are counted."""
    content = item.get("content") or []
    blocks = content if isinstance(content, list) else [content]
    for call in fields.objects_in(item, "tool_calls", required=False):
        blocks = [*blocks, {**fields.object_in(call, "function"), "type": "tool_use"}]
    for block in blocks:
        if not isinstance(block, dict):
            yield role, fields.text_in({"content": block}, "content")
            continue
        kind = block.get("type", block.get("content_type"))
        if kind in _TEXTS:
            yield role, fields.text_in(block, "text")
        elif kind == "tool_use":
            yield role, _describe_call(fields.text_in(block, "name"), block)
        elif kind == "tool_result":
            yield from _turns_in(block, "tool", left_out)
        else:
            left_out[f"blocks of type {kind}"] += 1


def _describe_call(tool: str, call: Row) -> str:
    arguments = call.get("input", call.get("arguments"))
    # those of OpenAI's format are JSON that a model wrote, which may be broken
    if not isinstance(arguments, dict):
        return f"{tool}: {arguments}"
    return "\n".join([tool, *(f"{name}: {value}" for name, value in arguments.items())])


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
        log = []
        try:
            for row in read_file(file):
                if _is_session(row):
                    load = partial(session_example, [row], f"{name}-{row.line}")
                    yield Entry("test", load, file, row.line)
                else:
                    log.append(row)
        except DataError as error:
            refuse = partial(fields.refuse_row, "the file cannot be read", f"{error}")
            yield Entry("test", refuse, file)
        if log:
            yield Entry("test", partial(session_example, log, name), file)


def _is_session(row: FileRow) -> bool:
    with suppress(fields.BadRow):
        return _holds_session(row.load())
    return False


CORPUS = Corpus(
    name="sessions",
    title="Logs of agents and chats, to be compacted, test only: dataset.path=FILE or FOLDER with JSON lines of role and "
    "content, Claude Code's logs, OpenAI's messages or ChatGPT's export.",
    licence="yours",
    homepage="",
    release=_sessions_source,
)
