"""Opens a project: a path or a git URL, pinned to a commit and copied into the cache, where nothing can change it."""

import difflib
import hashlib
import os
import posixpath
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.errors import InputError, PrerequisiteError
from rsi_anything.project import address
from rsi_anything.project.commit_tree import CommitTree
from rsi_anything.project.evidence import Evidence
from rsi_anything.project.export import ABOVE, Export, FileEntry, export, load
from rsi_anything.project.folder import FolderTree
from rsi_anything.project.gitview import GitView, git_folder
from rsi_anything.project.tree import LeftOut, Limits

NO_COMMIT = "none"


@dataclass(frozen=True)
class Project:
    """A project at one commit. Paths are relative to `folder`, which is the chosen subfolder."""

    where: str
    """Path or URL it was opened from, without credentials."""
    repository: str
    """Public URL of the repository, or `local`."""
    commit: str
    """Full commit hash, or `none` for a folder that is no repository."""
    subdir: str
    """Folder of the repository that `folder` is a copy of."""
    folder: Path
    """The copy: no `.git`, no link that leaves it. Do not write into it."""
    files: tuple[FileEntry, ...]
    """All regular files, sorted by path."""
    left_out: tuple[LeftOut, ...]
    """What was not copied, and why."""
    dirty: tuple[str, ...]
    """Paths whose working copy differs from HEAD; empty for a URL and a bare repository."""
    uses_worktree: bool
    """Whether the copy is of the working tree (asked for, or no repository) and not of a commit."""
    above: tuple[FileEntry, ...]
    """Licence files at the repository's root where `folder` is below it; their paths begin with `/`."""
    digest: str
    """SHA-256 over the names and contents of all files."""

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {file.path: file.size for file in (*self.files, *self.above)}

    @property
    def name(self) -> str:
        """Return the last part of where the project comes from, for people."""
        source = self.repository if self.repository != "local" else self.where
        source = self.subdir if self.subdir != "." else source.rstrip("/").removesuffix("/.git").removesuffix(".git")
        return posixpath.basename(source.replace(":", "/").rstrip("/")) or "project"

    def has(self, path: str) -> bool:
        """Say whether the project has this regular file."""
        return path in self._sizes

    def size(self, path: str) -> int:
        """Return the bytes of a file."""
        self._known(path)
        return self._sizes[path]

    def read(self, path: str, max_bytes: int) -> bytes:
        """Return the first `max_bytes` of a file."""
        self._known(path)
        place = f"{self.folder.parent}/{ABOVE}{path}" if path.startswith("/") else f"{self.folder}/{path}"
        with os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            return file.read(max_bytes)

    def text(self, path: str, max_bytes: int) -> str:
        """Return the first `max_bytes` of a file as text; what is not UTF-8 is replaced."""
        return self.read(path, max_bytes).decode("utf-8", "replace")

    def evidence(self, path: str, line_from: int, line_to: int, fact: str) -> Evidence:
        """Return evidence after checking that the file has these lines."""
        from rsi_anything.project.evidence import verify  # the two modules know each other

        self._known(path)
        evidence = Evidence(path, line_from, line_to, fact)
        if not verify(self, evidence):
            raise InputError(
                f"{path} has no lines {line_from} to {line_to}", where=path, next_step="Count the lines again."
            )
        return evidence

    def _known(self, path: str) -> None:
        if path not in self._sizes:
            raise InputError(
                f"the project has no file {path!r}", where=self.where, next_step=_nearest(path, self._sizes)
            )


def open_project(
    where: str, commit: str | None, *, cache: Path, dirty: bool = False, subdir: str = ".", limits: Limits | None = None
) -> Project:
    """Return the project at a commit (the present one where it is None).

    `dirty` takes the working tree as it is instead; git-ignored files then stay out. A folder that is no repository
    has the commit `none`. Nothing of the project is run, and nothing is written but the copy below `cache`.
    """
    limits = limits or Limits()
    _check_encoding()
    place = address.parse(where)
    folder = _clean_subdir(subdir)
    if place.url is not None:
        if dirty:
            raise InputError(
                "a URL has no working tree", where=address.public(where), next_step="Ask for a commit instead."
            )
        return _open_url(place.url, commit, cache, folder, limits)
    assert place.path is not None
    path = _existing(place.path)
    repository, inside = _repository_of(path, cache)
    if repository is not None:
        return _open_repository(
            repository, commit, cache, posixpath.normpath(posixpath.join(inside, folder)), limits, dirty
        )
    if commit not in {None, NO_COMMIT}:
        raise InputError(
            f"{path} is no git repository, so it has no commit {commit}", next_step="Leave the commit out."
        )
    return _open_folder(path, cache, folder, limits)


def require(where: str) -> None:
    """Raise InputError where a path is no folder that can be read; a URL is not looked at."""
    _check_encoding()
    place = address.parse(where)
    if place.path is not None:
        _existing(place.path)


def _check_encoding() -> None:
    """Raise PrerequisiteError where file names of other languages could not be used."""
    encoding = sys.getfilesystemencoding()
    if encoding.lower().replace("-", "") != "utf8":
        raise PrerequisiteError(
            f"file names are {encoding} in this locale, and a project may hold others",
            next_step="Set a UTF-8 locale, such as LC_ALL=C.UTF-8.",
        )


def _clean_subdir(subdir: str) -> str:
    cleaned = posixpath.normpath(subdir or ".")
    if cleaned.startswith(("/", "..")) or "\0" in cleaned:
        raise InputError(
            f"subdir {subdir!r} is not below the project", next_step="Give a path relative to the project."
        )
    return cleaned


def _existing(path: Path) -> Path:
    try:
        if path.is_dir():
            if not os.access(path, os.R_OK | os.X_OK):
                raise _denied(path)
            return path.resolve()
        path.lstat()
    except PermissionError as error:
        raise _denied(path) from error
    except (FileNotFoundError, NotADirectoryError):
        pass  # said below, with the nearest name
    parent = path.parent
    what = "is a file, not a folder" if path.exists() else "does not exist"
    names = [item.name for item in parent.iterdir() if item.is_dir()] if parent.is_dir() else []
    step = f"Give its folder: {parent}" if path.exists() else _nearest(path.name, names)
    raise InputError(f"{path} {what}", next_step=step)


def _denied(path: Path) -> InputError:
    return InputError(
        f"permission denied: {path}", where=str(path), next_step="Make the folder readable, or give a copy of it."
    )


def _nearest(name: str, known: "dict[str, int] | list[str]") -> str:
    close = difflib.get_close_matches(name, list(known)[:5000], n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(close)}?" if close else "Check the spelling."


def _repository_of(path: Path, cache: Path) -> tuple[Path | None, str]:
    """Return the repository that a folder is (in), and the folder's path within it."""
    for candidate in (path, *path.parents):
        found = git_folder(candidate)
        if found is None:
            continue
        inside = path.relative_to(candidate).as_posix()
        if candidate == path:
            return candidate, "."
        with GitView(git_dir=found[0], common=found[1], parent=cache / "checkouts") as view:
            return (candidate, inside) if "HEAD" in view.refs and view.has_folder("HEAD", inside) else (None, ".")
    return None, "."


def _open_url(url: str, commit: str | None, cache: Path, subdir: str, limits: Limits) -> Project:
    from rsi_anything.project.fetch import fetch, remote_refs  # local projects need no network code

    with GitView(git_dir=None, common=None, parent=cache / "checkouts") as view:
        refs = remote_refs(view, url)
        if not refs:
            raise InputError(
                "the repository is empty", where=address.public(url), next_step="Push a commit to it first."
            )
        found = fetch(view, url, refs, commit)
        if found is None:
            raise _no_commit(commit or "HEAD", refs, address.public(url))
        copied = _export_commit(view, found, subdir, cache, address.public(url), limits)
    where = address.public(url)
    return _project(where, where, found, subdir, copied, dirty=(), uses_worktree=False)


def _open_repository(
    repository: Path, commit: str | None, cache: Path, subdir: str, limits: Limits, dirty: bool
) -> Project:
    found = git_folder(repository)
    assert found is not None
    where = str(repository)
    worktree = repository if (repository / ".git").exists() else None
    with GitView(git_dir=found[0], common=found[1], parent=cache / "checkouts") as view:
        url = address.published(view.remote_url())
        if "HEAD" not in view.refs and commit is None:
            raise InputError("the repository's HEAD has no commit", where=where, next_step=_ref_hint("HEAD", view.refs))
        pinned = view.resolve(commit or "HEAD")
        if pinned is None:
            raise _no_commit(commit or "HEAD", view.refs, where)
        if not dirty:
            copied = _export_commit(view, pinned, subdir, cache, where, limits)
            changed = tuple(view.changed(worktree, subdir)) if worktree and "HEAD" in view.refs else ()
            return _project(where, url, pinned, subdir, copied, dirty=changed, uses_worktree=False)
        if worktree is None:
            raise InputError(
                "a bare repository has no working tree", where=where, next_step="Ask for a commit instead."
            )
        if pinned != view.refs["HEAD"]:
            raise InputError(
                "the working tree belongs to HEAD, not to this commit",
                where=where,
                next_step="Ask for the working tree or for the commit, not both.",
            )
        prefix = b"" if subdir == "." else subdir.encode() + b"/"
        names = [name.removeprefix(prefix) for name in view.worktree_files(worktree) if name.startswith(prefix)]
        tree = FolderTree(_subfolder(worktree, subdir), limits, only=names, root=worktree)
        copied = _export_folder(tree, where, subdir, cache)
        changed = tuple(view.changed(worktree, subdir))
        return _project(where, url, pinned, subdir, copied, dirty=changed, uses_worktree=True)


def _open_folder(path: Path, cache: Path, subdir: str, limits: Limits) -> Project:
    tree = FolderTree(_subfolder(path, subdir), limits, root=path)
    copied = _export_folder(tree, str(path), subdir, cache)
    return _project(str(path), "local", NO_COMMIT, subdir, copied, dirty=(), uses_worktree=True)


def _subfolder(path: Path, subdir: str) -> Path:
    folder = path / subdir
    if not folder.is_dir() or folder.resolve() != path.resolve() / subdir:
        names = [item.name for item in folder.parent.iterdir() if item.is_dir()] if folder.parent.is_dir() else []
        raise InputError(
            f"the project has no folder {subdir!r}", where=str(path), next_step=_nearest(folder.name, names)
        )
    return folder


def _export_folder(tree: FolderTree, where: str, subdir: str, cache: Path) -> Export:
    key = f"{_key(where, subdir)}-work-{tree.fingerprint[:16]}"
    return load(cache / "checkouts", key) or export(tree, cache / "checkouts", key)


def _export_commit(view: GitView, commit: str, subdir: str, cache: Path, where: str, limits: Limits) -> Export:
    if not view.has_folder(commit, subdir):
        parent, _, name = subdir.rpartition("/")
        step = _nearest(name, view.folders(commit, parent or "."))
        raise InputError(f"the project has no folder {subdir!r} at {commit[:12]}", where=where, next_step=step)
    # The source is part of the key: another repository could claim the same hash for other content.
    key = f"{_key(where, subdir)}-{commit}"
    known = load(cache / "checkouts", key)
    if known is not None:
        return known
    with CommitTree(view, commit, subdir, limits) as tree:
        return export(tree, cache / "checkouts", key)


def _key(where: str, subdir: str) -> str:
    return hashlib.sha256(f"{where}\0{subdir}".encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _project(
    where: str,
    repository: str,
    commit: str,
    subdir: str,
    copied: Export,
    *,
    dirty: tuple[str, ...],
    uses_worktree: bool,
) -> Project:
    if not copied.files:
        raise InputError("the project has no files", where=where, next_step="Check the commit and the folder.")
    return Project(
        where=where, repository=repository, commit=commit, subdir=subdir, folder=copied.folder, files=copied.files,
        left_out=copied.left_out, dirty=dirty, uses_worktree=uses_worktree, above=copied.above, digest=copied.digest,
    )  # fmt: skip


def _no_commit(commit: str, refs: dict[str, str], where: str) -> InputError:
    return InputError(f"there is no commit, branch or tag {commit!r}", where=where, next_step=_ref_hint(commit, refs))


def _ref_hint(name: str, refs: dict[str, str]) -> str:
    names = [
        ref.removeprefix("refs/heads/").removeprefix("refs/tags/")
        for ref in refs
        if ref.startswith(("refs/heads/", "refs/tags/"))
    ]
    names = [short for short in names if not short.endswith("^{}")]
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return f"Did you mean {' or '.join(close)}?"
    if not names:
        return "Make a first commit, or give a folder that is no repository."
    return f"Give a hash, a branch or a tag, such as {', '.join(names[:5])}."
