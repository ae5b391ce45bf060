"""CNN/DailyMail: news stories and their highlights, with names left in (See et al. 2017).

Paper: https://aclanthology.org/P17-1099. Hermann et al. (2015) collected the stories. Three sources:

* the hub (287,113, 13,368 and 11,490 stories). An article is one line; lines without a full stop got one ("expected .",
  mostly captions). The 114 stories without an article are missing;
* the release at `dataset.path=`: a folder that holds, at any depth, the `.story` files of both sites and the url lists
  of https://github.com/abisee/cnn-dailymail. Text stays as released. The lists name 287,227, 13,368 and 11,490 stories.
  A story without an article is an error; `dataset.strict=false` skips and counts it;
* JSON lines with the hub's fields at `dataset.path=`: id, article, highlights (one per line).

Each highlight is one sentence of the reference. Articles are not cleaned ("By . Associated Press . PUBLISHED: …").
"""

from longsumbench.core import Corpus, Example, Hub, Row
from longsumbench.corpora.formats.cnn_stories import example_of, stories_source
from longsumbench.corpora.reading.fields import id_in, paragraphs_in, text_in


def cnn_dailymail_example(row: Row) -> Example:
    """Turn one row of the hub into an Example.

    Raises:
        BadRow: a field is missing, empty or has the wrong type.
    """
    article, highlights = text_in(row, "article") or "", text_in(row, "highlights") or ""
    sentences = (" ".join(line.split()) for line in highlights.split("\n"))
    return example_of(id_in(row, "id"), paragraphs_in(article.strip()), tuple(filter(None, sentences)), None)


CORPUS = Corpus(
    name="cnn_dailymail",
    title="CNN/DailyMail stories → highlights (See et al. 2017): from the hub, "
    "or by dataset.path=FOLDER of .story files and url lists.",
    licence="the scripts that made it: Apache-2.0; the stories: © CNN and Daily Mail",
    homepage="https://github.com/abisee/cnn-dailymail",
    version=1,
    published="2015-06",
    hub=Hub("abisee/cnn_dailymail", config="3.0.0"),
    from_hub_row=cnn_dailymail_example,
    from_file_row=cnn_dailymail_example,
    release=stories_source,
)
