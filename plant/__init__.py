"""The plant: what the orchestrator controls. Read `theory.tandem` (the simplest plant), then `cluster`.

`model` computes seconds, joules and bytes from a configuration. `workers`, `links` and `kv` are what moves in a run:
worker racks, shared network links, and the tiers that keep KV state. `theory` holds the plants without racks.
Plain functions on the clock's heap; Futures cross to the orchestrator; no policy is imported here.
"""
