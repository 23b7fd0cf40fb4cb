"""Workloads made here, so that everything runs without anyone's data.

Read `agent` (a coding agent's session, turn by turn), then `tables` (the published figures it is held to), then
`presets`.
"""
