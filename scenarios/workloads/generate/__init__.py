"""Generated workloads, so that everything runs without recorded data.

Read `agent` and `prompts` (a coding agent's session, turn by turn), then `tables` (the published figures they are
fitted to), then `presets`.
"""
