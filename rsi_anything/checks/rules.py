"""Every rule of the checks by its id: how much it weighs and what it guards.

The page docs/reference/checks.md is made from this by `python -m rsi_anything.checks.rules`; a test keeps both alike.
"""

import sys
from dataclasses import dataclass

from rsi_anything.checks.finding import Finding, Severity

E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE


@dataclass(frozen=True)
class Rule:
    """One rule. `severity` is its usual weight; a finding can carry another where the case is milder or worse."""

    id: str
    severity: Severity
    guards: str


RULES = {
    rule.id: rule
    for rule in (
        Rule("contract/syntax", E, "task.toml is TOML in UTF-8."),
        Rule("contract/unknown-key", E, "Every key is known, so that no limit or boundary is lost to a typing error."),
        Rule("contract/missing-key", E, "Every key that has no default is there."),
        Rule("contract/wrong-value", E, "Values have the right type and unit and lie within their range."),
        Rule("contract/contradiction", E, "Budget, boundary and knobs can all be kept at once."),
        Rule("contract/file", E, "The files a task needs are there and are text."),
        Rule("contract/link", E, "No link leaves the folder or runs in a circle; there are no pipes or devices."),
        Rule("contract/none", N, "The task has a contract; without one Harbor's own meaning holds."),
        Rule("contract/unsupported", E, "The task asks for nothing that this version cannot run."),
        Rule("contract/typed-reference", W, "Numbers in [metadata.rsi.reference] were measured, not typed in."),
        Rule("contract/stale-reference", W, "The measured numbers belong to the tests as they are now."),
        Rule("contract/no-reference", N, "Baseline, noise and floor have been measured."),
        Rule("contract/weak-baseline", W, "The baseline is better than the floor by more than the noise."),
        Rule("contract/few-loops", W, "At least ten rounds of work and judging fit the budget."),
        Rule("contract/judge-time", E, "The judge's time limit leaves room for the time that was measured."),
        Rule("contract/agent-time", W, "Plain Harbor gives the agent as many hours as the contract."),
        Rule("contract/unit", W, "The metric has a unit."),
        Rule("contract/direction", W, "The direction fits the name of the metric."),
        Rule("contract/domain", W, "The metric's domain is narrow enough to catch a broken number and leaves room."),
        Rule("contract/feedback", W, "What the agent is told can be computed and says something."),
        Rule("contract/on-invalid", W, "An invalid candidate gains nothing."),
        Rule("contract/question", W, "The question is one sentence that ends in a mark."),
        Rule("contract/source", W, "The project is pinned to a commit and its licence is known."),
        Rule("contract/no-knobs", N, "The search agent has something to vary."),
        Rule("contract/knob-not-delivered", E, "What a knob changes reaches the judge."),
        Rule("contract/floor-not-delivered", E, "What the floor's edits change reaches the judge."),
        Rule("contract/edits-not-judged", W, "What may be edited reaches the judge that trains from it."),
        Rule("contract/odd-glob", W, "Globs use the two wildcards there are."),
        Rule("contract/judge-base", W, "The judge starts from the clean image."),
        Rule("contract/gpus", E, "The environment has the GPUs that the judge needs."),
        Rule("contract/judge-network", W, "Candidate code has no network while it is judged."),
        Rule("contract/no-solution", E, "The author's solution is there, so that a baseline can be measured."),
        Rule("contract/no-floor", N, "There is a candidate that knows nothing, so that scores have a zero."),
        Rule("contract/text-disagrees", E, "instruction.md and README.md say what the contract says."),
        Rule("lint/contract-unread", W, "The contract can be read; rules that need it were left out."),
        Rule("lint/base-image", E, "Base images are pinned by an exact tag or a digest."),
        Rule("lint/base-digest", W, "Base images are pinned by digest, since a tag can move."),
        Rule("lint/unpinned-package", E, "Packages are installed in one exact version."),
        Rule("lint/unpinned-system-package", W, "System packages are installed in one exact version."),
        Rule("lint/unpinned-checkout", W, "Repositories are cloned at one commit."),
        Rule("lint/unchecked-download", W, "Downloads are compared with a checksum."),
        Rule("lint/pipe-to-shell", E, "Nothing from the network is run unseen."),
        Rule("lint/judge-installs", E, "The judge installs and fetches nothing while it judges."),
        Rule("lint/secret", E, "No file holds a key, token or password. The secret itself is never shown."),
        Rule("lint/tests-in-image", E, "No file of tests/ is also in the image; shared code alone weighs less."),
        Rule("lint/labels-in-image", E, "No lines of the judge's data are also in the image."),
        Rule(
            "lint/solution-in-image", E, "No file of solution/ is in the image, unless the start state is the solution."
        ),
        Rule("lint/git-in-image", E, "No git history is in the image; it can hold the answer."),
        Rule("lint/answers-in-image", W, "No file of the image is named like answers or labels."),
        Rule("lint/copies-tests", E, "The Dockerfile puts nothing where tests and solution belong."),
        Rule(
            "lint/secret-in-build", E, "No ARG or ENV of the Dockerfile holds a secret or an answer; layers keep them."
        ),
        Rule("lint/special-file", E, "The folder holds files, folders and links within it alone."),
        Rule("lint/large-file", W, "No file is larger than 50 MiB."),
        Rule("lint/large-task", E, "The folder is at most 512 MiB."),
        Rule("lint/name", W, "Names work on every system and in every tool."),
        Rule("lint/not-scanned", N, "Every file was small enough to be scanned for secrets and leaks."),
        Rule("lint/forgotten-marker", W, "No TODO, FIXME, placeholder or filler text is left."),
        Rule("lint/unfilled-template", E, "No template mark is left unfilled."),
        Rule("lint/instruction-metric", E, "The instruction names the metric."),
        Rule("lint/instruction-direction", W, "The instruction says whether lower or higher is better."),
        Rule("lint/instruction-editable", W, "The instruction says what may be edited."),
        Rule("lint/instruction-frozen", W, "The instruction says what is frozen."),
        Rule("lint/instruction-deliver", E, "The instruction says what to deliver."),
        Rule("lint/instruction-submit", E, "The instruction says how to submit."),
        Rule("lint/instruction-budget", W, "The instruction states the budget."),
        Rule("lint/test-shebang", E, "tests/test.sh starts with the name of its interpreter; it is run directly."),
        Rule("lint/line-ends", E, "Scripts have Unix line ends."),
        Rule("lint/test-strict", W, "tests/test.sh stops at the first command that fails."),
        Rule("lint/test-isolated", E, "The judge starts Python apart from the candidate's files and environment (-I)."),
        Rule("lint/judge-parses-output", W, "The score is computed, not read from printed text or an exit status."),
        Rule("build/fails", E, "The image can be built."),
        Rule("build/frozen-missing", E, "Every frozen glob names files of the image."),
        Rule(
            "build/deliver-missing", E, "What must be delivered is there from the start where the start can be scored."
        ),
        Rule("baseline/not-scored", E, "The author's solution is scored through a candidate's path."),
        Rule("baseline/no-solution", W, "A plain Harbor task has a solution."),
        Rule("baseline/no-noise", W, "The noise was measured."),
        Rule("baseline/no-spread", N, "Judgings on fresh seeds differ, or the metric truly has no noise."),
        Rule("baseline/wins-alone", E, "No judging of the unchanged baseline passes for progress."),
        Rule("floor/none", W, "There is a candidate that knows nothing."),
        Rule("floor/not-scored", E, "The candidate that knows nothing is scored."),
        Rule("floor/above-baseline", E, "The baseline is better than knowing nothing."),
        Rule("floor/resolution", E, "The metric tells baseline and floor apart by more than the noise."),
        Rule("floor/start", E, "The untouched workspace scores what the contract says."),
        Rule("floor/nothing-rewarded", W, "Doing nothing is rewarded less than the solution (plain Harbor tasks)."),
        Rule("headroom/no-search", N, "There are knobs for a short search."),
        Rule("headroom/nothing-scored", E, "The search's candidates can be scored."),
        Rule("headroom/none-seen", N, "A short search gains more than the noise."),
        Rule("headroom/judge-time", E, "The judge's time limit leaves room over the time that was measured."),
        Rule("headroom/few-loops", W, "The budget holds at least ten rounds."),
    )
}


def raised(
    rule: str, reason: str, *, file: str = "", line: int | None = None, fix: str = "", severity: Severity | None = None
) -> Finding:
    """Return a finding of a rule that exists."""
    return Finding(rule, severity or RULES[rule].severity, reason, file, line, fix)


def page() -> str:
    """Return the reference page of all rules."""
    lines = [
        "# The rules of `rsi check`",
        "",
        "Made from `rsi_anything/checks/rules.py` by `python -m rsi_anything.checks.rules`; do not edit by hand.",
        "",
        "An error stops the ladder at its rung; warnings and notes do not. The weight given here is the usual one: on",
        "a Harbor task without a contract several rules weigh less, since nothing there promises more.",
        "",
        "| rule | weight | what it guards |",
        "|---|---|---|",
        *(f"| `{rule.id}` | {rule.severity.value} | {rule.guards} |" for rule in RULES.values()),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
