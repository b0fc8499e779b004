"""The laboratory's tests run with the settings of the project's tests: numpy's vectors and
hypothesis' profiles.
"""

import conftest  # noqa: F401
