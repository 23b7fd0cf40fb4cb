"""The factory that is controlled. Read `tandem` (theory's own plant), then `cluster`, then `times`.

The seconds of a real model: `model` and `hardware` describe, `kernels` and `network` cost, `layer` lists one layer's
operations, `regimes` sums them, `tables` hands them to the event loop.

Plain functions on the clock's heap; Futures cross to the orchestrator; it knows no policy.
"""
