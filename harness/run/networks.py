"""What work and judge may reach: from the task's words to a sandbox's, and to the plan and back."""

from harness.run.plan import Plan
from harness.sandbox.base import Network, Reach
from harness.task.harbor import TaskConfig


def of_work(config: TaskConfig) -> Network:
    """Return the network of a task's workspace."""
    return Network(Reach(config.work_network.value), tuple(config.work_hosts))


def of_judge(config: TaskConfig, *, has_contract: bool) -> Network:
    """Return the network of a task's judge; what a contract describes is always judged without one."""
    if has_contract:
        return Network()
    return Network(Reach(config.judge_network.value), tuple(config.judge_hosts))


def as_json(network: Network) -> list[str]:
    """Return a network as a plan keeps it: its mode, then its allowed hosts."""
    return [network.reach.value, *network.hosts]


def planned(plan: Plan, which: str) -> Network:
    """Return `network` (of the workspace) or `judge_network` of a plan."""
    reach, *hosts = plan.resources[which]
    return Network(Reach(reach), tuple(hosts))
