"""Counters, gauges and histograms of this process, and their Prometheus text form (version 0.0.4).

Made for hot paths on one event loop: take the child once (`calls = CALLS.labels("files")`), then `calls.value += 1`.
A family has a bounded number of children; label values beyond it share one child named `other`.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from math import inf, isfinite
from typing import Generic, TypeVar

MAX_CHILDREN = 256
OTHER = "other"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Value:
    """One number. A counter's child only ever grows; a gauge's may be set."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def samples(self) -> Iterator[tuple[str, str, float]]:
        """Name suffix, label without braces, and number, as the text form lists them."""
        yield "", "", self.value


class Distribution:
    """How often observed numbers fell into each bucket, with their sum and count."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, number: float) -> None:
        """Count a number into its bucket; a bucket includes its upper bound."""
        self.counts[bisect_left(self.bounds, number)] += 1
        self.sum += number

    def samples(self) -> Iterator[tuple[str, str, float]]:
        """Cumulative buckets, then sum and count."""
        total = 0
        for bound, count in zip((*self.bounds, inf), self.counts, strict=True):
            total += count
            yield "_bucket", f'le="{_number(bound)}"', total
        yield "_sum", "", self.sum
        yield "_count", "", total


Child = TypeVar("Child", Value, Distribution)


class Family(Generic[Child]):
    """All children of one metric, by the values of its labels."""

    def __init__(self, kind: str, name: str, meaning: str, labels: Sequence[str], make: Callable[[], Child]) -> None:
        if not all(_NAME.fullmatch(word) for word in (name, *labels)):
            raise ValueError(f"not a metric or label name: {name} {labels}")
        self.kind, self.name, self.meaning, self.label_names = kind, name, meaning, tuple(labels)
        self._make = make
        self._children: dict[tuple[str, ...], Child] = {} if labels else {(): make()}

    def labels(self, *values: str) -> Child:
        """The child of these label values; the shared one when the family is full."""
        if len(values) != len(self.label_names):
            raise ValueError(f"{self.name} has the labels {self.label_names}")
        child = self._children.get(values)
        if child is not None:
            return child
        if len(self._children) >= MAX_CHILDREN:
            values = (OTHER,) * len(values)
        return self._children.setdefault(values, self._make())

    def remove(self, *values: str) -> None:
        """Forget a child, such as that of a server that was removed."""
        if self.label_names:
            self._children.pop(values, None)

    def render(self) -> Iterator[str]:
        """The lines of the text form."""
        yield f"# HELP {self.name} {_escaped(self.meaning, quotes=False)}"
        yield f"# TYPE {self.name} {self.kind}"
        for values, child in self._children.items():
            own = [f'{name}="{_escaped(value)}"' for name, value in zip(self.label_names, values, strict=True)]
            for suffix, label, number in child.samples():
                inside = ",".join([*own, label] if label else own)
                yield (
                    f"{self.name}{suffix}{{{inside}}} {_number(number)}"
                    if inside
                    else (f"{self.name}{suffix} {_number(number)}")
                )


class Registry:
    """The metrics of one process. Asking again for the same name gives the same family."""

    def __init__(self) -> None:
        self._families: dict[str, Family[Value] | Family[Distribution]] = {}
        self._refreshers: list[Callable[[], None]] = []

    def counter(self, name: str, meaning: str, labels: Sequence[str] = ()) -> Family[Value]:
        """A family of numbers that only grow; by custom the name ends in `_total`."""
        return self._values("counter", name, meaning, labels)

    def gauge(self, name: str, meaning: str, labels: Sequence[str] = ()) -> Family[Value]:
        """A family of numbers that go up and down."""
        return self._values("gauge", name, meaning, labels)

    def histogram(
        self, name: str, meaning: str, labels: Sequence[str] = (), bounds: Sequence[float] = SECONDS
    ) -> Family[Distribution]:
        """A family of distributions; `bounds` are the upper bounds of the buckets, rising."""
        if list(bounds) != sorted(set(bounds)):
            raise ValueError("bounds must rise")
        family = self._families.get(name) or Family("histogram", name, meaning, labels, lambda: Distribution(bounds))
        self._families[name] = self._checked(family, "histogram", labels)
        return family  # pyright: ignore[reportReturnType] -- _checked has compared the kind

    def before_render(self, refresh: Callable[[], None]) -> None:
        """Call `refresh` before each rendering, for gauges that are cheaper to read than to keep."""
        self._refreshers.append(refresh)

    def render(self) -> str:
        """All metrics in the Prometheus text form."""
        for refresh in self._refreshers:
            refresh()
        lines = [line for _, family in sorted(self._families.items()) for line in family.render()]
        return "\n".join(lines) + "\n" if lines else ""

    def _values(self, kind: str, name: str, meaning: str, labels: Sequence[str]) -> Family[Value]:
        family = self._families.get(name) or Family(kind, name, meaning, labels, Value)
        self._families[name] = self._checked(family, kind, labels)
        return family  # pyright: ignore[reportReturnType] -- _checked has compared the kind

    @staticmethod
    def _checked(
        family: Family[Value] | Family[Distribution], kind: str, labels: Sequence[str]
    ) -> Family[Value] | Family[Distribution]:
        if (family.kind, family.label_names) != (kind, tuple(labels)):
            raise ValueError(f"{family.name} is already a {family.kind} with the labels {family.label_names}")
        return family


def _escaped(text: str, *, quotes: bool = True) -> str:
    return text.translate(_ESCAPES) if quotes else text.replace("\\", r"\\").replace("\n", r"\n")


def _number(number: float) -> str:
    if not isfinite(number):
        return "NaN" if number != number else "+Inf" if number > 0 else "-Inf"
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)
