"""Reads pictures and tables in the markup of a page."""

from __future__ import annotations

import re
from xml.etree import ElementTree


def picture(figure: str) -> ElementTree.Element:
    """The picture in a figure; it is well-formed, and every number in it is finite."""
    drawn = re.search(r"<svg.*</svg>", figure, re.S)
    assert drawn is not None
    read = ElementTree.fromstring(drawn[0])
    for shape in read.iter():
        for name, value in shape.attrib.items():
            if name in {"x", "y", "x1", "x2", "y1", "y2", "width", "height"}:
                assert 0 <= float(value.removesuffix("%")) <= 1000, (shape.tag, name, value)
        assert not {"style", "onload", "href"} & set(shape.attrib)
    return read


def place(shape: ElementTree.Element, side: str) -> float:
    """Where a shape is, or how large, in percent or pixels."""
    return float(shape.attrib[side].removesuffix("%"))


def texts(figure: str) -> list[str]:
    """The words of the picture, in order."""
    return [shape.text or "" for shape in picture(figure).iter("text")]


def table(figure: str) -> list[list[str]]:
    """The cells of the table behind it, line by line."""
    lines = re.findall(r"<tr>(.*?)</tr>", figure)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line) for line in lines]
