"""What Langfuse 4.59 takes in a widget: a table of the tests' own, by hand from its query model.

Neither the package nor the sandbox reads it, and it reads neither.
"""

from __future__ import annotations

_COMMON_DIMENSIONS = {
    "environment", "name", "source", "dataType", "configId", "timestampMonth", "timestampDay",
    "traceName", "tags", "traceRelease", "traceVersion", "observationName",
    "observationModelName", "observationPromptName", "observationPromptVersion",
}  # fmt: skip
DIMENSIONS = {
    "observations": {
        "environment", "type", "name", "level", "version", "tags", "traceName", "traceRelease",
        "traceVersion", "providedModelName", "promptName", "promptVersion", "startTimeMonth",
        "toolNames", "calledToolNames",
    },
    "scores-numeric": _COMMON_DIMENSIONS | {"value"},
    "scores-boolean": _COMMON_DIMENSIONS | {"booleanValue"},
    "scores-categorical": _COMMON_DIMENSIONS | {"stringValue"},
}  # fmt: skip
"""Those of version 1 and 2 of the model, without the ones of a value per person or trace."""
MEASURES = {
    "observations": {
        "count", "latency", "streamingLatency", "timeToFirstToken", "inputTokens", "outputTokens",
        "totalTokens", "tokensPerSecond", "outputTokensPerSecond", "inputCost", "outputCost",
        "totalCost", "countScores", "toolDefinitions", "toolCalls",
    },
    "scores-numeric": {"count", "value"},
    "scores-boolean": {"count", "value"},
    "scores-categorical": {"count"},
}  # fmt: skip
"""All numbers, so that every aggregation fits; a server in legacy mode knows them, too."""
AGGREGATIONS = {
    "sum", "avg", "count", "max", "min", "p50", "p75", "p90", "p95", "p99", "histogram", "uniq",
}  # fmt: skip
_SCORE_COLUMNS = {
    "name": "text", "source": "text", "dataType": "text", "environment": "text",
    "userId": "text", "sessionId": "text", "observationName": "text", "metadata": "metadata",
}  # fmt: skip
COLUMNS = {
    "observations": {
        "traceName": "text", "name": "text", "userId": "text", "sessionId": "text",
        "type": "text", "providedModelName": "text", "level": "text", "environment": "text",
        "traceRelease": "text", "traceVersion": "text", "release": "text", "version": "text",
        "tags": "list", "toolNames": "list", "calledToolNames": "list", "metadata": "metadata",
        "isRootObservation": "truth",
    },
    "scores-numeric": _SCORE_COLUMNS | {"value": "number"},
    "scores-boolean": _SCORE_COLUMNS | {"booleanValue": "truth"},
    "scores-categorical": _SCORE_COLUMNS | {"stringValue": "text"},
}  # fmt: skip
"""Columns that may be filtered, with their kind; without those of the trace on scores, under which
scores vanish."""
FILTERS = {
    "text": {
        "string": {"=", "contains", "does not contain", "starts with", "ends with"},
        "stringOptions": {"any of", "none of"},
    },
    "list": {"arrayOptions": {"any of", "none of", "all of"}},
    "number": {"number": {"=", "<", ">", "<=", ">="}},
    "truth": {"boolean": {"=", "<>"}},
    "metadata": {
        "stringObject": {"=", "contains", "does not contain", "starts with", "ends with"},
    },
}  # fmt: skip
"""Kind of column -> types of filter -> their operators."""
CHARTS = {
    "LINE_TIME_SERIES": set[str](),
    "AREA_TIME_SERIES": set[str](),
    "BAR_TIME_SERIES": set[str](),
    "HORIZONTAL_BAR": {"row_limit", "show_value_labels"},
    "VERTICAL_BAR": {"row_limit"},
    "PIE": {"row_limit"},
    "NUMBER": {"row_limit"},
    "HISTOGRAM": {"bins"},
    "PIVOT_TABLE": {"row_limit", "defaultSort"},
}
"""Charts and what their config may hold beside the type."""
VIEW_OF_TYPE = {
    "NUMERIC": "scores-numeric",
    "BOOLEAN": "scores-boolean",
    "CATEGORICAL": "scores-categorical",
}
