"""The system T-DMCA. The separator between source and summary is the start token.

The separator is not the end token: an untrained output, tied to the embeddings, would predict it again at once.
"""

from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.unit_reader import BestParagraphs
from longsumbench_reproduction.models.tdmca.config import TdmcaConfig
from longsumbench_reproduction.models.tdmca.model import (
    SourceCountingCollator,
    TdmcaForConditionalGeneration,
)


class TdmcaReader(BestParagraphs):
    """As BestParagraphs, except: a batch also counts the source's tokens."""

    Collator = SourceCountingCollator


class Tdmca(NeuralSystem):
    """T-DMCA: a decoder-only Transformer over the best paragraphs and the summary."""

    Config, Reader, Model = TdmcaConfig, TdmcaReader, TdmcaForConditionalGeneration
