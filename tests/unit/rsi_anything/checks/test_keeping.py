"""What judge and candidate printed outlives a failed rung, and nothing hostile is followed on the way."""

import os
from pathlib import Path

from harness import paths
from rsi_anything.checks import keeping
from rsi_anything.checks.keeping import keep_output


def test_logs_are_kept_and_links_pipes_and_lengths_are_not(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(keeping, "MOST_BYTES", 8)
    judged = tmp_path / "judgings/control-floor-1/1"
    (judged / "verifier/deeper").mkdir(parents=True)
    (judged / "output.log").write_text("Traceback of the judge", "utf-8")
    (judged / "verifier/candidate-run.log").write_text("oops", "utf-8")
    (judged / "verifier/secret").symlink_to("/etc/passwd")
    os.mkfifo(judged / "verifier/pipe")
    (tmp_path / "judgings/control-solve.sh.log").write_text("solved", "utf-8")
    kept = keep_output(tmp_path, "some/../ task")
    assert kept.parent == paths.logs()
    assert kept.name.startswith("check-some-..-task-")
    assert kept.stat().st_mode & 0o077 == 0
    files = {str(path.relative_to(kept)): path.read_text("utf-8") for path in kept.rglob("*") if path.is_file()}
    assert files == {
        "judgings/control-floor-1/1/output.log": "Tracebac",
        "judgings/control-floor-1/1/verifier/candidate-run.log": "oops",
        "judgings/control-solve.sh.log": "solved",
    }
