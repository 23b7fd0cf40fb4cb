"""Parameters of every law, one file a slot; `scenarios.build.laws` makes the laws.

A law is registered by a class and a line of the union in its slot's file here, and by one `case` in its slot's file
there; nothing else does. Read `part`, then `admission`.
"""

from scenarios.schema.laws.candidate import Candidate
from scenarios.schema.laws.part import FileLaw, Hold, LawPart

__all__ = ["Candidate", "FileLaw", "Hold", "LawPart"]
