from .bounds import (
    BatchSize as BatchSize,
)
from .bounds import (
    Between as Between,
)
from .bounds import (
    Count as Count,
)
from .bounds import (
    Depth as Depth,
)
from .bounds import (
    Device as Device,
)
from .bounds import (
    FractionBelowOne as FractionBelowOne,
)
from .bounds import (
    Heads as Heads,
)
from .bounds import (
    NonNegative as NonNegative,
)
from .bounds import (
    OneOf as OneOf,
)
from .bounds import (
    Percentage as Percentage,
)
from .bounds import (
    Seed as Seed,
)
from .bounds import (
    TargetTokens as TargetTokens,
)
from .bounds import (
    Text as Text,
)
from .bounds import (
    TokenCount as TokenCount,
)
from .bounds import (
    VocabularySize as VocabularySize,
)
from .bounds import (
    Width as Width,
)
from .bounds import (
    bounds_of as bounds_of,
)
from .bounds import (
    check_value as check_value,
)
from .config import (
    SECTIONS as SECTIONS,
)
from .config import (
    TRAINED_TOKENIZERS as TRAINED_TOKENIZERS,
)
from .config import (
    DatasetSettings as DatasetSettings,
)
from .config import (
    Decoding as Decoding,
)
from .config import (
    RankerName as RankerName,
)
from .config import (
    Recipe as Recipe,
)
from .config import (
    RunConfig as RunConfig,
)
from .config import (
    Scoring as Scoring,
)
from .config import (
    build_settings as build_settings,
)
from .config import (
    check_choice as check_choice,
)
from .config import (
    check_lengths as check_lengths,
)
from .config import (
    check_minimum as check_minimum,
)
from .config import (
    check_network as check_network,
)
from .config import (
    resolve_config as resolve_config,
)
from .corpus import (
    BuiltIn as BuiltIn,
)
from .corpus import (
    Corpus as Corpus,
)
from .corpus import (
    Entry as Entry,
)
from .corpus import (
    FromRow as FromRow,
)
from .corpus import (
    Hub as Hub,
)
from .corpus import (
    Read as Read,
)
from .corpus import (
    Row as Row,
)
from .corpus import (
    Source as Source,
)
from .corpus import (
    Thinned as Thinned,
)
from .documents import (
    Cut as Cut,
)
from .documents import (
    Document as Document,
)
from .documents import (
    Example as Example,
)
from .documents import (
    Fact as Fact,
)
from .documents import (
    Section as Section,
)
from .documents import (
    Sentences as Sentences,
)
from .documents import (
    Truncation as Truncation,
)
from .documents import (
    count_words as count_words,
)
from .documents import (
    describe_reading as describe_reading,
)
from .documents import (
    total_truncation as total_truncation,
)
from .metric import (
    Metric as Metric,
)
from .metric import (
    Scored as Scored,
)
from .ranker import (
    RANKABLE_UNITS as RANKABLE_UNITS,
)
from .ranker import (
    UNRANKED as UNRANKED,
)
from .ranker import (
    LearnedRanker as LearnedRanker,
)
from .ranker import (
    RankedUnit as RankedUnit,
)
from .ranker import (
    Ranker as Ranker,
)
from .ranker import (
    RankerSettings as RankerSettings,
)
from .ranker import (
    Scores as Scores,
)
from .ranker import (
    learned_ranker as learned_ranker,
)
from .ranker import (
    texts_to_rank as texts_to_rank,
)
from .settings import (
    SAME_SYSTEM as SAME_SYSTEM,
)
from .settings import (
    Decides as Decides,
)
from .settings import (
    names_deciding as names_deciding,
)
from .settings import (
    outcome_settings as outcome_settings,
)
from .settings import (
    setting as setting,
)
from .settings import (
    settings_deciding as settings_deciding,
)
from .system import (
    ATTENDED_AXIS as ATTENDED_AXIS,
)
from .system import (
    AXES as AXES,
)
from .system import (
    REFERENCE_AXIS as REFERENCE_AXIS,
)
from .system import (
    WINDOW_AXIS as WINDOW_AXIS,
)
from .system import (
    Evidence as Evidence,
)
from .system import (
    FitContext as FitContext,
)
from .system import (
    FitReport as FitReport,
)
from .system import (
    Split as Split,
)
from .system import (
    Summary as Summary,
)
from .system import (
    System as System,
)
from .system import (
    check_search as check_search,
)
from .system import (
    read_checkpoint as read_checkpoint,
)
from .system import (
    read_saved as read_saved,
)
