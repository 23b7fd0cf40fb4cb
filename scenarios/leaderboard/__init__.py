"""Policies ranked on two axes over a fixed field: see `ranking`."""
