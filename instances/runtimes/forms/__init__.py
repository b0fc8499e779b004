"""Functional forms of fitted runtimes.

Each form has a module and an entry in `FORMS`.
"""

from __future__ import annotations

from specopt.instances.runtimes.forms.additive import Additive
from specopt.instances.runtimes.forms.form import Form
from specopt.instances.runtimes.forms.linear import Linear
from specopt.instances.runtimes.forms.roofline import Roofline

FORMS = {form.name: form for form in (Linear(), Roofline(), Additive())}
"""Mapping from names to forms, with the simplest form first."""

__all__ = ["FORMS", "Additive", "Form", "Linear", "Roofline"]
