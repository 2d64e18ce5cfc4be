"""`python -m api.sandbox [PORT]`: serve the sample corpus until interrupted."""

from __future__ import annotations

import sys

from api.sandbox.server import serve


def _say(url: str) -> None:
    sys.stderr.write(f"{url}\n")


if __name__ == "__main__":
    serve(
        port=int(sys.argv[1]) if len(sys.argv) > 1 else 4010,
        ready=_say,
    )
