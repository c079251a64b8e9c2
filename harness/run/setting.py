"""What an engine makes of a plan before any agent works: image, court, store, and the controls."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from harness.run import networks
from harness.run.control import Bench, control_key, failed_control, has_role, keep, measure, recall
from harness.run.folder import RunFolder
from harness.run.judging import Court, Watch
from harness.run.plan import Plan
from harness.run.recorder import Recorder
from harness.run.state import Kind
from harness.run.store.snapshot import SnapshotStore
from harness.run.verdict import Verdict
from harness.sandbox import get_sandbox
from harness.sandbox.base import Image, Limits, Sandbox
from harness.task.contract import Contract


@dataclass(frozen=True)
class Setting:
    """The fixed parts of a run."""

    folder: RunFolder
    plan: Plan
    contract: Contract | None
    image: Image
    court: Court
    store: SnapshotStore
    tell: Callable[[str], None]
    watch: Watch

    @classmethod
    def of(
        cls, folder: RunFolder, plan: Plan, sandbox: Sandbox, tell: Callable[[str], None], watch: Watch
    ) -> "Setting":
        """Build the parts that a plan names."""
        contract = Contract.model_validate_json(json.dumps(plan.contract)) if plan.contract is not None else None
        facts = plan.image_facts
        image = Image(plan.image, facts["workdir"], facts["env"], tuple(facts["notes"]), facts.get("user", ""))
        court = Court(
            run=plan.run,
            sandbox=sandbox,
            image=image,
            contract=contract,
            tests=folder.tests,
            tests_digest=plan.tests_digest,
            timeout=plan.judge_timeout_sec,
            limits=limits_of(plan),
            network=networks.planned(plan, "judge_network"),
        )
        return cls(folder, plan, contract, image, court, SnapshotStore(folder.store), tell, watch)

    def bench(self) -> Bench:
        """Return what judges the author's candidates in this run."""
        assert self.contract is not None  # only tasks with a contract have controls
        return Bench(
            court=self.court,
            store=self.store,
            boundary=self.contract.boundary,
            solution=self.folder.solution,
            folder=self.folder.path,
            seed=self.plan.seed,
            network=networks.planned(self.plan, "network"),
            solve_sec=self.plan.hours * 3600,
            watch=self.watch,
            tell=self.tell,
        )


def planned_sandbox(plan: Plan) -> Sandbox:
    """Return the sandbox that a run was planned for."""
    return get_sandbox(plan.sandbox, level=plan.level if plan.sandbox == "local" else None)


def limits_of(plan: Plan) -> Limits:
    """Return the bounds of a plan's boxes."""
    resources = plan.resources
    return Limits(cpus=resources["cpus"], memory_mb=resources["memory_mb"], storage_mb=resources["storage_mb"])


def roles(setting: Setting) -> list[str]:
    """Return which of the author's candidates a run judges before its agent starts."""
    if setting.contract is None:
        return []
    wanted = ["baseline", "floor"]
    return [role for role in wanted if has_role(setting.folder.solution, role)]


def measure_controls(setting: Setting, recorder: Recorder) -> None:
    """Judge the author's candidates on this host, or take a measurement of the same task, image and host."""
    plan = setting.plan
    key = control_key(plan.task_digest, plan.image, plan.level, plan.host)
    for role in roles(setting):
        if recorder.state.control(role) is not None:
            continue
        known = recall(key, role)
        if known is not None:
            setting.tell(f"{role} {known['metric']:.6g}, as measured {known['by']} on this host")
            recorder.record(
                Kind.CONTROL_JUDGED,
                role=role,
                verdict=Verdict.SCORED.value,
                metric=known["metric"],
                values=known.get("values", []),
                seconds=known.get("seconds", 0.0),
                reused_from=known["by"],
            )
            continue
        setting.tell(f"judging the author's {role} candidate on this host")
        recorder.record(Kind.CONTROL_STARTED, role=role)
        measured = measure(setting.bench(), role)
        finding = measured.finding
        recorder.record(
            Kind.CONTROL_JUDGED,
            role=role,
            verdict=finding.verdict.value,
            metric=finding.metric,
            values=list(finding.values),
            message=finding.message,
            evidence=finding.evidence,
            seconds=round(measured.seconds, 6),
            reused_from="",
        )
        if finding.verdict is not Verdict.SCORED:
            raise failed_control(role, finding)
        keep(key, role, f"in run {plan.run}", measured)
