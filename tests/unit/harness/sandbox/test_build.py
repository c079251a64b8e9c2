"""Dockerfiles: read, carried out on the host's own root, cached, refused with file and line."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError, RsiError
from harness.sandbox import layers
from harness.sandbox.context import Ignore
from harness.sandbox.dockerfile import expand, read, words

ROOT = Path(__file__).resolve().parents[4]
ROOTLESS = os.geteuid() != 0


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$A", "1"),
        ("${A}x", "1x"),
        ("$AB", ""),
        ("${NO:-else}", "else"),
        ("${A:-else}", "1"),
        ("${A:+set}", "set"),
        ("${NO:+set}", ""),
        ("a$", "a$"),
        ("$A$B", "1two words"),
    ],
)
def test_variables_are_replaced(text, found):
    assert expand(text, {"A": "1", "B": "two words"}) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a b", ["a", "b"]),
        ("'a b' c", ["a b", "c"]),
        ("\"a $A\" '$A' \\$A", ["a 1", "$A", "$A"]),
        ('"\\$A" "\\"x"', ["$A", '"x']),
        ("a=$B", ["a=two words"]),
        ("a\\ b", ["a b"]),
        ("''", [""]),
        ("", []),
        ("ünï 'кот'", ["ünï", "кот"]),
    ],
)
def test_words_are_split_as_docker_does(text, found):
    assert words(text, {"A": "1", "B": "two words"}) == found


@given(st.text(max_size=60))
def test_reading_words_never_fails(text):
    assert isinstance(words(text, {"A": "1"}), list)


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        ("FROM a\nVOLUME /x\n", 2, "volumes"),
        ("FROM a\nONBUILD RUN x\n", 2, "no image"),
        ("FROM a\nFROM b\n", 2, "one stage"),
        ("FROM a\n\nRUN cat <<EOF\nhello\nEOF\n", 3, "here-documents"),
        ("RUN x\nFROM a\n", 1, "FROM must come first"),
        ("FROM a\nFETCH x\n", 2, "not known"),
        ("# escape=`\nFROM a\n", 1, "escape"),
    ],
)
def test_what_cannot_be_carried_out_is_named_with_its_line(tmp_path, lines, line, reason):
    file = tmp_path / "Dockerfile"
    file.write_text(lines)
    with pytest.raises(InputError, match=reason) as caught:
        read(file)
    assert caught.value.where == f"{file}:{line}"


@pytest.mark.parametrize("text", [None, "", "# only a comment\n", b"\xff\xfe"])
def test_a_dockerfile_that_is_none_is_an_error(tmp_path, text):
    file = tmp_path / "Dockerfile"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError):
        read(file)


@pytest.mark.parametrize(
    ("rules", "ignored", "kept"),
    [
        ("*.log\n", ["a.log"], ["sub/a.log", "a.txt"]),
        ("**/*.log\n", ["a.log", "sub/deep/a.log"], ["a.txt"]),
        ("data\n!data/small\n", ["data", "data/big"], ["data/small", "other"]),
        ("# comment\n\n/build/\n", ["build", "build/x"], ["sub/build"]),
        ("a?c\n[xy].txt\n", ["abc", "x.txt"], ["ac", "z.txt"]),
    ],
)
def test_dockerignore(tmp_path, rules, ignored, kept):
    (tmp_path / ".dockerignore").write_text(rules)
    rule = Ignore(tmp_path)
    assert [path for path in ignored if not rule.ignores(path)] == []
    assert [path for path in kept if rule.ignores(path)] == []


# --- copying, on every sandbox ---------------------------------------------------------------------------------------


def _listing(bench, image, script="find . -type f | sort | xargs -r tail -n +1 -v"):
    done, text = bench.run(bench.box(f"box{len(bench.made)}", image=image), script, f"p{len(bench.made)}")
    assert done.code == 0, text
    return text


def test_copy_in_all_its_forms(bench):
    files = {"a.txt": "a", "b.txt": "b", "dir/c": "c", "dir/sub/d": "d", "with space": "s", "skip.log": "l"}
    files[".dockerignore"] = "*.log\n"
    image = bench.image(
        'FROM base\nARG WHERE=sub\nENV TO=/app/${WHERE}\nWORKDIR /app\nCOPY *.txt ./texts/\nCOPY dir $TO\n'
        'COPY a.txt renamed\nCOPY ["with space", "./"]\nADD b.txt /app/added\nCOPY . all/\n',
        files,
    )  # fmt: skip
    listed = _listing(bench, image, "find . -type f | sort")
    assert listed.splitlines() == [
        "./added", "./all/.dockerignore", "./all/Dockerfile", "./all/a.txt", "./all/b.txt", "./all/dir/c",
        "./all/dir/sub/d", "./all/with space", "./renamed", "./sub/c", "./sub/sub/d", "./texts/a.txt", "./texts/b.txt",
        "./with space",
    ]  # fmt: skip
    assert image.env["TO"] == "/app/sub"
    assert image.workdir == "/app"
    assert image.notes == ("FROM base: the host's own root stands in for it",)


def test_permissions_and_links_within_the_context_are_kept(bench):
    dockerfile = "FROM base\nWORKDIR /app\nCOPY src/ ./\nCOPY --chmod=711 src/run two\n"
    environment = bench.environment(dockerfile, {"src/run": "x"})
    (environment / "src" / "run").chmod(0o750)
    (environment / "src" / "link").symlink_to("run")
    image = bench.sandbox.build(environment, workdir=None, timeout=60, progress=lambda _: None)
    listed = _listing(bench, image, "stat -c '%a %N' *")
    assert listed.splitlines() == ["777 'link' -> 'run'", "750 'run'", "711 'two'"]


@pytest.mark.parametrize(
    ("copy", "reason"),
    [
        ("COPY out ./", "leaves the build context"),
        ("COPY folder/ ./", "leaves the build context|absolute link"),
        ("COPY ../secret ./", "leaves the build context"),
        ("COPY nothing ./", "matches nothing"),
        ("COPY --from=other a ./", "--from"),
        ("ADD https://example.org/x ./", "only files"),
        ("COPY a", "a source and a destination"),
        ("COPY fifo ./", "neither file"),
        ("COPY --chmod=u+x a ./", "octal"),
    ],
)
def test_a_copy_that_cannot_be_is_refused_with_its_line(bench, copy, reason):
    (bench.folder / "secret").write_text("s")
    (bench.folder / "task").mkdir()
    (bench.folder / "task" / "secret").write_text("s")
    environment = bench.environment(f"FROM base\nWORKDIR /app\n{copy}\n", {"a": "a", "folder/x": "x"})
    (environment / "out").symlink_to("../secret")
    (environment / "folder" / "out").symlink_to("../../secret")
    os.mkfifo(environment / "fifo")
    with pytest.raises(InputError, match=reason) as caught:
        bench.sandbox.build(environment, workdir=None, timeout=60, progress=lambda _: None)
    assert caught.value.where == f"{environment}/Dockerfile:3"


def test_changed_files_make_another_image_and_the_same_files_the_same(bench):
    first = bench.image("FROM base\nWORKDIR /app\nCOPY a ./\n", {"a": "1"})
    assert bench.image("FROM base\nWORKDIR /app\nCOPY a ./\n", {"a": "1"}).digest == first.digest
    second = bench.image("FROM base\nWORKDIR /app\nCOPY a ./\n", {"a": "2"})
    assert second.digest != first.digest
    assert _listing(bench, first, "cat a") == "1"
    assert _listing(bench, second, "cat a") == "2"


def test_the_workdir_of_the_task_wins(bench):
    environment = bench.environment("FROM base\nWORKDIR /app\n")
    image = bench.sandbox.build(environment, workdir="/elsewhere", timeout=60, progress=lambda _: None)
    assert image.workdir == "/elsewhere"
    assert _listing(bench, image, "pwd").strip().endswith("/elsewhere")


def test_a_missing_image_says_what_to_do(bench):
    image = bench.image()
    (layers.images() / f"{image.digest}.json").unlink()
    with pytest.raises(RsiError, match="cache") as caught:
        bench.box(image=image)
    assert "build" in caught.value.next_step


def test_run_without_namespaces_is_refused_with_line_and_way_out(plain):
    environment = plain.environment("FROM base\nWORKDIR /app\nRUN echo\n")
    with pytest.raises(InputError, match="namespaces or Docker") as caught:
        plain.sandbox.build(environment, workdir=None, timeout=60, progress=lambda _: None)
    assert caught.value.where == f"{environment}/Dockerfile:3"


# --- RUN -------------------------------------------------------------------------------------------------------------


def test_run_changes_files_anywhere_and_deletes_in_layers_below(apart):
    image = apart.image(
        "FROM base\nWORKDIR /app\nCOPY . ./\nRUN rm -r old && mkdir old && echo n > old/new && echo o > /opt/made\n"
        "RUN echo $HOME; id -u > who; rm one\nENV PATH=/opt/own:$PATH\n",
        {"old/x": "x", "one": "1"},
    )
    script = "ls . old; cat /opt/made who; case $PATH in /opt/own:*) echo path;; esac"
    assert _listing(apart, image, script).splitlines() == [
        ".:", "Dockerfile", "old", "who", "", "old:", "new", "o", "0", "path",
    ]  # fmt: skip


def test_copy_follows_the_links_of_the_image_and_stays_in_it(apart):
    image = apart.image(
        "FROM base\nWORKDIR /app\nRUN mkdir real && ln -s /app/real link && ln -s ../../../../../../app/real up\n"
        "RUN ln -s usr/local/bin /top\n"
        "COPY a link/\nCOPY b up/\nCOPY a /top/rsi-copied\n",
        {"a": "a", "b": "b"},
    )
    assert _listing(apart, image, "cat real/a real/b /usr/local/bin/rsi-copied") == "aba"


def test_programs_with_set_uid_that_a_run_leaves_are_closed_to_other_users(apart):
    apart.image("FROM base\nRUN cp /bin/ls /opt/ls && chmod 4755 /opt/ls\n")
    [made] = layers.images().rglob("opt/ls")
    assert made.stat().st_mode & stat.S_ISUID
    assert layers.images().stat().st_mode & 0o077 == 0


def test_links_that_turn_in_a_circle_end_a_copy_with_its_line(apart):
    environment = apart.environment("FROM base\nRUN ln -s /b /a && ln -s /a /b\nCOPY one /a\n", {"one": "1"})
    image = apart.sandbox.build(environment, workdir=None, timeout=60, progress=lambda _: None)
    assert _listing(apart, image, "cat /a") == "1"


def test_a_run_that_fails_names_line_code_and_last_words(apart):
    environment = apart.environment("FROM base\nWORKDIR /app\n\nRUN echo first; \\\n  echo last words >&2; exit 9\n")
    with pytest.raises(RsiError, match=r"exited with 9.*\n.*first\n.*last words") as caught:
        apart.sandbox.build(environment, workdir=None, timeout=60, progress=lambda _: None)
    assert caught.value.where == f"{environment}/Dockerfile:4"
    assert list((layers.images() / "making").glob("*.d")) == []
    assert not (apart.folder / "home" / "boxes" / "build").exists()


def test_a_run_that_takes_too_long_is_ended(apart):
    environment = apart.environment("FROM base\nRUN sleep 1000\n")
    with pytest.raises(RsiError, match="out of time"):
        apart.sandbox.build(environment, workdir=None, timeout=1, progress=lambda _: None)


def test_pip_settings_reach_a_build_and_nothing_else(apart, monkeypatch):
    settings = apart.folder / "pip.conf"
    settings.write_text("[global]\ntimeout = 33\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    monkeypatch.setenv("PIP_FIND_LINKS", "/opt/somewhere")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@proxy")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    image = apart.image('FROM base\nWORKDIR /app\nRUN env > seen; cat "$PIP_CONFIG_FILE" >> seen\n')
    seen = _listing(apart, image, "cat seen; env")
    assert seen.count("PIP_FIND_LINKS=/opt/somewhere") == 1
    assert seen.count("timeout = 33") == 1
    assert "secret" not in seen
    settings.write_text("[global]\nindex-url = https://user:secret@host/simple\n")
    image = apart.image("FROM base\nWORKDIR /app\nRUN env > seen; echo again\n")
    assert "PIP_CONFIG_FILE" not in _listing(apart, image, "cat seen")


@pytest.mark.skipif(ROOTLESS, reason="needs root: one user only in a rootless box here")
def test_chown_looks_names_up_in_the_image(apart):
    image = apart.image(
        "FROM base\nWORKDIR /app\nCOPY --chown=nobody:daemon a ./\nCOPY --chown=1234 a b\nCOPY a c\n", {"a": "a"}
    )
    listed = _listing(apart, image, "stat -c '%U:%G %u' a b c")
    assert listed.splitlines() == ["nobody:daemon 65534", "UNKNOWN:UNKNOWN 1234",
                                                                              "root:root 0"]  # fmt: skip


def test_what_is_not_carried_out_is_noted(apart):
    image = apart.image(
        'FROM base\nUSER me\nEXPOSE 80\nLABEL a=b\nCMD ["x"]\nSHELL ["/bin/sh", "-ec"]\nRUN false || true\n'
    )
    assert [note.split(":")[0] for note in image.notes] == ["FROM base", "USER me", "CMD"]


BUILDER = """
import sys
from pathlib import Path
from harness.sandbox import get_sandbox
sandbox = get_sandbox("local", level="namespaces")
print(sandbox.build(Path(sys.argv[1]), workdir=None, timeout=60, progress=lambda _: None).digest, flush=True)
"""


def _builder(environment):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    return subprocess.Popen(
        [sys.executable, "-c", BUILDER, str(environment)], stdout=subprocess.PIPE, text=True, env=env, cwd=ROOT
    )


def test_two_builders_at_once_make_each_layer_once(apart):
    ran = apart.folder / "ran"
    environment = apart.environment("FROM base\nWORKDIR /app\nRUN date +%s%N > when; sleep 0.3\n")
    builders = [_builder(environment) for _ in range(2)]
    digests = {builder.communicate(timeout=60)[0] for builder in builders}
    assert len(digests) == 1
    assert all(builder.returncode == 0 for builder in builders)
    assert not ran.exists()


def test_a_builder_killed_midway_leaves_nothing_that_the_next_one_minds(apart):
    environment = apart.environment("FROM base\nWORKDIR /app\nRUN echo x > made; sleep 5\n")
    builder = _builder(environment)
    build = apart.folder / "home" / "boxes" / "build"
    with builder:
        while not any("upper/root/app/made" in str(path) for path in build.glob("*/upper/root/app/made")):
            assert builder.poll() is None
            time.sleep(0.02)
        builder.kill()
    image = apart.sandbox.build(environment, workdir=None, timeout=60, progress=lambda _: None)
    assert _listing(apart, image, "cat made") == "x\n"
    assert not build.exists()


def test_a_virtual_environment_in_the_image_works(apart):
    image = apart.image(
        "FROM base\nWORKDIR /app\nRUN python3 -m venv --without-pip /opt/venv\nENV PATH=/opt/venv/bin:$PATH\n"
    )
    assert _listing(apart, image, "python -c 'import sys; print(sys.prefix)'") == "/opt/venv\n"
