"""Deletes a tree that belongs to ids which only a user namespace of this user can touch."""

import marshal
import shutil
import sys

from harness.sandbox.inside import identity


def main() -> None:
    """Read ids and path from stdin and delete the tree."""
    request = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - written by the engine that started this process
    identity.become_root(request["ids"])
    shutil.rmtree(request["path"])
