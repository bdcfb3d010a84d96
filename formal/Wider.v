(** How the package reads biases (docs, src/compactproofs/model/biases.py): the residual stream gets coordinates that are constant, and the
    wider network without biases is equal. The checker does not need this: its statement has the biases themselves. *)
From Coq Require Import Reals Lra Lia List Arith.
From CompactProofs Require Import Threshold Model.
Import ListNotations.
Local Open Scope R_scope.

Lemma rsum_app n : forall m f, rsum (n + m) f = rsum n f + rsum m (fun i => f (n + i)%nat).
Proof. induction n as [|n IH]; intros m f; [simpl; rewrite Rplus_0_l; reflexivity|]. change (f O + rsum (n + m) (fun i => f (S i)) = f O + rsum n (fun i => f (S i)) + rsum m (fun i => f (S (n + i)%nat))). rewrite IH. ring. Qed.
(** A vector of [d] coordinates, then one, then [d] more. *)
Definition three (d : nat) (a : nat -> R) (b : R) (c : nat -> R) (j : nat) : R := if Nat.ltb j d then a j else if Nat.eqb j d then b else c (j - S d)%nat.
Lemma rsum_three d f a b c a' b' c' : (forall j, f j = three d a b c j * three d a' b' c' j) ->
  rsum (d + S d) f = rsum d (fun j => a j * a' j) + (b * b' + rsum d (fun j => c j * c' j)).
Proof.
  intros H. rewrite rsum_app. f_equal.
  - apply rsum_bound. intros i Hi. rewrite H. unfold three. rewrite (proj2 (Nat.ltb_lt i d) Hi). reflexivity.
  - cbn [rsum]. f_equal.
    + rewrite H. unfold three. rewrite Nat.add_0_r, Nat.ltb_irrefl, Nat.eqb_refl. reflexivity.
    + apply rsum_ext. intros i. rewrite H. unfold three. destruct (Nat.ltb_spec (d + S i) d); [lia|]. destruct (Nat.eqb_spec (d + S i) d); [lia|]. replace (d + S i - S d)%nat with i by lia. reflexivity.
Qed.
Definition none (_ : nat) : R := 0.
Lemma rsum_none_right n f : rsum n (fun j => f j * none j) = 0.
Proof. rewrite <- (rsum_zero n). apply rsum_ext. intros. unfold none. ring. Qed.

Section Wider.
Variables (d h k : nat) (divisor : R) (WE WP WQ WK WV WO WU : nat -> nat -> R) (bQ bK bV bO bU : nat -> R).
Let same (x : nat -> R) := x.
Definition wide_E t := three d (WE t) 1 bO.
Definition wide_P i := three d (WP i) 0 none.
Definition with_row (W : nat -> nat -> R) (b : nat -> R) j e := three d (fun j => W j e) (b e) none j.
Definition wide_O e := three d (WO e) 0 none.
Definition wide_U j o := three d (fun j => WU j o) (bU o) (fun j => WU j o) j.
Lemma read W b i t e : rsum (d + S d) (fun j => input same wide_E wide_P i t j * with_row W b j e) = rsum d (fun j => input same WE WP i t j * W j e) + b e.
Proof.
  rewrite (rsum_three d _ (input same WE WP i t) 1 bO (fun j => W j e) (b e) none).
  - rewrite rsum_none_right. ring.
  - intros j. unfold with_row. f_equal. unfold input, same, stream, wide_E, wide_P, three, none. destruct (Nat.ltb j d); [reflexivity|]. destruct (Nat.eqb j d); ring.
Qed.
Theorem wider_is_equal x o :
  readout (d + S d) wide_U none (attends (d + S d) h k divisor same wide_E wide_P (with_row WQ bQ) (with_row WK bK) (with_row WV bV) wide_O none none none none x) o =
  readout d WU bU (attends d h k divisor same WE WP WQ WK WV WO bQ bK bV bO x) o.
Proof.
  assert (Eq : forall q i t, score (d + S d) h k divisor same wide_E wide_P (with_row WQ bQ) (with_row WK bK) none none q i t = score d h k divisor same WE WP WQ WK bQ bK q i t).
  { intros q i t. unfold score. f_equal. apply rsum_ext. intros e. unfold query_of, key_of. rewrite !read. unfold none. ring. }
  set (averaged := fun e => attended (fun q i t => exp (score d h k divisor same WE WP WQ WK bQ bK q i t)) (value_of d same WE WP WV bV) x e).
  assert (Ea : forall e, attended (fun q i t => exp (score (d + S d) h k divisor same wide_E wide_P (with_row WQ bQ) (with_row WK bK) none none q i t)) (value_of (d + S d) same wide_E wide_P (with_row WV bV) none) x e = averaged e).
  { intros e. unfold averaged, attended. apply sumx_ext. intros i t. f_equal.
    - unfold attention. f_equal; [rewrite Eq; reflexivity|]. apply sumx_ext. intros. rewrite Eq. reflexivity.
    - unfold value_of. rewrite read. unfold none. ring. }
  unfold readout. rewrite (rsum_three d _ (fun j => stream WE WP (k - 1) (query x) j + rsum h (fun e => averaged e * WO e j)) 1 bO (fun j => WU j o) (bU o) (fun j => WU j o)).
  - transitivity (rsum d (fun j => (stream WE WP (k - 1) (query x) j + (rsum h (fun e => averaged e * WO e j) + bO j)) * WU j o) + bU o); [|reflexivity]. unfold none. cbv beta.
    transitivity (rsum d (fun j => (stream WE WP (k - 1) (query x) j + rsum h (fun e => averaged e * WO e j)) * WU j o) + rsum d (fun j => bO j * WU j o) + bU o); [ring|].
    rewrite <- rsum_add. f_equal. apply rsum_ext. intros j. ring.
  - intros j. f_equal. unfold attends, after, output.
    transitivity (stream wide_E wide_P (k - 1) (query x) j + rsum h (fun e => averaged e * wide_O e j)); [f_equal; unfold none at 3; rewrite Rplus_0_r; apply rsum_ext; intros e; rewrite Ea; reflexivity|].
    unfold stream, wide_E, wide_P, wide_O, three. destruct (Nat.ltb j d); [ring|]. destruct (Nat.eqb j d).
    + rewrite (rsum_ext h (fun e => averaged e * 0) (fun _ => 0)) by (intros; ring). rewrite rsum_zero. ring.
    + rewrite rsum_none_right. unfold none. ring.
Qed.
End Wider.
