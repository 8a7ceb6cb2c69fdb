"""What the index reads of a document and of a query: terms by field, and texts for vectors."""

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from polyplex.catalog.search.types import Document
from polyplex.catalog.search.words import split, terms

MAX_DESCRIPTION: Final = 1_000
MAX_PARAMETERS: Final = 1_200
MAX_QUERY: Final = 2_000
MAX_TERMS: Final = 64
MAX_CLAUSES: Final = 6
LEAST_TERMS: Final = 2
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n\s*|(?<=[。！？])")
_CLAUSE: Final = re.compile(
    r"[.!?;\n。！？；]+|,\s+(?=and |then |also |or )"
    r"|\b(?:and then|then|also|additionally|furthermore|finally|next|as well as|after that)\b",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(r"^\s*[^\W\d_][\w ]{1,19}:\s*", re.MULTILINE)


class Query(Struct, frozen=True):
    """A query as the index asks it: terms with weights, the whole as a text, and its clauses where it has several.

    `sentence` is the whole for a model, which reads names and punctuation as they are.
    """

    terms: Mapping[str, float]
    text: str
    clauses: tuple[str, ...]
    sentence: str = ""

    @property
    def breadth(self) -> float:
        """The logarithm of how many words it has: one word says all that is meant, a paragraph says many things."""
        return math.log(max(1.0, sum(1 for _ in self.terms)))


def document_fields(document: Document) -> dict[str, list[str]]:
    """The terms of a document by field. What a description says first is the summary, the rest are details."""
    first, *rest = _sentences(document) or [""]
    parameters = document.parameters
    return {
        "name": terms(_named(document)),
        "server": terms(document.server),
        "summary": terms(first),
        "details": terms(" ".join(rest)),
        "parameter": terms(" ".join(each.name for each in parameters)),
        "parameter_text": terms(" ".join(each.description for each in parameters)[: 2 * MAX_PARAMETERS]),
        "choices": terms(" ".join(" ".join(each.choices) for each in parameters)[:MAX_PARAMETERS]),
        "server_text": terms(document.server_text[:MAX_DESCRIPTION]),
    }


def short_text(document: Document) -> str:
    """A document in one line: server, name, and the beginning of its description."""
    return f"{_spaced(f'{document.server} {_named(document)}')}: {' '.join(_sentences(document))[:MAX_DESCRIPTION]}"


def full_text(document: Document) -> str:
    """The same with its parameters."""
    words = "; ".join(f"{_spaced(each.name)} {each.description}" for each in document.parameters)
    return f"{short_text(document)} | {words[:MAX_PARAMETERS]}"


def read_query(text: str) -> Query:
    """Read a query. Lines that all begin with a label (`server: ...`, `tool: ...`) are parts of one thing."""
    text = text[:MAX_QUERY]
    lines = [line for line in text.splitlines() if line.strip()]
    labelled = len(lines) > 1 and all(_LABEL.match(line) for line in lines)
    if labelled:
        text = ". ".join(_LABEL.sub("", line).strip() for line in lines)
    counts = Counter(terms(text))
    weights = {term: 2 * count / (1 + count) for term, count in counts.most_common(MAX_TERMS)}
    return Query(weights, _spaced(text), () if labelled else _clauses(text), text)


def _clauses(text: str) -> tuple[str, ...]:
    found = [clause for each in _CLAUSE.split(text) if len(terms(clause := each.strip())) >= LEAST_TERMS]
    return tuple(_spaced(clause) for clause in found[:MAX_CLAUSES]) if len(found) > 1 else ()


def _sentences(document: Document) -> list[str]:
    """The sentences of the description, each once: saying it again does not make it truer."""
    found = _SENTENCE.split(document.description[: 4 * MAX_DESCRIPTION])
    return list(dict.fromkeys(sentence.strip() for sentence in found if sentence.strip()))


def _named(document: Document) -> str:
    """Its name, and its title where that says something else."""
    title = document.title
    return document.name if split(title) == split(document.name) else f"{document.name} {title}"


def _spaced(text: str) -> str:
    """Names in a text as words: vectors are of words."""
    return " ".join(split(text)) if text.isascii() else text
