"""Seconds, joules and bytes from a configuration, in closed form. Read `moe`, then `layer`, then `tables`.

`moe` and `hardware` describe a model and a machine; `placement` and `memory` say what lies where and whether it fits;
`kernels` and `network` give the cost of one operation; `layer` lists the operations of a layer; `regimes` sums them;
`tables` and `times` hand the result to the event loop.
"""
