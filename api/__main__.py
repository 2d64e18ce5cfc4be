"""`python -m api`, the same as `listenpost`."""

from __future__ import annotations

from api.interfaces.cli.main import run

if __name__ == "__main__":
    run()
