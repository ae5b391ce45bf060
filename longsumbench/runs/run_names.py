"""What a run is called: one author for tables, CSV files, pictures, the site and headings. Begin with `name_runs`.

A run is called by what differs among the runs of its system in the same table: the user's name for it, then settings in
the order of their importance. What all of them share is said once. Settings that do not decide the outcome are never
named, and of a path only its last name.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from itertools import chain
from typing import Any

import msgspec

from longsumbench.cache.hub import checkpoint_name
from longsumbench.core import SAME_SYSTEM, SECTIONS, Decides, names_deciding, registry
from longsumbench.errors import SuiteError
from longsumbench.formatting import format_plain_value
from longsumbench.runs.record import SHORT_ID, RunRecord, split_variant

_NEVER_NAMED = (*SAME_SYSTEM, "speed", "seed")
_PRETRAINED = ("checkpoint", "revision", "adapter", "init")  # say most about a system
_SECTIONS = ("model", "decode", "train")
_NULL = "null"
_WORD = r"""(?:[^\s/\\,\]"'<>:]|:(?![/\\~.]))+"""
_SLASH = r"[/\\]++"  # JSON doubles a backslash
# A folder's name may have blanks. No blank of a name stands behind "tool.py" or before an option, a setting or a path.
_FOLDER = rf"(?:(?!{_WORD}\.\w{{1,5}}\s){_WORD}[ ](?!-|[\w.]+=|[~.]*[/{{<>|&]|[A-Za-z]:)){{0,3}}{_WORD}{_SLASH}"
# At the beginning of a word, of a value, of an entry in a list, or after the letters of an option
_PATH_BEGINS = r"""(?:(?<![^\s=,\[("'<>|&;@])|(?<=:)(?!//))(?P<option>(?:-[A-Za-z]+)?)"""
_FOLDERS = re.compile(
    rf"""{_PATH_BEGINS}(?:file:/+|(?:~[\w.-]*|\.{{1,2}}|[A-Za-z]:){_SLASH}|/+(?={_FOLDER}))(?:{_FOLDER})*(?=[^\s,\]"'])"""
)
_IS_NAME = re.compile(r"[\w./~-]+")  # may be a path
_GGUF = ".gguf"


def collect_settings(record: RunRecord, *ignored: Decides) -> dict[str, str]:
    """Return the settings that affect a run's summaries, without the seed: full name → value, as on the command line.

    Settings that decide `ignored` are left out. So are those of training for a checkpoint that was not trained here;
    other systems that are not trained have only the settings of their model.
    """
    sections: tuple[str, ...] = (
        ("train", "decode") if record.fit.steps or record.fit.parameters else ()
    )
    if record.zero_shot:
        sections = ("decode",)
    settings = {
        f"model.{key}": format_typed(value)
        for key, value in record.config.model.items()
        if key != "name"
    }
    for section in sections:
        left_out = names_deciding(SECTIONS[section], "seed", *SAME_SYSTEM, *ignored)
        for key, value in vars(getattr(record.config, section)).items():
            if key not in left_out:
                settings[f"{section}.{key}"] = format_typed(value)
    return settings


def format_typed(value: Any) -> str:
    """Return a setting's value as on the command line."""
    if isinstance(value, list | tuple):
        return f"[{','.join(map(format_typed, value))}]"
    return format_plain_value(value) or '""'


@cache
def _read_metadata(model: str) -> Mapping[str, Mapping[str, Any]]:
    """Return full name → metadata of all settings, those of the model in their order; without them if it is unknown."""
    try:
        sections = {"model": registry.load_config_class(model), **SECTIONS}
    except SuiteError:  # imported outputs, or a plug-in that is not installed
        sections = {**SECTIONS}
    metadata: dict[str, Mapping[str, Any]] = {}
    for section, schema in sections.items():
        metadata |= {f"{section}.{item.name}": item.metadata for item in fields(schema)}
    return metadata


def shorten_paths(text: str) -> str:
    """Return a text in which each path is its last name; hub names and addresses stay."""
    return _FOLDERS.sub(r"\g<option>", text)


def shorten_values(values: Mapping[str, Any]) -> Any:
    """Return JSON values, also nested ones, in which each path is its last name."""
    return json.loads(shorten_paths(json.dumps(values, ensure_ascii=False)))


def hide_folders(record: RunRecord) -> RunRecord:
    """Return a record for others to read: of each path in its settings, command and facts, the last name."""
    return msgspec.convert(shorten_values(asdict(record)), RunRecord)


def name_checkpoint(record: RunRecord) -> str:
    """Return the name of a run's checkpoint, never its path: "Qwen2.5-Coder-0.5B (GGUF)"; empty without one."""
    name = checkpoint_name(record.system.checkpoint or record.config.model.get("checkpoint") or "")
    name = str(record.system.more.get("title") or name)
    is_gguf = name.endswith(_GGUF) or (record.system.weights or "").startswith("GGUF")
    return f"{name.removesuffix(_GGUF)} (GGUF)" if is_gguf else name


def describe_setting(record: RunRecord, key: str, value: str) -> str:
    """Return a setting in a name: by the phrase of its description, or as `name value`.

    `key` is its full name, and `value` as on the command line.
    """
    if not value:
        return key
    if key == "model.checkpoint":
        return name_checkpoint(record)
    phrase = _read_metadata(record.key.model).get(key, {}).get("phrase", "")
    value = checkpoint_name(value) if _IS_NAME.fullmatch(value) else shorten_paths(value)
    if phrase == "{}" and value != "none":
        return value
    if phrase and value.isdigit():
        return str(phrase).format(f"{int(value):,}")
    return f"{key.rpartition('.')[2]} {value}"


def _importance(model: str, key: str) -> tuple[int, int]:
    """Return a sorting key of settings: what was loaded, what defines the system, others, lengths, then the budget."""
    known = _read_metadata(model)
    described = known.get(key, {})
    ranks = {
        "pretrained": key.rpartition(".")[2] in _PRETRAINED,
        "defining": described.get("phrase") == "{}",
        "budget": described.get("decides") == "budget",
        "words": described.get("unit") == "words",
        "tokens": described.get("unit") == "tokens",
        "other": True,
    }
    order = ("pretrained", "defining", "other", "tokens", "words", "budget")
    rank = next(name for name, applies in ranks.items() if applies)
    return order.index(rank), [*known].index(key) if key in known else len(known)


@dataclass(frozen=True)
class RunName:
    """What a run is called in a table.

    Attributes:
        system: its model; oracles are marked.
        own: what distinguishes it from other runs of its system.
        shared: what all runs of its system have in common.
        settings: those in which the runs of its system differ, also where `own` leaves one out: full name → value.
        is_alone: True if the table has no other system.
    """

    system: str
    own: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    is_alone: bool = False

    @property
    def label(self) -> str:
        """The name in the table: "prompt, select"; without the system where all rows are of it."""
        own = ", ".join(self.own)
        return own if self.is_alone and own else ", ".join(filter(None, [self.system, own]))


def name_system(record: RunRecord) -> str:
    """Return the name of a run's system, marked if it saw the references."""
    model = record.key.model
    if model == "person":
        return "another person"
    return f"{model} (oracle)" if record.oracle and model != "oracle" else model


def name_runs(records: Sequence[RunRecord], ignored: Collection[str] = ()) -> list[RunName]:
    """Return the names of the runs of a table, in their order; full names of settings in `ignored` are not used."""
    systems: dict[str, list[int]] = {}
    for index, record in enumerate(records):
        systems.setdefault(name_system(record), []).append(index)
    names: dict[int, RunName] = {}
    for system, indices in systems.items():
        members = [records[index] for index in indices]
        for index, name in zip(indices, _name_members(system, members, ignored), strict=True):
            names[index] = replace(name, is_alone=len(systems) == 1)
    return [names[index] for index in range(len(records))]


def _name_members(
    system: str, members: Sequence[RunRecord], ignored: Collection[str]
) -> list[RunName]:
    """Name the runs of one system."""
    model = members[0].key.model
    typed, values = [], []  # of each run: full name → value
    for record in members:
        settings = _leave_out(_typed_settings(record), model, ignored)
        typed.append(settings)
        all_settings = _leave_out(collect_settings(record), model, ignored)
        ends = {"scale": record.config.scale, "seed": str(record.key.seed)}
        values.append({**all_settings, **settings, **ends})
    keys = _sort_keys(model, typed)
    varied = _find_varied(keys, values)
    parts = []
    for record, own_settings, row in zip(members, typed, values, strict=True):
        terms = [record.config.name] if record.config.name else []
        for key in varied:
            # The most important one is named also where it has its default
            if key in (varied[0], *own_settings) and row.get(key, _NULL) != _NULL:
                terms.append(describe_setting(record, key, row[key]))
        parts.append(terms)
    user_names = {record.config.name for record in members}
    if None not in user_names and len(user_names) == len(members):
        parts = [terms[:1] for terms in parts]
    added = _add_until_unique(parts, members, values)
    columns = [
        key for key in (*varied, *added) if key == "scale" or key.partition(".")[0] in _SECTIONS
    ]
    first = members[0]
    shared = [key for key in keys if key not in varied and values[0].get(key, _NULL) != _NULL]
    phrases = tuple(describe_setting(first, key, values[0][key]) for key in shared)
    names = []
    for terms, row in zip(parts, values, strict=True):
        settings = {key: shorten_paths(row.get(key, "")) for key in columns}
        names.append(RunName(system, tuple(terms), phrases, settings))
    return names


def _typed_settings(record: RunRecord) -> dict[str, str]:
    """Return the settings of a run's variant by their full names; words alone have no value."""
    metadata = _read_metadata(record.key.model)
    settings = {}
    for part in split_variant(record.variant):
        name, sign, value = part.partition("=")
        in_sections = [f"{section}.{name}" for section in _SECTIONS]
        known = [key for key in in_sections if key in metadata]
        key = [*known, in_sections[0]][0] if sign else part
        settings[key] = value
    return settings


def _leave_out(settings: Mapping[str, str], model: str, ignored: Collection[str]) -> dict[str, str]:
    """Return settings without those that are ignored or decide no outcome."""
    metadata = _read_metadata(model)
    deciding = {}
    for key, value in settings.items():
        if key not in ignored and metadata.get(key, {}).get("decides") not in _NEVER_NAMED:
            deciding[key] = value
    return deciding


def _sort_keys(model: str, rows: Iterable[Mapping[str, str]]) -> list[str]:
    keys = dict.fromkeys(chain.from_iterable(rows))  # a set has no order
    return sorted(keys, key=lambda key: _importance(model, key))


def _find_varied(keys: Iterable[str], rows: Sequence[Mapping[str, str]]) -> list[str]:
    return [key for key in keys if len({row.get(key) for row in rows}) > 1]


def _add_until_unique(
    parts: Sequence[list[str]], members: Sequence[RunRecord], values: Sequence[Mapping[str, str]]
) -> list[str]:
    """Add settings that nobody typed, one after the other, to equal names, at last the id of the run; return them."""
    model = members[0].key.model
    untyped = [key for key in _sort_keys(model, values) if key not in ("scale", "seed")]
    added = []
    for key in ("scale", *untyped, "seed", ""):
        for group in _equal_names(parts):
            terms = []
            for index in group:
                value = values[index].get(key, _NULL)
                run_id = f"[{members[index].run_id[:SHORT_ID]}]"
                terms.append(describe_setting(members[index], key, value) if key else run_id)
            if len(set(terms)) > 1:
                added.append(key)
                for index, term in zip(group, terms, strict=True):
                    parts[index].append(term)
    return added


def _equal_names(parts: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return the indices of names that are equal, for each such name."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for index, terms in enumerate(parts):
        groups.setdefault(tuple(terms), []).append(index)
    return [group for group in groups.values() if len(group) > 1]


def describe_shared(names: Sequence[RunName]) -> str:
    """Return the line below a table with what the runs of each system have in common; empty if that is nothing."""
    counts = Counter(name.system for name in names)
    systems: dict[str, dict[str, None]] = {}  # text → systems
    for name in names:
        count = counts[name.system]
        rows = {1: "", 2: "both"}.get(count, "all")
        subject = f"{name.system} ({rows})" if rows else name.system
        if name.is_alone and rows:
            subject = rows
        systems.setdefault(", ".join(name.shared), {})[subject] = None
    systems.pop("", None)
    return "; ".join(f"{', '.join(subjects)}: {text}" for text, subjects in systems.items())


def describe_run(record: RunRecord, name: RunName | None = None) -> str:
    """Return a run in a line: its name in a table, or else its system and settings; its seed and id."""
    if name is None:
        (alone,) = name_runs([record])
        name = replace(alone, own=(*alone.own, *alone.shared), is_alone=False)
    seed = () if record.key.seed is None else (f"seed {record.key.seed}",)
    origin = "imported, " if record.imported else ""
    parts = ", ".join([name.label, *seed])
    return f"{parts} ({origin}{record.run_id[:SHORT_ID]})"
