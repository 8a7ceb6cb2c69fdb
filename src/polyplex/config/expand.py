"""Variables in strings: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, and places that editors define; `$${` escapes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from polyplex.config.jsonc import MAX_DEPTH, KeyPath
from polyplex.config.source import Source, quoted

REFERENCE = re.compile(r"\$\$\{|\$\{(?P<inside>[^{}]*)(?P<close>[{}]?)")
VARIABLE = re.compile(r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
LITERAL_HINT = "write $${ for a literal ${"


@dataclass(frozen=True, slots=True)
class Variables:
    """What a reference may name: the environment, and the places that editors define."""

    environ: Mapping[str, str]
    places: Mapping[str, str]

    @classmethod
    def of(cls, environ: Mapping[str, str], workspace: Path, home: Path) -> "Variables":
        """The variables of a file whose workspace is that folder."""
        places = {
            "workspaceFolder": str(workspace),
            "workspaceFolderBasename": workspace.name,
            "userHome": str(home),
            "pathSeparator": "/",
        }
        return cls(environ, places)


class UnresolvedError(ValueError):
    """A reference cannot be replaced; the text says which and why, and holds no value."""


def expand(text: str, variables: Variables) -> str:
    """Replace every reference in a text once; what a variable holds is not expanded again."""
    return REFERENCE.sub(lambda match: _replacement(match, variables), text) if "${" in text else text


def expand_tree(value: object, path: KeyPath, variables: Variables, source: Source, *, strict: bool = True) -> object:
    """Expand every string below `value`. Raises ConfigError; if not `strict`, leaves what cannot be expanded."""
    if len(path) > MAX_DEPTH:
        raise source.error(path, f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        return _expand_at(value, path, variables, source, strict)
    if isinstance(value, dict):
        return {key: expand_tree(item, (*path, key), variables, source, strict=strict) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [expand_tree(item, (*path, index), variables, source, strict=strict) for index, item in enumerate(value)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value


def _expand_at(text: str, path: KeyPath, variables: Variables, source: Source, strict: bool) -> str:
    try:
        replaced = expand(text, variables)
    except UnresolvedError as error:
        if strict:
            raise source.error(path, str(error)) from None
        return text
    if "${" in text:
        source.expanded.add(path)
    return replaced


def _replacement(match: re.Match[str], variables: Variables) -> str:
    if match.group() == "$${":
        return "${"
    inside = match["inside"]
    if match["close"] == "{":
        raise UnresolvedError(f"${{ inside ${{ is not supported; {LITERAL_HINT}")
    if match["close"] == "":
        raise UnresolvedError(f"${{ without }}; {LITERAL_HINT}")
    if inside in variables.places:
        return variables.places[inside]
    if inside.startswith("input:"):
        raise UnresolvedError(
            f"{quoted('${' + inside + '}')} is asked for by VS Code, and polyplex cannot ask; "
            "use ${NAME} and set that environment variable"
        )
    return _variable(inside, variables)


def _variable(inside: str, variables: Variables) -> str:
    match = VARIABLE.fullmatch(inside)
    if match is None:
        # The part before a colon is enough to recognise it; a malformed default may hold a secret.
        raise UnresolvedError(f"{quoted('${' + inside.partition(':')[0] + '...}')} is not a variable; {LITERAL_HINT}")
    name, default = match["name"], match["default"]
    value = variables.environ.get(name, "")
    if value or (default is None and name in variables.environ):
        return value
    if default is None:
        raise UnresolvedError(f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}")
    return default
