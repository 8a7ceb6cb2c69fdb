"""Mask secrets in text that is about to be logged: tokens, passwords, keys, by the words and shapes around them.

A net below the real rule, which is that no secret is logged. Linear in the length of the text.
"""

import re

MASK = "***"

# Words that a secret is named by, or that end its name: GITHUB_TOKEN, accessToken, x-api-key. Not a progress token.
_NAMED = (
    r"(?:(?:api|access|private)[-_]?key|(?<!progress)(?<!progress[-_])token|secret|password|passwd|passphrase"
    r"|credentials?|signature|session[-_]?id)"
)
_SCHEMES = r"(?:bearer|basic|token|dpop|negotiate|apikey|api-key)"
_QUOTE = r"\\{0,2}[\"']?"
_WORD = r"[^\s\"',;}\]]++"
_ASSIGNED = rf"{_QUOTE}\s{{0,8}}[:=]\s{{0,8}}{_QUOTE}"
_VALUE = r"(?:\\{0,2}\"[^\"\r\n]*+\"?|'[^'\r\n]*+'?|[^\s\"'&,;}\])]++)"

# In this order: what is masked by an earlier rule looks harmless to the later ones.
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # user:password@ in an address
    (re.compile(r"(?i)(?<=://)[^\s/?#@\"']{1,1024}@"), f"{MASK}@"),
    # Authorization: Digest has many parts, which belong together; of an unknown scheme two words are masked
    (re.compile(rf"(?i)(authorization{_ASSIGNED}digest)\s[^\r\n]*+"), rf"\1 {MASK}"),
    (re.compile(rf"(?i)(authorization{_ASSIGNED}{_SCHEMES}\s{{1,8}}){_WORD}"), rf"\1{MASK}"),
    (
        re.compile(rf"(?i)(authorization{_ASSIGNED})(?!{_SCHEMES}\s|digest\s){_WORD}(?:[ ](?![\w-]++=){_WORD})?"),
        rf"\1{MASK}",
    ),
    (re.compile(rf"(?i)((?:set-)?cookie2?{_ASSIGNED})[^\r\n\"']++"), rf"\1{MASK}"),
    (re.compile(r"(?i)\b(bearer|basic|dpop)\s{1,8}[A-Za-z0-9._~+/-]{8,}+=*+"), rf"\1 {MASK}"),
    # name=value and "name": "value", in queries, JSON, headers and environment lists
    (re.compile(rf"(?i)({_NAMED}{_QUOTE}\s{{0,8}}[:=]\s{{0,8}}){_VALUE}"), rf"\1{MASK}"),
    (re.compile(r"(?i)([?&](?:key|sig|auth|code|pwd|pass|jwt|sas|session|sessionid)=)[^\s&#\"']++"), rf"\1{MASK}"),
    # --api-key VALUE
    (re.compile(rf"(?i)((?<![\w-])--?[\w-]{{0,48}}?{_NAMED}\s{{1,8}})(?!-){_VALUE}"), rf"\1{MASK}"),
    # tokens that are known by their shape
    (
        re.compile(
            r"(?<![A-Za-z0-9_-])(?:sk-|ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-|npm_|pypi-|hf_|xox[abeoprs]-|AKIA|AIza"
            r"|ya29\.)[A-Za-z0-9_-]{12,}+"
        ),
        MASK,
    ),
    (re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{4,}+(?:\.[A-Za-z0-9_-]*+)*+"), MASK),
    (
        re.compile(
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?=-----END|\Z)(?:-----END [A-Z ]{0,40}KEY-----)?", re.S
        ),
        MASK,
    ),
)

# Any secret named by the rules has one of these near it; most lines have none, and are done after one search.
_SUSPECT = re.compile(
    r"(?i)://|authorization|cookie|bearer|basic|dpop|key|token|secret|passw|passphrase|credential|signature|session"
    r"|[?&](?:sig|auth|code|pwd|pass|jwt|sas)=|sk-|gh[a-z]_|github_pat_|glpat-|npm_|pypi-|hf_|xox|akia|aiza|ya29|eyj"
)


def redact(text: str) -> str:
    """The text with every secret that is recognised replaced by `***`."""
    if _SUSPECT.search(text) is None:
        return text
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


def is_secret_name(name: str) -> bool:
    """Whether a value of this name (a header, a field) should never be shown."""
    return _SECRET_FIELD.search(name) is not None


_SECRET_FIELD = re.compile(rf"(?i)(?:{_NAMED}|authorization|cookie)$")
