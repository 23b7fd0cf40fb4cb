"""What `/metrics` shows: the names that vLLM's dashboards read, and our own, in Prometheus's text format.

Counters are read when they are scraped; only the histograms are kept here. Seconds are those of the run: at
`--rate r`, r of them pass in one second of the wall.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from orchestrator.ledger import DECODING, FILLING, READY, WAITING
from orchestrator.messages import PoolReading
from orchestrator.orchestrator import Orchestrator
from orchestrator.readings import kv_used
from scenarios.serve.watch import RunningVerdict

Families = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
TEXT = "text/plain; version=0.0.4; charset=utf-8"
# Upper edges in seconds, as vLLM's (vllm/v1/metrics/loggers.py).
TTFT_EDGES_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10, 20, 40, 80)
TOKEN_EDGES_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10, 20, 40, 80)
TURN_EDGES_S = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)


class Histogram:
    """Counts by upper edge; `observe` takes many equal values at once."""

    def __init__(self, edges: tuple[float, ...]) -> None:
        self._edges = edges
        self._counts = [0] * (len(edges) + 1)
        self._sum = 0.0

    def observe(self, value: float, count: int = 1) -> None:
        """Add a value `count` times."""
        self._counts[bisect_left(self._edges, value)] += count
        self._sum += value * count

    def family(self, name: str, help_text: str, model: str) -> HistogramMetricFamily:
        """Return the histogram for a scrape."""
        running, buckets = 0, []
        for edge, count in zip((*map(str, self._edges), "+Inf"), self._counts):
            running += count
            buckets.append((edge, float(running)))
        family = HistogramMetricFamily(name, help_text, labels=["model_name"])
        family.add_metric([model], buckets, self._sum)
        return family


class Latencies:
    """The three histograms of a server."""

    def __init__(self) -> None:
        self.ttft_s, self.token_s, self.turn_s = (
            Histogram(TTFT_EDGES_S),
            Histogram(TOKEN_EDGES_S),
            Histogram(TURN_EDGES_S),
        )


class Figures(Collector):
    """Reads an orchestrator at each scrape.

    Parameters
    ----------
    orchestrator : Orchestrator
    model : str
    latencies : Latencies
    totals : callable
        Returns `prompt_tokens`, `hit_tokens` and `generated_tokens` since the start.
    engines : callable
        Returns (address, whether it is up, age of its metrics in seconds) of each real engine.
    verdict : RunningVerdict
    """

    def __init__(
        self,
        orchestrator: Orchestrator,
        model: str,
        latencies: Latencies,
        totals: Callable[[], Mapping[str, float]],
        engines: Callable[[], Sequence[tuple[str, bool, float | None]]],
        verdict: RunningVerdict,
    ) -> None:
        self._verdict = verdict
        self._orchestrator, self._model, self._latencies, self._totals = orchestrator, model, latencies, totals
        self._engines = engines

    def text(self) -> bytes:
        """Return the page."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Families]:
        """Yield every family."""
        reading = self._orchestrator.plant.read()
        yield from self._as_vllm(tuple(reading.pools.values()))
        yield from self._as_steadyflow()
        workers = GaugeMetricFamily("steadyflow_active_workers", "Workers that serve", labels=["configuration"])
        busy = GaugeMetricFamily("steadyflow_busy_slots", "Slots in use", labels=["configuration"])
        for name, pool in reading.pools.items():
            workers.add_metric([name], pool.active_workers)
            busy.add_metric([name], pool.busy_slots)
        yield workers
        yield busy
        up = GaugeMetricFamily("steadyflow_engine_up", "Whether a real engine answers its probe", labels=["url"])
        age = GaugeMetricFamily("steadyflow_engine_metrics_age_seconds", "Age of its last metrics", labels=["url"])
        for url, alive, age_s in self._engines():
            up.add_metric([url], float(alive))
            if age_s is not None:
                age.add_metric([url], age_s)
        yield up
        yield age
        words = GaugeMetricFamily("steadyflow_verdict", "1 at the verdict of now", labels=["signal", "verdict"])
        periods = GaugeMetricFamily("steadyflow_verdict_period_seconds", "Period of its cycle", labels=["signal"])
        for signal, verdict in self._verdict.verdicts.items():
            words.add_metric([signal, verdict.verdict], 1.0)
            if verdict.period_s is not None:
                periods.add_metric([signal], verdict.period_s)
        yield words
        yield periods

    def _as_vllm(self, pools: tuple[PoolReading, ...]) -> Iterator[Families]:
        ledger, model, totals = self._orchestrator.ledger, [self._model], self._totals()
        gauges = (
            ("vllm:num_requests_running", "Requests let in and not ended", ledger.in_flight.value),
            ("vllm:num_requests_waiting", "Requests that wait for admission", ledger.count(WAITING)),
            ("vllm:kv_cache_usage_perc", "Share of decode KV memory in use, 0 to 1", kv_used(pools) or 0.0),
        )
        for name, text, value in gauges:
            gauge = GaugeMetricFamily(name, text, labels=["model_name"])
            gauge.add_metric(model, value)
            yield gauge
        counters = (
            ("vllm:num_preemptions", "Turns that a full memory sent back", ledger.preempted),
            ("vllm:prefix_cache_queries", "Prompt tokens of all fills", totals["prompt_tokens"]),
            ("vllm:prefix_cache_hits", "Those of them that were cached", totals["hit_tokens"]),
            ("vllm:prompt_tokens", "Prompt tokens filled", totals["prompt_tokens"]),
            ("vllm:generation_tokens", "Tokens generated", totals["generated_tokens"]),
        )
        for name, text, value in counters:
            counter = CounterMetricFamily(name, text, labels=["model_name"])
            counter.add_metric(model, value)
            yield counter
        latencies = self._latencies
        yield latencies.ttft_s.family("vllm:time_to_first_token_seconds", "Seconds to the first token", self._model)
        yield latencies.token_s.family("vllm:inter_token_latency_seconds", "Seconds between tokens", self._model)
        yield latencies.turn_s.family("vllm:e2e_request_latency_seconds", "Seconds to the last token", self._model)

    def _as_steadyflow(self) -> Iterator[Families]:
        orchestrator = self._orchestrator
        ledger = orchestrator.ledger
        slots = orchestrator.slots()
        yield GaugeMetricFamily("steadyflow_backlog_turns", "Turns that wait for admission", ledger.count(WAITING))
        flying = GaugeMetricFamily("steadyflow_in_flight_turns", "Turns let in, by stage", labels=["stage"])
        for stage, name in ((FILLING, "filling"), (READY, "ready"), (DECODING, "decoding")):
            flying.add_metric([name], ledger.count(stage))
        yield flying
        yield GaugeMetricFamily("steadyflow_slots", "Decode slots", slots)
        share = ledger.count(DECODING) / slots if slots else 0.0
        yield GaugeMetricFamily("steadyflow_decode_occupancy_ratio", "Share of the decode slots in use", share)
        yield CounterMetricFamily("steadyflow_arrived_turns", "Turns that arrived", ledger.arrived)
        yield CounterMetricFamily("steadyflow_admitted_turns", "Turns let in", ledger.released)
        yield CounterMetricFamily("steadyflow_retired_turns", "Turns whose answer is whole", ledger.retired)
        for name, buckets in (("rejected", ledger.rejected), ("failed", ledger.failed)):
            family = CounterMetricFamily(f"steadyflow_{name}_turns", f"Turns {name}, by reason", labels=["reason"])
            for reason, count in buckets.items():
                family.add_metric([reason], count)
            yield family
        commands = GaugeMetricFamily("steadyflow_command", "What a law last commanded", labels=["slot", "field"])
        for slot, fields in orchestrator.loops.commands().items():
            for field, value in fields.items():
                if isinstance(value, bool | int | float):
                    commands.add_metric([slot, field], float(value))
        yield commands
        desired = GaugeMetricFamily(
            "steadyflow_desired_workers", "Workers that the capacity law wants", labels=["configuration"]
        )
        targets = orchestrator.loops.commands().get("capacity", {}).get("target_workers")
        if isinstance(targets, Mapping):
            for name, count in targets.items():
                desired.add_metric([str(name)], float(count))
        yield desired
