"""The laws, one a file, by slot. Read `admission/predictive_buffer`, then `admission/retirement_gate`, then `design`.

A law takes a frozen reading and returns a frozen command; it knows no plant, no clock and no true output length.
"""
