"""The forms that fitted runtimes can have, with one module per form. A new form also needs an entry
in `FORMS`.
"""

from __future__ import annotations

from specopt.instances.runtimes.forms.additive import Additive
from specopt.instances.runtimes.forms.form import Form
from specopt.instances.runtimes.forms.linear import Linear
from specopt.instances.runtimes.forms.roofline import Roofline

FORMS = {form.name: form for form in (Linear(), Roofline(), Additive())}
"""Forms by name, simplest first."""

__all__ = ["FORMS", "Additive", "Form", "Linear", "Roofline"]
