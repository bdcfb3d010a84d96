(** The transformer over the reals, from its weight matrices, and its additive form. All dimensions are independent; scores are divided by
    the square root of [divisor]. The vector [c] is moved from positions to tokens and [mu] from the direct path to the values: neither changes
    a logit. *)
From Coq Require Import Reals Lra Lia List Arith Bool.
From CompactProofs Require Import Threshold.
Import ListNotations.
Local Open Scope R_scope.

Fixpoint rsum (n : nat) (f : nat -> R) : R := match n with O => 0 | S n' => f O + rsum n' (fun i => f (S i)) end.
Lemma rsum_ext n : forall f g, (forall i, f i = g i) -> rsum n f = rsum n g.
Proof. induction n as [|n IH]; intros f g H; simpl; [reflexivity|]. rewrite H, (IH _ (fun i => g (S i))); auto. Qed.
Lemma rsum_scale n : forall c f, rsum n (fun i => c * f i) = c * rsum n f.
Proof. induction n as [|n IH]; intros c f; simpl; [ring|]. rewrite IH. ring. Qed.
Lemma rsum_add n : forall f g, rsum n (fun i => f i + g i) = rsum n f + rsum n g.
Proof. induction n as [|n IH]; intros f g; simpl; [ring|]. rewrite IH. ring. Qed.
Lemma rsum_zero n : rsum n (fun _ => 0) = 0.
Proof. induction n as [|n IH]; simpl; [reflexivity|]. rewrite IH. ring. Qed.
Lemma rsum_swap n : forall p f, rsum n (fun i => rsum p (fun j => f i j)) = rsum p (fun j => rsum n (fun i => f i j)).
Proof. induction n as [|n IH]; intros p f; simpl; [symmetry; apply rsum_zero|]. rewrite IH, <- rsum_add. reflexivity. Qed.
Lemma rsum_sumx n (f : nat -> nat -> nat -> R) x : forall i, rsum n (fun j => sumx (f j) i x) = sumx (fun i t => rsum n (fun j => f j i t)) i x.
Proof. induction x as [|t x IH]; intros i; simpl; [apply rsum_zero|]. rewrite rsum_add, IH. reflexivity. Qed.

Section Transformer.
Variables (d_model d_head k : nat) (divisor : R) (WE WP WQ WK WV WO WU : nat -> nat -> R).
(** The residual stream of token [t] at position [i]. *)
Definition stream (i t j : nat) := WE t j + WP i j.
Definition query_of (q h : nat) := rsum d_model (fun j => stream (k - 1) q j * WQ j h).
Definition key_of (i t h : nat) := rsum d_model (fun j => stream i t j * WK j h).
Definition value_of (i t h : nat) := rsum d_model (fun j => stream i t j * WV j h).
Definition score (q i t : nat) := rsum d_head (fun h => query_of q h * key_of i t h) / sqrt divisor.
Definition attention (x : list nat) (i t : nat) := exp (score (query x) i t) / sumx (fun i t => exp (score (query x) i t)) 0 x.
Definition attended (x : list nat) (h : nat) := sumx (fun i t => attention x i t * value_of i t h) 0 x.
Definition output (x : list nat) (j : nat) := rsum d_head (fun h => attended x h * WO h j).
Definition transformer (x : list nat) (o : nat) := rsum d_model (fun j => (stream (k - 1) (query x) j + output x j) * WU j o).
(** Strict argmax among [outputs] outputs. *)
Definition answers (outputs m : nat) (x : list nat) := forall o, (o < outputs)%nat -> o <> m -> transformer x o < transformer x m.

(** Tables. *)
Variables (c mu : nat -> R).
Definition OU h o := rsum d_model (fun j => WO h j * WU j o).
Definition VOU j o := rsum d_head (fun h => WV j h * OU h o).
Definition QK q j := rsum d_head (fun h => query_of q h * WK j h).
Definition token j t := WE t j + c j.
Definition place j i := WP i j - c j.
Definition EQKE q t := rsum d_model (fun j => QK q j * token j t).
Definition EQKP q i := rsum d_model (fun j => QK q j * place j i).
Definition EVOU t o := rsum d_model (fun j => token j t * VOU j o) + mu o.
Definition PVOU i o := rsum d_model (fun j => place j i * VOU j o).
Definition EU q o := rsum d_model (fun j => stream (k - 1) q j * WU j o) - mu o.
Definition A q i t := exp (EQKE q t / sqrt divisor + EQKP q i / sqrt divisor).
Definition B q o i t := EVOU t o + PVOU i o + EU q o.
Lemma A_pos q i t : 0 < A q i t. Proof. apply exp_pos. Qed.
Lemma score_is q i t : score q i t = EQKE q t / sqrt divisor + EQKP q i / sqrt divisor.
Proof.
  unfold score, EQKE, EQKP, Rdiv. rewrite <- Rmult_plus_distr_r. f_equal. rewrite <- rsum_add. unfold key_of, QK.
  transitivity (rsum d_head (fun h => rsum d_model (fun j => query_of q h * (stream i t j * WK j h)))); [apply rsum_ext; intros; symmetry; apply rsum_scale|].
  rewrite rsum_swap. apply rsum_ext. intros j. rewrite <- Rmult_plus_distr_l. replace (token j t + place j i) with (stream i t j) by (unfold token, place, stream; ring).
  rewrite Rmult_comm, <- rsum_scale. apply rsum_ext. intros h. ring.
Qed.
Lemma values_are i t o : rsum d_head (fun h => value_of i t h * OU h o) = EVOU t o - mu o + PVOU i o.
Proof.
  unfold EVOU, PVOU. replace (rsum d_model (fun j => token j t * VOU j o) + mu o - mu o) with (rsum d_model (fun j => token j t * VOU j o)) by ring. rewrite <- rsum_add. unfold value_of.
  transitivity (rsum d_head (fun h => rsum d_model (fun j => stream i t j * (WV j h * OU h o)))).
  { apply rsum_ext. intros h. rewrite Rmult_comm, <- rsum_scale. apply rsum_ext. intros; ring. }
  rewrite rsum_swap. apply rsum_ext. intros j. rewrite rsum_scale. fold (VOU j o). unfold token, place, stream. ring.
Qed.
(** The transformer is its additive form. *)
Theorem additive_form x o : x <> [] -> transformer x o = logit A B x o.
Proof.
  intros Hx. pose proof (sumx_pos (A (query x)) x (A_pos (query x)) Hx 0) as HZ.
  assert (E : transformer x o = EU (query x) o + mu o + sumx (fun i t => attention x i t * (EVOU t o - mu o + PVOU i o)) 0 x).
  { unfold transformer, EU. transitivity (rsum d_model (fun j => stream (k - 1) (query x) j * WU j o) + rsum d_model (fun j => output x j * WU j o)); [rewrite <- rsum_add; apply rsum_ext; intros; ring|].
    replace (rsum d_model (fun j => output x j * WU j o)) with (sumx (fun i t => attention x i t * (EVOU t o - mu o + PVOU i o)) 0 x); [ring|].
    transitivity (rsum d_head (fun h => attended x h * OU h o)).
    - unfold attended. transitivity (rsum d_head (fun h => sumx (fun i t => attention x i t * (value_of i t h * OU h o)) 0 x)).
      + rewrite rsum_sumx. apply sumx_ext. intros i t. rewrite rsum_scale, values_are. reflexivity.
      + apply rsum_ext. intros h. rewrite Rmult_comm, <- sumx_scale. apply sumx_ext. intros; ring.
    - unfold output, OU. transitivity (rsum d_head (fun h => rsum d_model (fun j => attended x h * (WO h j * WU j o)))); [apply rsum_ext; intros; symmetry; apply rsum_scale|].
      rewrite rsum_swap. apply rsum_ext. intros j. rewrite Rmult_comm, <- rsum_scale. apply rsum_ext. intros; ring. }
  rewrite E. unfold logit.
  assert (Ea : forall i t, attention x i t = A (query x) i t * / sumx (A (query x)) 0 x).
  { intros i t. unfold attention, Rdiv. f_equal; [unfold A; rewrite score_is; reflexivity|]. f_equal. apply sumx_ext. intros. unfold A. rewrite score_is. reflexivity. }
  replace (sumx (fun i t => attention x i t * (EVOU t o - mu o + PVOU i o)) 0 x) with (sumx (fun i t => A (query x) i t * (EVOU t o - mu o + PVOU i o)) 0 x / sumx (A (query x)) 0 x).
  - rewrite (logit_direct A A_pos x (EU (query x) o + mu o) (fun i t => EVOU t o - mu o + PVOU i o) Hx). f_equal. apply sumx_ext. intros. unfold B. ring.
  - unfold Rdiv. rewrite Rmult_comm, <- sumx_scale. apply sumx_ext. intros. rewrite Ea. ring.
Qed.
Corollary answers_iff outputs m x : x <> [] -> (answers outputs m x <-> wins A B outputs m x).
Proof. intros Hx. unfold answers, wins. split; intros H o Ho Hne; specialize (H o Ho Hne); rewrite !additive_form in * by exact Hx; exact H. Qed.
End Transformer.
