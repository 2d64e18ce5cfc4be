"""Reports as JSON, small and odd, and a look into the tables."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select

from api.reports.report import VERSION, Report
from api.store.database import Database, engine_url
from api.store.tables import METADATA

ODD = 'Плауд 小米 👨\u200d👩\u200d👧 "quoted" \\u0041 \\ \ud83d \x00 \x1b[1m'
"""Text that one database or another would refuse."""


def decided(**more: Any) -> dict[str, Any]:
    """What an analysis says about an item."""
    return {
        "verdict": True, "judge": "local-1", "probability": 0.1 + 0.2, "score": 4,
        "explanation": "speaks of it", "sentiment": -1, "aspects": ["battery"], "relevance": 0.75,
        "defaulted": False, "low_relevance": False, "disputed": False, "rank": 1,
        "dropped_by": None,
    } | more  # fmt: skip


def item(key: str, **more: Any) -> dict[str, Any]:
    """A kept item as a report holds it."""
    source, _, id_ = key.partition(":")
    return {
        "key": key, "id": id_, "source": source, "title": f"Title {id_}", "body": f"Body {id_}",
        "url": f"https://example.org/{id_}", "created_at": "2026-11-20T10:00:00Z",
        "engagement": {"votes": 12, "share": 0.875, "views": None}, "place": "mugs",
        "places": ["mugs"],
        "comments": [{"id": "c1", "body": "Me too", "url": "", "created_at": None,
                      "engagement": {}}],
        "notes": [],
        **decided(),
    } | more  # fmt: skip


def dropped(key: str, reason: str = "about another product") -> dict[str, Any]:
    """A dropped item as a report holds it."""
    verdict = decided(verdict=False, score=None, rank=None, dropped_by="gate")
    return {"key": key, "title": f"Title {key}", "url": "", "reason": reason, **verdict}


def source(*out: dict[str, Any], kept: int = 0) -> dict[str, Any]:
    """What a report tells of one source."""
    return {
        "query": "mug", "source": "reddit", "outcome": "ok", "reason": None, "retry_at": None,
        "gate": {"status": "ok", "reason": None, "model": "local-1"}, "attempts": [],
        "fetched": kept + len(out), "kept": kept, "yield_ratio": 0.5, "refetched": False,
        "refetch_gain": 0, "upstream_calls": 1, "notes": [], "dropped": list(out),
        "sample": False, "trace_id": None,
    }  # fmt: skip


def finding(text: str, *keys: str) -> dict[str, Any]:
    """A finding that rests on a passage of each of these items."""
    evidence = [{"key": key, "passage": "so they say", "comment_id": None} for key in keys]
    return {"text": text, "kind": "praise", "cites": list(keys), "evidence": evidence,
            "support": "checked"}  # fmt: skip


def report(id_: str, *items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An `analyze` object."""
    keys = [one["key"] for one in items]
    out = more.pop("out", [])
    return {
        "id": id_, "version": VERSION, "query": "plaud note", "about": "", "rewritten_queries": [],
        "depth": "standard", "since": "all", "decision": "full_report",
        "decision_rationale": "4 of 7", "disclaimer": None, "explanation_text": None,
        "total_scored": len(items),
        "total_survived": len(items), "quality_notes": [], "grading": "on", "topic": "Plaud",
        "summary": "People like it.",
        "findings": [finding(f"Finding on {key}", key) for key in keys],
        "support": {"status": "ok", "reason": None, "model": "m", "pairs": 2, "supported": 1},
        "figures": {"aspects": [{"aspect": "battery", "count": len(keys), "positive": 0,
                                 "negative": len(keys), "cites": keys}]},
        "quotes": [{"text": f"Quote of {key}", "key": key, "url": ""} for key in keys],
        "sources": {"reddit": source(*out, kept=len(keys)), "youtube": source()},
        "coverage": "All were asked.", "suggestions": [], "items": list(items), "dropped": out,
        "sample": False, "cost": {"usd": None, "tokens": 0, "upstream_calls": 3},
        "timings_ms": {"crawl": 5}, "trace_id": None, "created_at": "2026-11-27T10:00:00Z",
    } | more  # fmt: skip


def typed(document: dict[str, Any]) -> Report:
    """The report that this is the JSON of."""
    return Report.model_validate(document)


async def counted(url: str, *tables: str) -> list[int]:
    """How many rows each table has."""
    database = Database(engine_url(url))
    async with database.reading() as connection:
        many = [
            await connection.scalar(select(func.count()).select_from(METADATA.tables[name])) or 0 for name in tables
        ]
    await database.aclose()
    return many
