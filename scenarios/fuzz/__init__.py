"""Random worlds, what must hold in each, and how a failure is made small: read `worlds`, `invariants`, `shrink`."""
