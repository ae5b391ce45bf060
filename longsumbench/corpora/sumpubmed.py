"""SumPubMed: BioMed Central articles and their abstracts (Gupta et al. 2021), in the layout of the PubMed release.

Paper: https://aclanthology.org/2021.acl-srw.30. Read from `dataset.path=`; the shorter abstracts are ignored. Texts are
lower-cased, with <dig> for numbers and <cit> for citations. They have at most three sections (background, results,
conclusions); the last one repeats much of the abstract. This is a separate dataset, so no table mixes its scores with
those published for PubMed.
"""

from longsumbench.core import Corpus
from longsumbench.corpora.formats.scientific_papers import read_release_paper

CORPUS = Corpus(
    name="sumpubmed",
    title="SumPubMed articles → their abstracts, with section names: dataset.path=FOLDER with files in the layout "
    "of the PubMed release.",
    licence="MIT, non-commercial academic purposes; the articles: CC BY",
    homepage="https://github.com/vgupta123/sumpubmed",
    published="2021-08",
    from_file_row=read_release_paper,
)
