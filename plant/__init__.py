"""The factory that is controlled. Read `tandem` (theory's own plant), then `cluster`, then `times`.

Plain functions on the clock's heap; Futures cross to the orchestrator; it knows no policy.
"""
