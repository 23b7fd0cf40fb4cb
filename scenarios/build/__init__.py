"""From a scenario's tables to objects: the one place that names every law, plant and workload.

Read `assemble` (an orchestrator from a scenario), then `laws`.
"""
