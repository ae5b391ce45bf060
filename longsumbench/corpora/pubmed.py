"""PubMed: scientific papers and their abstracts (Cohan et al. 2018, https://aclanthology.org/N18-2097).

From the hub it comes without section names; with `dataset.path=` the release's own files keep them.
"""

from longsumbench.corpora.corpus import Corpus, Hub
from longsumbench.corpora.release import from_hub_row, from_release_row

CORPUS = Corpus(
    name="pubmed",
    title="PubMed papers → abstracts (Cohan et al. 2018): from the hub, or with section names by "
    "dataset.path=FOLDER of the release.",
    licence="none stated by its authors; each paper keeps its own",
    homepage="https://github.com/armancohan/long-summarization",
    version=1,
    hub=Hub("ccdv/pubmed-summarization", config="section"),
    from_hub_row=from_hub_row,
    from_file_row=from_release_row,
)
