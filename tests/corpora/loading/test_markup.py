"""Marks that another program left in texts are named with a count, and nothing is said of texts that mean them."""

from pathlib import Path

import pytest
from support.json_files import write_rows
from support.reading import read_texts

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.corpora.loading import load as loading
from longsumbench.corpora.loading.text_damage import describe_marks, marks_in


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (r"They met.\nThey left.", "line breaks"),
        (r"they met on monday.\nit rained.", "line breaks"),
        (r"Aims\n\nTo measure\n- wind\r\n- rain", "line breaks"),
        (r"a caf\u00e9 in town", "line breaks"),
        (r"\u4f1a\u8bae", "line breaks"),
        ("<p>They met.</p>", "tags"),
        ('See <a href="x">here</a>.<BR/>', "tags"),
        ("Profit &amp; loss, caf&eacute;, &#8217;s", "tags"),
        ("a commit\u00adtee", "soft hyphens"),
        ("the sing ##ing bird", "pieces"),
        ("the sum@@ mary", "pieces"),
        ("▁The ▁committee", "pieces"),
        ("ĠThe Ġcommittee", "pieces"),
    ],
)
def test_marks_are_seen(text: str, kind: str) -> None:
    """A line break as two characters, a tag, an entity, a soft hyphen and pieces of words are marks of their kind."""
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


def test_a_warning_counts_the_examples(
    tmp_path: Path, cache: ArtifactCache, caplog: pytest.LogCaptureFixture
) -> None:
    """Sources and references of a split give one line with the first id of each kind; 1 of 21 texts is no warning."""
    loading.warn_once.cache_clear()
    rows = [
        {"id": "a", "document": "One. Two.", "summary": "One."},
        {"id": "b", "document": "<p>One.</p>", "summary": "One."},
        {"id": "c", "document": "Three. Four.", "summary": r"Three.\nFour &amp; more."},
    ]
    texts = read_texts("jsonl", write_rows(tmp_path / "a.jsonl", rows), cache)
    (line,) = texts.metadata["marks"]
    side = "of 3 examples of the test split"
    assert line.startswith(f"tags or entities of HTML in 2 {side} (e.g. 'b'), line breaks")
    assert caplog.messages == [f"warning: jsonl: {line}"]
    assert list(describe_marks([("a", ["tags"])], 21, "texts")) == []
