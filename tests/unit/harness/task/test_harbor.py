"""Harbor's own format: every schema version, what Harbor itself writes, and what cannot be run yet."""

from pathlib import Path

import pytest

from harness.task.harbor import NetworkMode, TaskConfig, unsupported
from harness.task.load import load_task, read_task_file
from tests.unit.harness.task.task_folders import plain_files, write

LEGACY = """\
version = "1.0"
[metadata]
author_name = "A"
tags = ["x"]
[verifier]
timeout_sec = 900.0
[agent]
timeout_sec = 900
[environment]
build_timeout_sec = 600.0
cpus = 2.0
memory = "2G"
storage = "512M"
allow_internet = false
"""

DUMPED = """\
schema_version = "1.4"
artifacts = []
steps = []
[task]
name = "a/b"
description = ""
authors = []
keywords = []
[metadata]
[agent]
[verifier]
timeout_sec = 600.0
collect = []
[verifier.env]
[solution.env]
[environment]
network_mode = "public"
build_timeout_sec = 600.0
os = "linux"
mcp_servers = []
[environment.env]
"""

EVERYTHING = """\
schema_version = "1.4"
source = "here"
multi_step_reward_strategy = "final"
artifacts = ["/app/x", { source = "/var/log", service = "db", exclude = ["*.tmp"] }]
[task]
name = "a/b"
authors = [{ name = "A", email = "a@b.c" }]
[agent]
user = "nobody"
network_mode = "public"
[verifier]
user = 1000
environment_mode = "separate"
network_mode = "no-network"
[verifier.environment]
docker_image = "x"
[[verifier.collect]]
command = "true"
[environment]
os = "Windows"
docker_image = "x"
network_mode = "allowlist"
allowed_hosts = ["Example.org.", "*.b.org", "10.0.0.0/8", "::1"]
gpu_types = ["H100"]
skills_dir = "/skills"
[environment.env]
TOKEN = "${TOKEN:-none}"
[environment.tpu]
type = "v5e"
topology = "2x2x1"
[[environment.mcp_servers]]
name = "m"
transport = "http"
url = "http://m"
[environment.healthcheck]
command = "true"
[[steps]]
name = "one"
min_reward = { reward = 0.5 }
[[steps]]
name = "two"
min_reward = 1
"""


def config(text: str) -> TaskConfig:
    """Return the configuration in a text that must be right."""
    found = read_task_file(text)
    assert found.config is not None, [problem.text() for problem in found.problems]
    return found.config


def test_legacy_keys_mean_the_modern_ones() -> None:
    environment = config(LEGACY).environment
    assert (environment.memory_mb, environment.storage_mb, environment.cpus) == (2048, 512, 2)
    assert environment.network is NetworkMode.NO_NETWORK
    assert config(LEGACY).schema_version == "1.0"


def test_a_newer_key_wins_over_allow_internet() -> None:
    text = '[environment]\nallow_internet = true\nnetwork_mode = "no-network"\n'
    assert config(text).environment.network is NetworkMode.NO_NETWORK


def test_what_harbor_writes_is_read() -> None:
    read = config(DUMPED)
    assert read.verifier.environment_mode is None
    assert read.work_network is read.judge_network is NetworkMode.PUBLIC


def test_every_key_is_read_and_what_cannot_run_is_named(tmp_path: Path) -> None:
    read = config(EVERYTHING)
    assert read.environment.allowed_hosts == ["example.org", "*.b.org", "10.0.0.0/8", "::1"]
    assert (read.work_network, read.judge_network) == (NetworkMode.PUBLIC, NetworkMode.NO_NETWORK)
    reasons = "\n".join(unsupported(read, tmp_path))
    for words in ("[[steps]]", "Windows", "tpu", "mcp_servers", "healthcheck", "skills_dir", "Dockerfile is missing"):
        assert words in reasons
    for words in ("environment_mode", "collect", "agent.user nobody", "verifier.user 1000", "env TOKEN"):
        assert words in reasons


@pytest.mark.parametrize(
    ("files", "text", "words"),
    [
        ({"environment/docker-compose.yaml": ""}, "", "only one box"),
        ({"tests/Dockerfile": "FROM scratch\n"}, "", "separate verifier image"),
        ({"trajectory.json": "{}"}, "", "earlier conversation"),
        ({}, 'schema_version = "1.5"\n', "reads 1.0 to 1.4"),
        ({}, 'schema_version = "next"\n', "reads 1.0 to 1.4"),
        ({}, '[environment]\nnetwork_mode = "allowlist"\n', "list of hosts"),
    ],
)
def test_one_reason_each(tmp_path: Path, files: dict[str, str], text: str, words: str) -> None:
    write(tmp_path, {**plain_files(), **files, **({"task.toml": text} if text else {})})
    task = load_task(tmp_path)
    reasons = unsupported(task.config, task.folder)
    assert len(reasons) == 1
    assert words in reasons[0]


def test_a_plain_task_can_run(tmp_path: Path) -> None:
    task = load_task(write(tmp_path, plain_files()))
    assert unsupported(task.config, task.folder) == []


@pytest.mark.parametrize(
    "text",
    [
        'artifacts = [{ source = "../x" }]',
        'artifacts = [{ source = "/x", destination = "/y" }]',
        'artifacts = [{ source = "/x", destination = "manifest.json" }]',
        'artifacts = [{ source = "x", service = "db" }]',
        '[environment]\nallowed_hosts = ["a.org"]',
        '[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["http://a.org/x"]',
        '[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["10.0.0.1/8"]',
        '[environment]\nmemory = "0K"',
        '[environment.tpu]\ntype = "v5e"\ntopology = "2"',
        '[[environment.mcp_servers]]\nname = "m"\ntransport = "stdio"',
        '[verifier]\nenvironment_mode = "shared"\n[verifier.environment]',
        '[[steps]]\nname = "a/b"',
        '[[steps]]\nname = "A"\n[[steps]]\nname = "a"',
        'version = "1.0"\nschema_version = "1.4"',
        "[environment]\ncpus = nan",
    ],
)
def test_what_harbor_refuses_is_refused(text: str) -> None:
    assert read_task_file(text).problems


def test_steps_need_their_files(tmp_path: Path) -> None:
    files = plain_files() | {"task.toml": '[[steps]]\nname = "one"\n', "steps/one/instruction.md": "Go.\n"}
    del files["instruction.md"]
    assert load_task(write(tmp_path, files)).config.steps[0].name == "one"
