"""Planner of placements, from the layer model. Read `frontier` (what is searched), `validate` (how far to trust it),
then `explain` (one layer).
"""
