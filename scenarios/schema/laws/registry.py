"""Every law that a scenario file can name, by slot and `kind`. A line here registers a law; nothing else does.

`hold` (a slot left alone) and `file` (a class of the user's own file) belong to no slot and are added by `tables`.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.messages import Slot

SLOTS: tuple[Slot, ...] = ("admission", "batching", "capacity", "demand", "retention")

LAWS: Mapping[str, Mapping[str, str]] = {
    "admission": {
        "retirement_gate": "policies.admission.retirement_gate:RetirementGate",
        "credit": "policies.admission.credit:Credit",
        "inflight_credit_gate": "policies.admission.inflight_credit_gate:InflightCreditGate",
        "proportional_gate": "policies.admission.proportional_gate:ProportionalGate",
        "paced_wip": "policies.admission.paced_wip:PacedWip",
        "predictive_buffer": "policies.admission.predictive_buffer:PredictiveBuffer",
        "predictive_buffer_naive": "policies.admission.predictive_buffer_naive:PredictiveBufferNaive",
        "self_tuning_predictor": "policies.admission.self_tuning_predictor:SelfTuningPredictor",
        "pi_backlog": "policies.admission.pi_backlog:PiBacklog",
        "saturation_gate": "policies.admission.saturation_gate:SaturationGate",
        "limit_aimd": "policies.admission.limit_aimd:LimitAimd",
        "limit_vegas": "policies.admission.limit_vegas:LimitVegas",
        "limit_gradient2": "policies.admission.limit_gradient2:LimitGradient2",
        "limit_envoy": "policies.admission.limit_envoy:LimitEnvoy",
        "early_reject": "policies.admission.early_reject:EarlyReject",
        "codel": "policies.admission.codel:Codel",
        "dagor": "policies.admission.dagor:Dagor",
        "holdback": "policies.admission.holdback:Holdback",
        "step": "policies.admission.step:Step",
        "prbs": "policies.admission.prbs:Prbs",
        "relay": "policies.admission.relay:Relay",
    },
    "batching": {
        "slo_cap": "policies.batching.slo_cap:SloCap",
        "aimd": "policies.batching.aimd:Aimd",
        "slew_limited": "policies.batching.slew_limited:SlewLimited",
        "small_batch": "policies.batching.small_batch:SmallBatch",
    },
    "capacity": {
        "hpa": "policies.capacity.hpa:Hpa",
        "planner": "policies.capacity.planner:Planner",
        "queue_model": "policies.capacity.queue_model:QueueModel",
        "mpc": "policies.capacity.mpc:Mpc",
        "step": "policies.capacity.step:Step",
        "prbs": "policies.capacity.prbs:Prbs",
        "relay": "policies.capacity.relay:Relay",
    },
    "demand": {
        "holt_winters": "policies.demand.holt_winters:HoltWinters",
        "seasonal_profile": "policies.demand.seasonal_profile:SeasonalProfile",
        "kalman": "policies.demand.kalman:Kalman",
        "announced": "policies.demand.announced:Announced",
    },
    "retention": {
        "lru": "policies.retention.lru:Lru",
        "ttl": "policies.retention.ttl:Ttl",
        "reuse_classifier": "policies.retention.reuse_classifier:ReuseClassifier",
    },
    "routing": {
        "least_loaded": "policies.routing.least_loaded:LeastLoaded",
        "state_aware": "policies.routing.state_aware:StateAware",
        "power_of_two": "policies.routing.power_of_two:PowerOfTwo",
        "round_robin": "policies.routing.round_robin:RoundRobin",
        "prefix_affinity": "policies.routing.prefix_affinity:PrefixAffinity",
        "shortest_work": "policies.routing.shortest_work:ShortestWork",
        "backpressure": "policies.routing.backpressure:Backpressure",
        "context_class": "policies.routing.context_class:ContextClass",
    },
}
