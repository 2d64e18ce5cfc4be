"""The software bill of materials of a release as CycloneDX 1.5 on stdout: `python scripts/checks/sbom.py VERSION`.

It lists what `listenpost[all]` installs here, in the versions of `requirements.lock` with their digests.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def locked(text: str) -> dict[tuple[str, str], list[str]]:
    """Name and version -> SHA-256 digests of its files, as the lock has them; a name may have several versions."""
    pins = re.findall(r"^([a-z0-9._-]+)[^=\n]*==([^\s;]+)((?:.*\n?(?= ))*.*)", text, re.M)
    return {(name, version): re.findall(r"sha256:(\w{64})", rest) for name, version, rest in pins}


def installed(name: str, extras: frozenset[str], seen: dict[tuple[str, frozenset[str]], Distribution]) -> None:
    """Add a distribution to those that were seen, and all that it needs with these extras."""
    from packaging.requirements import Requirement  # a package of the environment, not of the standard library
    from packaging.utils import canonicalize_name

    if (name, extras) in seen:
        return
    seen[name, extras] = package = distribution(name)
    for line in package.requires or ():
        need = Requirement(line)
        if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            installed(canonicalize_name(need.name), frozenset(need.extras), seen)


def bill(version: str, lock: str) -> dict[str, Any]:
    """The document; raises `KeyError` for a package that is not locked."""
    seen: dict[tuple[str, frozenset[str]], Distribution] = {}
    installed("listenpost", frozenset({"all"}), seen)
    pins = locked(lock)
    versions = {name: package.version for (name, _), package in seen.items() if name != "listenpost"}
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
            "properties": [{"name": "listenpost:sha256", "value": digest} for digest in pins[name, version]],
        }
        for name, version in sorted(versions.items())
    ]
    product = {
        "type": "application",
        "name": "listenpost",
        "version": version,
        "purl": f"pkg:pypi/listenpost@{version}",
    }
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": product}, "components": components,
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(bill(sys.argv[1], (ROOT / "requirements.lock").read_text("utf-8")), indent=1))
