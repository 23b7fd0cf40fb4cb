"""A plant behind an OpenAI-compatible endpoint, in wall time: HTTP requests become turns.

Read `source` (requests as turns), then `streams` (when their tokens exist), then `service` (one server).
"""
