"""Harbor's task.toml, schema 1.0 to 1.4, for reading only.

Harbor drops unknown keys in silence, so that a mistyped `network_mod` runs with a public network; here they are errors.
Times are seconds and sizes MiB, as in Harbor. Legacy keys are kept beside the modern ones they are turned into.
"""

import ipaddress
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

NEWEST_SCHEMA = (1, 4)
TASK_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]*/[a-zA-Z0-9][a-zA-Z0-9._-]*\Z")
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMG])[iI]?[bB]?\s*\Z", re.IGNORECASE)
_HOST = re.compile(r"(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\Z")
_TOPOLOGY = re.compile(r"[0-9]+x[0-9]+(x[0-9]+)?\Z")


class HarborTable(BaseModel):
    """Base of every table: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class NetworkMode(StrEnum):
    """What the network of a phase may reach."""

    PUBLIC = "public"
    NO_NETWORK = "no-network"
    ALLOWLIST = "allowlist"


def size_mb(text: str) -> int:
    """Return a legacy size such as 2G, 512M or 1024K in MiB; raise ValueError for anything else."""
    found = _SIZE.match(text)
    if found is None:
        raise ValueError(f"size {text!r} must be a number with K, M or G, such as 2G")
    factor = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}[found.group(2).upper()]
    return int(float(found.group(1)) * factor)


def _host(entry: str) -> str:
    host = entry.strip().lower().rstrip(".")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        ipaddress.ip_network(bare, strict=True)
    except ValueError:
        if not _HOST.match(host) or re.fullmatch(r"[0-9.]+", host):
            raise ValueError(f"host {entry!r} must be a name, *.suffix, an address or a CIDR block, no URL") from None
    return host


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


Host = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(gt=0)]


class Networked(HarborTable):
    """What every table that states a network has in common."""

    network_mode: NetworkMode | None = None
    allowed_hosts: list[Host] | None = None

    @field_validator("allowed_hosts")
    @classmethod
    def _hosts(cls, hosts: list[str] | None) -> list[str] | None:
        return None if hosts is None else [_host(entry) for entry in hosts]

    @model_validator(mode="after")
    def _list_needs_allowlist(self) -> Self:
        if self.allowed_hosts is not None and self.network_mode is not NetworkMode.ALLOWLIST:
            raise ValueError('allowed_hosts needs network_mode = "allowlist"')
        return self


class Author(HarborTable):
    """A person behind the task."""

    name: str
    email: str | None = None


class Package(HarborTable):
    """`[task]`: what the task is called."""

    name: str
    version: str | None = Field(default=None, min_length=1)
    description: str = ""
    authors: list[Author] = []
    keywords: list[str] = []

    @field_validator("name")
    @classmethod
    def _org_and_name(cls, name: str) -> str:
        if not TASK_NAME.match(name) or ".." in name:
            raise ValueError(f"name {name!r} must be org/name, of letters, digits, '.', '_' and '-'")
        return name


class Artifact(HarborTable):
    """A path that is kept after the run."""

    source: str
    destination: str | None = None
    exclude: list[str] = []
    service: str | None = None

    @model_validator(mode="after")
    def _paths(self) -> Self:
        if ".." in self.source.split("/"):
            raise ValueError(f"source {self.source!r} must not contain '..'")
        if self.service is not None and not self.source.startswith("/"):
            raise ValueError("source must be absolute where service is given")
        target = self.destination
        if target is not None and (target.startswith("/") or "\\" in target or ".." in target.split("/")):
            raise ValueError(f"destination {target!r} must be a relative path without '..'")
        if target == "manifest.json":
            raise ValueError("destination must not be manifest.json")
        return self


class Agent(Networked):
    """`[agent]`: bounds of the working phase."""

    timeout_sec: Seconds | None = None
    user: str | int | None = None


class Healthcheck(HarborTable):
    """A command that says when the environment is ready."""

    command: str
    interval_sec: float = 5
    timeout_sec: Seconds = 30
    start_period_sec: float = 0
    start_interval_sec: float = 5
    retries: int = 3


class Tpu(HarborTable):
    """Tensor processors, which one cloud alone offers."""

    type: str
    topology: str

    @field_validator("topology")
    @classmethod
    def _grid(cls, topology: str) -> str:
        if not _TOPOLOGY.match(topology):
            raise ValueError(f"topology {topology!r} must look like 2x2 or 2x2x1")
        return topology


class McpServer(HarborTable):
    """A server of tools for the agent."""

    name: str
    transport: Literal["stdio", "sse", "streamable-http", "http"] = "sse"
    url: str | None = None
    command: str | None = None
    args: list[str] = []
    headers: dict[str, str] = {}

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        needed = "command" if self.transport == "stdio" else "url"
        if getattr(self, needed) is None:
            raise ValueError(f"transport {self.transport} needs {needed}")
        return self


class Environment(Networked):
    """`[environment]`: the image and its bounds. `network_mode` is the one in force once this has been read."""

    build_timeout_sec: Seconds = 600
    docker_image: str | None = None
    os: Annotated[Literal["linux", "windows"], BeforeValidator(_lower)] = "linux"
    cpus: float | None = Field(default=None, gt=0)
    memory_mb: int | None = Field(default=None, gt=0)
    storage_mb: int | None = Field(default=None, gt=0)
    gpus: int | None = Field(default=None, ge=0)
    gpu_types: list[str] | None = None
    tpu: Tpu | None = None
    mcp_servers: list[McpServer] = []
    env: dict[str, str] = {}
    skills_dir: str | None = None
    healthcheck: Healthcheck | None = None
    workdir: str | None = None
    memory: str | None = None
    """Legacy: a size with a unit; see `memory_mb`."""
    storage: str | None = None
    """Legacy: a size with a unit; see `storage_mb`."""
    allow_internet: bool | None = None
    """Legacy: see `network_mode`."""

    @field_validator("memory", "storage")
    @classmethod
    def _legacy_size(cls, text: str | None) -> str | None:
        if text is not None and size_mb(text) <= 0:
            raise ValueError(f"size {text!r} is less than 1 MiB")
        return text

    @field_validator("workdir")
    @classmethod
    def _absolute(cls, workdir: str | None) -> str | None:
        if workdir is not None and (not workdir.startswith(("/", "C:")) or ".." in workdir.split("/")):
            raise ValueError(f"workdir {workdir!r} must be an absolute path without '..'")
        return workdir

    @model_validator(mode="before")
    @classmethod
    def _modernise(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        data = dict(data)
        for old in ("memory", "storage"):
            text, new = data.get(old), f"{old}_mb"
            if isinstance(text, str) and new not in data and _SIZE.match(text):
                data[new] = size_mb(text) or None
        if isinstance(data.get("allow_internet"), bool) and not {"network_mode", "allowed_hosts"} & data.keys():
            data["network_mode"] = "public" if data["allow_internet"] else "no-network"
        return data

    @model_validator(mode="after")
    def _agree(self) -> Self:
        for old, new in (("memory", self.memory_mb), ("storage", self.storage_mb)):
            text = getattr(self, old)
            if text is not None and size_mb(text) != new:
                raise ValueError(f"{old} = {text!r} and {old}_mb = {new} contradict each other")
        return self

    @property
    def network(self) -> NetworkMode:
        """The mode in force; public where nothing is said, as in Harbor."""
        return self.network_mode or NetworkMode.PUBLIC


class CollectHook(HarborTable):
    """A command that runs between agent and verifier."""

    command: str
    service: str = "main"
    timeout_sec: Seconds = 60
    user: str | int | None = None


class Verifier(Networked):
    """`[verifier]`: bounds of the judging phase."""

    timeout_sec: Seconds = 600
    env: dict[str, str] = {}
    user: str | int | None = None
    environment_mode: Literal["shared", "separate"] | None = None
    environment: Environment | None = None
    collect: list[CollectHook] = []

    @model_validator(mode="after")
    def _one_mode(self) -> Self:
        if self.environment is not None and self.environment_mode == "shared":
            raise ValueError('environment_mode = "shared" contradicts [verifier.environment]')
        return self


class Solution(HarborTable):
    """`[solution]`: environment variables of the author's solution."""

    env: dict[str, str] = {}


class Step(HarborTable):
    """`[[steps]]`: one step of a multi-step task."""

    name: str = Field(min_length=1)
    agent: Agent = Agent()
    verifier: Verifier = Verifier()
    min_reward: float | dict[str, float] | None = None
    healthcheck: Healthcheck | None = None
    artifacts: list[str | Artifact] = []

    @field_validator("name")
    @classmethod
    def _portable(cls, name: str) -> str:
        if re.search(r'[<>:"/\\|?*\x00-\x1f]', name) or name.endswith((".", " ")) or len(name.encode()) > 255:
            raise ValueError(f"name {name!r} must be usable as a folder name on every system")
        return name


class TaskConfig(HarborTable):
    """The whole of task.toml. `[metadata]` is free; our contract in `[metadata.rsi]` is read by `load`."""

    schema_version: str = "1.4"
    version: str | None = None
    """Legacy: see `schema_version`."""
    source: str | None = None
    artifacts: list[str | Artifact] = []
    multi_step_reward_strategy: Literal["mean", "final"] | None = None
    task: Package | None = None
    metadata: dict[str, Any] = {}
    agent: Agent = Agent()
    verifier: Verifier = Verifier()
    solution: Solution = Solution()
    environment: Environment = Environment()
    steps: list[Step] = []

    @model_validator(mode="before")
    @classmethod
    def _legacy_version(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("version"), str):
            return {"schema_version": data["version"], **data}
        return data

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.version is not None and self.version != self.schema_version:
            raise ValueError(f"version {self.version!r} and schema_version {self.schema_version!r} contradict")
        names = [step.name.casefold() for step in self.steps]
        if len(names) != len(set(names)):
            raise ValueError("steps must have different names")
        return self

    @property
    def work_network(self) -> NetworkMode:
        """Network of the workspace while the agent works."""
        return self.agent.network_mode or self.environment.network

    @property
    def work_hosts(self) -> list[str]:
        """Allowed hosts of the workspace; empty unless its network is an allow-list."""
        said = self.agent if self.agent.network_mode else self.environment
        return said.allowed_hosts or []

    @property
    def judge_hosts(self) -> list[str]:
        """Allowed hosts of the judge; empty unless its network is an allow-list."""
        said = self.verifier if self.verifier.network_mode else self.environment
        return said.allowed_hosts or []

    @property
    def judge_network(self) -> NetworkMode:
        """Network of the judge."""
        return self.verifier.network_mode or self.environment.network


def unsupported(config: TaskConfig, folder: Path) -> list[str]:
    """Return what this task asks for and this version cannot run, one reason a line; empty means it can run."""
    environment, verifier = config.environment, config.verifier
    separate = verifier.environment_mode == "separate" or verifier.environment is not None
    own_image = [n for n in ("Dockerfile", "docker-compose.yaml") if (folder / "tests" / n).is_file()]
    values = {**environment.env, **verifier.env, **config.solution.env}
    templated = sorted(name for name, value in values.items() if "${" in value)
    networks = {config.work_network, config.judge_network}
    asked = [
        (_newer(config.schema_version), f"schema_version {config.schema_version}: this version reads 1.0 to 1.4"),
        (bool(config.steps), "[[steps]]: tasks of several steps cannot be run yet"),
        (environment.os == "windows", "environment.os: Windows environments cannot be run"),
        (environment.tpu is not None, "environment.tpu: TPUs cannot be used"),
        (bool(environment.mcp_servers), "environment.mcp_servers: MCP servers are not started yet"),
        (environment.healthcheck is not None, "environment.healthcheck: health checks are not run yet"),
        (environment.skills_dir is not None, "environment.skills_dir: skills are not handed to agents yet"),
        ((folder / "environment/docker-compose.yaml").is_file(), "docker-compose.yaml: only one box is run"),
        (not (folder / "environment/Dockerfile").is_file(), "environment/Dockerfile is missing: images are not pulled"),
        (separate, "verifier.environment_mode: a separate verifier image cannot be used yet"),
        (bool(own_image), f"tests/{own_image[0] if own_image else ''}: a separate verifier image cannot be used yet"),
        (bool(verifier.collect), "verifier.collect: hooks between agent and judge are not run yet"),
        (NetworkMode.ALLOWLIST in networks, "network_mode allowlist: a list of hosts cannot be enforced yet"),
        (_other_user(config.agent.user), f"agent.user {config.agent.user}: agents work as the box's root"),
        (_other_user(verifier.user), f"verifier.user {verifier.user}: the judge runs as the box's root"),
        (bool(templated), f"env {', '.join(templated)}: values of the host's environment are never passed into a box"),
        ((folder / "trajectory.json").is_file(), "trajectory.json: runs cannot start from an earlier conversation yet"),
    ]
    return [reason for applies, reason in asked if applies]


def _newer(version: str) -> bool:
    found = re.match(r"([0-9]{1,6})(?:\.([0-9]{1,6}))?", version)
    return found is None or (int(found[1]), int(found[2] or 0)) > NEWEST_SCHEMA


def _other_user(user: str | int | None) -> bool:
    return user not in (None, "root", 0, "0")
