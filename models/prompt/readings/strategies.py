"""What the ways of reading are called elsewhere, and what they cost: `longsumbench list readings`."""

from typing import NamedTuple

_LETTERS = (
    "n parts make up the N tokens of a text. A prompt has room for R of them, an answer has A, and k summaries fit into a"
    " merge.\nSettings begin with 'model.', such as model.reading=stages."
)


class Strategy(NamedTuple):
    """A way of reading; the letters are those of `describe`.

    Attributes:
        settings: without `model.`.
        requests, tokens: of one text, sent to the model without the instructions.
        elsewhere: the tool or paper whose procedure it is.
        differs: how ours differs from it.
    """

    settings: str
    requests: str
    tokens: str
    elsewhere: str
    differs: str = ""


STRATEGIES = (
    Strategy("reading=beginning, ending, ends", "1", "R", "truncation; Trunc (SEAL, §3.2)"),
    Strategy(
        "reading=whole", "1", "N", "stuff (LangChain)", "a text that does not fit is an error"
    ),
    Strategy("reading=select", "1", "R", "retrieval, RAG; EA (SEAL, §3.4)"),
    Strategy("reading=segments", "1 a segment", "R a segment", "SEAL, §3.5"),
    Strategy(
        "reading=pages",
        "1, a prompt a page",
        "N",
        "PageSum, §3",
        "distributions are mixed, no states",
    ),
    Strategy(
        "reading=stages",
        "n + n/k + … + 1",
        "N + n·A",
        "TreeSummarize (LlamaIndex); with a text `merge` map-reduce (LangChain)",
        "ends if summaries do not get shorter",
    ),
    Strategy(
        "reading=stages merge_with=previous shrink=0.65",
        "n + n/k + … + 1, and tries",
        "N + n·A",
        "hierarchical merging (BooookScore)",
        "a last summary alone in its level is not merged",
    ),
    Strategy(
        "reading=stages merge_with=passages",
        "n + n/k + … + 1",
        "N + n·(A + 1,000)",
        "context-aware merging (CAHM, Retrieve-S)",
        "passages are whole sentences",
    ),
    Strategy(
        "reading=stages merge_with=passages_only",
        "n + n/k + … + 1",
        "N + n·1,000",
        "context-aware merging (CAHM, Retrieve-R)",
        "passages are whole sentences",
    ),
    Strategy(
        "reading=refine",
        "n",
        "N + n·A",
        "refine (LangChain); rolling",
        "the summary so far has at most half of the room",
    ),
    Strategy(
        "reading=refine compress=true",
        "n, and tries",
        "N + n·A",
        "incremental updating (BooookScore)",
        "words go by the share of the text that was read",
    ),
    Strategy(
        "reading=refine final=true",
        "n + 1",
        "N + n·A",
        "chain of agents (Zhang et al. 2024)",
        "notes have at most half of the room",
    ),
    Strategy(
        "reading=gists",
        "2 a page + 2",
        "2·N + gists",
        "ReadAgent (Lee et al. 2024)",
        "pages that do not fit are left out, the last named first",
    ),
)


def describe() -> str:
    """Return three lines about each strategy."""
    lines = []
    for strategy in STRATEGIES:
        lines += [
            strategy.settings,
            f"    requests: {strategy.requests}; tokens: {strategy.tokens}",
            f"    after {strategy.elsewhere}"
            + (f"; ours: {strategy.differs}" if strategy.differs else ""),
        ]
    return "\n".join([*lines, "", _LETTERS])
