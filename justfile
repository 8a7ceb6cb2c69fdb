# The commands of this repository. `uv run just` lists them; CI runs the same ones.
set shell := ["bash", "-euo", "pipefail", "-c"]

export PATH := justfile_directory() / ".venv/bin:" + env("PATH")

_list:
    @just --list --unsorted

# install polyplex with its development group, and the real servers that the tests talk to
setup:
    uv sync --locked --all-extras
    python scripts/peers.py all

# format the code and sort its imports
fmt:
    ruff check --quiet --select I --fix
    ruff format

# format, lint, types, layers, spelling
check:
    ruff format --check
    ruff check
    pyright
    lint-imports --no-cache
    codespell

# run the tests; arguments go to pytest
test *arguments:
    pytest -n 2 {{ arguments }}

# measure polyplex against nginx and other gateways, in ratios
bench *arguments:
    python bench/run.py {{ arguments }}

# measure the quality of one part, such as `tools` for the search of tools
eval part *arguments:
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m eval.{{ part }} {{ arguments }}

# run the official conformance suite directly and through polyplex
conformance *arguments:
    python tests/conformance/run.py {{ arguments }}

# run the compatibility matrix and write docs/compatibility.md from what it came to
compatibility *arguments:
    python -m tests.matrix.write {{ arguments }}

# export tools to each model provider and check them against its rules and its SDK's types
exports *arguments:
    python scripts/check_exports.py {{ arguments }}

# check the links and examples of the documents
docs:
    pytest -q tests/rules/test_documents.py
