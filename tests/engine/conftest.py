"""A tiny task for the whole loop: its judge is a shell script that reads one number, and takes milliseconds."""

import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stage import Stage  # lies beside this file

TASK_TOML = """\
schema_version = "1.4"

[task]
name = "rsi/tiny"

[agent]
timeout_sec = 600

[verifier]
timeout_sec = {verifier_sec}

[environment]
network_mode = "no-network"
cpus = 1
memory_mb = 512
storage_mb = 256

[metadata.rsi]
version = 1
category = "test"
question = "Which number is smallest?"

[metadata.rsi.source]
repository = "local"
commit = "none"
license = "Apache-2.0"

[metadata.rsi.metric]
name = "loss"
direction = "minimize"
unit = "points"
lowest = 0
highest = 100

[metadata.rsi.evaluation]
mode = "direct"

[metadata.rsi.boundary]
editable = ["value.txt", "notes/**"]
frozen = ["frozen.txt"]
deliver = ["value.txt", "notes/**"]
max_mb = 1
max_files = 20

[metadata.rsi.budget]
hours = 1
submissions = {submissions}

[[metadata.rsi.search.knobs]]
file = "value.txt"
pattern = "^value = ([0-9.]+)"
range = [1, 100]
"""

TEST_SH = """\
#!/bin/sh
# Scores the number in value.txt; the seed adds a little noise, as a real judge would have.
value=$(sed -n 's/^value = //p' "${RSI_WORKDIR:-/app}/value.txt")
logs="${RSI_LOGS:-/logs/verifier}"
case "$value" in
  '') printf '{"reward": 0, "invalid": 1}' > "$logs/reward.json"
      printf '{"message": "value.txt holds no value"}' > "$logs/reward-details.json";;
  slow) sleep 60;;
  broken) exit 3;;
  *) printf '{"reward": -%s, "loss": %s}' "$value" "$value" > "$logs/reward.json";;
esac
"""


@pytest.fixture
def tiny_task(tmp_path: Path) -> Callable[..., Path]:
    """Return a maker of tiny task folders; its baseline is 50 and its floor 100."""

    def make(
        name: str = "tiny",
        *,
        submissions: int = 3,
        verifier_sec: float = 30,
        contract: bool = True,
        change: Mapping[str, str] | None = None,
    ) -> Path:
        """Make one; `change` maps pieces of its task.toml to what stands there instead."""
        folder = tmp_path / name
        toml = TASK_TOML.format(submissions=submissions, verifier_sec=verifier_sec)
        for old, new in (change or {}).items():
            assert toml.count(old) == 1, old
            toml = toml.replace(old, new)
        files = {
            "task.toml": toml,
            "instruction.md": "Make the number in value.txt small.\n",
            "environment/Dockerfile": "FROM base\nWORKDIR /app\nCOPY app/ /app/\n",
            "environment/app/value.txt": "value = 50\n",
            "environment/app/frozen.txt": "must stay\n",
            "solution/solve.sh": "#!/bin/sh\necho 'value = 50' > value.txt\n",
            "solution/floor.sh": "#!/bin/sh\necho 'value = 100' > value.txt\n",
            "tests/test.sh": TEST_SH,
        }
        if not contract:
            files["task.toml"] = toml.split("[metadata.rsi]")[0]
        for path, text in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(textwrap.dedent(text), "utf-8")
            if path.endswith(".sh"):
                target.chmod(0o755)
        return folder

    return make


@pytest.fixture
def namespaces() -> None:
    """Skip where this machine cannot make boxes of namespaces."""
    from harness.sandbox import get_sandbox

    lacks = get_sandbox("local", level="namespaces").lacks()
    if lacks:
        pytest.skip(f"needs namespaces: {lacks[0].what}")


@pytest.fixture(params=["namespaces", pytest.param("container", marks=pytest.mark.docker)])
def level(request: pytest.FixtureRequest) -> str:
    """Return each level at which a judge is apart from the host."""
    if request.param == "namespaces":
        request.getfixturevalue("namespaces")
    return str(request.param)


@pytest.fixture
def stage(tiny_task: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Return a stage with the tiny task; an agent is not waited for after its last submission."""
    monkeypatch.setattr("harness.run.engine.GRACE_SEC", 0.0)
    return Stage(tiny_task())
