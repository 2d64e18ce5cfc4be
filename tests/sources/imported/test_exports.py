"""Forty small files in the shapes that shops, tools and people export: every text, date and rating, or a refusal."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import pytest
from openpyxl import Workbook

from api.core.items import Comment, Item
from api.errors import UsageError
from api.sources.imported.detection import ReadOptions, read_collected

Row = tuple[str, str, float | None]
"""A text, the day it was written (`2026-01-03` or nothing) and its stars."""
THREE: tuple[Row, ...] = (
    ("The battery lasts only half a day", "2026-01-03", 2),
    ("Keeps the coffee warm, every morning", "2026-01-14", 5),
    ("The app loses the connection; so sad", "2026-02-25", 1),
)


@dataclass(frozen=True)
class Export:
    """A file, and what must be read of it."""

    name: str
    data: bytes
    rows: Sequence[Row] = THREE
    refusal: str = ""
    encoding: str = ""


def table(rows: Sequence[Sequence[Any]], encoding: str = "utf-8", delimiter: str = ",") -> bytes:
    """Rows as a table, the head among them."""
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return out.getvalue().encode(encoding)


def three(head: Sequence[str], row: Any, **how: str) -> bytes:
    """A table of the three rows, each made by `row(text, day, stars, number)`."""
    return table([head, *(row(text, day, stars, n) for n, (text, day, stars) in enumerate(THREE))], **how)


def jsonl(row: Any) -> bytes:
    """The three rows as JSON lines."""
    return b"".join(json.dumps(row(text, day, stars, n)).encode() + b"\n" for n, (text, day, stars) in enumerate(THREE))


def workbook(rows: Sequence[Sequence[Any]], *others: str) -> bytes:
    """A workbook with these rows in its first sheet, and further sheets."""
    book = Workbook()
    for row in rows:
        book.active.append(list(row))  # type: ignore[union-attr]
    for title in others:
        book.create_sheet(title).append(["x", "y"])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def day_of(iso: str) -> date:
    """The day of a row."""
    return date.fromisoformat(iso)


CHINESE = (("电池只能用半天，太失望了", "2026-01-03", 2), ("保温效果很好，每天都用", "2026-01-14", 5),
           ("价格有点贵，但是质量好", "2026-02-25", 4))  # fmt: skip
JAPANESE = (("バッテリーが半日しか持たない", "2026-01-03", 2), ("保温力が高くて毎日使っています", "2026-01-14", 5),
            ("値段は高いが満足しています", "2026-02-25", 4))  # fmt: skip
RUSSIAN = (("Батарея держится полдня, очень разочарован", "2026-01-03", 2),
           ("Отличная кружка, держит тепло", "2026-01-14", 5), ("Приложение вылетает", "2026-02-25", 1))  # fmt: skip
CZECH = (("Baterie vydrží jen půl dne, jsem zklamaný", "2026-01-03", 2), ("Příliš drahé, ale dobré", "2026-01-14", 4),
         ("Aplikace neustále padá, žádná podpora", "2026-02-25", 1))  # fmt: skip
GERMAN = (("Der Akku hält nur einen halben Tag", "2026-01-03", 2), ("Für den Preis sehr gut", "2026-01-14", 5),
          ("Schöne Tasse, die App stürzt ab", "2026-02-25", 3))  # fmt: skip


def foreign(rows: Sequence[Row], encoding: str, head: Sequence[str] = ("id", "date", "rating", "review")) -> bytes:
    """A table in another encoding."""
    return table([head, *((n, day, int(stars or 0), text) for n, (text, day, stars) in enumerate(rows))], encoding)


MONTHS = {
    "2026-01-03": ("January", "Januar"),
    "2026-01-14": ("January", "Januar"),
    "2026-02-25": ("February", "Februar"),
}
PLAY_CONSOLE = (
    "Package Name,App Version Code,App Version Name,Reviewer Language,Device,Review Submit Date and Time,"
    "Review Submit Millis Since Epoch,Review Last Update Date and Time,Review Last Update Millis Since Epoch,"
    "Star Rating,Review Title,Review Text,Developer Reply Date and Time,Developer Reply Text,Review Link"
).split(",")


def ytdlp(text: str, day: str, number: int) -> dict[str, Any]:
    """A comment as yt-dlp writes it."""
    at = int(datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp())
    return {"id": f"Ugx{number}", "parent": "root", "text": text, "like_count": number, "author_id": f"UC{number}",
            "author": f"@{number}", "author_thumbnail": "https://x.example/a.jpg", "timestamp": at}  # fmt: skip


UNRATED = tuple((text, day, None) for text, day, _ in THREE)
UNDATED = tuple((text, "", None) for text, _, _ in THREE)
EXPORTS = (
    Export(
        "datafiniti.csv",
        three(
            (
                "id",
                "name",
                "brand",
                "reviews.date",
                "reviews.rating",
                "reviews.text",
                "reviews.title",
                "reviews.username",
                "reviews.sourceURLs",
            ),
            lambda text, day, stars, n: (
                "AVpf",
                "Mug",
                "Acme",
                f"{day}T00:00:00.000Z",
                stars,
                text,
                "",
                f"u{n}",
                "https://a.example",
            ),
        ),
    ),
    Export(
        "trustpilot.csv",
        three(
            (
                "Review Id",
                "Review Created (UTC)",
                "Review Username",
                "Review Stars",
                "Review Title",
                "Review Content",
                "Review Language",
            ),
            lambda text, day, stars, n: (f"r{n}", f"{day} 10:00:00", f"u{n}", stars, "", text, "en"),
        ),
    ),
    Export(
        "google_play_scraper.csv",
        three(
            (
                "reviewId",
                "userName",
                "userImage",
                "content",
                "score",
                "thumbsUpCount",
                "reviewCreatedVersion",
                "at",
                "replyContent",
                "repliedAt",
            ),
            lambda text, day, stars, n: (
                f"r{n}",
                f"u{n}",
                "https://x",
                text,
                stars,
                n,
                "1.2",
                f"{day} 08:00:00",
                "",
                "",
            ),
        ),
    ),
    Export(
        "play_console.csv",
        three(
            PLAY_CONSOLE,
            lambda text, day, stars, n: (
                "com.x",
                1,
                "1.0",
                "en",
                "pixel",
                f"{day}T08:00:00Z",
                1,
                f"{day}T09:00:00Z",
                2,
                stars,
                "",
                text,
                "",
                "",
                f"https://play.example/{n}",
            ),
            encoding="utf-16",
        ),
    ),
    Export(
        "app_store.csv",
        three(
            ("date", "review", "rating", "isEdited", "title", "userName"),
            lambda text, day, stars, n: (f"{day} 10:00:00", text, stars, "False", "", f"u{n}"),
        ),
    ),
    Export(
        "appfollow.csv",
        three(
            ("Date", "Rating", "Subject", "Body", "Author", "Version", "Country"),
            lambda text, day, stars, n: (day, stars, "", text, f"u{n}", "1", "US"),
            delimiter=";",
        ),
    ),
    Export(
        "google_forms.csv",
        three(
            ("Timestamp", "How satisfied are you?", "What could be better?"),
            lambda text, day, stars, n: (f"{int(day[5:7])}/{int(day[8:])}/2026 10:00:00", stars, text),
        ),
        UNRATED,
    ),
    Export(
        "surveymonkey.csv",
        table(
            [
                ("Respondent ID", "Collector ID", "Date Created", "IP Address", "What do you think of it?"),
                ("", "", "", "", "Open-Ended Response"),
                *((n + 100, 7, f"{day} 10:00", "1.2.3.4", text) for n, (text, day, _) in enumerate(THREE)),
            ]
        ),
        UNRATED,
    ),
    Export(
        "qualtrics.csv",
        table(
            [
                ("StartDate", "RecordedDate", "ResponseId", "Q1", "Q2"),
                ("Start Date", "Recorded Date", "Response ID", "How many stars?", "What do you think of it?"),
                (
                    '{"ImportId":"startDate"}',
                    '{"ImportId":"recordedDate"}',
                    '{"ImportId":"_recordId"}',
                    '{"ImportId":"QID1"}',
                    '{"ImportId":"QID2_TEXT"}',
                ),
                *((day, f"{day} 10:00:00", f"R_{n}", stars, text) for n, (text, day, stars) in enumerate(THREE)),
            ]
        ),
        UNRATED,
    ),
    Export(
        "typeform.csv",
        three(
            ("#", "Tell us what you think of the mug", "Start Date (UTC)", "Submit Date (UTC)", "Network ID"),
            lambda text, day, stars, n: (f"abc{n}", text, f"{day} 10:00:00", f"{day} 10:05:00", "f0"),
        ),
        UNRATED,
    ),
    Export(
        "delighted.csv",
        three(
            ("Response ID", "Person ID", "Name", "Email", "Score", "Comment", "Created At (UTC)"),
            lambda text, day, stars, n: (n, n, f"N{n}", f"{n}@x.example", 10 - n, text, f"{day} 10:00:00"),
        ),
        UNRATED,
    ),
    Export(
        "g2.csv",
        three(
            ("Review ID", "Submitted At", "Star Rating", "What do you like best?"),
            lambda text, day, stars, n: (n, day, f"{stars} out of 5", text),
        ),
    ),
    Export(
        "takeout_comments.csv",
        three(
            (
                "Channel ID",
                "Comment create timestamp",
                "Price",
                "Comment ID",
                "Parent comment ID",
                "Video ID",
                "Comment text",
                "Top-level comment ID",
            ),
            lambda text, day, stars, n: (
                "UC1",
                f"{day}T10:00:00.5+00:00",
                0,
                f"Ugx{n}",
                "",
                "dQw4w9WgXcQ",
                json.dumps({"text": text[:9]}) + "," + json.dumps({"text": text[9:]}),
                "",
            ),
        ),
        UNRATED,
    ),
    Export(
        "ytdlp.info.json",
        json.dumps(
            {
                "id": "dQw4w9WgXcQ",
                "title": "A mug",
                "extractor": "youtube",
                "comments": [ytdlp(text, day, n) for n, (text, day, _) in enumerate(THREE)],
            }
        ).encode(),
        UNRATED,
    ),
    Export(
        "ytdlp.comments.json",
        json.dumps([ytdlp(text, day, n) for n, (text, day, _) in enumerate(THREE)]).encode(),
        UNRATED,
    ),
    Export(
        "youtube_downloader.jsonl",
        jsonl(
            lambda text, day, stars, n: {
                "cid": f"Ugx{n}",
                "text": text,
                "time": "2 days ago",
                "author": f"@{n}",
                "votes": "1",
                "time_parsed": datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp(),
            },
        ),
        UNRATED,
    ),
    Export(
        "youtube_titles.csv",
        three(
            ("videoId", "videoTitle", "textDisplay", "publishedAt", "likeCount", "authorDisplayName"),
            lambda text, day, stars, n: ("dQw4w9WgXcQ", "A mug", text, f"{day}T10:00:00Z", n, f"@{n}"),
        ),
        UNRATED,
    ),
    Export(
        "amazon_2023.jsonl",
        jsonl(
            lambda text, day, stars, n: {
                "rating": stars,
                "title": "",
                "text": text,
                "asin": "B01ABCDEFG",
                "user_id": f"A{n}",
                "timestamp": int(datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp() * 1000),
            },
        ),
    ),
    Export(
        "amazon_table.csv",
        three(
            ("product_id", "customer_id", "star_rating", "review_headline", "review_body", "review_date"),
            lambda text, day, stars, n: ("B01ABCDEFG", n, stars, "", text, day),
        ),
    ),
    Export(
        "reddit.jsonl.gz",
        gzip.compress(
            jsonl(
                lambda text, day, stars, n: {
                    "id": f"1abc{n}",
                    "title": text,
                    "selftext": "",
                    "subreddit": "mugs",
                    "author": f"a{n}",
                    "created_utc": datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp(),
                    "permalink": f"/r/mugs/comments/1abc{n}/x/",
                    "is_self": True,
                },
            )
        ),
        UNRATED,
    ),
    Export(
        "brandwatch.csv",
        table(
            [
                ("Report:", "Mugs"),
                ("Label:", "x"),
                (),
                ("Query Id", "Date", "Title", "Snippet", "Url", "Author"),
                *(
                    (1, f"{day} 10:00:00.0", "", text, f"https://x.example/{n}", f"u{n}")
                    for n, (text, day, _) in enumerate(THREE)
                ),
            ]
        ),
        UNRATED,
    ),
    Export(
        "talkwalker.csv",
        three(
            ("published", "title", "content", "url", "extra_author_attributes.name"),
            lambda text, day, stars, n: (f"{day}T10:00:00", "", text, f"https://x.example/{n}", f"u{n}"),
            delimiter="\t",
        ),
        UNRATED,
    ),
    Export("headless.csv", table([(n + 1, day, stars, text) for n, (text, day, stars) in enumerate(THREE)])),
    Export("headless_texts.csv", "".join(f'"{text}"\n' for text, _, _ in THREE).encode(), UNDATED),
    Export(
        "totals.csv",
        table(
            [
                ("Date", "Rating", "Review"),
                *((day, stars, text) for text, day, stars in THREE),
                ("Total", 8, ""),
                ("Average", 2.7, ""),
            ]
        ),
    ),
    Export(
        "two_of_one_name.csv",
        three(
            ("Date", "Rating", "Review", "Review"),
            lambda text, day, stars, n: (day, stars, text, "internal"),
        ),
    ),
    Export(
        "serial.csv",
        three(
            ("Date", "Rating", "Review"),
            lambda text, day, stars, n: ((day_of(day) - date(1899, 12, 30)).days, stars, text),
        ),
    ),
    Export(
        "worded.csv",
        three(
            ("Date", "Rating", "Review"),
            lambda text, day, stars, n: (f"{MONTHS[day][0]} {int(day[8:])}, 2026", stars, text),
        ),
    ),
    Export(
        "worded_german.csv",
        table(
            [
                ("Datum", "Bewertung", "Inhalt"),
                *((f"{int(day[8:])}. {MONTHS[day][1]} 2026", f"{stars},0", text) for text, day, stars in THREE),
            ],
            delimiter=";",
        ),
        THREE,
    ),
    Export(
        "short_months.csv",
        three(
            ("Date", "Rating", "Review"),
            lambda text, day, stars, n: (
                f"{day[8:]}-{MONTHS[day][0][:3]}-26",
                "★" * int(stars) + "☆" * (5 - int(stars)),
                text,
            ),
        ),
    ),
    Export(
        "reviews.xlsx",
        workbook([("Date", "Stars", "Review"), *((day_of(day), stars, text) for text, day, stars in THREE)], "Notes"),
    ),
    Export(
        "serial.xlsx",
        workbook(
            [
                ("Mug reviews",),
                (),
                ("Date", "Stars", "Review"),
                *(((day_of(day) - date(1899, 12, 30)).days, stars, text) for text, day, stars in THREE),
            ]
        ),
    ),
    Export("gbk.csv", foreign(CHINESE, "gbk", ("编号", "日期", "评分", "评论内容")), CHINESE),
    Export("shift_jis.csv", foreign(JAPANESE, "cp932", ("番号", "投稿日", "評価", "レビュー")), JAPANESE),
    Export("cp1251.csv", foreign(RUSSIAN, "cp1251", ("номер", "дата", "оценка", "отзыв")), RUSSIAN),
    Export("cp1250.csv", foreign(CZECH, "cp1250"), CZECH),
    Export("cp1252.csv", foreign(GERMAN, "cp1252"), GERMAN),
    Export("named.csv", foreign(CHINESE[:1], "gb18030"), CHINESE[:1], encoding="gbk"),
    Export("unsure.csv", table([("text",), ("כוס מצוינת",)], "cp1255"), (), "name it with `--encoding`"),
    Export("old.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), (), "save it as `.xlsx` or CSV"),
    Export("archive.zip", b"PK\x03\x04 no workbook", (), "no `.xlsx` workbook"),
    Export("numbers.csv", table([("a", "b"), (1, 2), (3, 4)]), (), "--map body=COLUMN"),
)


@pytest.mark.parametrize(
    ("written", "code"), [("en", "en"), ("pt-BR", "pt"), ("DE_at", "de"), ("German", ""), ("", ""), ("x", "")]
)
def test_the_language_of_a_text_is_kept(written: str, code: str) -> None:
    """By its code, as tables and JSON lines say it."""
    in_table = read_collected(table([("Reviewer Language", "Review Text"), (written, "It leaks")]))
    (line,) = read_collected(json.dumps({"text": "It leaks", "language": written}).encode()).items

    assert [item.language for item in (*in_table.items, line)] == [code, code]


@pytest.mark.parametrize(
    ("columns", "row", "stays"),
    [
        (("Title", "Rating", "Review"), ("Average", 3, "It leaks"), True),
        (("Title", "Rating", "Review"), ("Average", 3, ""), True),
        (("Review", "Rating"), ("Total", 3), True),
        (("Brand", "Rating", "Review"), ("Total", 3, "It leaks"), True),
        (("Brand", "Rating", "Review"), ("Total", 5, 120), False),
        (("Brand", "Rating", "Review"), ("Total:", "2,7", ""), False),
        (("Brand", "Rating", "Review"), ("Average", "of 12 reviews", ""), False),
        (("Brand", "Rating", "Review"), ("Total", "", ""), False),
    ],
)
def test_an_opinion_is_no_row_of_totals(columns: Sequence[str], row: Sequence[Any], stays: bool) -> None:
    """Whose title or text is such a word, or which has a text."""
    first = ("Mugs", 5, "Keeps warm") if len(columns) == 3 else ("Keeps warm", 5)

    own = read_collected(table([columns, first, row]))

    assert len(own.items) == 1 + stays
    assert ("1 left out: a row of totals" in own.notes) is not stays


def texts_of(items: Sequence[Item]) -> list[Row]:
    """What people wrote in these items, with day and stars."""
    posts: list[Item | Comment] = []
    for item in items:
        posts += item.comments or [item]
    return [
        (
            post.body or getattr(post, "title", ""),
            post.created_at.astimezone(UTC).date().isoformat() if post.created_at else "",
            post.engagement.get("stars"),
        )
        for post in posts
    ]


@pytest.mark.parametrize("export", EXPORTS, ids=[export.name for export in EXPORTS])
def test_each_text_date_and_rating_of_an_export_is_read(export: Export) -> None:
    """Nothing is lost, doubled or guessed wrong; what cannot be read says what to do."""
    options = ReadOptions(encoding=export.encoding)
    if export.refusal:
        with pytest.raises(UsageError) as caught:
            read_collected(export.data, options)
        assert export.refusal in str(caught.value)
        return

    own = read_collected(export.data, options)

    assert texts_of(own.items) == list(export.rows)
