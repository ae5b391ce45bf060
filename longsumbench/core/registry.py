"""Names → systems, corpora, metrics, rankers, engines, commands and whatever else a plug-in can add.

The names are the built-in ones and the entry points of installed packages. A name is imported when it is loaded, so
listing is fast and a broken plug-in does not affect other names. The wheel has a second package, `reproduction`, which
is known only by its entry points.

A package adds a system with these lines in its pyproject.toml:

    [project.entry-points."longsumbench.systems"]
    mine = "my_package.mine:MySystem"
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, NamedTuple

from longsumbench.core.settings import Settings, collect_defaults
from longsumbench.errors import BrokenPlugin, UnknownName

REGISTRIES: list["Registry"] = []  # of the modules that are imported
_DISTRIBUTION = "longsumbench"


@dataclass(frozen=True)
class Registry:
    """The names of one kind.

    Attributes:
        kind: "model", "dataset", "metric", …; for messages.
        group: the entry-point group that plug-ins use.
        built_in: name → "module:attribute".
        families: beginning of names ("evaluate/") → "module:attribute" of a function, which gets the rest of the name.
    """

    kind: str
    group: str
    built_in: Mapping[str, str] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        REGISTRIES.append(self)

    def targets(self) -> dict[str, str]:
        """Return name → "module:attribute", those of the suite first; a plug-in cannot take such a name."""
        shipped = self.shipped()
        return {**shipped, **self._read_targets().others, **shipped}

    def shipped(self) -> dict[str, str]:
        """Return the names that the suite's own distribution has: built-in ones, and those of `reproduction`."""
        return {**self.built_in, **self._read_targets().own}

    def _read_targets(self) -> "_Targets":
        return _read_entry_points(entry_points, self.group, tuple(sys.path))

    def load(self, name: str) -> Any:
        """Import and return the object that is registered as `name`.

        Raises:
            UnknownName: the name is not registered.
            BrokenPlugin: the import fails.
        """
        targets = self.targets()
        for beginning, target in self.families.items():
            if name.startswith(beginning) and name != beginning:
                return EntryPoint(name, target, self.group).load()(name.removeprefix(beginning))
        if name not in targets:
            raise UnknownName(self.kind, name, targets)
        try:
            return EntryPoint(name, targets[name], self.group).load()
        # A plug-in's import can raise anything: a syntax error, a missing library.
        except Exception as error:
            message = f"{self.kind} '{name}' ({targets[name]}) cannot be imported: {type(error).__name__}: {error}"
            raise BrokenPlugin(message) from error


class _Targets(NamedTuple):
    """Entry points of the suite's distribution, and of other packages: name → "module:attribute"."""

    own: dict[str, str]
    others: dict[str, str]


@cache
def _read_entry_points(
    find: Callable[..., EntryPoints], group: str, path: tuple[str, ...]
) -> _Targets:
    """Return the entry points of the packages on a path. Reading them takes 10 ms; a sweep asks for each point."""
    targets = _Targets({}, {})
    for point in find(group=group):
        is_own = point.dist is not None and point.dist.name == _DISTRIBUTION
        names = targets.own if is_own else targets.others
        names[point.name] = point.value
    return targets


systems = Registry(
    "model",
    "longsumbench.systems",
    MappingProxyType(
        {
            "lead": "longsumbench.models.baselines.system:Lead",
            "random": "longsumbench.models.baselines.system:Random",
            "lexrank": "longsumbench.models.baselines.system:LexRank",
            "ranker": "longsumbench.models.baselines.system:RankedExtract",
            "oracle": "longsumbench.models.baselines.system:Oracle",
            "highlights": "longsumbench.models.baselines.system:Highlights",
            "person": "longsumbench.models.baselines.system:Person",
            "trunc": "longsumbench.models.seal.system:Trunc",
            "ca": "longsumbench.models.seal.system:CA",
            "ea": "longsumbench.models.seal.system:EA",
            "seal": "longsumbench.models.seal.system:Seal",
            "pagesum": "longsumbench.models.pagesum.system:PageSum",
            "etads": "longsumbench.models.etads.system:Etads",
            "hierarchical_transformer": "longsumbench.models.hierarchical_transformer.system:HierarchicalTransformer",
            "flat_transformer": "longsumbench.models.hierarchical_transformer.system:FlatTransformer",
            "seq2seq": "longsumbench.models.seq2seq.system:Seq2Seq",
            "prompt": "longsumbench.models.prompt.system:PromptSystem",
            "command": "longsumbench.models.command.system:CommandSystem",
            "function": "longsumbench.models.command.system:FunctionSystem",
        }
    ),
)

# Names of modules, each with a `CORPUS`.
_CORPORA = (
    "arxiv",
    "pubmed",
    "cnn_dailymail",
    "elife",
    "peer_reviews",
    "cnndm_sample",
    "newts",
    "wiki_sections",
    "multi_news",
    "gov_report",
    "qmsum",
    "squality",
    "openstax",
    "openstax_modules",
    "opinosis",
    "fewsum",
    "proposals",
    "sumpubmed",
    "sessions",
    "jsonl",
)
corpora = Registry(
    "dataset",
    "longsumbench.corpora",
    MappingProxyType(
        {
            "aclsum": "longsumbench.corpora.aclsum:CORPUS",
            "aclsum_aspects": "longsumbench.corpora.aclsum:ASPECTS",
            "probe": "longsumbench.corpora.probe.probe:CORPUS",
            **{name: f"longsumbench.corpora.{name}:CORPUS" for name in _CORPORA},
            "hub": "longsumbench.corpora.any_hub:CORPUS",
        }
    ),
)

metrics = Registry(
    "metric",
    "longsumbench.metrics",
    MappingProxyType(
        {
            "rouge": "longsumbench.metrics.rouge:Rouge",
            "fact_recall": "longsumbench.metrics.fact_recall:FactRecall",
            "fact_survival": "longsumbench.metrics.fact_survival:FactSurvival",
            "entity_precision": "longsumbench.metrics.names_and_numbers:EntityPrecision",
            "number_precision": "longsumbench.metrics.names_and_numbers:NumberPrecision",
            "copied": "longsumbench.metrics.word_metrics:Copied",
            "novel_ngrams": "longsumbench.metrics.word_metrics:NovelNgrams",
            "extractive": "longsumbench.metrics.word_metrics:Extractive",
            "repetition": "longsumbench.metrics.word_metrics:Repetition",
            "length_ratio": "longsumbench.metrics.word_metrics:LengthRatio",
            "bertscore": "longsumbench.metrics.bertscore:BertScore",
            "support": "longsumbench.metrics.support:Support",
            "judge": "longsumbench.metrics.judge:Judge",
            "answers": "longsumbench.metrics.answers:SummaryAnswers",
        }
    ),
    MappingProxyType({"evaluate/": "longsumbench.metrics.library_metrics:library_metric"}),
)

rankers = Registry(
    "ranker",
    "longsumbench.rankers",
    MappingProxyType(
        {
            "tfidf": "longsumbench.modeling.ranking:tfidf_with_title",
            "bm25": "longsumbench.modeling.ranking:bm25",
            "title": "longsumbench.modeling.ranking:title_similarity",
            "lexrank": "longsumbench.modeling.ranking:centrality",
            "embedding": "longsumbench.modeling.embeddings:EmbeddingRanker",
            "embedding_lexrank": "longsumbench.modeling.embeddings:EmbeddingLexRank",
            "lstm": "longsumbench.models.rankers.lstm:LstmRanker",
        }
    ),
)

engines = Registry(
    "engine",
    "longsumbench.engines",
    MappingProxyType(
        {
            "transformers": "longsumbench.models.prompt.transformers_engine:TransformersEngine",
            "api": "longsumbench.models.prompt.api_engine:ApiEngine",
        }
    ),
)

# Module:attribute of a folder of YAML files, as those of the suite (`model/NAME.yaml`)
config_folders = Registry("folder of settings", "longsumbench.conf")
# Functions of the Python interface: `longsumbench.NAME`
functions = Registry("function", "longsumbench.functions")


def load_config_class(model: str) -> Any:
    """Return a system's `Config`.

    For a system of the suite, this is the dataclass in its package's module `config` whose field `name` is `model`. So its
    network is not imported, which takes seconds.

    Raises:
        UnknownName: the name is not registered.
        BrokenPlugin: the import fails, or the `Config` is not a dataclass that inherits `SystemConfig`.
    """
    shipped = systems.shipped()
    module = shipped.get(model, "").partition(":")[0].rpartition(".")[0] + ".config"
    if model in shipped and find_spec(module):
        for value in vars(import_module(module)).values():
            if is_dataclass(value) and collect_defaults(value).get("name") == model:
                return value
    config = getattr(systems.load(model), "Config", None)
    # Of all classes, `SystemConfig` alone inherits `Settings`; its module imports this one.
    inherits = isinstance(config, type) and Settings in config.__mro__
    if not inherits or not is_dataclass(config):
        raise BrokenPlugin(
            f"model '{model}' ({systems.targets()[model]}) has no usable settings: let its class name a Config, which is"
            " a dataclass that inherits longsumbench.core.SystemConfig"
        )
    return config
