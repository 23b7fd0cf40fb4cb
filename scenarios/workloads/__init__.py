"""What arrives: traces that people have, traces made here, and the ways to replay either.

Read `record` (the one form that every reader fills), then `blocks` (what a cache could reuse, derived), then `player`
and `lanes` (how a recorded conversation becomes live turns).
"""
