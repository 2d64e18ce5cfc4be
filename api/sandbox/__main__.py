"""`python -m api.sandbox [PORT]`: serve the sample corpus until interrupted."""

from __future__ import annotations

import sys
from functools import partial

from api.sandbox.server import serve

if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 4010
    serve(port=port, ready=partial(print, file=sys.stderr))
