"""SumPubMed: BioMed Central articles and their abstracts (Gupta et al. 2021), in the layout of the PubMed release.

Paper: https://aclanthology.org/2021.acl-srw.30. Read at `dataset.path=`; the shorter abstracts beyond that layout are
not read. Lower-cased, with <dig> for numbers and <cit> for citations, and no more than three sections (background,
results, conclusions), the last of which says much of what the abstract says. A dataset of its own, so that no table
sets its numbers beside those published for PubMed.
"""

from longsumbench.api.corpus import Corpus
from longsumbench.corpora.formats.scientific_papers import paper_of_release_row

CORPUS = Corpus(
    name="sumpubmed",
    title="SumPubMed articles → their abstracts, with section names: dataset.path=FOLDER with files in the layout "
    "of the PubMed release.",
    licence="MIT, non-commercial academic purposes; the articles: CC BY",
    homepage="https://github.com/vgupta123/sumpubmed",
    version=1,
    from_file_row=paper_of_release_row,
)
