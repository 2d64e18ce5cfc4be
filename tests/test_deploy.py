"""What docs/deploy.md starts Listenpost by: settings, commands, files and metrics there are, and the steps work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml  # type: ignore[import-untyped]

import sbom
from api import settings
from api.interfaces.http.prometheus_metrics import Metrics
from tests.snippets import blocks

BLOCKS = blocks("deploy.md", "sh")
INSTALL = next(block for block in BLOCKS if "enable --now listenpost\n" in block)


def lines_of(unit: Path) -> dict[str, str]:
    """The settings of a unit, the last of each name."""
    return dict(re.findall(r"^(\w+)=(.*)$", unit.read_text("utf-8"), re.M))


def test_commands_of_the_page_parse_and_name_what_is_there(root: Path) -> None:
    """Each block is shell, and each file of the checkout that it names exists."""
    for block in BLOCKS:
        subprocess.run(["bash", "-n"], input=block, text=True, check=True)
        for name in re.findall(r"(?<!opt/)\bdeploy/[\w.@-]+", block):
            assert (root / name).is_file(), name


def test_the_composition_and_the_units_use_settings_and_commands_there_are(root: Path) -> None:
    """No variable of another name, no command but `serve` and `work`; every process of ours has a read-only root."""
    composition: dict[str, Any] = yaml.safe_load((root / "deploy/compose.yaml").read_text("utf-8"))
    text = "".join((root / "deploy" / name).read_text("utf-8") for name in ("compose.yaml", "Containerfile"))
    units = sorted((root / "deploy").glob("*.service"))
    text += "".join(unit.read_text("utf-8") for unit in units)

    assert set(re.findall(r"\bLISTENPOST_[A-Z_]+", text)) <= set(settings.variables())
    ours = [composition["services"][name] for name in ("serve", "work")]
    assert all(service["read_only"] and service["cap_drop"] == ["ALL"] for service in ours)
    assert [lines_of(unit)["ExecStart"].rpartition(" ")[2] for unit in units] == ["work", "serve"]
    assert "USER 10001" in text


def test_a_langfuse_of_its_own_has_no_secret_by_default(root: Path) -> None:
    """Each variable of the compositions must be set and is on the page; the two fit together."""
    texts = [(root / "deploy" / name).read_text("utf-8") for name in ("compose.yaml", "langfuse.yaml")]
    compose, langfuse = map(yaml.safe_load, texts)
    page = (root / "docs/deploy.md").read_text("utf-8")

    used = re.findall(r"\$\{?(\w+)(:\?[^}]+)?", "".join(texts))
    assert all(required for _, required in used)
    assert {name for name, _ in used if f"`{name}`" not in page} == set()
    assert not compose["services"].keys() & langfuse["services"].keys()
    assert not compose["volumes"].keys() & langfuse["volumes"].keys()
    services = langfuse["services"]
    assert {name.removeprefix("langfuse-") for name in services} == {
        "web", "worker", "postgres", "clickhouse", "redis", "minio",
    }  # fmt: skip
    for service in services.values():
        assert service.get("depends_on", {}).keys() <= services.keys()
        assert {volume.partition(":")[0] for volume in service.get("volumes", ())} <= langfuse["volumes"].keys()
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        hosts = re.findall(r"(?://|@)(langfuse-\w+)", str(service.get("environment")))
        assert set(hosts) <= services.keys()
    healthy = {name for name, needed in services["langfuse-web"]["depends_on"].items() if "healthy" in str(needed)}
    assert all("healthcheck" in services[name] for name in healthy)
    assert "http://langfuse-web:3000" in page


def test_proxies_and_prometheus_take_the_files(root: Path, tmp_path: Path) -> None:
    """Each program that is installed checks the page's configuration of it, or the file that it reads."""
    shown = blocks("deploy.md", "text")
    nginx = next(block for block in shown if block.startswith("server {"))
    nginx = re.sub(r" *ssl_certificate.*\n", "", nginx).replace("443 ssl", f"unix:{tmp_path}/socket")
    caddy = next(block for block in shown if block.startswith("example.org {"))
    scraped = next(block for block in blocks("deploy.md", "yaml") if "scrape_configs" in block)
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{nginx}}}\n")
    (tmp_path / "Caddyfile").write_text(caddy)
    (tmp_path / "prometheus.yml").write_text(scraped)
    (tmp_path / "listenpost.key").write_text("a-key")
    shutil.copy(root / "deploy/alerts.yaml", tmp_path)
    checks = [
        ("nginx", "-t", "-q", "-e", "stderr", "-c", f"{tmp_path}/nginx.conf"),
        ("caddy", "adapt", "--config", f"{tmp_path}/Caddyfile", "--adapter", "caddyfile"),
        ("promtool", "check", "config", f"{tmp_path}/prometheus.yml"),
    ]
    there = [check for check in checks if shutil.which(check[0])]
    if not there:
        pytest.skip("none of nginx, caddy and promtool is installed")
    for check in there:
        done = subprocess.run(
            check, capture_output=True, text=True, timeout=60, env={**os.environ, "HOME": str(tmp_path)}
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
def test_the_linter_of_the_page_has_no_objection_to_the_image(root: Path) -> None:
    """Its version is pinned by the command on the page, which brings it."""
    command = re.search(r"`uv (tool run [^`]*hadolint[^`]*)`", (root / "docs/deploy.md").read_text("utf-8"))

    assert command is not None
    uv = Path(sys.executable).with_name("uv")
    done = subprocess.run([uv, *command[1].split()], cwd=root, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_alerts_ask_for_metrics_there_are(root: Path) -> None:
    """Each expression names counters that `/metrics` has."""
    rules = yaml.safe_load((root / "deploy/alerts.yaml").read_text("utf-8"))["groups"][0]["rules"]
    shown = Metrics().page().decode()

    names = {name for rule in rules for name in re.findall(r"listenpost_\w+", rule["expr"])}
    assert len(names) >= 5
    assert {name for name in names if f"# TYPE {name.removesuffix('_total')}" not in shown} == set()
    assert all(rule["annotations"]["summary"] for rule in rules)


@pytest.mark.nightly
@pytest.mark.parametrize("manner", ["systemd", "container"])
def test_the_steps_make_a_server(root: Path, tmp_path: Path, manner: str) -> None:
    """The page's commands, or the image's, in a folder instead of the root; then what the unit or the image starts."""
    unit, image = lines_of(root / "deploy/listenpost.service"), (root / "deploy/Containerfile").read_text("utf-8")
    if manner == "systemd":
        steps = [line for line in INSTALL.splitlines() if not line.startswith(("systemctl", "curl"))]
        command = unit["ExecStart"]
    else:
        (tmp_path / "src").symlink_to(root)
        steps = re.findall(r"^RUN ((?!useradd)(?:.*\\\n)*.*)$", image, re.M)
        command = "/opt/listenpost/bin/listenpost serve"
    (tmp_path / "opt/src").mkdir(parents=True)
    (tmp_path / "opt/src/listenpost").symlink_to(root)
    for folder in ("etc/systemd/system", "work"):
        (tmp_path / folder).mkdir(parents=True)

    def moved(text: str) -> str:
        text = re.sub(r"(?<![\w/])/(?=opt/|etc/)", f"{tmp_path}/", text)
        return text.replace("requirements.lock", f"{root}/requirements.lock").replace('".[all]"', f'"{root}[all]"')

    for step in steps:
        step = step.replace("-m venv /opt", f"-m venv {tmp_path}/opt")
        subprocess.run(["bash", "-ec", moved(step)], cwd=tmp_path / "work", check=True, timeout=1_200)
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LISTENPOST_API_KEYS": "a-key"}
    variables["LISTENPOST_DATABASE_URL"] = f"sqlite:///{tmp_path}/listenpost.db"
    with subprocess.Popen(
        [*moved(command).split(), "--port", "0"],
        cwd=tmp_path / "work", env=variables, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        try:
            address = process.stderr.readline().split()[2]  # `Listenpost on http://127.0.0.1:40123 (...)`
            assert httpx.get(f"{address}/readyz", timeout=60).json()["status"] == "ready"
        finally:
            process.terminate()


def test_the_bill_of_materials_lists_what_is_installed_and_locked(root: Path) -> None:
    """Each package of `listenpost[all]` with its locked digests, none that only development needs; one version."""
    document = sbom.bill("1.2.3", (root / "requirements.lock").read_text("utf-8"))

    names = {component["name"] for component in document["components"]}
    assert {"praw", "fastapi", "usearch", "psycopg-binary", "numpy"} <= names
    assert not {"pytest", "mypy", "hatchling", "listenpost"} & names
    assert all(component["properties"] for component in document["components"])
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert not [file for file in (root / "api").rglob("*.py") if f'"{version}"' in file.read_text("utf-8")]
