"""The system T-DMCA."""

from longsumbench.modeling.best_paragraphs import BestParagraphs
from longsumbench.modeling.network import Network
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.models.tdmca.config import TdmcaConfig
from longsumbench.models.tdmca.model import SourceCountingCollator, TdmcaForConditionalGeneration


class TdmcaReader(BestParagraphs):
    """As BestParagraphs, except: a batch also counts the source's tokens."""

    Collator = SourceCountingCollator


class TdmcaNetwork(Network):
    """The network; the separator between source and summary is the start token.

    The separator is not the end token: an untrained output, tied to the embeddings, would predict it again at once.
    """

    Model = TdmcaForConditionalGeneration


class Tdmca(NeuralSystem):
    """T-DMCA: a decoder-only Transformer over the best paragraphs and the summary."""

    Config, Reader, Network = TdmcaConfig, TdmcaReader, TdmcaNetwork
