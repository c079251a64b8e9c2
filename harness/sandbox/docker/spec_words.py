"""From a box's spec to what the engine is told, and to what a person is told of it."""

from collections.abc import Mapping
from typing import Any

from harness.sandbox import hostroot
from harness.sandbox.base import BoxSpec, Mount
from harness.sandbox.docker import names

KEPT = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETPCAP", "SETUID",
        "SYS_CHROOT")  # fmt: skip
"""What root in a box may do: install packages and run code as other users. Raw sockets and devices are not among it."""

SLEEPER = ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done"]
"""What keeps a container alive; commands are started beside it."""

_DEFAULT_SHM_MB = 64


def options(spec: BoxSpec, lease: Mapping[str, Any], network: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of the engine's call that makes the container, without its image."""
    limits = spec.limits
    binds = [_mount(mount) for mount in spec.mounts]
    if lease["volume"]:
        binds.append({"Type": "volume", "Source": names.thing(spec), "Target": spec.image.workdir})
    host: dict[str, Any] = {
        "Init": True,
        "CapDrop": ["ALL"],
        "CapAdd": list(KEPT),
        "SecurityOpt": ["no-new-privileges"],
        "IpcMode": "private",
        "PidsLimit": limits.pids,
        "ShmSize": (limits.shm_mb or _DEFAULT_SHM_MB) << 20,
        "Mounts": binds,
        "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
        "LogConfig": {"Type": "none"},
        "RestartPolicy": {"Name": "no"},
        **network["host"],
    }
    if limits.cpus is not None:
        host["NanoCpus"] = int(limits.cpus * 1e9)
    if limits.memory_mb is not None:
        host["Memory"] = host["MemorySwap"] = limits.memory_mb << 20
    if limits.storage_mb is not None:
        host["Ulimits"].append({"Name": "fsize", "Soft": limits.storage_mb << 20, "Hard": limits.storage_mb << 20})
    if spec.gpus:
        host["DeviceRequests"] = [{"Driver": "", "DeviceIDs": list(spec.gpus), "Capabilities": [["gpu"]]}]
    return {
        "Hostname": hostroot.HOSTNAME,
        "User": "root",
        "WorkingDir": "/",
        "Entrypoint": SLEEPER,
        "Cmd": [],
        "Labels": names.labels(spec),
        "HostConfig": host,
        **network["config"],
    }


def _mount(mount: Mount) -> dict[str, Any]:
    source = str(mount.source.resolve())
    return {"Type": "bind", "Source": source, "Target": mount.target, "ReadOnly": mount.read_only}


def described() -> list[str]:
    """Return in plain words what is isolated and what is not."""
    return [
        "docker: own processes, files, users, network, host name and IPC in a container of this machine's engine",
        "the kernel is shared with the host: a hole in it, or in the engine, is a way out",
        "root in a box has few capabilities and cannot gain more; it sees no device and no socket of the engine",
        "of the host's folders a box sees those alone that the run shows it",
        "cpus, memory and processes are bounded by the engine; disk use is watched and bounded by a stop",
    ]
