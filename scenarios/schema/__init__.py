"""The scenario file. Read `contents` (its keys), then `scenario` (its checks), `laws`, then `load` (paths and errors).

pydantic lives here and nowhere below.
"""
