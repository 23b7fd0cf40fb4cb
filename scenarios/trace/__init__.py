"""What a trace is, in numbers, and the ways from one form to another.

Read `inspect` (every figure that `steadyflow trace inspect` prints), then `labels` (how a prefix breaks), then
`convert`.
"""
