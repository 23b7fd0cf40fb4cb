"""The panels of the report, one a file; each takes the runs and returns a `Panel`, or None without its data.

Read `occupancy` first: the others follow it.
"""
