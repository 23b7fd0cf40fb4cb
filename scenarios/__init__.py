"""Describes, builds, runs, compares, judges and reports. Read `schema`, then `build`, then `run`.

The only package that names every concrete law and plant.
"""
