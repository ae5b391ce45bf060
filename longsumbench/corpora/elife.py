"""eLife: open-access articles of biology and medicine, and their abstracts, in the layout of the PubMed release.

Read from `dataset.path=`. Fields outside that layout (digest, subjects, license) are ignored. The reference is the
abstract, not the digest in plain language.
"""

from longsumbench.core import Corpus
from longsumbench.corpora.formats.scientific_papers import read_release_paper

CORPUS = Corpus(
    name="elife",
    title="eLife articles → abstracts, with section names: dataset.path=FOLDER with files in the layout of the "
    "PubMed release.",
    licence="CC BY or CC0, as each article states",
    homepage="https://github.com/elifesciences/elife-articles",
    from_file_row=read_release_paper,
)
