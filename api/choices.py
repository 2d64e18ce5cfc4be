"""Values that callers and settings choose among, and the bounds of what a caller may send.

It imports nothing, so that the help of a command shows them without loading a library.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

DepthName = Literal["quick", "standard", "deep"]
Window = Literal["day", "week", "month", "year", "all"]
Aim = Literal["about", "mention"]
Only = Literal["complaints"]
Show = Literal["unread", "starred", "read", "all"]
"""Which entries of the inbox are listed."""
Rating = Literal["up", "down"]
JudgeName = Literal["local", "openai", "grader", "keyword", "names", "bm25", "cosine", "hybrid", "keep_all"]
"""The judges that `listenpost eval` can measure."""
ReplayJudge = Literal["openai", "local"]
"""The judges by which a stored report can be judged again: the model, or the judge on this machine."""
BenchPart = Literal["dev", "test", "all"]
"""Parts of the public benchmark: labels of `test` are shipped as digests."""
BENCH_SERVER = "https://raw.githubusercontent.com"
"""Server with the public files that hold the benchmark's texts."""
WINDOW_DAYS: Mapping[Window, int] = MappingProxyType({"day": 1, "week": 7, "month": 31, "year": 366})
"""How many days back a window reaches, the shortest first; `all` is not among them."""
MAX_QUESTION_LENGTH = 500
"""Longest question, in characters."""
MAX_ABOUT_LENGTH = 5_000
"""Longest description of a product, in characters."""
MAX_EXCLUSIONS = 8
"""Most texts that say what a product is not."""
MAX_EXCLUSION_LENGTH = 200
"""Longest of these, in characters."""
MAX_BLOCKED = 50
"""Most words, authors or sites that a question leaves out, of each."""
MAX_BLOCKED_LENGTH = 200
"""Longest of these, in characters."""
MAX_LIMIT = 500
"""Most items that a caller may ask of each source."""
MAX_OWN_ITEMS = 500
"""Most items of their own that a caller may send at once."""
MIN_PRODUCTS, MAX_PRODUCTS = 2, 5
"""How many products a comparison takes."""
MAX_RECEIVERS = 5
"""Most receivers that a watch notifies."""
MAX_DATED_NOTES = 50
"""Most notes of days that a watch has."""
MAX_COMMENT_LENGTH = 2_000
"""Longest comment on a report or answer, in characters."""
MAX_NOTE_LENGTH = 1_000
"""Longest note on an entry of the inbox, in characters."""
MAX_ASSIGNED_LENGTH = 80
"""Longest name that an entry is assigned to, in characters."""
MAX_SITE_LENGTH = 200
"""Longest site that is muted, in characters."""
MAX_SESSION_ID_LENGTH = 128
"""Longest id of a conversation, in characters; chat front ends choose their own."""
TREND_WEEKS, MAX_TREND_WEEKS = 26, 260
"""Weeks of a trend, the current one included: by default, and at most."""
STATISTICS_SINCE = "30d"
"""How far back statistics reach by default."""
