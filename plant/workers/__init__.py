"""Workers that fill, decode, or do both, event by event. Read `decode`, then `fill`, then `job`."""
