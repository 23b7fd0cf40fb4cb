"""Candidates side by side on paired seeds. Read `compare` (the runs), then `join` (means, intervals, differences)."""
