(* Functions of a real variable: vocabulary and lemmas of the generated theorems. *)
From Coq Require Export Reals Lra Psatz.
From Coquelicot Require Export Coquelicot.
Open Scope R_scope.

Lemma mean_value (f df : R -> R) a b :
  a < b -> (forall t, a <= t <= b -> is_derive f t (df t)) ->
  exists c, a < c < b /\ f b - f a = df c * (b - a).
Proof.
  intros ab D. destruct (MVT_cor2 f df a b ab) as [c [E Hc]].
  - intros c Hc. apply is_derive_Reals. apply D; exact Hc.
  - exists c; split; assumption.
Qed.

(* A function whose derivative is not positive does not increase. *)
Lemma not_increasing (f df : R -> R) a b :
  a <= b -> (forall t, a <= t <= b -> is_derive f t (df t)) ->
  (forall t, a < t < b -> df t <= 0) -> f b <= f a.
Proof.
  intros ab D N. destruct (Req_dec a b) as [e | ne]; [subst; lra |].
  destruct (mean_value f df a b) as [c [Hc E]]; [lra | exact D |].
  assert (df c <= 0) by (apply N; lra). nra.
Qed.

Lemma decreasing (f df : R -> R) a b :
  a < b -> (forall t, a <= t <= b -> is_derive f t (df t)) ->
  (forall t, a < t < b -> df t < 0) -> f b < f a.
Proof.
  intros ab D N. destruct (mean_value f df a b ab D) as [c [Hc E]].
  assert (df c < 0) by (apply N; lra). nra.
Qed.

(* A function whose derivative vanishes keeps its value. *)
Lemma constant (f : R -> R) a b : a <= b -> (forall t, a <= t <= b -> is_derive f t 0) -> f b = f a.
Proof.
  intros ab D. destruct (Req_dec a b) as [e | ne]; [subst; reflexivity |].
  destruct (mean_value f (fun _ => 0) a b) as [c [_ E]]; [lra | exact D | lra].
Qed.

(* The linear equation x' = p x has one solution from every start. *)
Lemma linear_flow (x : R -> R) p T :
  0 <= T -> (forall t, 0 <= t <= T -> is_derive x t (p * x t)) -> x T = exp (T * p) * x 0.
Proof.
  intros T0 D.
  assert (K : exp (- T * p) * x T = exp (- 0 * p) * x 0).
  { apply (constant (fun t => exp (- t * p) * x t) 0 T T0). intros t Ht.
    pose proof (D t Ht) as Dt. auto_derive; [exists (p * x t); exact Dt |].
    replace (Derive (fun y => x y) t) with (p * x t) by (symmetry; apply is_derive_unique; exact Dt). ring. }
  replace (- 0 * p) with 0 in K by ring. rewrite exp_0 in K.
  rewrite <- (Rmult_1_l (x 0)), <- K, <- Rmult_assoc, <- exp_plus. replace (T * p + - T * p) with 0 by ring.
  rewrite exp_0; ring.
Qed.

(* With a constant source c, it tends to - c / p. *)
Lemma forced_flow (x : R -> R) p c T :
  0 <= T -> p <> 0 -> (forall t, 0 <= t <= T -> is_derive x t (p * x t + c)) ->
  x T = exp (T * p) * (x 0 + c / p) - c / p.
Proof.
  intros T0 nz D. cut (x T + c / p = exp (T * p) * (x 0 + c / p)); [lra |].
  apply (linear_flow (fun t => x t + c / p) p T T0). intros t Ht.
  replace (p * (x t + c / p)) with (plus (p * x t + c) zero) by (unfold plus, zero; simpl; field; exact nz).
  apply (is_derive_plus x (fun _ => c / p)); [apply D; exact Ht | apply @is_derive_const].
Qed.

Lemma steady_growth (x : R -> R) c T :
  0 <= T -> (forall t, 0 <= t <= T -> is_derive x t c) -> x T = x 0 + c * T.
Proof.
  intros T0 D. destruct (Req_dec 0 T) as [e | ne]; [subst; ring |].
  destruct (mean_value x (fun _ => c) 0 T) as [s [_ E]]; [lra | exact D | lra].
Qed.

(* What starts below a level, and does not grow above it, stays below it. *)
Lemma barrier (f df : R -> R) T M :
  0 <= T -> f 0 <= M -> (forall t, 0 <= t <= T -> is_derive f t (df t)) ->
  (forall t, 0 <= t <= T -> M < f t -> df t <= 0) -> forall t, 0 <= t <= T -> f t <= M.
Proof.
  intros T0 start D N t Ht. destruct (Rle_lt_dec (f t) M) as [ok | bad]; [exact ok | exfalso].
  pose (E := fun x => 0 <= x <= t /\ f x <= M).
  destruct (completeness E) as [s [upper least]].
  - exists t. intros x [Hx _]; lra.
  - exists 0. split; lra.
  - assert (s0 : 0 <= s) by (apply upper; split; lra).
    assert (st : s <= t) by (apply least; intros x [Hx _]; lra).
    assert (fs : f s <= M).
    { destruct (Rle_lt_dec (f s) M) as [ok | b]; [exact ok | exfalso].
      assert (C : continuous f s) by (apply (ex_derive_continuous f); exists (df s); apply D; lra).
      destruct (C _ (open_gt M (f s) b)) as [[e pe] near].
      assert (s <= s - e / 2).
      { apply least. intros x [Hx fx]. destruct (Rle_lt_dec x (s - e / 2)) as [ok | no]; [exact ok | exfalso].
        assert (x <= s) by (apply upper; split; assumption).
        assert (M < f x) by (apply near; apply Rabs_lt_between'; simpl; lra). lra. }
      lra. }
    assert (after : forall x, s < x <= t -> M < f x).
    { intros x Hx. destruct (Rle_lt_dec (f x) M) as [ok | no]; [exfalso | exact no].
      assert (x <= s) by (apply upper; split; lra). lra. }
    destruct (Req_dec s t) as [e | ne]; [subst; lra |].
    assert (f t <= f s); [| lra].
    apply (not_increasing f df s t st); intros; [apply D | apply N; [| apply after]]; lra.
Qed.

(* Weighted means over n nodes. *)
Fixpoint total (n : nat) (f : nat -> R) : R := match n with O => 0 | S k => total k f + f k end.

Definition stochastic (n : nat) (w : nat -> R) := (forall j, (j < n)%nat -> 0 <= w j) /\ total n w = 1.

Lemma total_scaled n c f : total n (fun j => f j * c) = total n f * c.
Proof. induction n as [| n IH]; simpl; [| rewrite IH]; ring. Qed.

Lemma total_ordered n f g : (forall j, (j < n)%nat -> f j <= g j) -> total n f <= total n g.
Proof.
  induction n as [| n IH]; simpl; intros le; [lra |].
  assert (f n <= g n) by (apply le; lia). assert (total n f <= total n g) by (apply IH; intros; apply le; lia). lra.
Qed.

(* A mean with non-negative weights of sum 1 stays between the bounds of what is averaged. *)
Lemma mean_between n w h lo hi :
  stochastic n w -> (forall j, (j < n)%nat -> lo <= h j <= hi) -> lo <= total n (fun j => w j * h j) <= hi.
Proof.
  intros [pos one] bound. split.
  - replace lo with (total n (fun j => w j * lo)) by (rewrite total_scaled, one; ring).
    apply total_ordered; intros j Hj. apply Rmult_le_compat_l; [apply pos | apply bound]; exact Hj.
  - replace hi with (total n (fun j => w j * hi)) by (rewrite total_scaled, one; ring).
    apply total_ordered; intros j Hj. apply Rmult_le_compat_l; [apply pos | apply bound]; exact Hj.
Qed.

(* The mean of exp(-s) over [0, u]. *)
Definition mean_decay (u : R) : R := (1 - exp (- u)) / u.

Lemma mean_decay_falls u v : 0 < u -> u < v -> mean_decay v < mean_decay u.
Proof.
  intros u0 uv. apply (decreasing mean_decay (fun t => (exp (- t) * (1 + t) - 1) / t ^ 2) u v uv).
  - intros t Ht. unfold mean_decay. auto_derive; [lra | field; lra].
  - intros t Ht. apply Ropp_lt_cancel. rewrite Ropp_0.
    replace (- ((exp (- t) * (1 + t) - 1) / t ^ 2)) with ((1 - exp (- t) * (1 + t)) / t ^ 2) by (field; lra).
    apply Rdiv_lt_0_compat; [| apply pow_lt; lra].
    assert (E : exp t * exp (- t) = 1) by (rewrite <- exp_plus; replace (t + - t) with 0 by ring; apply exp_0).
    pose proof (exp_ineq1 t ltac:(lra)). pose proof (exp_pos (- t)). nra.
Qed.

Lemma mean_decay_below_1 u : 0 < u -> mean_decay u < 1.
Proof.
  intros u0. unfold mean_decay. pose proof (exp_ineq1 (- u) ltac:(lra)).
  apply (Rmult_lt_reg_r u); [assumption |]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.
