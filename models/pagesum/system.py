"""The system PageSum: the pages of an example, the network (random or from a BART checkpoint), and the evidence."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from longsumbench.api.config import Recipe
from longsumbench.api.documents import Example
from longsumbench.api.system import REFERENCE_AXIS, Evidence, Split
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.errors import UsageError
from longsumbench.modeling.checkpoints import SAFE_LOADING, check_vocabulary, load_network, reading_checkpoint
from longsumbench.modeling.collate import row_of_units
from longsumbench.modeling.neural_system import Encode, NeuralSystem, network_sizes, special_ids
from longsumbench.modeling.nn.initialization import sinusoidal, xavier
from longsumbench.modeling.tokenizer import token_texts
from longsumbench.modeling.units import EncodedSentence, Units, prepend_query
from longsumbench.models.pagesum.config import SIZES, PageSumConfig
from longsumbench.models.pagesum.model import Pages, PageSumForConditionalGeneration, PageSumModelConfig
from longsumbench.models.pagesum.pages import discourse_pages, document_pages, spatial_pages, token_pages

_SECTION_SAMPLE = 1_000  # training examples searched for sections


class PageSum(NeuralSystem):
    """PageSum: encode and decode every page separately; mix the hidden states at every step by learned confidences."""

    Config = PageSumConfig
    Model = PageSumForConditionalGeneration
    adopts = ("bart", PageSumModelConfig.model_type)
    keeps_reference_evidence = True
    config: PageSumConfig

    def __init__(self, config: PageSumConfig) -> None:
        super().__init__(config)
        self.keeps_evidence = config.decoding == "page"
        self.gives_attention = config.decoding == "global"

    def ready_to_read(
        self, train: Split | None, validation: Split | None, recipe: Recipe, stages: ArtifactCache
    ) -> None:
        """Check that the texts have the pages of the locality; then make or load the tokenizer.

        Raises:
            UsageError: the texts have no sections, or a single document each.
            DataError: there is no training split, or it is empty.
        """
        locality = self.config.locality
        if train is not None and locality == "document" and not train.multi_document:
            raise UsageError("model.locality=document, but each text is a single document: choose spatial")
        if train is not None and locality == "discourse" and not _has_sections(train):
            raise UsageError("model.locality=discourse, but the texts have no sections: choose spatial")
        super().ready_to_read(train, validation, recipe, stages)

    def _find_tokenizer(self, train: Split, stages: ArtifactCache) -> PreTrainedTokenizerBase:
        tokenizer = super()._find_tokenizer(train, stages)
        if tokenizer.bos_token_id in (None, tokenizer.eos_token_id):  # an end token would end every summary at once
            named = self.config.tokenizer if self.config.init == "random" else self.config.init
            raise UsageError(f"the tokenizer of {named} has no start token other than its end token: choose another")
        if folder := self.start():
            with reading_checkpoint(named := f"model.init={self.config.init}"):
                entries = PageSumModelConfig.from_pretrained(folder, **SAFE_LOADING).vocab_size
            check_vocabulary(tokenizer, entries, named)
        return tokenizer

    def encode(self, sentences: Sequence[str]) -> list[EncodedSentence]:
        """Tokenize consecutive sentences; special tokens in them ("<mask>", "</s>") are tokenized as text.

        Choice: the network of facebook/bart-large-cnn has no embedding for the `<mask>` of its tokenizer.
        """
        self.tokenizer.backend_tokenizer.encode_special_tokens = True
        return super().encode(sentences)

    def units(self, example: Example, encode: Encode) -> Units:
        """Return the pages, each between its two special tokens; a text without pages is one empty page."""
        units = self.pages(example, encode)
        pages = [*units.ids] or [[]]
        documents, words = units.documents or (0,), units.words or (0,)
        if self.config.fidelity == "official" and (missing := self.config.most_pages - len(pages)) > 0:
            pages += [list(encode(["."])[0].ids)] * missing
            documents, words = (*documents, *[documents[-1]] * missing), (*words, *[0] * missing)
        start, end = self.tokenizer.bos_token_id, self.tokenizer.eos_token_id
        return replace(
            units, ids=tuple([start, *page, end] for page in pages), documents=tuple(documents), words=tuple(words)
        )

    def pages(self, example: Example, encode: Encode) -> Units:
        """Return the text of the pages (PageSum §3), each after the query, if there is one."""
        query = self.query(example, encode, self.config.text_length)
        return prepend_query(self._text_of_pages(example, encode, len(query)), query)

    def _text_of_pages(self, example: Example, encode: Encode, taken: int) -> Units:
        config, text_length = self.config, self.config.text_length - taken
        if config.locality == "discourse":
            sections = [
                (index, encode([section.name or "", *section.sentences()]))
                for index, document in enumerate(example.documents)
                for section in document.sections
            ]
            named = [(encoded[:1], encoded[1:]) for _, encoded in sections]
            return discourse_pages(named, [index for index, _ in sections], config.max_pages, text_length)
        encoded = [encode(list(document.sentences())) for document in example.documents]
        if config.locality == "document":
            return document_pages(encoded, config.max_pages, text_length)
        assert config.page_size is not None
        if config.split == "tokens":
            assert config.max_input_tokens is not None
            return token_pages(encoded, config.page_size, config.max_input_tokens, taken)
        return spatial_pages(encoded, config.most_pages, text_length, config.fidelity == "official")

    def target(self, ids: Sequence[int]) -> list[int]:
        """Return a target: `<s> … </s>`, as in generation; with fidelity=official `… </s>`, as the released code."""
        start = [] if self.config.fidelity == "official" else [self.tokenizer.bos_token_id]
        return [*start, *ids, self.tokenizer.eos_token_id]

    def build_model(self, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
        """Build a randomly initialized network; its positions start as sinusoids."""
        config = self.config
        assert config.page_size is not None
        model = self.Model(
            PageSumModelConfig(
                **{
                    **network_sizes(config.dimension, config.dropout, len(tokenizer), special_ids(tokenizer)),
                    "decoder_start_token_id": tokenizer.eos_token_id,
                },
                max_position_embeddings=max(config.page_size, config.decode_length),
                decoding=config.decoding,
                official=config.fidelity == "official",
            )
        )
        xavier(model, model.config.d_model)
        sinusoidal(model.model.encoder.embed_positions, model.model.decoder.embed_positions)
        return _force_first_token(model, tokenizer.bos_token_id)

    def check_start(self, described: dict[str, Any]) -> None:
        """Check page size, target length and the given widths and depths against a checkpoint.

        Raises:
            UsageError: the checkpoint has fewer positions, other widths or depths, or untied embeddings.
        """
        config, positions = self.config, described["max_position_embeddings"]
        if described.get("tie_word_embeddings") is False:
            raise UsageError(f"model.init={config.init} has untied embeddings, but PageSum needs tied ones")
        for name in ("page_size", "decode_length"):
            if (asked := getattr(config, name)) > positions:
                raise UsageError(f"model.{name}={asked}: model.init={config.init} has only {positions} positions")
        there = {"d_ff": "encoder_ffn_dim", "num_heads": "encoder_attention_heads"}
        given = {name: size for name in SIZES["large"] if (size := getattr(config, name)) is not None}
        found = {name: described[there.get(name, name)] for name in given}
        if unlike := [name for name, size in given.items() if size != found[name]]:
            name, nulls = unlike[0], " ".join(f"model.{name}=null" for name in unlike)
            remedy = f"leave it out, or, if a scale sets it, add {nulls}"
            raise UsageError(f"model.{name}={given[name]}, but model.init={config.init} has {found[name]}: {remedy}")

    def adopt(self, folder: Path) -> PreTrainedModel:
        """Return the network with the weights of a BART or PageSum checkpoint; only the confidence layer may be new.

        Raises:
            UsageError: the checkpoint lacks weights, or has unknown ones or other sizes.
        """
        settings = PageSumModelConfig.from_pretrained(folder, **SAFE_LOADING)
        settings.decoding, settings.official = self.config.decoding, self.config.fidelity == "official"
        settings.dropout = self.config.dropout
        model, missing, unexpected = load_network(
            self.Model, folder, f"model.init={folder}", settings, dtype=torch.float32
        )
        if odd := (missing | unexpected) - {"confidence.weight", "confidence.bias"}:
            raise UsageError(f"the weights in {folder} are not those of a BART: {', '.join(sorted(odd)[:3])} …")
        return _force_first_token(model, model.config.bos_token_id)

    def evidence(
        self,
        read: Sequence[Units],
        outputs: Sequence[Sequence[int]],
        complete: Sequence[bool],
        references: Sequence[Sequence[int] | None],
    ) -> list[Evidence]:
        """Return the confidences of the pages at every token of every output, and of every given reference."""
        return [
            self._evidence_of(units, output, reference)
            for units, output, reference in zip(read, outputs, references, strict=True)
        ]

    @torch.inference_mode()
    def _evidence_of(self, units: Units, output: Sequence[int], reference: Sequence[int] | None) -> Evidence:
        """Compute the confidences again, given the output: beam search does not keep them."""
        batch = {name: value.to(self.model.device) for name, value in self.collator()([row_of_units(units)]).items()}
        pages = self.model.model.encoder(**batch)
        start, begin = self.model.config.decoder_start_token_id, self.tokenizer.bos_token_id
        written = output[1:] if output[:1] == [begin] else output  # the start token is forced, and is not text
        arrays = {"confidence": self._confidences(pages, [start, begin], written)}
        axes = {"confidence": ("unit", "step")}
        texts = {
            "unit": tuple(text.strip() for text in self.tokenizer.batch_decode(units.ids, skip_special_tokens=True))
        }
        texts["step"] = tuple(token_texts(self.tokenizer, written))
        if reference is not None:
            fed = [begin] if self.config.fidelity == "official" else [start, begin]  # as in training
            arrays["reference_confidence"] = self._confidences(pages, fed, reference)
            axes["reference_confidence"] = ("unit", REFERENCE_AXIS)
            texts[REFERENCE_AXIS] = tuple(token_texts(self.tokenizer, reference))
        return Evidence({name: array.cpu().numpy() for name, array in arrays.items()}, axes, texts)

    def _confidences(self, pages: Pages, before: Sequence[int], ids: Sequence[int]) -> Tensor:
        """Return the confidences with which the tokens `ids` are predicted after the tokens `before`: [P, T]."""
        fed = torch.tensor([[*before, *ids[:-1]]], device=self.model.device)
        weights: Tensor = self.model.decode(pages, fed).confidences
        return weights[0, :, 0, len(before) - 1 :][:, : len(ids)]


def _has_sections(split: Split) -> bool:
    """Return True if one of the first examples has a document with several sections or a named one."""
    documents = (document for example in islice(split, _SECTION_SAMPLE) for document in example.documents)
    return any(len(doc.sections) > 1 or any(section.name for section in doc.sections) for doc in documents)


def _force_first_token(model: PreTrainedModel, token: int) -> PreTrainedModel:
    """Force every summary to begin with a token, as BART's summarization checkpoints do.

    A checkpoint's other generation settings are dropped: the library would use them as defaults of `decode.*`.
    """
    names = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
    special = {name: getattr(model.config, name) for name in names}
    model.generation_config = GenerationConfig(forced_bos_token_id=token, **special)
    return model
