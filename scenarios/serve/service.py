"""One server: the orchestrator on the real clock, its plant, the HTTP face and the journal. Read `start` first."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import uvicorn

from orchestrator.orchestrator import Ended, Orchestrator
from orchestrator.real_clock import RealClock
from orchestrator.turn import ClassName, TurnId
from plant.hidden_turns import HiddenTurns
from scenarios import commentary
from scenarios.build import assemble
from scenarios.errors import UserError
from scenarios.run.notes import notes_of
from scenarios.schema.plants import EnginesPlant
from scenarios.schema.scenario import Scenario
from scenarios.schema.workloads import RequestsWorkload
from scenarios.serve.answers import GONE
from scenarios.serve.app import application
from scenarios.serve.asks import Ask, RefusedAsk
from scenarios.serve.backends import Backend, ModelledBackend, RealBackend
from scenarios.serve.figures import Figures, Latencies
from scenarios.serve.journal import Journal
from scenarios.serve.options import ServeOptions
from scenarios.serve.page import LivePage
from scenarios.serve.prompts import PromptBlocks, tokenizer
from scenarios.serve.replies import Reply
from scenarios.serve.source import RequestSource, Work, session_name
from scenarios.serve.watch import RecentSignals, RunningVerdict, judge_recent

LONGEST_S = 1e9  # the longest horizon of a scenario
JUDGE_FLUSHES = 5  # from one judgement to the next
FLUSH_S = 2.0  # of the wall: what a killed server loses at most
HEADER_BYTES = 65_536
LONGEST_WAIT_S = 60


class _Server(uvicorn.Server):
    """A server that leaves signals to its owner."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


class Service:
    """One server, from its start to its record.

    Parameters
    ----------
    scenario : Scenario
        As `served` returns it.
    candidate : str
    seed : int
    options : ServeOptions
    run : Path
        The folder of the record.
    """

    def __init__(self, scenario: Scenario, candidate: str, seed: int, options: ServeOptions, run: Path) -> None:
        self._scenario, self._candidate, self._seed = scenario, candidate, seed
        self.options, self._run = options, run
        assert isinstance(scenario.workload, RequestsWorkload)
        self._work = scenario.workload
        self._tokens = tokenizer(self._work.tokenizer)
        self._blocks = PromptBlocks(self._work.block_tokens)
        self._latencies = Latencies()
        self._verdict = RunningVerdict()
        self._draining = False
        self._why: Ended | None = None
        self.port = 0
        self.orchestrator: Orchestrator

    # ------------------------------------------------ from start to stop
    async def start(self) -> None:
        """Bind the port, begin the run and take requests.

        Raises
        ------
        UserError
            The port is taken; the record cannot be written; a part of the scenario cannot be built.
        """
        options = self.options
        listening = _bound(options.host, options.port)
        self.port = listening.getsockname()[1]
        try:
            self._journal = Journal(
                self._run,
                self._scenario,
                {"candidate": self._candidate, "seed": self._seed, "rate": options.rate},
            )
            self._clock = clock = RealClock(asyncio.get_running_loop(), options.rate)
            self._recent = RecentSignals(self._journal)
            self._join(clock)
        except BaseException:
            listening.close()
            raise
        self._threads = ThreadPoolExecutor(1, "prompts")
        config = uvicorn.Config(
            application(self, self._answers, options, self._threads),
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="none",
            http="h11",
            server_header=False,
            h11_max_incomplete_event_size=HEADER_BYTES,
            limit_concurrency=4 * options.max_streams,
            timeout_graceful_shutdown=5,
        )
        self._http = _Server(config)
        self._ended = asyncio.ensure_future(self.orchestrator.run())
        while not self._source.started and not self._ended.done():
            await asyncio.sleep(0)
        self._serving = asyncio.ensure_future(self._http.serve([listening]))
        self._flushing = asyncio.ensure_future(self._flush())
        while not self._http.started and not self._serving.done():
            await asyncio.sleep(0.001)

    def _join(self, clock: RealClock) -> None:
        scenario, hidden = self._scenario, HiddenTurns()
        with scenario.blamed():
            candidate = scenario.candidate(self._candidate)
            own_tables = assemble.with_own_tables(scenario, candidate)
            first = self._work.service_class or next(iter(own_tables.classes))
            self._source = source = RequestSource(clock, hidden, self._seed, ClassName(first))
            self._backend: Backend = (
                RealBackend(own_tables.plant, clock, source)
                if isinstance(own_tables.plant, EnginesPlant)
                else ModelledBackend(own_tables, clock, hidden, self._seed, source)
            )
            endless = own_tables.model_copy(update={"horizon_s": LONGEST_S})  # it ends when it is stopped
            self.orchestrator = assemble.joined(
                endless,
                candidate,
                self._seed,
                clock,
                self._recent,
                source,
                self._backend.plant,
                self._backend.recorded,
            )
        self._answers = self._backend.answers(_epoch_s, self._cancel, self.retry_after_s, self._latencies)
        self._backend.begin(self.orchestrator)
        self._figures = Figures(
            self.orchestrator, self._work.model, self._latencies, self._totals, self._backend.engines, self._verdict
        )

        facts = {"run": f"{self._run.name} {_epoch_s()}", "model": self._work.model, "rate": self.options.rate}
        self._page = LivePage(self.orchestrator, self._recent, self._verdict, {**facts, "candidate": self._candidate})

    async def ended(self) -> None:
        """Wait until the run has ended, however it does; raise what broke it."""
        await asyncio.shield(self._ended)

    async def drain(self) -> None:
        """Refuse new requests, and end the run once those under way have ended, or `drain_s` has passed."""
        self._draining = True
        await self.orchestrator.drain(self._clock.now() + self.options.drain_s * self.options.rate)
        self.orchestrator.stop()

    def halt(self) -> None:
        """End the run at once."""
        self._draining = True
        self.orchestrator.stop()

    async def stop(self) -> Ended:
        """Close HTTP and journal once the run has ended; return why it ended. A second call changes nothing."""
        if self._why is not None:
            return self._why
        self.halt()
        try:
            self._why = why = await self._ended
        except BaseException:  # what there is by now stays readable
            self.orchestrator.recorder.flush()
            self._journal.close()
            raise
        finally:
            self._source.abandon("stopped")
            self._flushing.cancel()
            self._http.should_exit = True
            await self._serving
            await self._backend.close()
            self._threads.shutdown(wait=False)
        notes = notes_of(self.orchestrator)
        self._journal.note({"why": why, "end_s": self._clock.now(), "cpu_s": time.process_time(), "notes": notes})
        self._journal.close()
        return why

    async def _flush(self) -> None:
        while True:
            for _ in range(JUDGE_FLUSHES):
                await asyncio.sleep(FLUSH_S)
                self.flush()
            await self.judge()

    async def judge(self) -> None:
        """Judge the last minutes, and record and log each alarm."""
        signals, slots = self._recent.recent(), self.orchestrator.slots()
        verdicts = await asyncio.get_running_loop().run_in_executor(None, judge_recent, signals, slots)
        for alarm in self._verdict.update(verdicts):
            self.orchestrator.recorder.event("alarm", self._clock.now(), **alarm)
            commentary.log("warning", "alarm", **alarm)

    def flush(self) -> None:
        """Write what was recorded since the last time."""
        self.orchestrator.recorder.flush()
        self._journal.flush()

    def now_s(self) -> float:
        """Return the seconds of the run."""
        return self._clock.now()

    # ------------------------------------------------ what the HTTP face asks
    def read(self, ask: Ask) -> tuple[int, list[int]]:
        """Return a prompt's length in tokens and the names of its blocks; may run in a thread."""
        tokens = self._tokens(ask.text)
        return max(1, len(tokens)), self._blocks.names(tokens)

    def submit(self, ask: Ask, read: object, headers: Mapping[str, str]) -> Reply:
        """Let a request arrive now."""
        if ask.model != self._work.model:
            raise RefusedAsk(404, "model_not_found", f"there is no model {ask.model}; there is {self._work.model}")
        if self._ended.done():
            raise RefusedAsk(503, "stopped", "the server has stopped")
        assert isinstance(read, tuple)  # what `read` returned
        prompt_tokens, names = read
        work = Work(
            prompt_tokens=prompt_tokens,
            context=self._blocks.chain(names),
            output_tokens=ask.max_tokens or self._work.output_tokens,
            finish_reason="stop" if ask.max_tokens is None else "length",
            session=session_name(headers),
            exchange=self._backend.exchange(ask),
        )
        reply = self._source.submit(work)
        request_id = headers.get("x-request-id")
        if request_id:  # joins the client's record to ours
            self.orchestrator.recorder.event(
                "request", self._clock.now(), turn_id=reply.turn_id, request_id=request_id[:200]
            )
        return reply

    def ready(self) -> bool:
        """Tell whether new requests are taken."""
        return not self._draining and not self._ended.done()

    def models(self) -> list[str]:
        """Return the one model there is."""
        return [self._work.model]

    def figures(self) -> bytes:
        """Return the page of metrics."""
        return self._figures.text()

    def live(self) -> bytes:
        """Return the numbers of the live page."""
        return self._page.content(self._clock.now(), self.ready())

    def open_streams(self) -> int:
        """Return how many answers are under way."""
        return self._answers.open_streams

    def retry_after_s(self) -> int:
        """Return how long the turns that wait now will take at the mean rate so far, in seconds of the wall."""
        ledger, now_s = self.orchestrator.ledger, self._clock.now()
        if not ledger.retired:
            return 1
        wait_s = (ledger.arrived - ledger.released) * now_s / ledger.retired / self.options.rate
        return min(max(1, math.ceil(wait_s)), LONGEST_WAIT_S)

    def _cancel(self, reply: Reply) -> None:
        if not self._ended.done():
            self.orchestrator.cancel(TurnId(reply.turn_id), GONE)

    def _totals(self) -> dict[str, float]:
        return {**self._backend.totals(), "generated_tokens": self._answers.generated_tokens}


def _epoch_s() -> float:
    return time.time()  # wall-clock: OpenAI's format states when an answer was made


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise UserError(f"--port {port}: {host}:{port} cannot be listened on: {error.strerror}") from error
