"""What is taken along from a page: in which formats, and what the files are called."""

from __future__ import annotations

from fastapi.responses import Response

from api.errors import NotFound
from api.faces.web.pages.screen import PRIVATE
from api.faces.web.schemas import Format

_ENDINGS: dict[Format, str] = {"html": "html", "markdown": "md", "csv": "csv", "json": "json"}
"""How a file of each format ends."""


def kind_of(form: str) -> Format:
    """The format of that name.

    Raises:
        NotFound: there is none.
    """
    for kind in _ENDINGS:
        if kind == form:
            return kind
    raise NotFound("This can be taken along as HTML, Markdown, CSV or JSON.")


def as_file(answer: Response, name: str, kind: Format) -> Response:
    """The answer as a file, under this name and the ending of its format."""
    filename = f"{name}.{_ENDINGS[kind]}"
    answer.headers["Cache-Control"] = PRIVATE
    answer.headers["Content-Disposition"] = f'attachment; filename="{filename}"'
    return answer
