"""Wrong settings of systems, as they are typed: each is refused before anything is loaded."""

import pytest
from support.toys import refuses, settings_of

from longsumbench.core import build_settings, registry

REFUSED = {  # a model and its settings → what the line says
    "seal segment_length=800": r"model\.segment_length=800 is above model\.decode_length=768",
    "ea extractive_length=127": r"model\.extractive_length=127 is below model\.snippet_length=128",
    "etads focus_layers=[1,5]": r"model.focus_layers=\[1,5\] names layer 5, but .* 4 layers",
    "etads saliency_layers=[0]": r"model.saliency_layers=\[0\] names layer 0, but the decoder",
    "etads focus_layers=[2,2]": "names a layer twice",
    "hierarchical_transformer graph=similarity global_layers=0": "but model.global_layers=0",
    "hierarchical_transformer pooling_heads=7": "cannot be shared equally by model.pooling_heads=7",
    "hierarchical_transformer d_model=250 num_heads=5 pooling_heads=5": "is not a multiple of 4",
    "tdmca num_layers=1": r"model\.num_layers=1 is below 2",
    "pagesum size=base": r"model\.size=base goes with model\.init=random",
    "pagesum split=tokens num_pages=3": r"num_pages goes with split=sentences.*model\.num_pages=null",
    "pagesum split=tokens locality=discourse": r"model\.split=tokens goes with locality=spatial",
    "pagesum max_input_tokens=1000": r"model\.max_input_tokens=1000 is below model\.page_size=1024",
    "pagesum init=random vocabulary_size=259": r"model\.vocabulary_size=259",
    "prompt engine=api": r"model\.reading=beginning counts tokens: add model\.tokenizer=",
    "prompt base_url=http://x": r"model\.base_url is a setting of model\.engine=api",
    "prompt engine=api tokenizer=gpt2 output_price=1.0": r"input_price and model\.output_price go together",
    "prompt length=reference": r"model\.length=reference",
    "prompt truncate=end": r"model\.reading \(end is now beginning",
    "prompt engine=api tokenizer=gpt2 reading=pages": r"model\.reading=pages mixes distributions",
    "prompt reading=segments segment_length=0": r"model\.segment_length",
    "prompt reading=whole engine=api lora_rank=2": r"lora_rank is a setting of model\.engine=transformers",
    "prompt reading=whole engine=api tune_all=true": r"tune_all=true needs a model of transformers",
    "prompt reading=refine tune_all=true": r"reading=refine has several answers",
    "prompt tune_all=true lora_rank=2": r"tune_all=true and model\.lora_rank=2",
    "prompt adapter=x lora_rank=2": r"trains the checkpoint without model\.adapter=x",
    "prompt device_map=auto lora_rank=2": r"trains on one device",
    "prompt reading=pages page_length=60 confidence=learned": r"confidence=learned is learned",
}


@pytest.mark.parametrize("words", REFUSED)
def test_wrong_settings_are_refused(words: str) -> None:
    """One line names the setting, what is wrong, and what there is."""
    model, _, settings = words.partition(" ")
    with refuses(REFUSED[words]):
        build_settings(registry.load_config_class(model), settings_of(settings), "model.")
