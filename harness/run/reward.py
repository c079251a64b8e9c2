"""The one reader of a judge's result: strict, by descriptor, and never an exception for what it finds.

What cannot be read exactly as agreed is our fault, not the candidate's: it becomes `no_measurement`, never a number.
"""

import json
import math
import os
import re
from pathlib import Path
from typing import Any, NoReturn

from harness.run.store.hostile import Unreadable, clean_text, open_folder, read_regular
from harness.run.verdict import Finding, Verdict
from harness.task.contract import Contract

RESULT = "reward.json"
PLAIN_RESULT = "reward.txt"
DETAILS = "reward-details.json"
MAX_BYTES = 1 << 20
MAX_MESSAGE = 2 << 10
MAX_EVIDENCE = 64 << 10
MAX_NUMBERS = 1000
MAX_NAME = 200
FLAGS = {"invalid": Verdict.INVALID, "violation": Verdict.VIOLATION}

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def read_result(folder: Path, contract: Contract | None) -> Finding:
    """Return what a judge found, from the folder that it saw as /logs/verifier.

    Without a contract Harbor's own rules hold: reward.json, else reward.txt, and the number named `reward`.
    """
    try:
        fd = open_folder(folder)
    except Unreadable as why:
        return _no_measurement(str(why), "", "")
    try:
        message, evidence = _details(fd)
        try:
            numbers = _numbers(fd, contract)
            finding = _plain(numbers) if contract is None else _by_contract(numbers, contract)
        except Unreadable as why:
            return _no_measurement(str(why), message, evidence)
        return Finding(finding.verdict, finding.metric, message=message, evidence=evidence, details=finding.details)
    finally:
        os.close(fd)


def _no_measurement(why: str, message: str, evidence: str) -> Finding:
    """Tell the reason to the operator alone: it may hold a value that the agent must not see."""
    told = "\n".join(part for part in (f"no usable result: {why}", message, evidence) if part)
    return Finding(
        Verdict.NO_MEASUREMENT, message="the judge gave no usable result", evidence=clean_text(told, MAX_EVIDENCE)
    )


def _by_contract(numbers: dict[str, float], contract: Contract) -> Finding:
    name = contract.metric.name
    raised = [flag for flag in FLAGS if _flag(numbers, flag)]
    if len(raised) > 1:
        raise Unreadable("both invalid and violation are 1")
    details = {key: value for key, value in numbers.items() if key not in {name, "reward", *FLAGS}}
    if raised:
        if name in numbers:
            raise Unreadable(f"{raised[0]} is 1, yet there is a value for {name}")
        if numbers.get("reward", 0.0) != 0:
            raise Unreadable(f"{raised[0]} is 1, yet reward is {numbers['reward']!r}")
        return Finding(FLAGS[raised[0]], details=details)
    if name not in numbers:
        raise Unreadable(f"{RESULT} has no {name}")
    if not contract.in_domain(numbers[name]):
        lowest, highest = contract.metric.lowest, contract.metric.highest
        raise Unreadable(f"{name} is {numbers[name]!r}, outside its domain {lowest!r} to {highest!r}")
    return Finding(Verdict.SCORED, numbers[name], details=details)


def _flag(numbers: dict[str, float], name: str) -> bool:
    value = numbers.get(name, 0.0)
    if value not in {0.0, 1.0}:
        raise Unreadable(f"{name} is {value!r}, it must be 0 or 1")
    return value == 1.0


def _plain(numbers: dict[str, float]) -> Finding:
    if "reward" not in numbers:
        raise Unreadable(f"{RESULT} has no reward")
    details = {key: value for key, value in numbers.items() if key != "reward"}
    return Finding(Verdict.SCORED, numbers["reward"], details=details)


def _numbers(folder: int, contract: Contract | None) -> dict[str, float]:
    found = read_regular(folder, RESULT, MAX_BYTES)
    if contract is not None and _is_there(folder, PLAIN_RESULT):
        raise Unreadable(f"there is a {PLAIN_RESULT}; a task with a contract writes {RESULT} alone")
    if found is not None:
        # Harbor itself counts true as 1; a task with a contract has no reason to.
        return _parse(found, booleans=contract is None)
    text = read_regular(folder, PLAIN_RESULT, MAX_BYTES) if contract is None else None
    if text is None:
        raise Unreadable(f"the judge wrote no {RESULT}")
    return {"reward": _decimal(text)}


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Unreadable(f"{name} cannot be read: {error.strerror}") from error
    return True


def _decimal(content: bytes) -> float:
    text = content.decode("ascii", "replace").strip()
    if not _DECIMAL.fullmatch(text):
        raise Unreadable(f"{PLAIN_RESULT} is not one number")
    return _finite(float(text), "reward")


def _parse(content: bytes, *, booleans: bool) -> dict[str, float]:
    if not content.strip():
        raise Unreadable(f"{RESULT} is empty")
    try:
        value = json.loads(content.decode("utf-8"), object_pairs_hook=_object, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{RESULT} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise Unreadable(f"{RESULT} is {type(value).__name__}, not an object")
    if len(value) > MAX_NUMBERS:
        raise Unreadable(f"{RESULT} has {len(value)} entries, at most {MAX_NUMBERS} are read")
    return {_name(key): _number(each, key, booleans=booleans) for key, each in value.items()}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Unreadable(f"{RESULT} has a key twice")
    return found


def _constant(name: str) -> NoReturn:
    raise Unreadable(f"{RESULT} holds {name}, which is no JSON")


def _name(key: str) -> str:
    if not key or key != clean_text(key, MAX_NAME) or not key.isprintable():
        raise Unreadable(f"{RESULT} has a key that is empty, longer than {MAX_NAME} bytes or not printable")
    return key


def _number(value: Any, key: str, *, booleans: bool) -> float:
    if isinstance(value, bool) and not booleans:
        raise Unreadable(f"{key} is true or false, not a number")
    if not isinstance(value, int | float):
        raise Unreadable(f"{key} is {type(value).__name__}, not a number")
    try:
        return _finite(float(value), key)
    except OverflowError as error:
        raise Unreadable(f"{key} is too large to be a number") from error


def _finite(value: float, key: str) -> float:
    if not math.isfinite(value):
        raise Unreadable(f"{key} is not finite")
    return value


def _details(folder: int) -> tuple[str, str]:
    """Return message and evidence of the judge; whatever is wrong with that file only loses the text."""
    try:
        content = read_regular(folder, DETAILS, MAX_BYTES)
        value = json.loads(content.decode("utf-8")) if content else {}
    except (Unreadable, ValueError, RecursionError) as why:
        return "", clean_text(f"{DETAILS} was not read: {why}", MAX_EVIDENCE)
    if not isinstance(value, dict):
        return "", f"{DETAILS} was not read: it is no object"
    message = value.get("message", "")
    evidence = value.get("evidence", "")
    if not isinstance(evidence, str):
        evidence = f"{DETAILS}: evidence is {type(evidence).__name__}, not text"
    return (
        clean_text(message, MAX_MESSAGE) if isinstance(message, str) else "",
        clean_text(evidence, MAX_EVIDENCE),
    )
