"""The systems Trunc, CA, EA and SEAL: their units, networks, proxy labels and evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import datasets
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from longsumbench.api.documents import Example
from longsumbench.api.settings import settings_deciding
from longsumbench.api.system import Evidence
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.modeling.collate import UnitCollator, row_of_units, stored_rows
from longsumbench.modeling.neural_system import Encode, NeuralSystem, Rows, network_sizes, special_ids
from longsumbench.modeling.nn.initialization import xavier
from longsumbench.modeling.ranked_systems import RankedUnits
from longsumbench.modeling.units import (
    Units,
    group_units,
    join_units,
    number_documents,
    prepend_query,
    reorder,
    split_snippets,
)
from longsumbench.models.seal.config import CAConfig, EAConfig, FamilyConfig, SealConfig, TruncConfig
from longsumbench.models.seal.model import (
    CAForConditionalGeneration,
    CAModelConfig,
    EAForConditionalGeneration,
    EAModelConfig,
    SealForConditionalGeneration,
    SealModelConfig,
    TruncForConditionalGeneration,
    TruncModelConfig,
)
from longsumbench.models.seal.proxy_labels import proxy_labels, target_segments
from longsumbench.progress import track

_LABELS_VERSION = 1  # increases when proxy labels change


class SealFamily(NeuralSystem):
    """Base class of the four systems: snippets, sizes, and the initial weights."""

    config: FamilyConfig
    ModelConfig: ClassVar[type[TruncModelConfig]]
    gives_attention = True

    def snippets(self, example: Example, encode: Encode, taken: int = 0) -> Units:
        """Pack whole sentences into snippets (SEAL §3.1); `taken` tokens of each snippet are reserved."""
        encoded = [encode(list(document.sentences())) for document in example.documents]
        return split_snippets(encoded, self.config.snippet_length - taken, self.config.num_snippets)

    def build_model(self, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
        """Build the network. Choice: weights start as `xavier` sets them; the paper does not state them."""
        model = self.Model(self.model_config(len(tokenizer), special_ids(tokenizer)))
        xavier(model, self.config.dimension("d_model"))
        return model

    def model_config(self, vocabulary: int, special: tuple[int, int | None, int]) -> TruncModelConfig:
        """Return the network's configuration; `special` has the ids of padding, start and end."""
        config = self.config
        return self.ModelConfig(
            **network_sizes(config.dimension, config.dropout, vocabulary, special),
            activation_function="relu",
            norm=config.norm,
            **self.own_dimensions(),
        )

    def own_dimensions(self) -> dict[str, int]:
        """Return the entries of the network's configuration that the four systems do not share."""
        return {}


class Trunc(RankedUnits, SealFamily):
    """Trunc: the leading snippets, joined and cut at `input_length` (SEAL §3.2)."""

    Config = TruncConfig
    Model = TruncForConditionalGeneration
    ModelConfig = TruncModelConfig
    config: TruncConfig

    def units(self, example: Example, encode: Encode) -> Units:
        """Return one unit: the joined snippets."""
        units = self.snippets(example, encode)
        if self.config.rank != "none":
            units = reorder(units, self.order(example, self.tokenizer.batch_decode(units.ids)))
        query = self.query(example, encode, self.config.input_length)
        return prepend_query(join_units(units, self.config.input_length - len(query)), query)


class CA(SealFamily):
    """CA: groups of snippets, each compressed to a few vectors (SEAL §3.3)."""

    Config = CAConfig
    Model = CAForConditionalGeneration
    ModelConfig = CAModelConfig
    config: CAConfig

    def units(self, example: Example, encode: Encode) -> Units:
        """Return the groups: consecutive snippets of a single document, or all snippets of each of several documents.

        Choice: the query is added to a group's snippets, because a group has no maximum length.
        """
        units = self.snippets(example, encode)
        if self.multi_document:
            units = number_documents(units, self.config.max_documents)
            keys: Sequence[int] = units.documents
        else:
            keys = [index // self.config.group_size for index in range(len(units.ids))]
        return prepend_query(group_units(units, keys), self.query(example, encode, self.config.snippet_length))

    def own_dimensions(self) -> dict[str, int]:
        """Return the number of vectors of a group."""
        return {"compressed_length": self.config.vectors_of_a_group(self.multi_document)}


@dataclass(frozen=True)
class LabelledCollator(UnitCollator):
    """As UnitCollator, plus `proxy_labels` [B, m, U], 0 for absent segments and snippets, and their number."""

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate a batch; in generation, rows have no labels."""
        batch = super().__call__(rows)
        labels = [item["proxy_labels"] for item in rows if "proxy_labels" in item]
        if labels:
            padded = torch.zeros(len(labels), max(map(len, labels)), batch["input_ids"].shape[1])
            for whole, rows_of_labels in zip(padded, labels, strict=True):
                for segment, values in zip(whole, rows_of_labels, strict=False):
                    segment[: len(values)] = torch.as_tensor(values)
            batch["proxy_labels"] = padded
            batch["num_proxy_labels"] = torch.tensor(sum(len(matrix) * len(matrix[0]) for matrix in labels if matrix))
        return batch


class EA(SealFamily):
    """EA: snippets encoded alone and scored; the decoder attends to the best ones (SEAL §3.4)."""

    Config = EAConfig
    Model = EAForConditionalGeneration
    ModelConfig = EAModelConfig
    keeps_evidence = True
    config: EAConfig

    def units(self, example: Example, encode: Encode) -> Units:
        """Return the snippets."""
        query = self.query(example, encode, self.config.snippet_length)
        units = self.snippets(example, encode, taken=len(query))
        return prepend_query(
            number_documents(units, self.config.max_documents) if self.multi_document else units, query
        )

    def own_dimensions(self) -> dict[str, int]:
        """Return the gate's limit, the scorer's depth and its document embeddings."""
        documents = self.config.max_documents if self.multi_document else 0
        limit, layers = self.config.extractive_length, self.config.scorer_layers
        return {"extractive_length": limit, "scorer_layers": layers, "max_documents": documents}

    def add_columns(self, rows: Rows, inputs: dict[str, Any], stages: ArtifactCache) -> Rows:
        """Add the proxy labels, which are cached for the same units and settings."""
        settings = settings_deciding(self.config, "labels")
        kept = rows.select_columns([name for name in ("units", "labels", "query_length") if name in rows.column_names])
        values = datasets.List(datasets.List(datasets.Value("float32")))
        labels = stored_rows(
            "labels",
            {"units": inputs, "labels": settings, "version": _LABELS_VERSION},
            datasets.Features({"proxy_labels": values}),
            ({"proxy_labels": self.labels_of(item)} for item in track(kept, "labelling", len(rows))),
            stages,
        )
        return datasets.concatenate_datasets([rows, labels], axis=1)

    def labels_of(self, item: Mapping[str, Any]) -> list[list[float]]:
        """Return the proxy labels of a training row: [m][U]; the query before a snippet is ignored."""
        config = self.config
        segments = target_segments(
            item["labels"], self.segment_length(len(item["labels"])), self.tokenizer.eos_token_id
        )
        ngram, measure, sequential = config.proxy_ngram, config.proxy_measure, config.proxy_sequential
        texts = [unit[item.get("query_length", 0) :] for unit in item["units"]]
        labels: list[list[float]] = proxy_labels(texts, segments, ngram, measure, sequential).tolist()
        return labels

    def segment_length(self, target_length: int) -> int:
        """Return the length of a target's segments; here the whole target is one."""
        return target_length

    def collator(self) -> UnitCollator:
        """Return the collator, which also collates the proxy labels."""
        return LabelledCollator(self.tokenizer.pad_token_id)

    def evidence(
        self,
        read: Sequence[Units],
        outputs: Sequence[Sequence[int]],
        complete: Sequence[bool],
        references: Sequence[Sequence[int] | None],
    ) -> list[Evidence]:
        """Return scores and selections for every segment of every output."""
        return list(map(self._evidence_of, read, outputs, complete))

    @torch.inference_mode()
    def _evidence_of(self, units: Units, output: Sequence[int], ended: bool) -> Evidence:
        """Score and select again, given the output: beam search does not keep the selections."""
        model, length = self.model, max(1, len(output) + ended)  # the end token is written, too
        batch = {name: value.to(model.device) for name, value in self.collator()([row_of_units(units)]).items()}
        start = model.config.decoder_start_token_id
        history = torch.tensor([[start, *output][:length]], device=model.device)
        scores, selection = model.select(model.model.encoder(**batch), history)
        count, size = model.segments_of(length)
        segments = [output[begin : begin + size] for begin in range(0, count * size, size)]
        arrays = {"scores": scores[0].float(), "selected_tokens": selection.taken.to(torch.int32)}
        decode = self.tokenizer.batch_decode
        return Evidence(
            arrays={name: value.cpu().numpy()[:, : len(units.ids)] for name, value in arrays.items()},
            axes=dict.fromkeys(arrays, ("segment", "unit")),
            texts={
                "unit": tuple(text.strip() for text in decode(units.ids)),
                "segment": tuple(text.strip() for text in decode(segments, skip_special_tokens=True)),
            },
        )


class Seal(EA):
    """SEAL: as EA, with a new selection for every segment of the output (SEAL §3.5)."""

    Config = SealConfig
    Model = SealForConditionalGeneration
    ModelConfig = SealModelConfig
    gives_attention = False  # its memory is another for every segment
    config: SealConfig

    def own_dimensions(self) -> dict[str, int]:
        """Return EA's entries and the length of a segment."""
        return {**super().own_dimensions(), "segment_length": self.config.segment_length}

    def segment_length(self, target_length: int) -> int:
        """Return the length of a target's segments."""
        return self.config.segment_length
