from .bounds import (
    BatchSize as BatchSize,
    Between as Between,
    Count as Count,
    Depth as Depth,
    Device as Device,
    DeviceMap as DeviceMap,
    Fraction as Fraction,
    FractionBelowOne as FractionBelowOne,
    Heads as Heads,
    NonNegative as NonNegative,
    OneOf as OneOf,
    Percentage as Percentage,
    ReleaseDate as ReleaseDate,
    Seed as Seed,
    TargetTokens as TargetTokens,
    Text as Text,
    TokenCount as TokenCount,
    VariableName as VariableName,
    VocabularySize as VocabularySize,
    WeightType as WeightType,
    Width as Width,
    bounds_of as bounds_of,
    check_choice as check_choice,
    check_folder_name as check_folder_name,
    check_minimum as check_minimum,
    check_value as check_value,
)
from .catalogue import dataset_files as dataset_files, read_dataset_file as read_dataset_file
from .config import (
    SECTIONS as SECTIONS,
    RunConfig as RunConfig,
    build_settings as build_settings,
    describe_card as describe_card,
    resolve_config as resolve_config,
    settings_without_effect as settings_without_effect,
)
from .corpus import (
    BuiltIn as BuiltIn,
    Corpus as Corpus,
    Entry as Entry,
    FromRow as FromRow,
    Hub as Hub,
    Read as Read,
    Row as Row,
    Source as Source,
    Thinned as Thinned,
)
from .documents import (
    Cut as Cut,
    Document as Document,
    Example as Example,
    Fact as Fact,
    Section as Section,
    Sentences as Sentences,
    Truncation as Truncation,
    describe_reading as describe_reading,
    total_truncation as total_truncation,
)
from .language_model import (
    Answer as Answer,
    LanguageModel as LanguageModel,
    Message as Message,
    Request as Request,
)
from .metric import (
    Metric as Metric,
    Scored as Scored,
    SentenceVerdict as SentenceVerdict,
    Verdicts as Verdicts,
)
from .ranker import (
    RANKABLE_UNITS as RANKABLE_UNITS,
    LearnedRanker as LearnedRanker,
    RankedUnit as RankedUnit,
    Ranker as Ranker,
    RankerSettings as RankerSettings,
    RankerVocabulary as RankerVocabulary,
    Scores as Scores,
    learned_ranker as learned_ranker,
    ranker_version as ranker_version,
    texts_to_rank as texts_to_rank,
)
from .run_key import RunKey as RunKey
from .run_settings import (
    TRAINED_TOKENIZERS as TRAINED_TOKENIZERS,
    DatasetSettings as DatasetSettings,
    Decoding as Decoding,
    RankerName as RankerName,
    Recipe as Recipe,
    Scoring as Scoring,
    SummaryWords as SummaryWords,
)
from .settings import (
    SAME_SYSTEM as SAME_SYSTEM,
    Decides as Decides,
    Settings as Settings,
    defaults_of as defaults_of,
    names_deciding as names_deciding,
    outcome_settings as outcome_settings,
    setting as setting,
    settings_deciding as settings_deciding,
)
from .system import (
    ATTENDED_AXIS as ATTENDED_AXIS,
    AXES as AXES,
    REFERENCE_AXIS as REFERENCE_AXIS,
    WINDOW_AXIS as WINDOW_AXIS,
    Evidence as Evidence,
    FitContext as FitContext,
    FitReport as FitReport,
    Fitted as Fitted,
    Split as Split,
    Summary as Summary,
    System as System,
    new_system as new_system,
    read_checkpoint as read_checkpoint,
    read_saved as read_saved,
)
from .system_config import (
    UNRANKED as UNRANKED,
    Capabilities as Capabilities,
    SystemConfig as SystemConfig,
    check_search as check_search,
    check_trained_part as check_trained_part,
    deciding_parts as deciding_parts,
    sees_reference as sees_reference,
)
from .words import (
    LETTERS as LETTERS,
    count_words as count_words,
    counts_letters as counts_letters,
    word_pattern as word_pattern,
)
