(** The transformer over the reals, from its weights, and its additive form. First any positive weights and any values of position and token,
    then one head that reads any function of the residual stream (the stream itself, or a norm of it), with biases. All dimensions are
    independent; scores are divided by the square root of [divisor]. *)
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



(** * One head: [weight q i t] is what a query gives to a token at a position, before it is divided by the sum; [value i t h] is what is
    averaged; [direct q j] is the residual stream of the query, to which the average is added *)
Section Head.
Variables (d_head : nat) (weight value : nat -> nat -> nat -> R) (direct WO : nat -> nat -> R) (bO : nat -> R).
Definition attention (x : list nat) (i t : nat) := weight (query x) i t / sumx (weight (query x)) 0 x.
Definition attended (x : list nat) (h : nat) := sumx (fun i t => attention x i t * value i t h) 0 x.
Definition output (x : list nat) (j : nat) := rsum d_head (fun h => attended x h * WO h j) + bO j.
Definition after (x : list nat) (j : nat) := direct (query x) j + output x j.
End Head.
(** What is read of a vector: logits, from the residual stream. *)
Definition readout (d : nat) (WU : nat -> nat -> R) (bU x : nat -> R) (o : nat) := rsum d (fun j => x j * WU j o) + bU o.

Section Form.
Variables (d_model d_head : nat) (weight value : nat -> nat -> nat -> R) (direct WO WU : nat -> nat -> R) (bO bU : nat -> R).
Definition OU h o := rsum d_model (fun j => WO h j * WU j o).
Definition straight q o := rsum d_model (fun j => (direct q j + bO j) * WU j o) + bU o.
Definition B_general q o i t := rsum d_head (fun h => value i t h * OU h o) + straight q o.
(** One head is an additive form, whatever its weights and values are. *)
Theorem general_form x o : 0 < sumx (weight (query x)) 0 x -> readout d_model WU bU (after d_head weight value direct WO bO x) o = logit weight B_general x o.
Proof.
  intros HZ. set (attention := attention weight). set (attended := attended weight value).
  assert (E : readout d_model WU bU (after d_head weight value direct WO bO x) o = straight (query x) o + sumx (fun i t => attention x i t * rsum d_head (fun h => value i t h * OU h o)) 0 x).
  { unfold readout, straight.
    replace (rsum d_model (fun j => after d_head weight value direct WO bO x j * WU j o))
      with (rsum d_model (fun j => (direct (query x) j + bO j) * WU j o) + rsum d_model (fun j => rsum d_head (fun h => attended x h * WO h j) * WU j o))
      by (rewrite <- rsum_add; apply rsum_ext; intros; unfold after, output; fold attended; ring).
    replace (rsum d_model (fun j => rsum d_head (fun h => attended x h * WO h j) * WU j o)) with (sumx (fun i t => attention x i t * rsum d_head (fun h => value i t h * OU h o)) 0 x); [ring|].
    transitivity (rsum d_head (fun h => attended x h * OU h o)).
    - unfold attended, Model.attended. fold attention. transitivity (rsum d_head (fun h => sumx (fun i t => attention x i t * (value i t h * OU h o)) 0 x)).
      + rewrite rsum_sumx. apply sumx_ext. intros i t. rewrite rsum_scale. reflexivity.
      + apply rsum_ext. intros h. rewrite Rmult_comm, <- sumx_scale. apply sumx_ext. intros; ring.
    - unfold OU. transitivity (rsum d_head (fun h => rsum d_model (fun j => attended x h * (WO h j * WU j o)))); [apply rsum_ext; intros; symmetry; apply rsum_scale|].
      rewrite rsum_swap. apply rsum_ext. intros j. rewrite Rmult_comm, <- rsum_scale. apply rsum_ext. intros; ring. }
  rewrite E. unfold logit.
  replace (sumx (fun i t => attention x i t * rsum d_head (fun h => value i t h * OU h o)) 0 x)
    with (sumx (fun i t => weight (query x) i t * rsum d_head (fun h => value i t h * OU h o)) 0 x / sumx (weight (query x)) 0 x).
  - rewrite (logit_direct weight x (straight (query x) o) (fun i t => rsum d_head (fun h => value i t h * OU h o)) HZ). f_equal. apply sumx_ext. intros. unfold B_general. ring.
  - unfold Rdiv. rewrite Rmult_comm, <- sumx_scale. apply sumx_ext. intros. unfold attention, Model.attention, Rdiv. ring.
Qed.
(** A mask that lets the query see every position of a sequence changes nothing. At the end, a causal mask is one. *)
Definition masked (visible : nat -> bool) (q i t : nat) := if visible i then weight q i t else 0.
Lemma sumx_seen visible f x : forall i, (forall j, (j < i + length x)%nat -> visible j = true) -> sumx (fun i t => if visible i then f i t else 0) i x = sumx f i x.
Proof.
  induction x as [|t x IH]; intros i H; [reflexivity|]. cbn [sumx]. rewrite (H i) by (simpl; lia). rewrite IH; [reflexivity|]. intros j Hj. apply H. simpl. lia.
Qed.
Theorem mask_changes_nothing visible x j : (forall i, (i < length x)%nat -> visible i = true) ->
  after d_head (masked visible) value direct WO bO x j = after d_head weight value direct WO bO x j.
Proof.
  intros H. unfold after, output. f_equal. f_equal. apply rsum_ext. intros h. f_equal. unfold attended, attention, masked. rewrite (sumx_seen visible (weight (query x)) x 0 H).
  rewrite <- (sumx_seen visible (fun i t => weight (query x) i t / sumx (weight (query x)) 0 x * value i t h) x 0 H). apply sumx_ext. intros i t. destruct (visible i); [reflexivity|unfold Rdiv; ring].
Qed.
End Form.

(** * Norms of a vector, with a gain and a bias. LayerNorm subtracts the mean, RMSNorm does not. (A quotient by zero is zero in Coq. It can only
    come up if [eps] is not positive, and the checker's enclosures prove nothing then.) *)
Definition mean (d : nat) (x : nat -> R) := rsum d x / INR d.
Definition centred (d : nat) (x : nat -> R) (j : nat) := x j - mean d x.
Definition rms_norm (d : nat) (eps : R) (gain bias x : nat -> R) (j : nat) := gain j * (x j / sqrt (mean d (fun j => x j * x j) + eps)) + bias j.
Definition layer_norm (d : nat) (eps : R) (gain bias x : nat -> R) := rms_norm d eps gain bias (centred d x).
(** At the end, a norm without a bias compares outputs as another unembedding does without it. *)
Definition behind_rms (gain : nat -> R) (WU : nat -> nat -> R) (j o : nat) := gain j * WU j o.
Definition behind_layer (d : nat) (gain : nat -> R) (WU : nat -> nat -> R) (j o : nat) := INR d * (gain j * WU j o) - rsum d (fun l => gain l * WU l o).
Lemma rsum_sub n f g : rsum n (fun i => f i - g i) = rsum n f - rsum n g.
Proof. unfold Rminus. rewrite <- (Rmult_1_l (rsum n g)), <- Ropp_mult_distr_l_reverse, <- rsum_scale, <- rsum_add. apply rsum_ext. intros; ring. Qed.
Lemma rsum_nonneg n : forall f, (forall i, 0 <= f i) -> 0 <= rsum n f.
Proof. induction n as [|n IH]; intros f H; simpl; [lra|]. pose proof (IH (fun i => f (S i)) (fun i => H (S i))). specialize (H O). lra. Qed.
Lemma rsum_none n : forall f, (forall i, 0 <= f i) -> rsum n f = 0 -> forall i, (i < n)%nat -> f i = 0.
Proof.
  induction n as [|n IH]; intros f H E i Hi; [lia|]. simpl in E. pose proof (rsum_nonneg n (fun i => f (S i)) (fun i => H (S i))) as P. pose proof (H O) as P0.
  destruct i as [|i]; [lra|]. apply (IH (fun i => f (S i))); [intros; apply H|lra|lia].
Qed.
Lemma rsum_bound n : forall f g, (forall i, (i < n)%nat -> f i = g i) -> rsum n f = rsum n g.
Proof. induction n as [|n IH]; intros f g H; simpl; [reflexivity|]. rewrite (H O) by lia. rewrite (IH _ (fun i => g (S i))); [reflexivity|]. intros; apply H; lia. Qed.
Theorem rms_order d eps gain WU b x o m : 0 <= eps ->
  (readout d WU (fun _ => b) (rms_norm d eps gain (fun _ => 0) x) o < readout d WU (fun _ => b) (rms_norm d eps gain (fun _ => 0) x) m <->
   readout d (behind_rms gain WU) (fun _ => 0) x o < readout d (behind_rms gain WU) (fun _ => 0) x m).
Proof.
  intros He. unfold readout. set (v := mean d (fun j => x j * x j) + eps).
  assert (E : forall o, rsum d (fun j => rms_norm d eps gain (fun _ => 0) x j * WU j o) = / sqrt v * rsum d (fun j => x j * behind_rms gain WU j o)).
  { intros u. rewrite <- rsum_scale. apply rsum_ext. intros j. unfold rms_norm, behind_rms, Rdiv. fold v. ring. }
  rewrite !E. destruct d as [|d]; [simpl; lra|]. assert (Hd : 0 < INR (S d)) by (apply lt_0_INR; lia).
  assert (Hs : 0 <= rsum (S d) (fun j => x j * x j)) by (apply rsum_nonneg; intros; nra).
  assert (Hm : 0 <= mean (S d) (fun j => x j * x j)) by (unfold mean; apply Rmult_le_pos; [exact Hs|left; apply Rinv_0_lt_compat, Hd]).
  destruct (Rlt_dec 0 v) as [Hv|Hv].
  - pose proof (Rinv_0_lt_compat _ (sqrt_lt_R0 _ Hv)) as P. set (a := rsum _ _). set (c := rsum _ _). split; intros H; nra.
  - assert (Z : forall j, (j < S d)%nat -> x j * x j = 0).
    { apply (rsum_none (S d) (fun j => x j * x j)); [intros; nra|]. assert (E0 : mean (S d) (fun j => x j * x j) = 0) by (unfold v in Hv; lra).
      unfold mean in E0. apply (Rmult_eq_reg_r (/ INR (S d))); [rewrite Rmult_0_l; exact E0|apply Rinv_neq_0_compat; lra]. }
    assert (N : forall u, rsum (S d) (fun j => x j * behind_rms gain WU j u) = 0).
    { intros u. rewrite (rsum_bound (S d) _ (fun _ => 0)); [apply rsum_zero|]. intros j Hj. specialize (Z j Hj). assert (x j = 0) as -> by nra. ring. }
    rewrite !N. lra.
Qed.
Theorem layer_order d eps gain WU b x o m : 0 <= eps ->
  (readout d WU (fun _ => b) (layer_norm d eps gain (fun _ => 0) x) o < readout d WU (fun _ => b) (layer_norm d eps gain (fun _ => 0) x) m <->
   readout d (behind_layer d gain WU) (fun _ => 0) x o < readout d (behind_layer d gain WU) (fun _ => 0) x m).
Proof.
  intros He. unfold layer_norm. rewrite (rms_order d eps gain WU b (centred d x) o m He). unfold readout. destruct d as [|d]; [simpl; lra|].
  assert (Hd : 0 < INR (S d)) by (apply lt_0_INR; lia). set (n := S d) in *.
  assert (E : forall u, rsum n (fun j => x j * behind_layer n gain WU j u) = INR n * rsum n (fun j => centred n x j * behind_rms gain WU j u)).
  { intros u. unfold behind_layer, behind_rms, centred. set (total := rsum n (fun l => gain l * WU l u)).
    transitivity (INR n * rsum n (fun j => x j * (gain j * WU j u)) - total * rsum n x).
    - rewrite <- !rsum_scale, <- rsum_sub. apply rsum_ext. intros; ring.
    - transitivity (INR n * (rsum n (fun j => x j * (gain j * WU j u)) - mean n x * total)); [unfold mean; field; lra|]. f_equal. unfold total. rewrite <- rsum_scale, <- rsum_sub. apply rsum_ext. intros; ring. }
  rewrite !E. set (a := rsum _ _). set (c := rsum _ _). split; intros H; nra.
Qed.

(** * The transformer *)
Section Transformer.
Variables (d_model d_head k : nat) (divisor : R) (norm : (nat -> R) -> nat -> R) (WE WP WQ WK WV WO : nat -> nat -> R) (bQ bK bV bO : nat -> R).
(** The residual stream of token [t] at position [i], and what attention reads of it. *)
Definition stream (i t j : nat) := WE t j + WP i j.
Definition input (i t : nat) := norm (stream i t).
Definition query_of (q h : nat) := rsum d_model (fun j => input (k - 1) q j * WQ j h) + bQ h.
Definition key_of (i t h : nat) := rsum d_model (fun j => input i t j * WK j h) + bK h.
Definition value_of (i t h : nat) := rsum d_model (fun j => input i t j * WV j h) + bV h.
Definition score (q i t : nat) := rsum d_head (fun h => query_of q h * key_of i t h) / sqrt divisor.
(** The stream after attention, at the last position. Logits are a [readout] of it, or of a norm of it. *)
Definition attends : list nat -> nat -> R := after d_head (fun q i t => exp (score q i t)) value_of (stream (k - 1)) WO bO.

(** Tables, where what is read is a part of token and position, [carrier], plus a part of the position alone, [place]. The vector [mu] is
    moved from the direct path to the values. Neither changes a logit, and nor do biases of keys. *)
Variables (WU : nat -> nat -> R) (bU : nat -> R) (carrier : nat -> nat -> nat -> R) (place : nat -> nat -> R) (mu : nat -> R).
Local Notation OU := (OU d_model WO WU).
Definition VOU j o := rsum d_head (fun h => WV j h * OU h o).
Definition added o := rsum d_head (fun h => bV h * OU h o).
Definition QK q j := rsum d_head (fun h => query_of q h * WK j h).
Definition EQKE q i t := rsum d_model (fun j => QK q j * carrier i t j).
Definition EQKP q i := rsum d_model (fun j => QK q j * place i j).
Definition EVOU i t o := rsum d_model (fun j => carrier i t j * VOU j o) + (added o + mu o).
Definition PVOU i o := rsum d_model (fun j => place i j * VOU j o).
Definition EU q o := rsum d_model (fun j => stream (k - 1) q j * WU j o) + (rsum d_model (fun j => bO j * WU j o) + bU o - mu o).
Definition A q i t := exp (EQKE q i t / sqrt divisor + EQKP q i / sqrt divisor).
Definition B q o i t := EVOU i t o + PVOU i o + EU q o.
Lemma A_pos q i t : 0 < A q i t. Proof. apply exp_pos. Qed.
Variable x : list nat.
Hypothesis parts : forall i t j, (i < length x)%nat -> input i t j = carrier i t j + place i j.
Definition of_keys q := rsum d_head (fun h => query_of q h * bK h) / sqrt divisor.
Lemma score_is q i t : (i < length x)%nat -> score q i t = of_keys q + (EQKE q i t / sqrt divisor + EQKP q i / sqrt divisor).
Proof.
  intros Hi. unfold score, of_keys, EQKE, EQKP, Rdiv. rewrite <- !Rmult_plus_distr_r. f_equal. rewrite <- rsum_add. unfold key_of, QK.
  transitivity (rsum d_head (fun h => query_of q h * bK h) + rsum d_head (fun h => query_of q h * rsum d_model (fun j => input i t j * WK j h))); [rewrite <- rsum_add; apply rsum_ext; intros; ring|]. f_equal.
  transitivity (rsum d_head (fun h => rsum d_model (fun j => query_of q h * (input i t j * WK j h)))); [apply rsum_ext; intros; symmetry; apply rsum_scale|].
  rewrite rsum_swap. apply rsum_ext. intros j. rewrite <- Rmult_plus_distr_l, <- parts by exact Hi.
  rewrite Rmult_comm, <- rsum_scale. apply rsum_ext. intros h. ring.
Qed.
Lemma values_are i t o : (i < length x)%nat -> rsum d_head (fun h => value_of i t h * OU h o) = EVOU i t o - mu o + PVOU i o.
Proof.
  intros Hi. unfold EVOU, PVOU, added. replace (rsum d_model (fun j => carrier i t j * VOU j o) + (rsum d_head (fun h => bV h * OU h o) + mu o) - mu o + rsum d_model (fun j => place i j * VOU j o))
    with (rsum d_model (fun j => carrier i t j * VOU j o) + rsum d_model (fun j => place i j * VOU j o) + rsum d_head (fun h => bV h * OU h o)) by ring.
  rewrite <- rsum_add. unfold value_of.
  transitivity (rsum d_head (fun h => rsum d_model (fun j => input i t j * (WV j h * OU h o)) + bV h * OU h o)).
  { apply rsum_ext. intros h. rewrite Rmult_plus_distr_r, (Rmult_comm (rsum _ _)), <- rsum_scale. f_equal. apply rsum_ext. intros; ring. }
  rewrite rsum_add. f_equal. rewrite rsum_swap. apply rsum_ext. intros j. rewrite rsum_scale. fold (VOU j o). rewrite parts by exact Hi. ring.
Qed.
(** The transformer is its additive form. *)
Theorem additive_form o : x <> [] -> readout d_model WU bU (attends x) o = logit A B x o.
Proof.
  intros Hx. unfold attends. rewrite general_form by (apply sumx_pos; [intros; apply exp_pos|exact Hx]).
  rewrite <- (logit_scale A B (fun q => exp (of_keys q)) x o) by (intros; apply exp_pos). unfold logit. f_equal.
  - apply sumx_within. intros i t Hi. simpl in Hi. rewrite score_is, exp_plus by exact Hi. unfold B_general, straight, B, A. rewrite values_are by exact Hi. unfold EU. f_equal.
    replace (rsum d_model (fun j => (stream (k - 1) (query x) j + bO j) * WU j o)) with (rsum d_model (fun j => stream (k - 1) (query x) j * WU j o) + rsum d_model (fun j => bO j * WU j o)); [ring|].
    rewrite <- rsum_add. apply rsum_ext. intros; ring.
  - apply sumx_within. intros i t Hi. simpl in Hi. rewrite score_is, exp_plus by exact Hi. reflexivity.
Qed.
End Transformer.
