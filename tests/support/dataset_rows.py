"""The smallest valid rows of every dataset that is read from files."""

from collections.abc import Callable
from typing import Any

Row = dict[str, Any]


def release_row(name: str) -> Row:
    """An article in the layout of the arXiv and PubMed release."""
    return {
        "article_id": name,
        "title": "On cells",
        "abstract_text": ["<S> Cells grow. </S>", "<S> We show how. </S>"],
        "article_text": ["Cells are small.", "They grew."],
        "section_names": ["Introduction", "Results"],
        "sections": [["Cells are small."], ["They grew."]],
        "labels": None,
    }


def story_row(name: str) -> Row:
    """A story of CNN/DailyMail with the hub's fields."""
    return {
        "id": name,
        "article": "It snowed. She\n\nleft.",
        "highlights": "It snowed .\nShe left .",
    }


def chapter_row(name: str) -> Row:
    modules = [
        {
            "module_id": f"m{n}",
            "title": f"Part {n}",
            "paragraphs": ["One.", "# A", "Two."],
            "summary": ["In short."],
        }
        for n in (1, 2)
    ]
    return {"id": name, "book": "B", "chapter": "Voting", "license": "free", "modules": modules}


def newts_row(name: str) -> Row:
    """A story with two topics."""
    topics = {
        "tid1": "218",
        "tid2": "62",
        "words1": "snow,",
        "words2": "island",
        "phrases1": "cold weather",
    }
    texts = {"article": "It snowed. She left.", "summary1": "It was cold.", "summary2": "A rescue."}
    return {"AssignmentId": name, "docId": "e2be", **topics, **texts}


def meeting_row(name: str) -> Row:
    """A meeting with a question of each kind."""
    return {
        "meeting_id": name,
        "topic_list": [{"topic": "Price", "relevant_text_span": [["0", "1"]]}],
        "general_query_list": [{"query": "Summarize it", "answer": "It was cheap."}],
        "specific_query_list": [
            {"query": "What cost?", "answer": "Little.", "relevant_text_span": [["1", "1"]]}
        ],
        "meeting_transcripts": [
            {"speaker": "A", "content": "Shall we begin ? {pause} Yes ."},
            {"speaker": "B", "content": "It is cheap ."},
        ],
    }


def questions_row(name: str) -> Row:
    """A story with one question."""
    responses = [
        {"worker_id": "1", "uid": "u", "response_text": text}
        for text in ("She left.", "It rained.")
    ]
    questions = [{"question_text": "What happened?", "question_number": 1, "responses": responses}]
    return {
        "metadata": {"passage_id": name, "uid": "u"},
        "document": "It rained.\n\nShe left.",
        "questions": questions,
    }


def group_row(name: str) -> Row:
    """Eight reviews and three summaries."""
    reviews = {f"rev{number}": f"Review {number}. Good." for number in range(1, 9)}
    return {
        "group_id": name,
        **reviews,
        **{f"summ{n}": f"Summary {n}." for n in (1, 2, 3)},
        "domain": "amazon",
    }


def wiki_row(name: str) -> Row:
    """An article of Wikipedia with one section."""
    sections = [
        {"title": "History", "paragraphs": ["They were wild. Then they were kept.", "They stayed."]}
    ]
    return {
        "id": name,
        "title": "Sheep",
        "lead": ["Sheep are kept for wool."],
        "sections": sections,
    }


def web_row(name: str) -> Row:
    """An article of Wikipedia and paragraphs of two pages."""
    paragraphs = [
        {"text": "They were wild once.", "source": "https://a.org"},
        "Then they were kept.",
    ]
    return {
        "id": name,
        "title": "Sheep",
        "lead": ["Sheep are kept for wool."],
        "paragraphs": paragraphs,
    }


def reviews_row(name: str) -> Row:
    """A paper with two reviews."""
    reviews = [{"comments": "SUMMARY:\nIt is new.\n\nSTRENGTHS:\nClear."}, {"comments": "Weak."}]
    return {
        "id": name,
        "title": "On cells",
        "reviews": reviews,
        "meta_review": "Split views. We reject.",
    }


def own_row(name: str) -> Row:
    """A row of the suite's own schema, in its nested form."""
    sections = [
        {"name": "A", "paragraphs": ["One. Two.", ["Three.", "Four."]]},
        {"name": None, "text": "Five.\n\nSix."},
    ]
    return {
        "id": name,
        "title": "T",
        "query": "Why?",
        "documents": [{"source": "s", "sections": sections}, {"sections": sections}],
        "references": ["In short. So.", ["One.", "Two."]],
    }


def report_row(name: str) -> Row:
    """A report of the Congressional Research Service, with a section below a section."""
    below = [{"section_title": "Funding", "paragraphs": ["Much."], "subsections": []}]
    report = {"section_title": "", "paragraphs": [], "subsections": below}
    return {"id": name, "title": "Roads", "summary": ["In short.", "So."], "reports": report}


def audit_row(name: str) -> Row:
    """A report of the Government Accountability Office."""
    highlight = [
        {"section_title": "What GAO Found", "paragraphs": ["It is late."], "subsections": []}
    ]
    report = [{"section_title": "Letter", "paragraphs": ["Dear."], "subsections": highlight}]
    return {
        "id": name,
        "title": "Ships",
        "url": "https://a.org",
        "highlight": highlight,
        "report": report,
    }


def search_row(name: str) -> Row:
    """An article and two pages that a search found."""
    results = [
        {
            "url": "https://a.org",
            "title": "Sheep",
            "paragraphs": ["They graze on hills all day.", "Rain falls."],
        },
        {"source": "https://b.org", "text": "Goats climb.\n\nThey eat."},
    ]
    sections = [{"title": "History", "paragraphs": ["They were wild. Then they were kept."]}]
    return {
        "id": name,
        "title": "Sheep",
        "lead": ["Sheep give wool."],
        "sections": sections,
        "results": results,
    }


ROWS: dict[str, tuple[Callable[[str], Row], ...]] = {
    "arxiv": (release_row,),
    "proposals": (lambda name: {**release_row(name), "license": "CC0", "url": "https://a.org"},),
    "cnn_dailymail": (story_row,),
    "newts": (newts_row,),
    "peer_reviews": (reviews_row,),
    "wiki_sections": (wiki_row,),
    "wikisum": (
        web_row,
        lambda name: {**web_row(name), "lead": None, "summary": "Sheep are kept for wool."},
    ),
    "multi_news": (
        lambda name: {
            "id": name,
            "document": "It snowed.NEWLINE_CHARCold.|||||She left.",
            "summary": "– So.",
        },
    ),
    "gov_report": (
        report_row,
        audit_row,
        lambda name: {"id": name, "report": "One.\nTwo.", "summary": "One."},
    ),
    "search2wiki": (search_row,),
    "qmsum": (meeting_row,),
    "squality": (questions_row,),
    "openstax": (chapter_row,),
    "openstax_modules": (chapter_row,),
    "opinosis": (
        lambda name: {
            "topic": name,
            "sentences": ["It lasts .", "Long"],
            "summaries": ["Good.\r\nOK", "Good."],
        },
    ),
    "fewsum": (group_row,),
    "jsonl": (
        own_row,
        lambda name: {"id": name, "document": "One. Two.\n\nThree.", "summary": "One."},
    ),
}
