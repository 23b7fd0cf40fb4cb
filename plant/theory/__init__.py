"""Plants without racks, for comparison with control theory: `tandem` (a dead time, then slots), and `fluid` (the same
as a delay differential equation).
"""
