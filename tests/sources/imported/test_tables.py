"""Tables: delimiter, head, columns and dates are found out, and rows that are ragged kept aside."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from api.errors import UsageError
from api.sources.imported.detection import read_columns
from api.sources.imported.table_files import numeric, order_of
from tests.sources.imported.files import entries, items, looked_at, made, refusals

NINTH = datetime(2026, 4, 9, tzinfo=UTC)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    "head",
    [
        ("Title", "Full Text", "Url", "Author", "Date", "Mention Id", "Site Name"),
        ("headline", "content", "link", "user name", "published", "guid", "source"),
        ("TITEL", "Inhalt", "URL", "Autor", "Datum", "id", "Quelle"),
    ],
)
def test_columns_are_found_by_their_names(tmp_path: Path, head: tuple[str, ...], delimiter: str) -> None:
    """As listening tools call them, whatever stands between the cells."""
    row = (
        "Mug",
        '"It leaks, badly; so | what"',
        "https://x.example/1",
        "ada",
        "2026-04-09",
        "7",
        "blog",
    )
    text = "".join(delimiter.join(cells) + "\r\n" for cells in (head, row))

    file = made(tmp_path, text.encode())
    (item,) = items(entries(file))

    assert (item.title, item.body) == ("Mug", "It leaks, badly; so | what")
    assert (item.url, item.place, item.id) == ("https://x.example/1", "blog", "7")
    assert item.created_at == NINTH
    assert item.author is not None
    assert item.key.startswith("items:")


def test_lines_about_the_export_are_no_rows(tmp_path: Path) -> None:
    """The head is the first row that is as wide as most."""
    text = 'Report:,"Mugs, all"\nFrom:,2026-04-01\n\nTitle,Snippet,Date\nMug,It leaks,2026-04-09\n'

    file = made(tmp_path, text.encode())
    (item,) = items(entries(file))

    assert file.findings[2:4] == [
        "delimiter: ,, head on line 4",
        "columns: title = `Title`, body = `Snippet`, created_at = `Date`",
    ]  # fmt: skip
    assert (item.title, item.created_at) == ("Mug", NINTH)


def test_a_person_says_which_column_is_what(tmp_path: Path) -> None:
    """Over what was guessed; a column that is not there is named with those that are."""
    data = b"title,words,moment\nno,It leaks,2026-04-09\n"
    columns = read_columns("body=words, created_at=moment,title=title")

    (item,) = items(entries(made(tmp_path, data, columns=columns)))
    assert (item.title, item.body, item.created_at) == ("no", "It leaks", NINTH)
    with pytest.raises(UsageError, match="no column `Body` for `body`; there are `title`, `words`"):
        made(tmp_path, data, columns={"body": "Body"})


@pytest.mark.parametrize("text", ["body", "body=", "=x", "votes=Likes", "body=a,nonsense"])
def test_a_map_that_is_none_is_refused(text: str) -> None:
    """With the fields that there are."""
    with pytest.raises(UsageError, match="FIELD=COLUMN; fields are `title`, `body`"):
        read_columns(text)


@pytest.mark.parametrize(
    ("date", "moment"),
    [
        ("2026-04-09", NINTH),
        ("2026-04-09T18:05:00Z", NINTH.replace(hour=18, minute=5)),
        ("2026-04-09 20:05:00+02:00", NINTH.replace(hour=18, minute=5)),
        ("April 9, 2026", NINTH),
        ("Thu, 09 Apr 2026 18:05:00 +0000", NINTH.replace(hour=18, minute=5)),
        ("9.4.2026 18:05", NINTH.replace(hour=18, minute=5)),
        ("4/9/2026 6:05 PM", NINTH.replace(hour=18, minute=5)),
        ("4/9/26, 12:05:09 a.m.", NINTH.replace(minute=5, second=9)),
        ("1775692800", NINTH),
        ("1775692800000", NINTH),
        ("yesterday", None),
        ("", None),
        ("99/99/2026", None),
    ],
)
def test_dates_are_read_in_every_form(tmp_path: Path, date: str, moment: datetime | None) -> None:
    """ISO, written out, mail's, two orders of small numbers, seconds and milliseconds."""
    (item,) = items(entries(made(tmp_path, f"text;date\nMug;{date}\n".encode())))

    assert item.created_at == moment


def test_the_order_of_day_and_month_comes_from_the_rows() -> None:
    """One day above twelve decides for all; else the sign does, and it is said."""
    assert order_of(["3/4/2026", "25/4/2026"]) == (
        True,
        "day before month, as a day above 12 shows",
    )
    assert order_of(["3/4/2026", "4/25/2026"])[0] is False
    assert order_of(["3.4.2026"]) == (
        True,
        "day before month, which nothing in the first rows decides",
    )
    assert order_of(["3/4/2026"])[0] is False
    assert order_of(["2026-04-03", "soon"]) == (False, "1 of the first 2 can be read")
    assert order_of([]) == (False, "none")
    assert numeric("31/2/2026", day_first=True) is None


def test_ragged_rows_are_kept_aside(tmp_path: Path) -> None:
    """Too many cells, no text; one that is short lacks its last cells only."""
    data = b"title,body,url\nA,a,https://x.example\nB\nC,c,,extra\nD,d,,,\n,,https://x.example\n\n"

    read = entries(made(tmp_path, data))

    assert [item.title for item in items(read)] == ["A", "B", "D"]
    assert refusals(read) == [
        (4, "it has 4 cells, and there are 3 columns"), (6, "it has neither title nor text"),
    ]  # fmt: skip


def test_a_quote_that_is_never_closed_costs_its_line(tmp_path: Path) -> None:
    """Not the rest of the file, be it short or long; cells of several lines are read."""
    rows = "".join(f"row {number},fine\n" for number in range(1500))
    data = f'title,body\nA,"two\nlines"\nB,"open\n{rows}C,"also open\nD,d\n'.encode()

    read = entries(made(tmp_path, data))

    titles = [item.title for item in items(read)]
    assert (titles[0], titles[1], titles[-1], len(titles)) == ("A", "row 0", "D", 1502)
    assert items(read)[0].body == "two\nlines"
    assert refusals(read) == [
        (4, "a quote in it is never closed"), (1505, "a quote in it is never closed"),
    ]  # fmt: skip


def test_the_same_row_of_two_exports_is_one_item(tmp_path: Path) -> None:
    """Wherever it stands; the same number for another text is another."""
    first = items(entries(made(tmp_path, b"id,text\n1,Mug\n2,Lid\n")))
    second = items(entries(made(tmp_path, b"id,text\n2,Lid\n1,Cup\n")))

    assert first[1].key == second[0].key
    assert first[0].key != second[1].key


def test_columns_of_one_name_and_of_none_are_told_apart(tmp_path: Path) -> None:
    """The first counts; every column has a name that `--map` can say."""
    file = looked_at(tmp_path, b"text,text,,url\na,b,c,\nd,e,f,\n")

    assert file.head is not None
    assert file.head.columns == ("text", "text 2", "column 3", "url")
    assert file.columns is not None
    assert file.columns.named == {"body": "text", "url": "url"}


def test_one_column_is_a_table_too(tmp_path: Path) -> None:
    """A text on each line."""
    (item,) = items(entries(made(tmp_path, b"comment\nIt leaks\n")))

    assert item.body == "It leaks"


def test_a_table_is_no_json_lines(tmp_path: Path) -> None:
    """Said instead of refusing every line."""
    with pytest.raises(UsageError, match="--as csv"):
        made(tmp_path, b"title\nMug\n", form="jsonl")
