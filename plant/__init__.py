"""The factory that is controlled. Read `tandem` (the theory's own plant), then `cluster`, then `times` (seconds a step).

Plain functions on the clock's heap; Futures cross to the orchestrator; it knows no policy.
"""
