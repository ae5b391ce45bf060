"""A hundred training stories of CNN/DailyMail, to try things out without the whole dataset.

JSON lines at `dataset.path=` with the hub's fields: id, article, highlights. All stories are from the training split,
so use `dataset.split=train` to summarize them. To train a system, use `dataset.split_by_hash=true`, which divides the
file into three splits. This is a separate dataset, so no table mixes its scores with those of the whole.
"""

from longsumbench.core import Corpus
from longsumbench.corpora.cnn_dailymail import cnn_dailymail_example

CORPUS = Corpus(
    name="cnndm_sample",
    title="100 training stories of CNN/DailyMail: dataset.path=FOLDER dataset.split=train, "
    "or dataset.path=FILE dataset.split_by_hash=true.",
    licence="none stated; the stories: © CNN and Daily Mail",
    homepage="https://github.com/EileenFeng/Text-Summarization-NLP",
    published="2015-06",
    from_file_row=cnn_dailymail_example,
)
