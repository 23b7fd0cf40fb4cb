"""Tables of the laws, derived from the laws themselves. Read `registry` (which laws there are), then `tables`, `part`.

`scenarios.build.laws` makes a law from its table.
"""

from scenarios.schema.laws.candidate import Candidate
from scenarios.schema.laws.part import FileLaw, Hold, LawPart, RouterPart
from scenarios.schema.laws.tables import LAW_TABLES

__all__ = ["LAW_TABLES", "Candidate", "FileLaw", "Hold", "LawPart", "RouterPart"]
