"""What ETADS reads: the leading tokens."""

from longsumbench.api import Example
from longsumbench.modeling.unit_reader import UnitReader
from longsumbench.modeling.units import Units, join_units, prepend_query, split_snippets
from longsumbench.models.etads.config import EtadsConfig


class EtadsReader(UnitReader):
    """Reads the leading tokens of the title and the text as one unit."""

    config: EtadsConfig

    def units(self, example: Example) -> Units:
        """Return one unit: the query and the title, if any, and the text, cut at `input_length`."""
        sentences = [list(document.sentences()) for document in example.documents]
        if example.title and sentences:
            sentences[0].insert(0, example.title)
        encoded = [self.encode(document) for document in sentences]
        longest = max((sum(len(sentence.ids) for sentence in document) for document in encoded), default=0)
        units = split_snippets(encoded, longest, len(encoded))
        query = self.query(example, self.config.input_length)
        return prepend_query(join_units(units, self.config.input_length - len(query)), query)
