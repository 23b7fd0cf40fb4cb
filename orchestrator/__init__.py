"""The kernel. Read `ports` (the seams), then `orchestrator` (one coroutine per turn), then `virtual_loop` (time).

It knows no concrete policy and no concrete plant.
"""
