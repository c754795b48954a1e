"""Measurements against HAProxy, side by side in one run; see bench/README.md.

It stands on `tests/support`, which is made importable here.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
