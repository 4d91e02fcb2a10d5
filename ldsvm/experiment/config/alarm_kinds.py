"""The kinds of alarms that an experiment may choose from, in a file that imports nothing slow."""

from typing import Literal

AlarmKind = Literal["failed", "crashed", "drift", "refused", "in_shadow", "promoted", "rolled_back"]
