"""The engine: takes a planned run from wherever its journal stands to its end.

A first start and a resume are the same code; the journal says what is done already.
"""

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from harness.agents.base import Agent, Stopped
from harness.errors import RsiError
from harness.run import networks
from harness.run import round as rounds
from harness.run.bring import SHOWN_AT
from harness.run.budget import hours_left, refusal, submissions_left
from harness.run.capture import ImageFiles, inspect_image
from harness.run.disk import HostDisk
from harness.run.folder import RunFolder, write_json
from harness.run.journal import Clock, steady_clock
from harness.run.judging import StopRequested
from harness.run.mailbox import TARGET, Mailbox, Request
from harness.run.recorder import Observer, Recorder
from harness.run.scene import Scene
from harness.run.seeds import agent_seed
from harness.run.setting import Setting, measure_controls
from harness.run.state import Kind, State, Status
from harness.run.status import write_status
from harness.run.upkeep import Upkeep
from harness.run.verdict import Verdict
from harness.run.workbox import find_or_make
from harness.run.workspace import AgentStart, EngineWorkspace
from harness.sandbox.base import Box, BoxSpec, Mount, Role, Sandbox

POLL_SEC = 0.005
"""How often the mailbox is looked at: far below what a person or a model would notice."""

GRACE_SEC = 5.0
"""How long an agent may go on to end by itself once the last submission is used up."""

STATUS_SEC = 5.0
"""How often what is left is written for the agent to read."""

MANY_REFUSALS = 1000
"""After so many refusals each further one is answered slowly: a flood of requests must not fill journal and disk."""

REFUSAL_PAUSE_SEC = 0.1

MAX_UNMEASURED = 3
"""So many submissions in a row without a measurement end the run: something is wrong on our side."""


class Engine:
    """Works on one run; `run` returns the final state."""

    def __init__(
        self,
        folder: RunFolder,
        sandbox: Sandbox,
        agent: Agent,
        *,
        tell: Callable[[str], None],
        observe: Observer = lambda _event, _state: None,
        stop: threading.Event | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.folder = folder
        self.sandbox = sandbox
        self.agent = agent
        self.tell = tell
        self.observe = observe
        self.stop = stop or threading.Event()
        self.clock = clock or steady_clock()
        self.plan = folder.read_plan()
        self.ended_before = False
        self.box: Box | None = None
        self.thread: threading.Thread | None = None
        self.outcome: list[int | Exception | None] = []

    def run(self) -> State:
        """Work until the run ends, is stopped or fails.

        Raises:
            RsiError: when it failed; the journal says so too, and `rsi resume` goes on.
        """
        with self.folder.take_lock():
            self.folder.stop_flag.unlink(missing_ok=True)
            recorder = Recorder.open(self.folder.journal, self.observe, self.clock)
            try:
                return self._guarded(recorder)
            finally:
                recorder.close()

    def _guarded(self, recorder: Recorder) -> State:
        if recorder.state.status is Status.COMPLETED:
            self.sandbox.sweep(self.plan.run)
            return recorder.state
        self.ended_before = recorder.state.status is not Status.RUNNING
        recorder.record(Kind.ENGINE_STARTED, pid=os.getpid(), resumed=recorder.state.engines > 0)
        try:
            self._work(recorder)
        except StopRequested as wish:
            self._end_box()
            return recorder.record(Kind.RUN_ENDED, status=Status.STOPPED.value, reason=wish.what)
        except (RsiError, OSError) as error:
            self._end_box()
            recorder.record(Kind.RUN_ENDED, status=Status.FAILED.value, reason=str(error))
            raise
        except Exception as error:
            # A bug, of an agent of ours or of this engine: the run must not look as if it went on.
            self._end_box()
            reason = f"a bug of ours: {type(error).__name__}"
            recorder.record(Kind.RUN_ENDED, status=Status.FAILED.value, reason=reason)
            raise
        reason = recorder.state.agent_reason
        state = recorder.record(Kind.RUN_ENDED, status=Status.COMPLETED.value, reason=reason)
        self.sandbox.sweep(self.plan.run)
        return state

    def _work(self, recorder: Recorder) -> None:
        setting = Setting.of(self.folder, self.plan, self.sandbox, self.tell, self._watch_stop)
        if recorder.state.image is None:
            notes = list(setting.image.notes)
            recorder.record(Kind.IMAGE_READY, digest=setting.image.digest, notes=notes)
        if not recorder.state.agent_starts:
            measure_controls(setting, recorder)
        mailbox = Mailbox(self.folder.mailbox)
        mailbox.create()
        box, made = find_or_make(
            self.sandbox,
            self._work_spec(setting, mailbox),
            recorder.state,
            lambda text: self._note(recorder, text),
        )
        self.box = box
        fresh = made or not recorder.state.agent_starts or self.ended_before
        image_files = self._image_files(box, setting)
        contract = setting.contract
        self.scene = Scene(
            folder=self.folder,
            plan=self.plan,
            contract=contract,
            court=setting.court,
            store=setting.store,
            recorder=recorder,
            tell=self.tell,
            mailbox=mailbox,
            box=box,
            image_files=image_files,
            frozen_watch=image_files.watch(contract.boundary) if contract else None,
            stop=self.stop,
            disk=HostDisk(self.folder.path),
            now=self.clock,
        )
        self.upkeep = Upkeep(setting.store, box, self.scene.boundary, self.scene.frozen_watch, mailbox.inbox)
        try:
            self.upkeep.start()
            self._until_the_end(fresh)
        finally:
            self.upkeep.stop()
            self._halt_agent()

    def _watch_stop(self) -> None:
        if self.stop.is_set() or self.folder.stop_flag.exists():
            raise StopRequested("the run was asked to stop", next_step=f"rsi resume {self.folder.name}")

    # --- the workspace ------------------------------------------------------------------------------------------------

    def _note(self, recorder: Recorder, text: str) -> None:
        self.tell(text)
        recorder.record(Kind.NOTE, text=text)

    def _work_spec(self, setting: Setting, mailbox: Mailbox) -> BoxSpec:
        solution = (Mount(self.folder.solution, "/solution"),) if self.agent.needs_solution else ()
        brought = (Mount(self.folder.brought, SHOWN_AT),) if self.folder.brought.is_dir() else ()
        return BoxSpec(
            run=self.plan.run,
            name="work",
            role=Role.WORK,
            image=setting.image,
            network=networks.planned(self.plan, "network"),
            limits=setting.court.limits,
            mounts=(*mailbox.mounts(), *solution, *brought),
        )

    def _image_files(self, box: Box, setting: Setting) -> ImageFiles:
        """Return the boundary's files of the untouched image: read once, before the agent's first start."""
        if setting.contract is None:
            return ImageFiles()
        if self.folder.image_files.exists():
            return kept_image_files(self.folder)
        files = inspect_image(box, setting.contract.boundary)
        write_json(self.folder.image_files, {"frozen": dict(files.frozen), "deliver": list(files.deliver)})
        return files

    # --- the loop -----------------------------------------------------------------------------------------------------

    def _until_the_end(self, fresh: bool) -> None:
        scene = self.scene
        self._finish_open()
        if not scene.state.agent_ended:
            # What was handed in to an engine before this one belongs to the history from which the agent goes on.
            self._take_requests()
            self._start_agent(fresh)
            reason = self._loop()
            self._halt_agent()
            scene.record(Kind.AGENT_ENDED, code=self._outcome(), reason=reason)
        self._last_submission()

    def _start_agent(self, fresh: bool) -> None:
        scene = self.scene
        start = scene.state.agent_starts + 1 if fresh else scene.state.agent_starts
        # At the process level only what is mounted has a place of its own, not the folder above.
        mailbox = str(Path(scene.box.path(f"{TARGET}/inbox")).parent)
        env = {"RSI_MAILBOX": mailbox, "RSI_RUN": self.plan.run}
        if self.agent.needs_solution:
            env["RSI_SOLUTION"] = scene.box.path("/solution")
        facts = AgentStart(
            name=agent_process(start),
            inbox=self.folder.mailbox / "inbox",
            output=self.folder.agent_log,
            env=env,
            seed=agent_seed(self.plan.seed),
            limit=self.plan.submissions,
        )
        scene.workspace = EngineWorkspace(scene.box, facts, scene.contract, lambda: scene.state)
        if fresh:
            scene.record(Kind.AGENT_STARTED, agent=self.agent.name, start=start, box=scene.box.spec.name)
        self.thread = threading.Thread(target=self._agent_thread, args=(scene.workspace,), name="agent", daemon=True)
        scene.box.thaw()
        self.thread.start()

    def _agent_thread(self, work: EngineWorkspace) -> None:
        try:
            self.outcome.append(self.agent.run(work))
        except Stopped:
            self.outcome.append(None)
        except Exception as error:  # noqa: BLE001  a thread's error is carried to the engine's thread, which raises it
            self.outcome.append(error)

    def _loop(self) -> str:
        """Answer requests until the agent ends or the budget does; return why it ended."""
        scene = self.scene
        grace: float | None = None
        status_at = 0.0
        while True:
            scene.watch()
            self._take_requests()
            if self.thread is None or not self.thread.is_alive():
                self._check_box()  # where it went, its processes went with it, and the agent did not end
                self._take_requests()  # handed in just before it ended
                return "the agent ended"
            reason = self._spent()
            if reason == "submissions":
                grace = grace or time.monotonic() + GRACE_SEC
            if reason and (grace is None or time.monotonic() >= grace):
                return f"the budget of {reason} is spent" if reason != "disk" else "the workspace filled its disk"
            if time.monotonic() >= status_at:
                status_at = time.monotonic() + STATUS_SEC
                write_status(self.scene)
            time.sleep(POLL_SEC)

    def _spent(self) -> str | None:
        scene = self.scene
        if self.upkeep.failure is not None:
            raise self.upkeep.failure
        self._check_box()
        storage = self.plan.resources.get("storage_mb")
        if storage and self.upkeep.usage_mb > storage:
            return "disk"
        if hours_left(scene.limits, scene.state, scene.now()) == 0:
            return "hours"
        return "submissions" if submissions_left(scene.limits, scene.state) == 0 else None

    def _check_box(self) -> None:
        if not self.scene.box.alive():
            raise RsiError("the workspace is gone", where=self.plan.run, next_step=f"rsi resume {self.plan.run}")

    def _take_requests(self) -> None:
        for request in self.scene.mailbox.requests():
            self.scene.watch()
            self._request(request)

    def _request(self, request: Request) -> None:
        scene = self.scene
        if request.id in scene.state.handled:
            self._reply_again(request.id)
            return
        why = refusal(scene.limits, scene.state, scene.now())
        if why is not None:
            scene.record(Kind.REQUEST_REFUSED, id=request.id, reason=why)
            self._refuse(request.id, why)
            return
        one = rounds.open_submission(scene, request.id, request.message)
        self._play(one.number)

    def _refuse(self, request: str, why: str) -> None:
        if self.scene.state.refused > MANY_REFUSALS:
            time.sleep(REFUSAL_PAUSE_SEC)
        self.scene.mailbox.reply(request, 3, f"refused: {why}")
        if self.scene.workspace is not None:
            self.scene.workspace.answer(request, None)

    def _reply_again(self, request: str) -> None:
        """Answer a request that an engine recorded and then died before its reply."""
        found = [one.number for one in self.scene.state.submissions if one.id == request]
        if found:
            rounds.answer(self.scene, found[0])
        else:
            self._refuse(request, "the run was interrupted meanwhile; hand in again")

    def _play(self, number: int) -> None:
        scene = self.scene
        with self.upkeep.exclusive:
            if scene.submission(number).verdict is None and not scene.state.frozen:
                self.upkeep.ahead()
            rounds.play(scene, number)
        one = scene.submission(number)
        shown = f"{one.metric:.6g}" if one.metric is not None else (one.judgings[-1].message if one.judgings else "")
        # A message of many lines could look like lines of ours.
        self.tell(f"submission {number}: {one.verdict} {' '.join(shown.split())}".rstrip())
        write_status(self.scene)
        unmeasured = [s.verdict is Verdict.NO_MEASUREMENT for s in scene.state.submissions[-MAX_UNMEASURED:]]
        if len(unmeasured) == MAX_UNMEASURED and all(unmeasured):
            raise RsiError(
                f"{MAX_UNMEASURED} submissions in a row gave no measurement: {one.judgings[-1].message}",
                where=str(self.folder.judging("")),
                next_step=f"mend the judge or the host, then rsi resume {self.plan.run}",
            )

    def _finish_open(self) -> None:
        """Take up what an earlier engine left: an open submission, or a round that was not thawed."""
        scene = self.scene
        one = scene.state.open_submission
        if one is not None:
            self._play(one.number)
        elif scene.state.frozen:
            self._play(len(scene.state.submissions))
        elif scene.state.submissions:
            rounds.answer(scene, len(scene.state.submissions))

    def _last_submission(self) -> None:
        """Hand in the final state of an agent that never did."""
        scene = self.scene
        if not scene.state.submissions:
            one = rounds.open_submission(scene, "final-state", "the workspace as the agent left it")
            self._play(one.number)

    def _end_box(self) -> None:
        """Leave no process behind a run that ends before its time; the files stay, `rsi resume` goes on with them."""
        if self.box is not None:
            self.box.end()

    def _halt_agent(self) -> None:
        """End the agent and all its processes, also one that an earlier engine started and this one never reached."""
        if self.thread is not None and self.scene.workspace is not None:
            self.scene.workspace.end()
            self.thread.join(timeout=30)
        process = self.scene.box.process(agent_process(self.scene.state.agent_starts))
        # What is frozen ends with its box: thawed to be killed, it could still change what is handed in.
        if process is not None and self.scene.box.alive() and not self.scene.state.frozen:
            process.kill()

    def _outcome(self) -> int | None:
        """Return the agent's exit status, or raise what it died of."""
        outcome = self.outcome[0] if self.outcome else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def agent_process(start: int) -> str:
    """Return the name that the agent's process has in its box, by how often an agent was started there."""
    return f"agent-{start}"


def kept_image_files(folder: RunFolder) -> ImageFiles:
    """Return the boundary's files of the untouched image, as a run recorded them; nothing for a plain Harbor task."""
    if not folder.image_files.exists():
        return ImageFiles()
    kept = json.loads(folder.image_files.read_text("utf-8"))
    return ImageFiles(kept["frozen"], tuple(kept["deliver"]))
