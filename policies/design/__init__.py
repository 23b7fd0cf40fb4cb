"""Theory beside the laws: what a loop should do, before it runs. Read `orbits` (relay cycles in closed form), then
`loops` (margins and roots with the dead time kept exact), then `fits` (a model from an experiment).

Pure functions of numbers and arrays. python-control is imported inside the functions that ask for it.
"""
