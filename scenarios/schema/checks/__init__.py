"""Checks that need the whole scenario: references between tables, keys without effect, plants that cannot serve."""
