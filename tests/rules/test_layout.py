"""Every package has its place in the layers, and every name says one thing."""

import re
import tomllib

from tests.rules.sources import PACKAGE, ROOT, files, python_files, shown

FORBIDDEN_NAMES = {"backend", "target", "manager", "util", "utils", "helper", "helpers", "base", "common", "misc"}


def test_every_module_is_placed_in_the_layers() -> None:
    there = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in files("src/polyplex/*.py")}
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract for contract in contracts if contract["type"] == "layers")
    placed = {name for layer in layers["layers"] for name in re.findall(r"\w+", layer)}
    assert there - placed - set(layers["exhaustive_ignores"]) - {"__init__"} == set()


def test_every_folder_of_source_is_a_package() -> None:
    folders = {path.parent for path in files("src/polyplex/*.py")}
    assert [shown(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    vague = [shown(path) for path in python_files() if FORBIDDEN_NAMES & {path.stem, path.parent.name}]
    assert vague == []


def test_unit_tests_mirror_the_source() -> None:
    """tests/unit/mux/test_names_hash.py tests src/polyplex/mux/names.py: the module, or the module and a topic."""
    modules = {path.relative_to(PACKAGE).with_suffix("") for path in files("src/polyplex/*.py")}
    strays = []
    for path in files("tests/unit/test_*.py"):
        place = path.relative_to(ROOT / "tests" / "unit").parent
        topic = path.stem.removeprefix("test_")
        mirrored = {module.name for module in modules if module.parent == place} | {place.name}
        if not any(topic == name or topic.startswith(f"{name}_") for name in mirrored if name):
            strays.append(shown(path))
    assert strays == []


POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{\d*,?\d*\})\+|\(\?>")


def test_no_expression_repeats_a_group_possessively() -> None:
    """Python before 3.11.5 matches such a group wrongly where something in it gives back; characters are fine."""
    found = [
        f"{shown(path)}:{number}"
        for path in files("src/polyplex/content/*.py", "src/polyplex/store/*.py", "src/polyplex/gateway/*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if POSSESSIVE_GROUP.search(line)
    ]
    assert found == []
