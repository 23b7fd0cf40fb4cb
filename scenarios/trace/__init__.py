"""Describe a trace in figures, and convert it between formats.

Read `inspect` (every figure that `steadyflow trace inspect` prints), then `labels` (how a prefix breaks), then
`convert`.
"""
