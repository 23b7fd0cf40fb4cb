"""Plants without racks: `tandem` (dead time, then slots), `fluid` (the same as a delay differential equation), and
`recorded` (a turn takes the time that its trace recorded).
"""
