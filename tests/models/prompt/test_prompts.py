"""The prompts of the suite, and those that users write."""

import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from support.toys import refuses

from longsumbench.conf import CONF
from longsumbench.models.prompt.prompts import Prompt, read_prompt

BUILT_IN = sorted(path.stem for path in (CONF / "prompt").glob("*.yaml"))


@pytest.mark.parametrize("name", BUILT_IN)
def test_prompts_of_the_suite_have_all_places(name: str) -> None:
    """Each asks for a number of words; the one for queries has a place for it, and no other has."""
    prompt = read_prompt(name)
    (message,) = prompt.messages("The text.", "What is it?", 123)
    assert message["role"] == "user"
    assert message["content"].count("The text.") == 1
    assert "about 123 words" in message["content"]
    assert ("What is it?" in message["content"]) == (name == "query") == prompt.asks_query


def test_only_the_texts_in_use_count() -> None:
    """The hash, and whether a query is asked for, depend on the texts that a reading uses."""
    first = Prompt("{document}", refine="{document}{written}{query}")
    second = Prompt("{document}", refine="{document}{written}", segment="{document}{written}")
    for entry in ("user", "segment"):
        assert first.only_for(entry) == Prompt("{document}", segment=None)
        second_hash = second.only_for(entry).hash
        assert (first.only_for(entry).hash == second_hash) == (entry == "user")
    assert first.only_for("refine").hash != second.only_for("refine").hash
    assert first.only_for("refine").asks_query
    assert not first.only_for("user").asks_query


@given(st.text(max_size=30), st.text(max_size=30))
def test_texts_with_braces_stay_as_they_are(text: str, query: str) -> None:
    """A text or a query that looks like a place, or has single braces, is copied."""
    prompt = Prompt("{ {document} {{query}} {other", system="In {words} words.")
    for end in ("", "{query}{words}{document}"):
        system, user = prompt.messages(text + end, query + end, 7)
        assert system == {"role": "system", "content": "In 7 words."}
        assert user == {"role": "user", "content": f"{{ {text + end} {{{query + end}}} {{other"}


def test_facts_are_asked_for_where_a_text_has_them() -> None:
    """{facts} is a sentence for a text with planted facts, else nothing, as if its place and the blanks were not there."""
    plain, asking = read_prompt("document"), read_prompt("facts")
    for entry in ("user", "refine", "segment"):
        arguments = ("The text has {facts}.", None, 50, entry, "It said so.")
        assert asking.messages(*arguments) == plain.messages(*arguments)
        [message] = asking.messages(*arguments, has_facts=True)
        content = message["content"]
        assert " prose. Keep all decisions" in content or " it. Keep all decisions" in content
        assert plain.messages(*arguments, has_facts=True) == plain.messages(*arguments)
    prompt = Prompt("{document}\n\n{facts}\n\nSummary:", system="{facts}")
    assert prompt.messages("A.", None, 9) == [{"role": "user", "content": "A.\n\nSummary:"}]


def test_prompts_of_the_user_are_found_by_name(own_config: Path) -> None:
    """A file in `prompt/` of the user's configuration folder is found by its name."""
    (own_config / "prompt").mkdir(parents=True)
    (own_config / "prompt" / "mine.yaml").write_text("user: 'Mine: {document}'\n")
    assert read_prompt("mine") == Prompt("Mine: {document}")


BAD = {
    "user: Summarize.": "its text 'user' has no place {document}",
    "user: '{document} {length}'": "the unknown place {length}; known: {document}, {facts}, {query}, {words}",
    "user: '{document}'\nsystem: '{document}'": "its text 'system' has the unknown place {document}",
    "user: '{document}'\nwords: 100": "unknown entry 'words'; a prompt has: system, user, label",
    "system: Summarize.": "missing required field `user`",
    "user: [": "while parsing",
    "": "Expected `object`, got `null`",
}


@pytest.mark.parametrize("content", BAD)
def test_a_bad_file_is_named(content: str, tmp_path: Path) -> None:
    """What is no prompt is an error of one line that names the file and what is wrong."""
    path = tmp_path / "bad.yaml"
    path.write_text(content)
    with refuses(f"^{path} is not a prompt: .*{re.escape(BAD[content])}"):
        read_prompt(str(path))
