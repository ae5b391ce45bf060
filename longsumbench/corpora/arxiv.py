"""arXiv: scientific papers and their abstracts (Cohan et al. 2018, https://aclanthology.org/N18-2097).

The hub's copy has no section names. The files of the release, read with `dataset.path=`, have them.
"""

from longsumbench.core import Corpus, Hub
from longsumbench.corpora.formats.scientific_papers import read_hub_paper, read_release_paper

CORPUS = Corpus(
    name="arxiv",
    title="arXiv papers → abstracts (Cohan et al. 2018): from the hub, or with section names by dataset.path=FOLDER "
    "of the release.",
    licence="none stated by its authors; each paper keeps its own",
    homepage="https://github.com/armancohan/long-summarization",
    published="2018-04",
    hub=Hub("ccdv/arxiv-summarization", config="section"),
    from_hub_row=read_hub_paper,
    from_file_row=read_release_paper,
)
