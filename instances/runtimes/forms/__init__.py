"""The forms that measured runtimes are fitted with, a file each; a new one is a file here and an
entry of `FORMS`.
"""

from __future__ import annotations

from specopt.instances.runtimes.forms.additive import Additive
from specopt.instances.runtimes.forms.form import Form
from specopt.instances.runtimes.forms.linear import Linear
from specopt.instances.runtimes.forms.roofline import Roofline

FORMS = {form.name: form for form in (Linear(), Roofline(), Additive())}
"""By name, from the simplest on."""

__all__ = ["FORMS", "Additive", "Form", "Linear", "Roofline"]
