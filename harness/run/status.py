"""What the agent can read at any time with rsi-status: best, baseline, noise and what is left."""

from harness.run.budget import hours_left, submissions_left
from harness.run.scene import Scene
from harness.run.scoring import baseline_of, best_of
from harness.task.contract import FeedbackPart


def write_status(scene: Scene) -> None:
    """Write the status into the mailbox as text and as JSON; parts that the contract does not show are left out."""
    contract, state = scene.contract, scene.state
    shown = set(contract.evaluation.feedback) if contract else set(FeedbackPart)
    best = best_of(contract, state.submissions)
    facts: dict[str, object] = {
        "metric": f"{contract.metric.name} ({contract.metric.direction})" if contract else "reward (maximize)",
        "best": best.metric if best and FeedbackPart.BEST in shown else None,
        "baseline": baseline_of(contract, state) if FeedbackPart.BASELINE in shown else None,
        "noise": contract.reference.noise if contract and FeedbackPart.BASELINE in shown else None,
        "submissions_used": state.used_submissions,
        "submissions_left": submissions_left(scene.limits, state),
        "working_hours_left": round(hours_left(scene.limits, state, scene.now()), 4),
        "cooldown_sec": scene.limits.cooldown_sec,
    }
    facts = {name: value for name, value in facts.items() if value is not None}
    text = "".join(f"{name.replace('_', ' ')}: {value}\n" for name, value in facts.items())
    scene.mailbox.status(text, facts)
