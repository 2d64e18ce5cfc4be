"""What holds of every trace that is sent, whatever it is of: checked in one place."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from contextlib import suppress

from api.sandbox.server import Sandbox
from tests.langfuse.tracing.collector import TRACES, Collector, Seen

# an e-mail address: `ada@example.org`
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.\w+")
_KEY = re.compile(r"\b[sp]k-(?:proj|lf)-[\w-]{6,}|AIza[\w-]{6,}")


def received(sandbox: Sandbox) -> Collector:
    """Spans and scores as the sandbox's Langfuse got them, decoded."""
    collector = Collector()
    for entry in sandbox.requests("langfuse", "traces"):
        body = entry.body
        with suppress(gzip.BadGzipFile):
            body = gzip.decompress(body)
        collector.receive(TRACES, body)
    for entry in sandbox.requests("langfuse", "scores"):
        collector.scores.extend(entry.body)
    return collector


def roots(langfuse: Collector) -> dict[str, Seen]:
    """The root of each trace: there is one, and every other span leads up to it within it."""
    spans = {span.id: span for span in langfuse.spans}
    assert len(spans) == len(langfuse.spans), "a span was sent twice"
    tops: dict[str, list[Seen]] = {}
    for span in langfuse.spans:
        above = span
        for _ in spans:
            if not above.parent:
                break
            assert above.parent in spans, f"`{above.name}` hangs nowhere"
            assert spans[above.parent].trace == above.trace, f"`{above.name}` is another trace's"
            above = spans[above.parent]
        assert not above.parent, f"`{span.name}` is its own ancestor"
        found = tops.setdefault(span.trace, [])
        if above not in found:
            found.append(above)
    assert {trace: len(found) for trace, found in tops.items()} == dict.fromkeys(tops, 1)
    return {trace: found[0] for trace, found in tops.items()}


def bill(spans: Iterable[Seen]) -> tuple[float, int]:
    """USD and tokens on these spans, as Langfuse adds them up: only model calls carry any."""
    usd, tokens = 0.0, 0
    for span in spans:
        usd += (span.told("cost_details") or {}).get("total", 0)
        usd += span.attributes.get("operation.cost", 0)
        tokens += (span.told("usage_details") or {}).get("total", 0)
        tokens += span.attributes.get("gen_ai.usage.input_tokens", 0)
        tokens += span.attributes.get("gen_ai.usage.output_tokens", 0)
    return usd, tokens


def unmasked(langfuse: Collector) -> set[str]:
    """Addresses and keys that stand in what was sent, in spans or scores."""
    sent = repr((langfuse.spans, langfuse.scores))
    return set(_ADDRESS.findall(sent)) | set(_KEY.findall(sent))
