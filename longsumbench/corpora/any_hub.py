"""Any dataset of the Hugging Face hub, with the fields of own texts (`jsonl`) or other columns (`dataset.columns`)."""

from longsumbench.core import Corpus, Hub
from longsumbench.corpora.jsonl import jsonl_example

CORPUS = Corpus(
    name="hub",
    title="Any dataset of the hub: dataset.path=OWNER/NAME, with dataset.columns.document=COLUMN and .summary=COLUMN.",
    licence="its own",
    own_keys=True,
    homepage="https://huggingface.co/datasets",
    hub=Hub(""),
    from_hub_row=jsonl_example,
)
