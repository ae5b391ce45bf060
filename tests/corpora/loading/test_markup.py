"""Marks that another program left in texts are named with a count, and nothing is said of texts that mean them."""

from pathlib import Path

import pytest
from support.reading import read_texts

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.corpora.loading import load as loading
from longsumbench.corpora.loading.text_damage import describe_marks, marks_in

MARKS = r"""
line breaks: They met.\nThey left.
line breaks: they met on monday.\nit rained.
line breaks: Aims\n\nTo measure\n- wind\r\n- rain
line breaks: a caf\u00e9 in town
line breaks: \u4f1a\u8bae
tags: <p>They met.</p>
tags: See <a href="x">here</a>.<BR/>
tags: Profit &amp; loss, caf&eacute;, &#8217;s
soft hyphens: a commit-SOFT-tee
pieces: the sing ##ing bird
pieces: the sum@@ mary
pieces: ▁The ▁committee
pieces: ĠThe Ġcommittee
"""


@pytest.mark.parametrize("line", MARKS.strip().splitlines())
def test_marks_are_seen(line: str) -> None:
    """A line break as two characters, a tag, an entity, a soft hyphen and pieces of words are marks of their kind."""
    kind, text = line.replace("-SOFT-", "\u00ad").split(": ", 1)
    (seen,) = marks_in(f"Before it. {text}")
    assert seen.startswith(kind)


@pytest.mark.parametrize(
    "text",
    [
        r"With $\nu \neq 0$ and $\nabla x.\nonumber\\ C:\new\notes \noindent",
        'printf("Hello.\\n"); x = "\\t"; # a\n## Heading\n##Aims',
        "a < b, b > c, List<String>, 5 <i, AT&T; R&D, f(&x); x@@y, @@ -1,3 +1,4 @@ def",
    ],
)
def test_formulas_paths_and_code_are_no_marks(text: str) -> None:
    """What LaTeX, Windows, C, Markdown and diff write is meant."""
    assert marks_in(text) == []


ROWS = r"""{"id": "a", "document": "One. Two.", "summary": "One."}
{"id": "b", "document": "<p>One.</p>", "summary": "One."}
{"id": "c", "document": "Three. Four.", "summary": "Three.\\nFour &amp; more."}
"""


def test_a_warning_counts_the_examples(
    tmp_path: Path, cache: ArtifactCache, caplog: pytest.LogCaptureFixture
) -> None:
    """Sources and references of a split give one line with the first id of each kind; 1 of 21 texts is no warning."""
    loading.warn_once.cache_clear()
    (tmp_path / "a.jsonl").write_text(ROWS)
    texts = read_texts("jsonl", tmp_path / "a.jsonl", cache)
    (line,) = texts.metadata["marks"]
    side = "of 3 examples of the test split"
    assert line.startswith(f"tags or entities of HTML in 2 {side} (e.g. 'b'), line breaks")
    assert caplog.messages == [f"warning: jsonl: {line}"]
    assert list(describe_marks([("a", ["tags"])], 21, "texts")) == []
