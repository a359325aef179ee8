(* What solutions of x' = f(x) do: lemmas about flows, levels that are never crossed, and times to blow-up. *)
From Rdgraph Require Export reals.
Open Scope R_scope.

(* A time to blow-up that falls at speed 1 along a solution, and stays positive, bounds how long the solution lasts. *)
Lemma lifetime_falls (life rate x : R -> R) T (inside : R -> Prop) :
  0 <= T -> (forall t, 0 <= t <= T -> is_derive x t (rate (x t))) -> (forall t, 0 <= t <= T -> inside (x t)) ->
  (forall u, inside u -> rate u <> 0 /\ is_derive life u (- / rate u) /\ 0 < life u) ->
  life (x T) = life (x 0) - T /\ T < life (x 0).
Proof.
  intros T0 D In known.
  assert (falls : life (x T) + T = life (x 0) + 0).
  { apply (constant (fun t => life (x t) + t) 0 T T0). intros t Ht.
    destruct (known _ (In t Ht)) as [nz [dl _]].
    replace 0 with (plus (scal (rate (x t)) (- / rate (x t))) one)
      by (unfold plus, scal, one; simpl; unfold mult; simpl; field; exact nz).
    apply (is_derive_plus (fun t => life (x t)) (fun t => t)).
    - apply (is_derive_comp life x t _ _ dl (D t Ht)).
    - apply @is_derive_id. }
  destruct (known _ (In T ltac:(lra))) as [_ [_ positive]]. split; lra.
Qed.

(* The logarithm lies below its tangent. *)
Lemma ln_below v : -1 < v -> v <> 0 -> ln (1 + v) < v.
Proof. intros lo nz. rewrite <- (ln_exp v) at 2. apply ln_increasing; [lra |]. apply exp_ineq1; exact nz. Qed.

Lemma ln_positive u : 1 < u -> 0 < ln u.
Proof. intros big. rewrite <- ln_1. apply ln_increasing; lra. Qed.

(* Puts the known derivative of a function in the place of `Derive`. *)
Ltac known_derivative D :=
  match type of D with is_derive ?f ?t ?l =>
    change (Derive (fun u => f u) t) with (Derive f t); rewrite (is_derive_unique f t l D) end.
