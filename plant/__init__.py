"""The plant: what the orchestrator controls. Read `theory.tandem` (the simplest plant), then `cluster`.

`model` computes seconds, joules and bytes from a configuration, `presets` names published models and machines. `links`,
`workers` and `kv` move in a run: shared network links, workers, and the tiers that keep KV state between turns.
`cluster` joins them behind the `Plant` port, with `fleet` (the workers and their faults) and `cluster_events` (what
workers report). `theory` holds the plants without racks.
Everything is a plain function on the clock's heap; Futures cross to the orchestrator; no policy is imported here.
"""
