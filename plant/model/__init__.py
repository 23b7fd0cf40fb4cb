"""Seconds, joules and bytes from a configuration, in closed form. Read `moe`, then `layer`, then `tables`.

`moe`, `attention`, `precision` and `hardware` describe a model and a machine; `placement` and `memory` say how the
model is split and whether it fits; `kernels`, `attention_kernels`, `expert_kernels` and `network` give the cost of one
operation; `layer` lists the operations of a layer; `regimes` sums them; `tables`, `step_table` and `times` hand the
result to the event loop.
"""
