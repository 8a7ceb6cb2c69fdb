"""What words say: verbs that change things, verbs that only look, words that say nothing."""

import re
from typing import Final

from polyplex.catalog.search.words import STOP_WORDS, split, stem


def word_set(text: str) -> frozenset[str]:
    """The words of a text, to look words up in."""
    return frozenset(text.split())


DESTROYING: Final = word_set(
    "delete remove drop destroy erase purge wipe truncate uninstall kill terminate revoke clear"
)
CREATING: Final = word_set(
    "create add append insert send post publish submit upload register invite schedule book order pay buy push"
)
CHANGING: Final = (
    DESTROYING
    | CREATING
    | word_set(
        "update edit modify write set rename move replace patch overwrite merge enable disable start stop restart"
        " cancel close approve reject assign archive restore reset deploy install execute trigger"
    )
)
# Nouns as often as verbs: `order_status` orders nothing.
NOUNS_TOO: Final = word_set(
    "book order post schedule patch archive register reset push invite upload record set close start stop trigger"
)
LOOKING: Final = word_set(
    "get list read show view describe fetch retrieve lookup find search query count check inspect browse"
)
VERBS: Final = (
    CHANGING
    | LOOKING
    | word_set(
        "analyze calculate compare compute convert copy detect download encode decode estimate evaluate explain export"
        " extract filter format generate import join load make manage map monitor navigate open parse play plan plot"
        " predict preview print process recommend render resize resolve run save scan select shuffle sort split"
        " summarize take test track transform translate validate verify wait click press hover fill draw flip pick roll"
        " sample recognize subscribe unsubscribe visit crawl scrape"
    )
)
# Words of tools in general, not of one of them.
HOLLOW: Final = word_set(
    "tool tools function functions method endpoint api utility helper use used using allow allows allowing enable"
    " enables let lets provide provides providing help helps perform performs handle handles user users assistant"
    " llm model ai agent various data information info thing things stuff etc operation operations functionality"
    " feature features task tasks action actions useful simple call calls execute executes run runs return returns"
)
MARKETING: Final = word_set(
    "powerful seamless seamlessly cutting-edge world-class state-of-the-art ultimate effortless effortlessly"
    " amazing awesome incredible revolutionary best-in-class blazing blazingly unparalleled next-generation"
    " game-changing unleash supercharge stunning magical magically unmatched premium robust elegant beautifully"
)
PREAMBLE: Final = re.compile(
    r"^\s*(?:(?:this|the|a|an)\s+(?:\w+\s+)?(?:tool|function|method|endpoint|utility)\s+"
    r"(?:(?:that|which|is|will|can|be|used|designed|allows?|lets?|enables?|helps?|to|you|the|users?|for|provides?|"
    r"for|a|way)\s+)+|(?:allows?|lets?|enables?)\s+(?:you|users?|the\s+user)\s+to\s+)",
    re.IGNORECASE,
)
_IRREGULAR: Final = {"does": "do", "goes": "go", "has": "have", "is": "be"}
_FOREIGN: Final = re.compile(r"[\u0370-\u1fff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LATIN: Final = re.compile(r"[A-Za-z]")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[^\s\d)\]])|\n\s*\n|\u3002")
_ABBREVIATED: Final = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|no|max|min|incl)\.$", re.IGNORECASE)


def verb_of(word: str) -> str:
    """`deletes` and `deleted` as `delete`; the word itself where it is no known verb."""
    word = word.lower()
    if word in VERBS:
        return word
    for cut, added in (("s", ""), ("es", ""), ("ies", "y"), ("ed", ""), ("d", ""), ("ing", ""), ("ing", "e")):
        plain = word.removesuffix(cut) + added
        if word.endswith(cut) and plain in VERBS:
            return plain
    return _IRREGULAR.get(word, word)


def name_verb(name: str, server: str = "") -> str:
    """The verb that a name begins with, the server's own name left out (`git_status`); "" where it has none."""
    parts = split(name)
    own = set(split(server))
    while len(parts) > 1 and parts[0] in own and parts[0] not in VERBS:
        parts = parts[1:]
    return acting(parts[0]) if parts else ""


def deed(name: str, server: str, description: str) -> str:
    """The verb that says what a tool does, where its name and, if that could be a noun, its text agree; else ""."""
    verb = name_verb(name, server)
    if verb not in NOUNS_TOO:
        return verb
    said = leading_verb(description)
    return verb if said == verb or (said in CHANGING) == (verb in CHANGING) and said else ""


def leading_verb(sentence: str) -> str:
    """The verb that a text begins with, in the imperative or third person; "" where it has none."""
    parts = re.findall(r"[A-Za-z][A-Za-z-]*", sentence[:200])
    if not parts:
        return ""
    return acting(parts[0].lower())


def acting(word: str) -> str:
    """The verb of `delete` and `deletes`, not of `deleted` and `deleting`; "" where it is none."""
    word = word.lower()
    verb = verb_of(word)
    return verb if verb in VERBS and (word == verb or word.endswith("s")) else ""


def telling(text: str) -> set[str]:
    """The stems of a text that say something."""
    return {stem(word) for word in split(text) if word not in HOLLOW and word not in STOP_WORDS and len(word) > 1}


def sentences(text: str) -> list[str]:
    """The sentences of a text, on one line each."""
    found: list[str] = []
    for part in _SENTENCE.split(text):
        line = " ".join(part.split())
        if found and _ABBREVIATED.search(found[-1]):
            found[-1] = f"{found[-1]} {line}"
        elif line:
            found.append(line)
    return found


def foreign(text: str) -> bool:
    """Whether most letters of a text are of another script than names are written in."""
    other = len(_FOREIGN.findall(text))
    return other > 0 and 3 * other > len(_LATIN.findall(text))


def phrase(name: str) -> str:
    """A name as words: `getStationCode` is `get station code`; abbreviations stay as they were."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^\w]+|_+", " ", name)
    return " ".join(part if part.isupper() and len(part) > 1 else part.lower() for part in spaced.split())


def listed(parts: list[str], last: str = "and") -> str:
    """`a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}" if parts else ""
