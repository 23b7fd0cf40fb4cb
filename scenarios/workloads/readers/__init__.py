"""Trace readers, one module per format: each declares its units, recognises its files and returns a `Corpus`.

Read `detect` (which reader takes a file), then `weka` (the richest format), then `rows` (what the flat ones share).
"""
