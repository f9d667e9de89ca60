"""What independent solvers say about a cut: HiGHS where a set is a polytope, Clarabel elsewhere.

A set is stated once, in the words of ``cases.py``: for HiGHS as a linear program, for Clarabel as the conic form that CVXPY
makes of its constraints. From cut to cut only the objective and one row change, so that each of thousands of cuts can ask.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import clarabel
import cvxpy
import highspy
import numpy as np
import scipy.sparse
from cases import Case
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import dims_to_solver_cones

FEASIBILITY = 1e-10  # tightest tolerance that HiGHS allows
DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4  # strategies, in the numbers of HiGHS
ACCURACY = 1e-10  # accuracy that Clarabel is asked for; it stops earlier where rounding prevents it


class Answer(NamedTuple):
    """The least value, its multiplier, and by how much the solver's own figures leave the value in doubt."""

    value: float
    multiplier: float
    doubt: float


def stated(case: Case, domain: Any, d: int) -> LinearModel | ConicModel:
    """State a set of a case to the solver for it."""
    return LinearModel(case, domain, d) if case.linear is not None else ConicModel(case, domain, d)


class LinearModel:
    """A polytope for HiGHS, in units of its largest bound, because the solver's tolerances are absolute."""

    def __init__(self, case: Case, domain: Any, d: int):
        assert case.linear is not None
        model = case.linear(domain, d)
        self.lift = model.get("lift", np.eye(d))  # s = lift @ variables
        count = self.lift.shape[1]
        upper, equal = (np.reshape(model.get(name, []), (-1, count)) for name in ("A_ub", "A_eq"))
        most = np.concatenate([model.get("b_ub", []), model.get("b_eq", [])])
        least = np.concatenate([np.full(len(upper), -np.inf), model.get("b_eq", [])])
        bounds = np.array(np.broadcast_to(np.array(model["bounds"], dtype=float), (count, 2)))  # None becomes NaN
        bounds = np.where(np.isnan(bounds), [-np.inf, np.inf], bounds)
        known = np.concatenate([most, bounds.ravel()])
        self.unit = float(np.abs(known[np.isfinite(known)]).max())
        rows = scipy.sparse.csr_array(np.vstack([upper, equal]))
        self.solver = highspy.Highs()
        for option, value in [
            ("output_flag", False),
            ("presolve", "off"),
            ("threads", 1),
            ("primal_feasibility_tolerance", FEASIBILITY),
            ("dual_feasibility_tolerance", FEASIBILITY),
            ("small_matrix_value", 1e-12),
        ]:
            self.solver.setOptionValue(option, value)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = count, len(most)
        lp.col_cost_ = np.zeros(count)
        lp.col_lower_, lp.col_upper_ = bounds[:, 0] / self.unit, bounds[:, 1] / self.unit
        lp.row_lower_, lp.row_upper_ = least / self.unit, most / self.unit
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
        self.solver.passModel(lp)
        self.columns = np.arange(count, dtype=np.int32)
        self.cut = len(most)  # the index of the row of the cut, once it is there

    def solve(self, c: np.ndarray, a: np.ndarray, b: float) -> Answer | None:
        """Return what is least where ⟨a, s⟩ ≤ b; None if there is no such point."""
        solver, count = self.solver, self.columns.size
        if solver.getNumRow() > self.cut:
            solver.deleteRows(1, np.array([self.cut], dtype=np.int32))
        solver.addRow(-np.inf, b / self.unit, count, self.columns, a @ self.lift)
        solver.changeColsCost(count, self.columns, c @ self.lift)
        for strategy in (DUAL_SIMPLEX, PRIMAL_SIMPLEX):  # one may give up on a problem that the other solves
            solver.setOptionValue("simplex_strategy", strategy)
            solver.clearSolver()
            solver.run()
            status = solver.getModelStatus()
            if status != highspy.HighsModelStatus.kUnknown:
                break
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        assert status == highspy.HighsModelStatus.kOptimal, solver.modelStatusToString(status)
        found, info = solver.getSolution(), solver.getInfo()
        prices = np.abs(found.row_dual).max()
        doubt = prices * info.sum_primal_infeasibilities + info.sum_dual_infeasibilities
        return Answer(
            self.unit * info.objective_function_value,
            -found.row_dual[self.cut],
            self.unit * (doubt + FEASIBILITY * np.abs(c).sum()),
        )


class ConicModel:
    """A set for Clarabel: minimise over x, s where A x + s = b, s in a product of cones, as CVXPY states it."""

    def __init__(self, case: Case, domain: Any, d: int):
        s = cvxpy.Variable(d)
        data, _, _ = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(s)), case.constraints(domain, s)).get_problem_data(
            cvxpy.CLARABEL
        )
        start = data["param_prob"].var_id_to_col[s.id]
        self.own = np.arange(start, start + d)  # the columns of s
        self.rows, self.sides = scipy.sparse.csc_array(data["A"]), data["b"]
        self.cones = [clarabel.NonnegativeConeT(1), *dims_to_solver_cones(data["dims"])]  # the cut, and the set
        self.settings = clarabel.DefaultSettings()
        self.settings.verbose = False
        self.settings.max_threads = 1
        self.settings.tol_gap_abs = self.settings.tol_gap_rel = self.settings.tol_feas = ACCURACY

    def solve(self, c: np.ndarray, a: np.ndarray, b: float) -> Answer | None:
        """Return what is least where ⟨a, s⟩ ≤ b; None if there is no such point."""
        count = self.rows.shape[1]
        cost, cut = np.zeros(count), np.zeros((1, count))
        cost[self.own], cut[0, self.own] = c, a
        rows = scipy.sparse.vstack([scipy.sparse.csc_array(cut), self.rows], format="csc")
        nothing = scipy.sparse.csc_array((count, count))
        solver = clarabel.DefaultSolver(nothing, cost, rows, np.append(b, self.sides), self.cones, self.settings)
        try:
            found = solver.solve()
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            return Answer(0.0, 0.0, math.inf)  # so it ends at some semidefinite sets that a cut all but misses
        if "Infeasible" in str(found.status):
            return None
        if "Solved" not in str(found.status):  # it gave up: where a cut all but misses the set
            return Answer(found.obj_val, found.z[0], math.inf)
        residual = np.abs(found.x).sum() * found.r_dual + np.abs(found.z).sum() * found.r_prim
        return Answer(found.obj_val, found.z[0], abs(found.obj_val - found.obj_val_dual) + residual)
