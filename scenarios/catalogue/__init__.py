"""Every signal, verdict word and verdict field, for all other rooms: `signals`, then `verdict`."""
