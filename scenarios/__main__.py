"""`python -m scenarios` is `steadyflow`."""

from scenarios.cli import main

main()
