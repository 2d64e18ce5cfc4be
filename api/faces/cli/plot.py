"""A calibration plot as SVG: no plotting library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from api.faces.svg import element, part, title, words

_SIDE, _LEFT, _TOP = 360, 64, 56
_BARS = 70
_WIDTH, _HEIGHT = _LEFT + _SIDE + 24, _TOP + _SIDE + _BARS + 76
_FLOOR = _TOP + _SIDE
_INK, _LINE, _FILL = "#1f2933", "#9aa5b1", "#2563eb"


def calibration_plot(result: Mapping[str, Any]) -> str:
    """Share that is relevant against the probability that was said, and how often it was said.

    On the diagonal a judge means what it says; below it, it promises too much.
    """
    bins: Sequence[tuple[int, float, float]] = result["calibration"]
    overall = result["overall"]
    heading = f"{result['judge']}: ECE {overall['ece']:.3f}, Brier {overall['brier']:.3f}"
    note = f"{overall['n']} items, share relevant by probability said"
    shapes = (
        title(heading),
        element("rect", width=_WIDTH, height=_HEIGHT, fill="#ffffff"),
        words(_LEFT, 24, heading, fill=_INK, font_size=14),
        words(_LEFT, 42, note, fill=_INK),
        *_axes(),
        *_points(bins),
        *_histogram(bins),
    )
    picture = element(
        "svg", "\n", *(f"{shape}\n" for shape in shapes),
        xmlns="http://www.w3.org/2000/svg", width=_WIDTH, height=_HEIGHT,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", font_family="sans-serif", font_size=12,
    )  # fmt: skip
    return f"{picture}\n"


def _axes() -> Iterator[str]:
    box = {"x": _LEFT, "y": _TOP, "width": _SIDE, "height": _SIDE}
    yield element("rect", **box, fill="none", stroke=_LINE)
    diagonal = {"x1": _LEFT, "y1": _FLOOR, "x2": _LEFT + _SIDE, "y2": _TOP}
    yield element("line", **diagonal, stroke=_LINE, stroke_dasharray="4 4")
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield words(_x(tick), _FLOOR + 16, f"{tick:g}", fill=_INK, text_anchor="middle")
        yield words(_LEFT - 8, _y(tick) + 4, f"{tick:g}", fill=_INK, text_anchor="end")
    middle = _TOP + _SIDE / 2
    for x, y, name, turn in (
        (_LEFT + _SIDE / 2, _FLOOR + 34, "probability said", 0),
        (18, middle, "share relevant", -90),
    ):
        yield words(
            x, y, name, fill=_INK, text_anchor="middle", transform=f"rotate({turn} {x} {y})"
        )


def _points(bins: Sequence[tuple[int, float, float]]) -> Iterator[str]:
    path = " ".join(f"{_x(probability):.1f},{_y(true):.1f}" for _, probability, true in bins)
    yield element("polyline", points=path, fill="none", stroke=_FILL, stroke_width=2)
    for count, probability, true in bins:
        note = title(f"{count} items: said {probability:.2f}, relevant {true:.2f}")
        yield element("circle", note, cx=_x(probability), cy=_y(true), r=4, fill=_FILL)


def _histogram(bins: Sequence[tuple[int, float, float]]) -> Iterator[str]:
    most = max(count for count, _, _ in bins)
    base = _FLOOR + 48 + _BARS
    yield words(_LEFT - 8, base, "items", fill=_INK, text_anchor="end")
    for count, probability, _ in bins:
        height = max(1.0, _BARS * 0.8 * part(count, most))
        left = _x(min(int(probability * 10), 9) / 10) + 2
        box = {"x": left, "y": base - height, "width": _SIDE / 10 - 4, "height": height}
        yield element("rect", **box, fill=_FILL, fill_opacity=0.35)
        middle = left + _SIDE / 20 - 2
        yield words(middle, base + 14, count, fill=_INK, text_anchor="middle", font_size=10)


def _x(share: float) -> float:
    return _LEFT + share * _SIDE


def _y(share: float) -> float:
    return _FLOOR - share * _SIDE
