(* Matrices over a commutative ring or a real field: vocabulary and tactics of the generated theorems. *)
From mathcomp Require Export all_ssreflect all_algebra.
From mathcomp Require Export ring.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* The elementwise product of two fields. *)
Definition hadamard (R : comRingType) n d (X Y : 'M[R]_(n, d)) : 'M[R]_(n, d) := \matrix_(i, j) (X i j * Y i j).

(* L = I - A. *)
Definition laplacian (R : comRingType) n (A : 'M[R]_n) : 'M[R]_n := 1%:M - A.

(* Spreads products of operators over sums and moves coefficients to the front, operators to the right. *)
Ltac expand :=
  rewrite ?/laplacian;
  repeat (progress (rewrite ?(mulmxDl, mulmxDr, mulmxBl, mulmxBr, mulNmx, mulmxN, mul1mx, mulmx1, mul0mx, mulmx0)
    ?scalemx1 ?mul_scalar_mx ?mul_mx_scalar ?scale0r ?scale1r -?scalemxAl -?scalemxAr -?mulmxA)).

(* Gives every product A *m H a name, innermost first, so that what remains is linear in names. *)
Ltac name_products :=
  repeat match goal with |- context [?M *m ?X] =>
    is_var M; is_var X; let Y := fresh "Y" in set Y := (M *m X); clearbody Y end.

(* Reads an equation of matrices entry by entry and hands every entry to `ring`. *)
Ltac read_entries :=
  let i := fresh "i" in let j := fresh "j" in
  apply/matrixP => i j; rewrite !mxE;
  repeat match goal with |- context [fun_of_matrix ?X ?k ?l] =>
    is_var X; let x := fresh "x" in move: (fun_of_matrix X k l) => x end.

Ltac operators := expand; name_products; read_entries; ring.

(* The same, where a hypothesis says what an operator does to a vector. *)
Ltac operators_by known := expand; repeat (progress (rewrite ?known; expand)); name_products; read_entries; ring.

Lemma scaled_step (R : comRingType) n d (a c : R) (X Y : 'M[R]_(n, d)) : a *: (X + c *: Y) = a *: X + (a * c) *: Y.
Proof. by rewrite scalerDr scalerA. Qed.

Section Averages.
Variable R : realFieldType.

(* Rows with non-negative entries of sum 1. *)
Definition row_stochastic n (A : 'M[R]_n) := (forall i j, 0 <= A i j) /\ (forall i, \sum_j A i j = 1).

(* An average stays between the bounds of what is averaged. *)
Lemma average_at_most n (A : 'M[R]_n) (h : 'cV[R]_n) c :
  row_stochastic A -> (forall i, h i 0 <= c) -> forall i, (A *m h) i 0 <= c.
Proof.
move=> [pos one] bound i; rewrite mxE.
have -> : c = \sum_j A i j * c by rewrite -mulr_suml one mul1r.
by apply: ler_sum => j _; apply: ler_wpmul2l.
Qed.

Lemma average_at_least n (A : 'M[R]_n) (h : 'cV[R]_n) c :
  row_stochastic A -> (forall i, c <= h i 0) -> forall i, c <= (A *m h) i 0.
Proof.
move=> [pos one] bound i; rewrite mxE.
have -> : c = \sum_j A i j * c by rewrite -mulr_suml one mul1r.
by apply: ler_sum => j _; apply: ler_wpmul2l.
Qed.

(* The largest entry in modulus: the inf-norm is at most c. *)
Definition within n (h : 'cV[R]_n) c := forall i, `|h i 0| <= c.

Lemma average_within n (A : 'M[R]_n) (h : 'cV[R]_n) c : row_stochastic A -> within h c -> within (A *m h) c.
Proof.
move=> rows bound i; rewrite ler_norml; apply/andP; split.
  by apply: average_at_least => // j; have := bound j; rewrite ler_norml => /andP[].
by apply: average_at_most => // j; have := bound j; rewrite ler_norml => /andP[].
Qed.

Lemma difference_within n (g h : 'cV[R]_n) c e : within g c -> within h e -> within (g - h) (c + e).
Proof.
by move=> bg bh i; rewrite !mxE; apply: le_trans (ler_norm_sub _ _) _; apply: ler_add; [apply: bg | apply: bh].
Qed.
End Averages.

(* A column of X diag(b) is the column of X, b_j times; a column of A X is A times the column of X. *)
Lemma col_diag_product (R : comRingType) n d (X : 'M[R]_(n, d)) (b : 'rV[R]_d) j :
  col j (X *m diag_mx b) = b 0 j *: col j X.
Proof. by apply/matrixP => i k; rewrite mul_mx_diag !mxE mulrC. Qed.

Lemma col_product (R : comRingType) n m d (A : 'M[R]_(n, m)) (X : 'M[R]_(m, d)) j : col j (A *m X) = A *m col j X.
Proof. by rewrite colE -mulmxA -colE. Qed.

Lemma col_add (R : comRingType) n d (X Y : 'M[R]_(n, d)) j : col j (X + Y) = col j X + col j Y.
Proof. by apply/matrixP => i k; rewrite !mxE. Qed.

Lemma col_sub (R : comRingType) n d (X Y : 'M[R]_(n, d)) j : col j (X - Y) = col j X - col j Y.
Proof. by apply/matrixP => i k; rewrite !mxE. Qed.
