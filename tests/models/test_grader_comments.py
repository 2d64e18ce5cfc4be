"""The comments a grader sees are the ones that fit."""

from __future__ import annotations

import json

from api.core.domain import Question
from api.core.items import Comment, Item
from api.models.model_calls import OpenAIGrader
from api.models.model_client import ModelClient
from tests.models.items import fixed
from tests.models.model_server import ModelServer, says

GRADE = {"score": 4, "explanation": "w", "sentiment": 1, "aspects": [], "quote": ""}


async def test_comments_that_fit_the_question_come_before_loud_ones(model: ModelServer, client: ModelClient) -> None:
    """
    B81: three jokes with thousands of votes leave room for the one that answers.
    """
    jokes = [Comment(id=f"j{n}", body=f"My dog {n}", engagement={"votes": 9000 - n}) for n in range(3)]
    lid = Comment(id="l", body="The lid cracked", engagement={"votes": 2})
    post = Item(key="r:1", id="1", source="r", title="Kettle", comments=(*jokes, lid))
    model.replies = [says(json.dumps({"grades": [GRADE]}))]

    await OpenAIGrader(client, fence=fixed).grade(Question("cracked lid"), [post])

    told = str(model.asked[0]["messages"][-1]["content"])
    assert told.index("The lid cracked") < told.index("My dog 0") < told.index("My dog 1")
    assert "My dog 2" not in told
