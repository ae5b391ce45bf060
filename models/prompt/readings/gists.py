"""`gists`: the gists of all pages, and the pages that a question needs in full (ReadAgent, Lee et al. 2024)."""

import re
from bisect import bisect_right
from collections.abc import Generator, Sequence

from longsumbench.core import Span, count_words
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.readings.reading import PartialSummary, PromptRound, Reading, Rounds

_PAGE_WORDS = range(280, 601)  # a page has so many
_LAST_PAGE_WORDS = 350  # fewer are not divided
_MOST_LOOK_UPS = 6  # pages


class Gists(Reading):
    """Pages end where the model would pause, and are shortened to gists; those that it names are read in full.

    Choice: pages that do not fit next to the gists are left out, the last named first, and counted.
    """

    reads_all = True
    answers_parts = True
    answers_once = False
    usual_part = 570  # of 440 words

    @classmethod
    def steps_for(cls, config: PromptConfig) -> frozenset[str]:
        """All but the last request have their own."""
        return frozenset({"pause", "gist", "look_up"})

    def rounds(self) -> Rounds:
        """Ask where to pause, for the gists, for the pages to read, and for the summary.

        Raises:
            UsageError: there is no room for a page, or for the gists of all pages.
        """
        if self.room.excess(self.passage.text) <= 0:
            return (yield from self.ask(self.text.whole, self.room))
        pages = yield from self._divide()
        self.sent = [[page] for page in pages]
        texts = self.quote_spans(pages)
        room = self.builder.room(self.example, "gist")
        if max(map(room.excess, texts)) > 0:
            raise self.no_room(room)
        drafts = yield [PromptRound([room.messages(text)]) for text in texts]
        gists = [draft.text for draft in drafts]
        room = self.builder.room(self.example, "look_up")
        numbered = "\n\n".join(f"<{number}> {gist}" for number, gist in enumerate(gists, start=1))
        if max(room.excess(numbered), self.room.excess("\n\n".join(gists))) > 0:
            raise self.no_room(room)
        [draft] = yield [PromptRound([room.messages(numbered)])]
        looked_up = _read_numbers(draft.text, len(pages))[:_MOST_LOOK_UPS]
        while self.room.excess(_put_back(gists, texts, looked_up)) > 0:
            looked_up.pop()
            self.counts["pages_left_out"] += 1
        [draft] = yield [PromptRound([self.room.messages(_put_back(gists, texts, looked_up))])]
        return draft

    def _divide(self) -> Generator[list[PromptRound], list[PartialSummary], list[Span]]:
        """Return pages that end where the model would pause; at the last place if it names none."""
        room = self.builder.room(self.example, "pause")
        # Where each sentence begins, and the end of the text.
        borders = [*self.passage.sentence_starts, len(self.passage.text)]
        pages: list[Span] = []
        begin = 0
        while begin < borders[-1]:
            places = self._list_places(begin, borders)
            number = len(places)
            if number > 1:
                marked = self._mark(begin, places)
                if room.excess(marked) > 0:
                    raise self.no_room(room)
                [draft] = yield [PromptRound([room.messages(marked)])]
                number = next(iter(_read_numbers(draft.text, number)), number)
            pages.append((begin, places[number - 1]))
            begin = places[number - 1]
        return pages

    def _list_places(self, begin: int, borders: Sequence[int]) -> list[int]:
        """Return the borders where a page that begins at a character may end; of a longer sentence, its end."""
        places: list[int] = []
        num_words = 0
        for end in borders[bisect_right(borders, begin) :]:
            num_words += count_words([self.passage.text[begin:end]])
            begin = end
            if num_words < _PAGE_WORDS.start:
                continue
            if places and num_words not in _PAGE_WORDS:
                break
            places.append(end)
        return places if num_words >= _LAST_PAGE_WORDS else [borders[-1]]

    def _mark(self, begin: int, places: Sequence[int]) -> str:
        """Return the text up to the last place, with the number of each place."""
        marked = ""
        for number, place in enumerate(places, start=1):
            marked += f"{self.passage.text[begin:place].rstrip()} <{number}>\n"
            begin = place
        return marked


def _read_numbers(answer: str, most: int) -> list[int]:
    """Return the numbers from 1 to `most` in an answer, each once."""
    numbers = [int(digits) for digits in re.findall(r"\d{1,9}", answer)]
    return [number for number in dict.fromkeys(numbers) if 1 <= number <= most]


def _put_back(gists: Sequence[str], pages: Sequence[str], looked_up: Sequence[int]) -> str:
    """Return the gists, with the pages that are looked up in the place of theirs."""
    texts = enumerate(zip(gists, pages, strict=True), start=1)
    return "\n\n".join(page if number in looked_up else gist for number, (gist, page) in texts)
