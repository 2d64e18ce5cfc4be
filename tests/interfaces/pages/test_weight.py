"""What a report of a hundred posts weighs, with all that its page loads."""

from __future__ import annotations

import re

from report_page_cost import of_many
from tests.interfaces.http.conftest import Served
from tests.interfaces.pages.visiting import finished

MOST_BYTES = 150_000


async def test_a_report_of_a_hundred_posts_is_light(served: Served) -> None:
    """Uncompressed, with the style and the script; every fifth of its posts is cited."""
    report = of_many(await finished(served))
    await served.app_context.store.finish("local", report)
    page = (await served.client.get(f"/analyses/{report.id}")).text
    loaded = re.findall(r'"(/static/[^"]+)"', page)
    files = [(await served.client.get(name)).content for name in loaded]

    assert len(files) == 2
    assert page.count('<li id="source-') == len(report.findings) == 20
    assert len(page.encode()) + sum(map(len, files)) <= MOST_BYTES
