"""`python -m scenarios.calibrate`."""

import sys
from pathlib import Path

from scenarios.calibrate.table import main

if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/verdict_calibration.json")))
