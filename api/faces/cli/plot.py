"""A calibration plot as SVG, written by hand: no plotting library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

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
    title = f"{result['judge']}: ECE {overall['ece']:.3f}, Brier {overall['brier']:.3f}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        _text(_LEFT, 24, title, size=14),
        _text(_LEFT, 42, f"{overall['n']} items, share relevant by probability said"),
        *_axes(),
        *_points(bins),
        *_histogram(bins),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _axes() -> Iterator[str]:
    yield (
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}" fill="none" '
        f'stroke="{_LINE}"/>'
    )
    yield (
        f'<line x1="{_LEFT}" y1="{_FLOOR}" x2="{_LEFT + _SIDE}" y2="{_TOP}" stroke="{_LINE}" '
        f'stroke-dasharray="4 4"/>'
    )
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield _text(_x(tick), _FLOOR + 16, f"{tick:g}", anchor="middle")
        yield _text(_LEFT - 8, _y(tick) + 4, f"{tick:g}", anchor="end")
    yield _text(_LEFT + _SIDE / 2, _FLOOR + 34, "probability said", anchor="middle")
    middle = _TOP + _SIDE / 2
    yield (
        f'<text x="18" y="{middle}" fill="{_INK}" text-anchor="middle" '
        f'transform="rotate(-90 18 {middle})">share relevant</text>'
    )


def _points(bins: Sequence[tuple[int, float, float]]) -> Iterator[str]:
    path = " ".join(f"{_x(said):.1f},{_y(true):.1f}" for _, said, true in bins)
    yield f'<polyline points="{path}" fill="none" stroke="{_FILL}" stroke-width="2"/>'
    for count, said, true in bins:
        yield (
            f'<circle cx="{_x(said):.1f}" cy="{_y(true):.1f}" r="4" fill="{_FILL}">'
            f"<title>{count} items: said {said:.2f}, relevant {true:.2f}</title></circle>"
        )


def _histogram(bins: Sequence[tuple[int, float, float]]) -> Iterator[str]:
    most = max(count for count, _, _ in bins)
    base = _FLOOR + 48 + _BARS
    yield _text(_LEFT - 8, base, "items", anchor="end")
    for count, said, _ in bins:
        height = max(1.0, _BARS * 0.8 * count / most)
        left = _x(min(int(said * 10), 9) / 10) + 2
        yield (
            f'<rect x="{left:.1f}" y="{base - height:.1f}" width="{_SIDE / 10 - 4:.1f}" '
            f'height="{height:.1f}" fill="{_FILL}" fill-opacity="0.35"/>'
        )
        yield _text(left + _SIDE / 20 - 2, base + 14, str(count), anchor="middle", size=10)


def _x(share: float) -> float:
    return _LEFT + share * _SIDE


def _y(share: float) -> float:
    return _FLOOR - share * _SIDE


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{_INK}" text-anchor="{anchor}" '
        f'font-size="{size}">{escape(words)}</text>'
    )
