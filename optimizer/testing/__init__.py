"""Checks for user-defined methods, solvers and plans.

The checks are based on the guarantees that methods make, and on relations that optimal values must
satisfy. `check_method` checks a `Method`, and `check_solver` checks any function that maps a
problem to a plan. `relations` returns the relations as data. `strategies` contains Hypothesis
strategies for random problems and plans, and requires the extra `testing`.

>>> from specopt.solvers.draft_allocation.greedy import Greedy
>>> from specopt.testing import check_method
>>> check_method(Greedy())
"""

from specopt.kinds.answers import NotConformant as NotConformant
from specopt.kinds.relation import Relation as Relation
from specopt.testing.guarantees import check_method as check_method
from specopt.testing.relations import relation as relation
from specopt.testing.relations import relations as relations
from specopt.testing.solver import check_problem as check_problem
from specopt.testing.solver import check_solver as check_solver
