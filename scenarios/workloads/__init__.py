"""Workloads: recorded traces, generated traces, and the sources that replay either as turns.

Read `corpus` (the in-memory form of every trace), then `blocks` and `derive` (what a prefix cache could reuse), then
`player` and `lanes` (how a recorded conversation becomes live turns).
"""
