"""What the plant reports may be old; what the orchestrator counts itself need not be."""

from __future__ import annotations

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Every
from orchestrator.telemetry import TelemetrySpec
from orchestrator.virtual_clock import VirtualClock, run_virtual
from tests.orchestrator.kit import Coming, World


class Seen:
    """An admission law that keeps what it sees."""

    def __init__(self) -> None:
        self.cadence = Every(period_s=0.25)
        self.readings: list[AdmissionReading] = []

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        self.readings.append(y)
        return AdmissionCommand()


def test_a_fresh_ledger_leaves_age_noise_and_losses_to_what_the_plant_reports() -> None:
    scraped = {"period_s": 2.0, "age_s": 1.0, "drop_ratio": 0.2}
    coming = [Coming(k * 0.1) for k in range(60)]

    def readings(telemetry: TelemetrySpec) -> list[AdmissionReading]:
        law = Seen()

        async def main(clock: VirtualClock) -> None:
            await World(clock, coming, laws={"admission": law}, horizon_s=8.0, telemetry=telemetry, slots=9).run()

        run_virtual(main)
        return law.readings

    live, old = readings(TelemetrySpec()), readings(TelemetrySpec(**scraped))
    both = readings(TelemetrySpec(**scraped, ledger="fresh"))
    reported = (
        "at_s",
        "backlog_turns",
        "in_flight_turns",
        "ready_turns",
        "decoding_turns",
        "arrival_per_s",
        "retired_total",
    )
    for name in reported:
        assert [getattr(y, name) for y in both] == [getattr(y, name) for y in live]
    assert [y.busy_slots for y in both] == [y.busy_slots for y in old] != [y.busy_slots for y in live]
