"""The way into a box: from a fork of the keeper to a command that runs as the box's root with little left to lose."""

import os

from harness.sandbox.inside import command, kernel, privileges
from harness.sandbox.inside.wire import Record


def run(request: Record, plan: Record, *, namespaces: list[int], groups: list[int], output: int, said: int) -> None:
    """Enter the box and run the request's command; never return."""
    complaints = output
    try:
        privileges.hide_memory()
        os.setsid()
        for group in groups:
            os.write(group, b"0")
        for namespace in namespaces:
            kernel.setns(namespace)
        # A UTS namespace of its own marks the process and whatever it forks: none of them can leave it.
        kernel.unshare(kernel.CLONE_NEWUTS)
        os.write(said, os.readlink("/proc/self/ns/uts").encode() + b"\n")  # noqa: PTH115 - pathlib costs 5 ms
        null = os.open("/dev/null", os.O_RDWR)
        for target, source in enumerate((null, output, output)):
            os.dup2(source, target)
        complaints = 2
        kernel.close_from(3, (said,))
        os.set_inheritable(said, False)
        kernel.new_session_keyring()
        if plan["set_groups"]:
            os.setgroups([])
        os.umask(0o022)
        os.chdir(request["cwd"])
        privileges.limit_resources(plan["rlimits"])
        privileges.drop_capabilities()
        if plan["network"]:
            privileges.stay_off_the_hosts_abstract_sockets()
        if plan["filter"]:
            privileges.refuse_dangerous_calls(nesting=plan["nesting"])
        command.execute(request["command"], request["env"])
    except BaseException as error:  # noqa: BLE001 - the keeper's code must not go on in this process
        os.write(complaints, f"rsi: cannot run {request['command'][0]}: {error}\n".encode())
        os._exit(command.code_of(error))
    os._exit(command.NOT_RUNNABLE)
