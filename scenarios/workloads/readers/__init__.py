"""One file a format: each declares its units in its docstring, says why it refuses a file, and fills the one record.

Read `detect` (which reader takes a file), then `weka` (the richest format), then `rows` (what the flat ones share).
"""
