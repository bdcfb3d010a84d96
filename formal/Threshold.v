(** The additive form and the threshold identity (docs, section 1). A network is a positive attention factor [A q i t] (query, position, token)
    and a value [B q o i t] of each output. The label has to win by more than [margin], which may be zero or negative. *)
From Coq Require Import Reals Lra Lia List Arith Bool.
Import ListNotations.
Local Open Scope R_scope.

Fixpoint sumx (f : nat -> nat -> R) (i : nat) (x : list nat) : R := match x with [] => 0 | t :: x' => f i t + sumx f (S i) x' end.
Lemma sumx_lin f g a b x : forall i, sumx (fun i t => a * f i t + b * g i t) i x = a * sumx f i x + b * sumx g i x.
Proof. induction x as [|t x IH]; intros i; simpl; [|rewrite IH]; ring. Qed.
Lemma sumx_scale f a x : forall i, sumx (fun i t => a * f i t) i x = a * sumx f i x.
Proof. induction x as [|t x IH]; intros i; simpl; [|rewrite IH]; ring. Qed.
Lemma sumx_ext f g x : (forall i t, f i t = g i t) -> forall i, sumx f i x = sumx g i x.
Proof. intros H. induction x as [|t x IH]; intros i; simpl; [|rewrite IH, H]; reflexivity. Qed.
Lemma sumx_within f g x : forall i, (forall j t, (j < i + length x)%nat -> f j t = g j t) -> sumx f i x = sumx g i x.
Proof. induction x as [|t x IH]; intros i H; [reflexivity|]. cbn [sumx]. rewrite H by (simpl; lia). rewrite IH; [reflexivity|]. intros; apply H. simpl. lia. Qed.
Lemma sumx_pos f x : (forall i t, 0 < f i t) -> x <> [] -> forall i, 0 < sumx f i x.
Proof.
  intros H Hx. assert (N : forall y i, 0 <= sumx f i y) by (induction y; intros; simpl; [lra|]; specialize (IHy (S i)); specialize (H i a); lra).
  intros i. destruct x as [|t x]; [congruence|]. simpl. specialize (N x (S i)). specialize (H i t). lra.
Qed.
Definition query (x : list nat) := last x O.

Section Additive.
Variables (A : nat -> nat -> nat -> R) (B : nat -> nat -> nat -> nat -> R) (margin : R).
Hypothesis A_pos : forall q i t, 0 < A q i t.
Definition logit (x : list nat) (o : nat) := sumx (fun i t => A (query x) i t * B (query x) o i t) 0 x / sumx (A (query x)) 0 x.
(** The label wins by more than the margin. If that is zero, a tie is wrong. *)
Definition wins (outputs : nat) (m : nat) (x : list nat) := forall o, (o < outputs)%nat -> o <> m -> logit x o + margin < logit x m.
Definition G (q m o i t : nat) := A q i t * (B q o i t - B q m i t + margin).
Definition Sum (x : list nat) (m o : nat) := sumx (G (query x) m o) 0 x.

(** Theorem 1: the threshold identity. *)
Theorem threshold x m o : x <> [] -> (logit x o + margin < logit x m <-> Sum x m o < 0).
Proof.
  intros Hx. unfold logit, Sum. set (q := query x). pose proof (sumx_pos (A q) x (A_pos q) Hx 0) as HZ. set (Z := sumx (A q) 0 x) in *.
  set (a := sumx (fun i t => A q i t * B q o i t) 0 x). set (b := sumx (fun i t => A q i t * B q m i t) 0 x).
  replace (sumx (G q m o) 0 x) with (a - b + margin * Z).
  - assert (E : a / Z + margin - b / Z = (a - b + margin * Z) * / Z) by (field; lra). pose proof (Rinv_0_lt_compat Z HZ). split; intros H'; nra.
  - unfold a, b, Z. rewrite <- sumx_scale. replace (sumx (G q m o) 0 x) with (1 * (1 * a + (-1) * b) + 1 * sumx (fun i t => margin * A q i t) 0 x); [unfold a, b; ring|].
    unfold a, b. rewrite <- !sumx_lin. apply sumx_ext. intros. unfold G. ring.
Qed.
Corollary wins_iff outputs m x : x <> [] -> (wins outputs m x <-> forall o, (o < outputs)%nat -> o <> m -> Sum x m o < 0).
Proof. intros Hx. split; intros H o Ho Hne; apply threshold; auto; apply H; auto. Qed.
(** Comparisons of real numbers are decidable, classically. *)
Definition winsb (outputs m : nat) (x : list nat) : bool :=
  forallb (fun o => Nat.eqb o m || if Rlt_dec (logit x o + margin) (logit x m) then true else false) (seq 0 outputs).
Lemma winsb_spec outputs m x : winsb outputs m x = true <-> wins outputs m x.
Proof.
  unfold winsb, wins. rewrite forallb_forall. split.
  - intros H o Ho Hne. specialize (H o ltac:(apply in_seq; lia)). destruct (Nat.eqb_spec o m); [contradiction|]. destruct (Rlt_dec _ _); [assumption|discriminate].
  - intros H o Ho. apply in_seq in Ho. destruct (Nat.eqb_spec o m); [reflexivity|]. simpl. destruct (Rlt_dec _ _) as [|N]; [reflexivity|]. exfalso. apply N, H; auto; lia.
Qed.
(** A direct path may stand outside the average. *)
Lemma logit_direct x (u : R) (b : nat -> nat -> R) : 0 < sumx (A (query x)) 0 x ->
  u + sumx (fun i t => A (query x) i t * b i t) 0 x / sumx (A (query x)) 0 x = sumx (fun i t => A (query x) i t * (u + b i t)) 0 x / sumx (A (query x)) 0 x.
Proof.
  intros HZ. replace (sumx (fun i t => A (query x) i t * (u + b i t)) 0 x) with (u * sumx (A (query x)) 0 x + 1 * sumx (fun i t => A (query x) i t * b i t) 0 x); [field; lra|].
  rewrite <- sumx_lin. apply sumx_ext. intros. ring.
Qed.
End Additive.
(** A factor of each query changes nothing. *)
Lemma logit_scale A B (c : nat -> R) x o : (forall q, 0 < c q) -> logit (fun q i t => c q * A q i t) B x o = logit A B x o.
Proof.
  intros Hc. specialize (Hc (query x)). unfold logit. rewrite sumx_scale. replace (sumx (fun i t => c (query x) * A (query x) i t * B (query x) o i t) 0 x) with (c (query x) * sumx (fun i t => A (query x) i t * B (query x) o i t) 0 x).
  - unfold Rdiv. destruct (Req_dec (sumx (A (query x)) 0 x) 0) as [E|E]; [rewrite E, Rmult_0_r, !Rinv_0; ring|field; split; lra].
  - rewrite <- sumx_scale. apply sumx_ext. intros; ring.
Qed.
