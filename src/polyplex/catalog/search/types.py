"""What is searched, and what is found. Plain data, without numpy."""

import hashlib
from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

Kind = Literal["tool", "prompt", "resource", "template"]
KINDS: Final[tuple[Kind, ...]] = ("tool", "prompt", "resource", "template")


class Parameter(Struct, frozen=True, gc=False):
    """One parameter of a tool or prompt, nested ones included; `choices` are the values of an enum."""

    name: str
    description: str = ""
    choices: tuple[str, ...] = ()


class Document(Struct, frozen=True):
    """The words of one entry, as search reads them.

    `key` is what clients call or read: a public name, URI or template; `name` is the server's own. `server_text` is
    what the server says of itself as a whole.
    """

    key: str
    kind: Kind
    server: str
    name: str
    title: str = ""
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    server_text: str = ""

    def digest(self) -> bytes:
        """A hash of everything in it: equal documents need not be indexed again."""
        parts = [self.kind, self.server, self.name, self.title, self.description, self.server_text]
        for parameter in self.parameters:
            parts += (parameter.name, parameter.description, *parameter.choices, "\x1e")
        text = "\x1f".join(parts)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class Hit(Struct, frozen=True):
    """One entry that was found.

    `score` orders the hits of one search and lies between 0 and 1; names that are meant outright have 1. `parts` says
    how it came about: `words` (the share of the query's words that it has, rare ones counting more), `vectors` and
    `model` (how close it is in meaning), `name` (where the query names it).
    """

    key: str
    score: float
    parts: Mapping[str, float]


class Found(Struct, frozen=True):
    """The hits of one search, best first. Where nothing fits, `confident` is false: say so, and offer little."""

    hits: tuple[Hit, ...] = ()
    confident: bool = False
