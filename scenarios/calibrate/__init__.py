"""The verdict's calibration. Read `table` (the stated figures, and the command), then `plants` (nulls and cycles run in
the simulated plants), then `series` (nulls and cycles made by formulas, and the power curve).
"""
