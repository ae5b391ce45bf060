"""A hundred training stories of CNN/DailyMail with the hub's fields: to try things out without the whole.

JSON lines at `dataset.path=`: id, article, highlights. They are all of the training split, so `dataset.split=train` is
what can be summarized; a system that learns needs unseen stories to be tested on, which `dataset.split_by_hash=true`
deals out of the one file. A dataset of its own, so that no table sets its numbers beside those published for the whole.
"""

from longsumbench.api.corpus import Corpus
from longsumbench.corpora.cnn_dailymail import cnn_dailymail_example

CORPUS = Corpus(
    name="cnndm_sample",
    title="100 training stories of CNN/DailyMail: dataset.path=FOLDER dataset.split=train, "
    "or dataset.path=FILE dataset.split_by_hash=true.",
    licence="none stated; the stories: © CNN and Daily Mail",
    homepage="https://github.com/EileenFeng/Text-Summarization-NLP",
    version=1,
    from_file_row=cnn_dailymail_example,
)
