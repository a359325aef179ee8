"""From data and code back to equations: `fit/` coefficients, `formulas/` functions, `layers/` code that computes an
equation.

coefficients: Fit
formulas:     distil, Distillation, find_formula, Formula, FormulaSearch
layers:       Conformity, Recovery
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from rdgraph.infer.fit.fitted_values import Fit as Fit
    from rdgraph.infer.formulas.formula_finding import Formula as Formula
    from rdgraph.infer.formulas.formula_finding import FormulaSearch as FormulaSearch
    from rdgraph.infer.formulas.formula_finding import find_formula as find_formula
    from rdgraph.infer.formulas.state_distillation import Distillation as Distillation
    from rdgraph.infer.formulas.state_distillation import distil as distil
    from rdgraph.infer.layers.conformity import Conformity as Conformity
    from rdgraph.infer.layers.recovery import Recovery as Recovery

__all__, __getattr__, __dir__ = lazy_door(__name__)
