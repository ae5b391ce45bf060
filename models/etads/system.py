"""The system ETADS and its evidence."""

from typing import Any

import torch

from longsumbench.api import WINDOW_AXIS, Evidence, FitContext, FitReport
from longsumbench.errors import UsageError
from longsumbench.modeling.generation import Written
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.nn.device import choose_device
from longsumbench.modeling.nn.recording import recorded
from longsumbench.modeling.tokenizer import token_texts
from longsumbench.models.etads.config import EtadsConfig
from longsumbench.models.etads.focus import Focus
from longsumbench.models.etads.network import EtadsNetwork
from longsumbench.models.etads.reader import EtadsReader
from longsumbench.models.etads.saliency import Gate


class Etads(NeuralSystem):
    """ETADS: a Transformer over the leading tokens, with focus in the encoder and selection in the decoder."""

    Config, Reader, Network = EtadsConfig, EtadsReader, EtadsNetwork
    gives_attention = True
    config: EtadsConfig

    def __init__(self, config: EtadsConfig) -> None:
        super().__init__(config)
        self.keeps_evidence = bool(config.focus_layers or config.saliency_layers)

    def fit(self, context: FitContext) -> FitReport:
        """Check that the device supports `focus_form`, then train.

        Raises:
            UsageError: `focus_form` is flex, and there is no GPU.
            DataError: there is no training split, or it is empty.
        """
        on_gpu = choose_device(context.recipe.device).type == "cuda"
        if self.config.focus_form == "flex" and self.config.focus_layers and not on_gpu:
            raise UsageError("model.focus_form=flex needs a GPU: on a CPU choose model.focus_form=plain")
        return super().fit(context)

    def evidence(self, written: Written) -> Evidence:
        """Return every token's foci, and its saliency for every token of the output."""
        with recorded(self.model, Focus) as windows, recorded(self.model, Gate) as saliencies:
            self.decode_again(written)
        units, output = written.units, written.ids
        arrays: dict[str, Any] = {}
        axes: dict[str, tuple[str, ...]] = {}
        ids = units.ids[0] if units.ids else []
        if windows:
            both = torch.stack([torch.stack([*layer], -1)[0] for layer in windows])  # [layers, H, S, 2]
            arrays["focus"], axes["focus"] = both[:, :, : len(ids)], ("layer", "head", "source_token", WINDOW_AXIS)
        if saliencies:
            mean = torch.stack([layer[0] for layer in saliencies]).float().mean((0, 1))  # [T, S]
            arrays["saliency"], axes["saliency"] = mean[: len(output), : len(ids)], ("step", "source_token")
        texts = {
            "unit": tuple(text.strip() for text in self.tokenizer.batch_decode(units.ids)),
            "source_token": tuple(token_texts(self.tokenizer, ids, skip_special_tokens=False)),
            "step": tuple(token_texts(self.tokenizer, output)),
            "layer": tuple(f"encoder layer {number}" for number in self.config.focus_layers or []),
        }
        return Evidence({name: array.cpu().numpy() for name, array in arrays.items()}, axes, texts)
