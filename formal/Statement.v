(** What a theorem says: networks from weights, tasks, right answers and their mass. To read a theorem of a certificate one has to read this
    file; of [Model.v] the section [Head], [readout], the norms, and the section [Transformer] up to [attends]; and [Words.words] and
    [Words.mass]. *)
From Coq Require Import Reals Lra Lia List ZArith Bool Arith.
From CompactProofs Require Import Words Threshold Model.
Import ListNotations.
Local Open Scope R_scope.

(** * Networks: weights are integers over a power of two; powers below 0 count as 0 *)
Record tensor := { entries : list (list Z); bits : Z }.
Definition unit_of (s : Z) := / IZR (2 ^ Z.max 0 s).
Lemma unit_pos s : 0 < unit_of s.
Proof. apply Rinv_0_lt_compat, IZR_lt. pose proof (Z.pow_pos_nonneg 2 (Z.max 0 s)). lia. Qed.
Definition value (W : tensor) (i j : nat) : R := IZR (nth j (nth i (entries W) []) 0%Z) * unit_of (bits W).
Record number := Number { units : Z; places : Z }.   (* units / 2^places *)
Definition real (x : number) : R := IZR (units x) * unit_of (places x).
(** What stands before attention, and between the stream and the unembedding. Gains and biases are one row each, here and below. Biases of the
    network stand behind W_Q, W_K, W_V, W_O and W_U. *)
Inductive norm := Unchanged | LayerNorm (eps : number) (gain bias : tensor) | RMSNorm (eps : number) (gain bias : tensor).
Record network := { n_model : nat; n_head : nat; n_ctx : nat; n_out : nat; over : positive; under : positive;   (* scores / sqrt (over / under) *)
  first_norm : norm; last_norm : norm; W_E : tensor; W_pos : tensor; W_Q : tensor; W_K : tensor; W_V : tensor; W_O : tensor; W_U : tensor;
  b_Q : tensor; b_K : tensor; b_V : tensor; b_O : tensor; b_U : tensor }.
Definition zeros (n : nat) : tensor := {| entries := [repeat 0%Z n]; bits := 0 |}.
Definition ones (n : nat) : tensor := {| entries := [repeat 1%Z n]; bits := 0 |}.
Definition divisor_of (N : network) : R := IZR (Zpos (over N)) / IZR (Zpos (under N)).
Definition normed (d : nat) (n : norm) (x : nat -> R) : nat -> R :=
  match n with
  | Unchanged => x
  | LayerNorm eps gain bias => layer_norm d (real eps) (value gain 0) (value bias 0) x
  | RMSNorm eps gain bias => rms_norm d (real eps) (value gain 0) (value bias 0) x
  end.
(** The residual stream after attention, and the logits. *)
Definition stream_of (N : network) (x : list nat) : nat -> R :=
  attends (n_model N) (n_head N) (n_ctx N) (divisor_of N) (normed (n_model N) (first_norm N)) (value (W_E N)) (value (W_pos N)) (value (W_Q N)) (value (W_K N)) (value (W_V N)) (value (W_O N))
    (value (b_Q N) 0) (value (b_K N) 0) (value (b_V N) 0) (value (b_O N) 0) x.
Definition logits (N : network) (x : list nat) : nat -> R := readout (n_model N) (value (W_U N)) (value (b_U N) 0) (normed (n_model N) (last_norm N) (stream_of N x)).

Local Open Scope nat_scope.
(** * Tasks: an automaton whose state 0 is first gives every sequence its label *)
Record task := { following : list (list nat); labels : list nat }.
Definition after_token (T : task) (s t : nat) := nth t (nth s (following T) []) 0.
Definition label_of (T : task) (x : list nat) : nat := nth (fold_left (after_token T) x 0) (labels T) 0.
Definition max_task (v : nat) : task := {| following := map (fun s => map (Nat.max s) (seq 0 v)) (seq 0 v); labels := seq 0 v |}.
(** The label of [max_task] is the largest token: it occurs, and no token is larger. *)
Lemma max_from v x : forall s, s < v -> (forall t, In t x -> t < v) -> fold_left (after_token (max_task v)) x s = fold_left Nat.max x s /\ fold_left Nat.max x s < v.
Proof.
  induction x as [|t x IH]; intros s Hs Hx; cbn [fold_left]; [auto|].
  assert (Ht : t < v) by (apply Hx; left; reflexivity). replace (after_token (max_task v) s t) with (Nat.max s t) by (unfold after_token, max_task; cbn [following]; rewrite !nth_map_seq by assumption; reflexivity).
  apply IH; [lia|]. intros u Hu. apply Hx. right; exact Hu.
Qed.
Lemma max_fold x : forall s, (s <= fold_left Nat.max x s) /\ (forall t, In t x -> t <= fold_left Nat.max x s) /\ (fold_left Nat.max x s = s \/ In (fold_left Nat.max x s) x).
Proof.
  induction x as [|t x IH]; intros s; cbn [fold_left]; [repeat split; auto; intros t []|]. destruct (IH (Nat.max s t)) as (H1 & H2 & H3). split; [lia|]. split.
  - intros u [<-|Hu]; [lia|auto].
  - destruct H3 as [H3|H3]; [|right; right; exact H3]. rewrite H3. destruct (Nat.max_spec s t) as [[_ ->]|[_ ->]]; [right; left; reflexivity|left; reflexivity].
Qed.
Theorem max_task_is_largest v x : x <> [] -> (forall t, In t x -> t < v) -> In (label_of (max_task v) x) x /\ forall t, In t x -> t <= label_of (max_task v) x.
Proof.
  intros Hne Hx. assert (Hv : 0 < v) by (destruct x as [|t x]; [congruence|]; specialize (Hx t (or_introl eq_refl)); lia).
  destruct (max_from v x 0 Hv Hx) as [E L]. destruct (max_fold x 0) as (H1 & H2 & H3).
  assert (EL : label_of (max_task v) x = fold_left Nat.max x 0) by (unfold label_of; rewrite E; cbn [labels max_task]; rewrite seq_nth by exact L; reflexivity). rewrite EL. split; [|exact H2].
  destruct H3 as [H3|H3]; [|exact H3]. destruct x as [|t x]; [congruence|]. specialize (H2 t (or_introl eq_refl)). rewrite H3 in *. left. lia.
Qed.
(** Every sequence has mass 1. *)
Definition uniform (v k : nat) : list (list Z) := repeat (repeat 1%Z v) k.

(** * Right answers: there is an output with the number of the label, and its logit is larger than every other by more than a margin, which is
    zero unless one is asked for *)
Definition no_margin : number := Number 0 0.
Section Right.
Variables (N : network) (v : nat) (T : task) (Ms : list (list Z)) (margin : number).
Definition right (x : list nat) : Prop := label_of T x < n_out N /\ forall o, o < n_out N -> o <> label_of T x -> (logits N x o + real margin < logits N x (label_of T x))%R.
Definition rightb (x : list nat) : bool :=
  Nat.ltb (label_of T x) (n_out N) && forallb (fun o => Nat.eqb o (label_of T x) || if Rlt_dec (logits N x o + real margin) (logits N x (label_of T x)) then true else false) (seq 0 (n_out N)).
Theorem rightb_is_right x : rightb x = true <-> right x.
Proof.
  unfold rightb, right. rewrite andb_true_iff, Nat.ltb_lt, forallb_forall. apply and_iff_compat_l. split.
  - intros H o Ho Hne. specialize (H o ltac:(apply in_seq; lia)). destruct (Nat.eqb_spec o (label_of T x)); [contradiction|]. destruct (Rlt_dec _ _); [assumption|discriminate].
  - intros H o Ho. apply in_seq in Ho. destruct (Nat.eqb_spec o (label_of T x)); [reflexivity|]. simpl. destruct (Rlt_dec _ _) as [|F]; [reflexivity|]. exfalso. apply F, H; auto; lia.
Qed.
(** The mass of the sequences of [n_ctx] tokens below [v] that are answered right; and of all of them. *)
Definition right_mass : Z := zsum (fun x => if rightb x then mass Ms x else 0%Z) (words v (n_ctx N)).
Definition total_mass : Z := zsum (mass Ms) (words v (n_ctx N)).
End Right.
Lemma mass_uniform v k x : word v k x -> mass (uniform v k) x = 1%Z.
Proof.
  unfold uniform. revert x. induction k as [|k IH]; intros x [Hl Hx]; destruct x as [|t x]; try discriminate; [reflexivity|]. cbn [repeat mass].
  rewrite IH by (split; [simpl in Hl; lia|intros; apply Hx; right; assumption]). assert (Ht : t < v) by (apply Hx; left; reflexivity).
  replace (nth t (repeat 1%Z v) 0%Z) with 1%Z; [reflexivity|]. symmetry. clear -Ht. revert t Ht. induction v as [|v IH]; intros t Ht; [lia|]. destruct t; [reflexivity|]. apply IH. lia.
Qed.
(** For max, right means: the logit of the largest token is strictly larger than every other logit. *)
Definition largest (m : nat) (x : list nat) : Prop := In m x /\ forall t, In t x -> t <= m.
Theorem max_right N v x : x <> [] -> (forall t, In t x -> t < v) ->
  (rightb N (max_task v) no_margin x = true <-> exists m, largest m x /\ m < n_out N /\ forall o, o < n_out N -> o <> m -> (logits N x o < logits N x m)%R).
Proof.
  intros Hne Hx. rewrite rightb_is_right. assert (Z0 : forall r s : R, (r + real no_margin < s <-> r < s)%R) by (intros; unfold real, no_margin, units; rewrite Rmult_0_l, Rplus_0_r; reflexivity).
  transitivity (label_of (max_task v) x < n_out N /\ forall o, o < n_out N -> o <> label_of (max_task v) x -> (logits N x o < logits N x (label_of (max_task v) x))%R); [apply and_iff_compat_l; split; intros H o Ho Hm; apply Z0, H; assumption|].
  pose proof (max_task_is_largest v x Hne Hx) as L. split; [intros H; exists (label_of (max_task v) x); split; [exact L|exact H]|].
  intros (m & [M1 M2] & H). replace m with (label_of (max_task v) x) in H; [exact H|]. destruct L as [L1 L2]. specialize (L2 m M1). specialize (M2 _ L1). lia.
Qed.
(** With uniform masses the mass is a number of sequences. *)
Theorem right_mass_counts N v T margin : right_mass N v T (uniform v (n_ctx N)) margin = Z.of_nat (length (filter (rightb N T margin) (words v (n_ctx N)))).
Proof.
  unfold right_mass. assert (H : forall l, (forall x, In x l -> word v (n_ctx N) x) ->
    zsum (fun x => if rightb N T margin x then mass (uniform v (n_ctx N)) x else 0%Z) l = Z.of_nat (length (filter (rightb N T margin) l))).
  { induction l as [|x l IH]; intros Hl; [reflexivity|]. rewrite zsum_cons, IH by (intros; apply Hl; right; assumption). cbn [filter]. destruct (rightb N T margin x); [|reflexivity].
    rewrite mass_uniform by (apply Hl; left; reflexivity). cbn [length]. lia. }
  apply H. intros x Hx. apply words_word, Hx.
Qed.
(** The words are all different, so nothing is counted twice. *)
Theorem words_NoDup v k : NoDup (words v k).
Proof.
  induction k as [|k IH]; [repeat constructor; intros []|]. cbn [words]. pose proof (seq_NoDup v 0) as S. induction (seq 0 v) as [|t l IHl]; [constructor|]. cbn [flat_map]. inversion S; subst.
  assert (A : forall (l1 l2 : list (list nat)), NoDup l1 -> NoDup l2 -> (forall x, In x l1 -> ~ In x l2) -> NoDup (l1 ++ l2)).
  { induction l1 as [|a l1 IH1]; intros l2 H1' H2' D; [exact H2'|]. inversion H1'; subst. simpl. constructor; [|apply IH1; auto; intros; apply D; right; assumption].
    intros Hin. apply in_app_or in Hin. destruct Hin as [Hin|Hin]; [contradiction|]. apply (D a); [left; reflexivity|exact Hin]. }
  apply A; [|apply IHl; assumption|].
  - clear -IH. induction (words v k) as [|x w IHw]; [constructor|]. inversion IH; subst. simpl. constructor; [|auto]. intros Hin. apply in_map_iff in Hin. destruct Hin as (y & E & Hy). injection E as ->. contradiction.
  - intros x Hx Hin. apply in_map_iff in Hx. destruct Hx as (y & <- & _). apply in_flat_map in Hin. destruct Hin as (u & Hu & Hin). apply in_map_iff in Hin. destruct Hin as (z & E & _). injection E as -> _. contradiction.
Qed.
