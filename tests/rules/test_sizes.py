"""The size walls of CONTRIBUTING.md. They have no list of exceptions: cut the file or the function instead."""

import ast

from tests.rules.sources import python_files, shown

FILE_LINES = 500
FUNCTION_LINES = 60
TEST_FUNCTION_LINES = 80


def test_no_file_is_longer_than_the_wall() -> None:
    lengths = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in python_files()}
    assert {name: lines for name, lines in lengths.items() if lines > FILE_LINES} == {}


def test_no_function_is_longer_than_the_wall() -> None:
    too_long = {}
    for path in python_files():
        wall = TEST_FUNCTION_LINES if "tests" in path.parts else FUNCTION_LINES
        for name, lines in _function_lengths(path.read_text(encoding="utf-8")).items():
            if lines > wall:
                too_long[f"{shown(path)}: {name}"] = lines
    assert too_long == {}


def test_the_length_of_a_function_counts_signature_docstring_and_body() -> None:
    source = 'class A:\n    @property\n    def b(\n        self,\n    ):\n        """Docstring."""\n        return 1\n'
    assert _function_lengths(source) == {"3 b": 5}


def _function_lengths(source: str) -> dict[str, int]:
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found[f"{node.lineno} {node.name}"] = (node.end_lineno or node.lineno) - node.lineno + 1
    return found
