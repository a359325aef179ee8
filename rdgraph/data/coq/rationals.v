(* Matrices of rational numbers as lists of rows: what a counter-example is computed with. *)
From Coq Require Export QArith List.
Export ListNotations.
Open Scope Q_scope.

Definition matrix := list (list Q).

Fixpoint zip (f : Q -> Q -> Q) (x y : list Q) : list Q :=
  match x, y with a :: x, b :: y => Qred (f a b) :: zip f x y | _, _ => [] end.
Fixpoint entrywise (f : Q -> Q -> Q) (x y : matrix) : matrix :=
  match x, y with a :: x, b :: y => zip f a b :: entrywise f x y | _, _ => [] end.
Definition each (f : Q -> Q) (x : matrix) : matrix := map (map (fun a => Qred (f a))) x.

Definition add := entrywise Qplus.
Definition sub := entrywise Qminus.
Definition hadamard := entrywise Qmult.
Definition opp := each Qopp.
Definition scale (c : Q) := each (Qmult c).
Definition shift (c : Q) := each (Qplus c).
Definition relu := each (fun a => if Qle_bool 0 a then a else 0).
(* One row, times a coefficient for every row: a node coefficient is a column. *)
Fixpoint by_node (b x : matrix) : matrix :=
  match b, x with [c] :: b, row :: x => map (fun a => Qred (c * a)) row :: by_node b x | _, _ => [] end.

Fixpoint combine_rows (weights : list Q) (rows : matrix) (width : nat) : list Q :=
  match weights, rows with
  | w :: weights, row :: rows => zip Qplus (map (Qmult w) row) (combine_rows weights rows width)
  | _, _ => repeat 0 width
  end.
Definition mul (x y : matrix) : matrix :=
  map (fun row => combine_rows row y (length (hd [] y))) x.
Definition identity (x : matrix) : matrix :=
  map (fun i => map (fun j => if Nat.eqb i j then 1 else 0) (seq 0 (length x))) (seq 0 (length x)).

Definition total (x : list Q) : Q := fold_right Qplus 0 x.
Definition same_row (x y : list Q) := Nat.eqb (length x) (length y) && forallb (fun p => Qeq_bool (fst p) (snd p)) (combine x y).
Definition same (x y : matrix) := Nat.eqb (length x) (length y) && forallb (fun p => same_row (fst p) (snd p)) (combine x y).
Definition shape (x : matrix) : list nat := map (@length Q) x.
Ltac decide_by_computation := vm_compute; repeat split; reflexivity.
