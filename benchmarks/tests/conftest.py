"""Run the tests of the benchmarks with the settings of the project's tests: numpy's vector
instructions and the profiles of hypothesis.
"""

import conftest  # noqa: F401
