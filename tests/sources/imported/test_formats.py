"""What dumps, exports and sets of reviews become."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from api.features.archive.import_file import STUB
from api.sources.imported.detection import FORMATS, read_collected
from api.sources.imported.record_formats import WORDLESS
from tests.sources.imported.files import entries, items, left_out, lines, looked_at, made, refusals

POST = {
    "id": "1abc", "title": "Plaud Note &amp; me", "score": 12,
    "selftext": "Great&amp;nbsp;recorder&amp;#x200B; &amp;gt; mine",
    "subreddit": "gadgets", "author": "ada", "num_comments": 2, "created_utc": 1_700_000_000,
    "permalink": "/r/gadgets/comments/1abc/plaud_note_me/", "is_self": True,
}  # fmt: skip
REMARK = {
    "id": "c1", "body": "Same here, battery lasts", "link_id": "t3_1abc", "parent_id": "t3_1abc",
    "subreddit": "gadgets", "author": "bob", "score": 3, "created_utc": "1700000100",
    "permalink": "/r/gadgets/comments/1abc/plaud_note_me/c1/",
}  # fmt: skip
AT = datetime(2023, 11, 14, 22, 15, tzinfo=UTC)


def test_a_dump_of_reddit_holds_posts_and_comments(tmp_path: Path) -> None:
    """By the rules of the live source; a comment stands under a stub with its address' words."""
    file = made(tmp_path, lines(POST, REMARK))
    assert file.identity.form == "reddit"
    post, stub = items(entries(file))

    assert (post.key, post.title, post.place) == ("reddit:t3_1abc", "Plaud Note & me", "r/gadgets")
    assert post.body == "Great recorder\u200b > mine"
    assert post.engagement == {"votes": 12, "comments": 2, "upvote_ratio": None}
    assert (stub.key, stub.title, stub.notes) == (post.key, "plaud note me", (STUB,))
    assert stub.url == "https://www.reddit.com/r/gadgets/comments/1abc/"
    (comment,) = stub.comments
    assert (comment.id, comment.created_at, comment.engagement) == ("c1", AT, {"votes": 3})
    assert comment.author is not None
    assert "bob" not in comment.author


def test_what_is_nobodys_words_is_left_out_and_counted(tmp_path: Path) -> None:
    """Removed, a bot's, an advertisement; what is none of Reddit's records is kept aside."""
    read = entries(
        made(
            tmp_path,
            lines(
                POST, REMARK, POST, REMARK,
                POST | {"title": "[removed]", "selftext": "[removed]"},
                POST | {"author": "AutoModerator"},
                POST | {"promoted": True},
                REMARK | {"body": "[deleted]"},
                REMARK | {"link_id": "no post"},
                POST | {"id": "a b"},
                {"id": "1x", "subreddit": "gadgets"},
                {"id": "1x", "other": 1},
            ),
        )
    )  # fmt: skip

    assert len(items(read)) == 4
    assert left_out(read) == [
        "title and text were removed", "written by a bot", "an advertisement", WORDLESS,
    ]  # fmt: skip
    assert refusals(read) == [
        (9, "it is a comment on no post"),
        (10, "it has no id of Reddit"),
        (11, "it is neither a post nor a comment of Reddit"),
        (12, "it is neither a post nor a comment of Reddit"),
    ]


def test_a_persons_own_data_is_read(tmp_path: Path) -> None:
    """`posts.csv` and `comments.csv`; the address of the machine it was written on is not kept."""
    posts = (
        "id,permalink,date,ip,subreddit,gildings,title,url,body\n"
        "1abc,https://www.reddit.com/r/gadgets/comments/1abc/plaud/,2023-11-14 22:15:00 UTC,"
        '203.0.113.9,gadgets,0,Plaud,,"It ""works"", mostly\nReally"\n'
    )
    comments = (
        "id,permalink,date,ip,subreddit,gildings,link,parent,body,media\n"
        "c1,https://www.reddit.com/r/gadgets/comments/1abc/plaud/c1/,2023-11-14 22:15:00 UTC,"
        "203.0.113.9,gadgets,0,https://www.reddit.com/r/gadgets/comments/1abc/plaud/,,Same,\n"
    )
    (post,) = items(entries(made(tmp_path, posts.encode(), "posts.csv")))
    (stub,) = items(entries(made(tmp_path, comments.encode(), "comments.csv")))

    assert (post.key, post.title, post.body) == (
        "reddit:t3_1abc", "Plaud", 'It "works", mostly\nReally',
    )  # fmt: skip
    assert post.created_at == AT
    assert (stub.key, stub.title) == ("reddit:t3_1abc", "plaud")
    assert [(c.id, c.body, c.created_at) for c in stub.comments] == [("c1", "Same", AT)]
    assert "203.0.113" not in repr((post, stub))


@pytest.mark.parametrize(
    "review",
    [
        {"overall": 2.0, "vote": "1,204", "reviewTime": "09 4, 2015", "reviewerID": "A1",
         "asin": "B01ABCDEFG", "reviewText": "It leaks.", "summary": "Meh",
         "unixReviewTime": 1441324800},
        {"rating": 2.0, "title": "Meh", "text": "It leaks.", "images": [], "asin": "B0CHILD123",
         "parent_asin": "B01ABCDEFG", "user_id": "A1", "timestamp": 1441324800000,
         "helpful_vote": 1204, "verified_purchase": True},
        {"Id": "7", "ProductId": "B01ABCDEFG", "UserId": "A1", "Score": "2", "Time": "1441324800",
         "HelpfulnessNumerator": "1204", "Summary": "Meh", "Text": "It<br />leaks."},
        {"marketplace": "US", "customer_id": "A1", "review_id": "R1", "product_id": "B01ABCDEFG",
         "product_title": "Mug", "star_rating": "2", "helpful_votes": "1204",
         "review_headline": "Meh", "review_body": "It leaks.", "review_date": "2015-09-04"},
    ],
)  # fmt: skip
def test_reviews_stand_under_their_product(tmp_path: Path, review: dict[str, Any]) -> None:
    """Of every set that is passed around, with stars, votes and time."""
    file = made(tmp_path, lines(review))
    assert file.identity.form == "amazon"
    (product,) = items(entries(file))

    assert (product.key, product.notes) == ("amazon:B01ABCDEFG", (STUB,))
    assert product.url == "https://www.amazon.com/dp/B01ABCDEFG"
    (comment,) = product.comments
    assert comment.body.replace("\n", " ") == "Meh It leaks."
    assert comment.engagement == {"stars": 2.0, "helpful": 1204}
    assert comment.created_at is not None
    assert comment.created_at.date().isoformat() == "2015-09-04"


def test_a_review_is_the_same_in_every_file(tmp_path: Path) -> None:
    """Sets have no ids: what it says, who and when make one."""
    row = {"overall": 5, "asin": "B01ABCDEFG", "reviewText": "Good", "reviewerID": "A1"}
    first = items(entries(made(tmp_path, lines(row))))
    second = items(entries(made(tmp_path, lines({"overall": 1, **row}, row | {"asin": "x"}))))

    assert first[0].comments[0].id == second[0].comments[0].id


def test_products_bring_their_own_text(tmp_path: Path) -> None:
    """The lines of a set's metadata; what is no product is kept aside."""
    product = {
        "parent_asin": "B01ABCDEFG", "title": "Ember &amp; Mug", "average_rating": 4.1,
        "rating_number": 33, "features": ["Warm"], "description": ["Stays warm", None],
        "store": "Ember",
    }  # fmt: skip
    read = entries(made(tmp_path, lines(product, product | {"parent_asin": "short"})))

    (item,) = items(read)
    assert (item.title, item.body, item.place) == ("Ember & Mug", "Warm\nStays warm", "Ember")
    assert (item.engagement, item.notes) == ({"stars": 4.1, "ratings": 33}, ())
    assert refusals(read) == [(2, "it has no ASIN (ten capital letters and digits)")]


def thread(text: str, id_: str = "UgA") -> dict[str, Any]:
    """A thread as YouTube's API answers it."""
    snippet = {"textDisplay": text, "authorDisplayName": "@ada", "likeCount": 3,
               "publishedAt": "2023-11-14T22:15:00Z"}  # fmt: skip
    top = {"id": id_, "snippet": snippet}
    return {
        "kind": "youtube#commentThread",
        "snippet": {"videoId": "dQw4w9WgXcQ", "topLevelComment": top},
        "replies": {"comments": [{"id": f"{id_}.1", "snippet": {**snippet, "textDisplay": "So?"}}]},
    }


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        ([thread("Great mug")], "x.jsonl"),
        ([{"kind": "youtube#commentThreadListResponse", "items": [thread("Great mug")]}], "x.json"),
        (
            [
                {"cid": cid, "text": text, "time": "2 years ago", "author": "@ada",
                 "channel": "UC1", "votes": "3", "time_parsed": 1_700_000_100.0}
                for cid, text in (("UgA", "Great mug"), ("UgA.1", "So?"))
            ],
            "dQw4w9WgXcQ.jsonl",
        ),
        (
            [
                {"id": "dQw4w9WgXcQ", "extractor": "youtube", "title": "", "comments": [
                    {"id": cid, "text": text, "like_count": 3, "author_id": "UC1",
                     "timestamp": 1_700_000_100}
                    for cid, text in (("UgA", "Great mug"), ("UgA.1", "So?"))
                ]}
            ],
            "video.info.json",
        ),
        (
            [
                {"videoId": "dQw4w9WgXcQ", "comment_id": cid, "text": text, "likes": "3",
                 "date": "2023-11-14 22:15:00"}
                for cid, text in (("UgA", "Great mug"), ("UgA.1", "So?"))
            ],
            "comments.json",
        ),
    ],
)  # fmt: skip
def test_comments_stand_under_their_video(tmp_path: Path, rows: list[dict[str, Any]], name: str) -> None:
    """Of the API, downloaders and tables; the video's id may be the file's name."""
    file = made(tmp_path, lines(*rows), name)
    assert file.identity.form == "youtube"
    read = items(entries(file))

    assert {(item.key, item.url) for item in read} == {
        ("youtube:dQw4w9WgXcQ", "https://www.youtube.com/watch?v=dQw4w9WgXcQ")
    }
    comments = [comment for item in read for comment in item.comments]
    assert [(c.id, c.body) for c in comments] == [("UgA", "Great mug"), ("UgA.1", "So?")]
    assert {(c.created_at, c.engagement["likes"]) for c in comments} == {(AT, 3)}


def test_videos_are_items_and_others_are_said(tmp_path: Path) -> None:
    """A video of the API; what is no video, and a comment that says nothing."""
    video = {"kind": "youtube#video", "id": "dQw4w9WgXcQ", "statistics": {"viewCount": "7"},
             "snippet": {"title": "Mug test", "description": "I test mugs."}}  # fmt: skip
    found = {**video, "kind": "youtube#searchResult", "id": {"videoId": "dQw4w9WgXcQ"}}
    read = entries(
        made(
            tmp_path,
            lines(video, found, {**video, "id": ""}, thread("😀", "x") | {"replies": {}},
                  {"cid": "u", "text": ""}, thread(":emote:") | {"replies": {}}),
        )
    )  # fmt: skip

    first, second, emoji = items(read)
    assert (first.title, first.body, first.engagement["views"]) == ("Mug test", "I test mugs.", 7)
    assert second.key == first.key
    assert emoji.comments[0].body == "😀"
    assert refusals(read) == [(3, "it is no video")]
    assert left_out(read) == [WORDLESS, WORDLESS]


def test_comments_of_no_known_video_are_not_lost(tmp_path: Path) -> None:
    """They stand under one that is called as the file is, or as a person says."""
    rows = lines({"cid": "UgA", "text": "Great mug"})
    (bare,) = items(entries(made(tmp_path, rows, "ember mug.jsonl")))
    (named,) = items(entries(made(tmp_path, rows, "ember mug.jsonl", product="Ember Mug")))

    assert (bare.title, bare.url) == ("comments in ember mug", "")
    assert bare.key == named.key
    assert named.title == "Ember Mug"


SHOWN = 'Lasts<br>a &quot;day&quot; &amp; more <a href="https://x.example">0:12</a>'


@pytest.mark.parametrize(
    ("row", "title", "body"),
    [
        ({"videoTitle": "Ember &amp; me", "textDisplay": SHOWN}, "Ember & me", 'Lasts\na "day" & more 0:12'),
        ({"video_title": "Mug", "textOriginal": "a <b", "textDisplay": "a &lt;b"}, "Mug", "a <b"),
        ({"title": "Mug", "textDisplay": "I <3 it, b <c"}, "Mug", "I <3 it, b <c"),
        ({"textDisplay": "no title"}, "Named", "no title"),
    ],
)
def test_comments_keep_the_title_of_their_record(tmp_path: Path, row: dict[str, Any], title: str, body: str) -> None:
    """Before the product that the file is about; a text as it was written before one that is HTML."""
    data = lines({"cid": "UgA", "videoId": "dQw4w9WgXcQ"} | row, {**thread(SHOWN), **row})
    first, second = items(entries(made(tmp_path, data, product="Named")))

    assert (first.title, second.title) == (title, title)
    assert [comment.body for comment in first.comments] == [body]
    assert second.comments[0].body == 'Lasts\na "day" & more 0:12'


def test_comments_of_a_video_are_items_for_one_question() -> None:
    """The video has no text of its own, so each comment stands by itself under its title."""
    rows = [
        {"cid": f"Ug{n}", "videoId": "dQw4w9WgXcQ", "title": "Ember mug", "text": f"Leaks {n}", "author": f"@{n}"}
        for n in range(3)
    ]
    own = read_collected(lines(*rows)).items

    assert [(item.title, item.body) for item in own] == [("Ember mug", f"Leaks {n}") for n in range(3)]
    assert {item.thread for item in own} == {"youtube:dQw4w9WgXcQ"}
    assert len({item.key for item in own}) == len({item.author for item in own}) == 3
    assert own[0].url == "https://www.youtube.com/watch?v=dQw4w9WgXcQ&lc=Ug0"


def test_own_json_lines_keep_their_rules(tmp_path: Path) -> None:
    """Keys and places as they say; numbers of two files never meet."""
    rows: list[dict[str, Any]] = [
        {"title": "A", "key": "reddit:t3_1", "source": "reddit"},
        {"title": "B", "id": 7, "source": "forum", "comments": ["so", {"body": "no"}]},
        {"title": "C", "id": 7},
        {"title": "D", "id": 7},
        {"title": "", "body": "[removed]"},
        {"body": "[removed]", "comments": ["still here"]},
        {"other": 1},
    ]
    file = made(tmp_path, lines(*rows, "{broken", "[1]", "7"), "own.jsonl")
    assert file.identity.form == "jsonl"
    read = entries(file)

    keys = [item.key for item in items(read)]
    assert keys[:2] == ["reddit:t3_1", "forum:7"]
    assert len(set(keys)) == 5
    assert (items(read)[-1].body, items(read)[-1].notes) == ("", (STUB,))
    assert left_out(read) == ["title and text were removed"]
    assert [line for line, _ in refusals(read)] == [7, 8, 9, 10]
    assert refusals(read)[0][1].startswith("no text in a field that is known")


def test_an_array_is_read_on_one_line_or_on_many(tmp_path: Path) -> None:
    """As programs write lists; one over several lines for each object is refused with a way out."""
    rows = [{"title": "A"}, {"title": "B"}]
    short, long = json.dumps(rows), "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n"

    for text in (short, long, long.replace("\n", "\r\n")):
        read = entries(made(tmp_path, text.encode()))
        assert [item.title for item in items(read)] == ["A", "B"]
        assert refusals(read) == []


def test_a_format_can_be_named(tmp_path: Path) -> None:
    """Then what is not of it is kept aside."""
    rows = lines({"title": "A"}, POST)

    assert looked_at(tmp_path, rows, form="jsonl").why == "as you say"
    assert refusals(entries(made(tmp_path, rows, form="reddit"))) == [(1, "it has no id of Reddit")]
    assert FORMATS == ("auto", "reddit", "youtube", "amazon", "csv", "jsonl")


def test_what_was_found_out_is_said(tmp_path: Path) -> None:
    """Before anything is written."""
    file = looked_at(tmp_path, gzip.compress(lines(POST)))

    assert file.findings == [
        "format: reddit (1 of the first 1 have `subreddit` beside `link_id`, `selftext` or `permalink`)",
        "encoding: utf-8, unpacked with gzip",
    ]


def test_hostile_fields_stay_text(tmp_path: Path) -> None:
    """No address that runs, no half letter, nothing that a terminal obeys."""
    (item,) = items(
        entries(
            made(
                tmp_path,
                lines(
                    {"title": "=1+1\x1b[2J", "body": "a\0b\ud83d", "url": "javascript:alert(1)",
                     "__proto__": {"x": 1}, "id": "a b\n", "source": "blog"},
                ),
            )
        )
    )  # fmt: skip

    assert (item.title, item.body, item.url) == ("=1+1", "ab\ufffd", "")
    assert item.key == "blog:a b"
