"""The scenario file. Read `scenario` (the whole), then `laws` (every law's parameters), then `load` (paths and errors).

pydantic lives here and nowhere below.
"""
