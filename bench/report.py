"""From measured rounds to ratios, a table, and the bars."""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import fronts
from fronts import FRONTS, NGINX, Front
from processes import say

Figures = Mapping[str, float]
Rounds = list[dict[str, Figures]]  # one mapping a round: a front's name, or direct_name of it -> figures of the loader
SMALL = ("small c1", "small c16", "small c64")
LARGE = ("500 KB c1", "5 MB c1")
NGINX_SHARE, STDIO_SHARE, PEER_MULTIPLE = 0.5, 0.35, 20.0
BRIDGED_SHARE = 1 / 1.5  # a bridged call costs at most 1.5 times what one costs within its era


@dataclass(frozen=True, slots=True)
class Row:
    """The medians of one front in one cell; a ratio is None where its other side was not measured."""

    front: str
    cell: str
    rps: float
    p50_us: float
    p99_us: float
    mb_s: float
    share_of_nginx_rps: float | None
    share_of_nginx_mb_s: float | None
    added_us: float
    added_to_nginx: float | None  # added p50 as a multiple of what nginx adds
    share_of_direct: float
    multiple_of_peer: float | None  # for a peer: how many times faster polyplex is
    share_of_one_era: float | None  # for a bridging front: its calls a second against those without bridging


@dataclass(frozen=True, slots=True)
class Bar:
    """One demand: `value` must reach `least`; None was not measured."""

    name: str
    value: float | None
    least: float

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        return self.value is not None and self.value >= self.least


def direct_name(front: str) -> str:
    """The key of the direct figures that were measured right before a front."""
    return f"direct before {front}"


def median_of(rounds: Rounds, read: Callable[[dict[str, Figures]], float], *names: str) -> float | None:
    """The median over the rounds that hold all names."""
    values = [read(round_) for round_ in rounds if all(name in round_ for name in names)]
    return statistics.median(values) if values else None


def ratio(rounds: Rounds, key: str, upper: str, lower: str) -> float | None:
    """The median of the per-round ratios of two fronts."""
    return median_of(rounds, lambda r: r[upper][key] / max(r[lower][key], 1e-9), upper, lower)


def make_row(front: Front, cell: str, rounds: Rounds) -> Row | None:
    """The row of a front, None when it has no figures in this cell."""
    name, direct = front.name, direct_name(front.name)

    def middle(key: str) -> float:
        return median_of(rounds, lambda r: r[name][key], name) or 0.0

    added = median_of(rounds, lambda r: r[name]["p50_us"] - r[direct]["p50_us"], name, direct)
    beside_nginx = direct_name(NGINX)
    nginx_adds = median_of(rounds, lambda r: r[NGINX]["p50_us"] - r[beside_nginx]["p50_us"], NGINX, beside_nginx)
    if added is None:
        return None
    return Row(
        front=name,
        cell=cell,
        rps=middle("rps"),
        p50_us=middle("p50_us"),
        p99_us=middle("p99_us"),
        mb_s=middle("mb_s"),
        share_of_nginx_rps=ratio(rounds, "rps", name, NGINX),
        share_of_nginx_mb_s=None if cell in SMALL else ratio(rounds, "mb_s", name, NGINX),
        added_us=added,
        added_to_nginx=added / nginx_adds if nginx_adds and nginx_adds > 0 else None,
        share_of_direct=ratio(rounds, "rps", name, direct) or 0.0,
        multiple_of_peer=ratio(rounds, "rps", front.compared, name) if front.peer else None,
        share_of_one_era=ratio(rounds, "rps", name, front.compared) if front.compared and not front.peer else None,
    )


def number(value: float | None, unit: str = "", digits: int = 2) -> str:
    """A figure for the table, a dash when there is none."""
    return "-" if value is None else f"{value:,.{digits}f}{unit}"


def print_table(rows: list[Row]) -> None:
    """One line a front and cell."""
    titles = [
        "front",
        "cell",
        "rps",
        "p50 us",
        "p99 us",
        "MB/s",
        "of nginx rps",
        "of nginx MB/s",
        "added us",
        "added/nginx",
        "of direct",
        "polyplex is",
    ]
    lines = [titles]
    for row in rows:
        shares = [number(row.share_of_nginx_rps), number(row.share_of_nginx_mb_s)]
        figures = [
            number(row.rps, digits=0),
            number(row.p50_us, digits=0),
            number(row.p99_us, digits=0),
            number(row.mb_s, digits=0),
        ]
        ratios = [
            number(row.added_us, digits=0),
            number(row.added_to_nginx),
            number(row.share_of_direct, digits=4),
            number(row.multiple_of_peer, "x", 1),
        ]
        lines.append([row.front, row.cell, *figures, *shares, *ratios])
    widths = [max(len(line[i]) for line in lines) for i in range(len(titles))]
    for line in lines:
        say(
            "  ".join(
                text.ljust(width) if i < 2 else text.rjust(width)
                for i, (text, width) in enumerate(zip(line, widths, strict=True))
            )
        )


def bars(rows: list[Row], chosen: list[str], cells: list[str]) -> list[Bar]:
    """The demands on the chosen fronts and cells."""
    found = {(row.front, row.cell): row for row in rows}

    def value(front: str, cell: str, read: Callable[[Row], float | None]) -> float | None:
        row = found.get((front, cell))
        return read(row) if row else None

    demands: list[Bar] = []
    for cell in cells:
        for front in (name for name in (fronts.HTTP_HTTP, fronts.HTTP_HTTP_MODERN) if name in chosen):
            if cell in SMALL:
                demands.append(
                    Bar(
                        f"{front}, {cell}: share of nginx's rps",
                        value(front, cell, lambda r: r.share_of_nginx_rps),
                        NGINX_SHARE,
                    )
                )
            if cell in LARGE:
                demands.append(
                    Bar(
                        f"{front}, {cell}: share of nginx's MB/s",
                        value(front, cell, lambda r: r.share_of_nginx_mb_s),
                        NGINX_SHARE,
                    )
                )
        if cell in SMALL:
            demands += [
                Bar(
                    f"{front.name}, {cell}: share of {front.compared}",
                    value(front.name, cell, lambda r: r.share_of_one_era),
                    BRIDGED_SHARE,
                )
                for front in FRONTS
                if front.compared and not front.peer and front.name in chosen and front.compared in chosen
            ]
        if cell == "small c1" and fronts.HTTP_STDIO in chosen:
            demands.append(
                Bar(
                    f"{fronts.HTTP_STDIO}, {cell}: share of the direct rate",
                    value(fronts.HTTP_STDIO, cell, lambda r: r.share_of_direct),
                    STDIO_SHARE,
                )
            )
        if cell == "small c16":
            demands += [
                Bar(
                    f"{front.compared} against {front.name}, {cell}",
                    value(front.name, cell, lambda r: r.multiple_of_peer),
                    PEER_MULTIPLE,
                )
                for front in FRONTS
                if front.peer and front.name in chosen and front.compared in chosen
            ]
    return demands


def print_bars(demands: list[Bar]) -> bool:
    """One line a bar; answers whether all are met."""
    for bar in demands:
        verdict = "met" if bar.met else "MISSED" if bar.value is not None else "NOT MEASURED"
        say(f"{verdict:>12}  {number(bar.value)} (at least {bar.least:g})  {bar.name}")
    return all(bar.met for bar in demands)
