(** The executable checker: [check_sound] says that what it accepts is true of the transformer over the reals. *)
From Coq Require Import Floats Uint63.
From Coq Require Import Reals Lra Lia List ZArith Bool Arith.
From CompactProofs Require Import Words Automaton Count Threshold Grid Rule Model Statement Enclosure Harms Leaves Pools Pairs.
Import ListNotations.
Local Open Scope nat_scope.

(** * The automaton of a label *)
Definition complete (v : nat) (T : task) : bool :=
  Nat.ltb 0 (length (labels T)) && Nat.eqb (length (following T)) (length (labels T)) &&
  forallb (fun r => Nat.eqb (length r) v && forallb (fun s => Nat.ltb s (length (labels T))) r) (following T).
Definition task_dfa (T : task) (m : nat) : dfa := {| moves := map (map Some) (following T); accepting := map (fun l => Nat.eqb l m) (labels T) |}.
Lemma task_dfa_accepts v T m x : complete v T = true -> (forall t, In t x -> t < v) -> accepts (task_dfa T m) x = Nat.eqb (label_of T x) m.
Proof.
  unfold complete. intros H. apply andb_prop in H. destruct H as [H H3]. apply andb_prop in H. destruct H as [H1 H2]. apply Nat.ltb_lt in H1. apply Nat.eqb_eq in H2. rewrite forallb_forall in H3.
  assert (S1 : forall s t, s < length (labels T) -> t < v -> step (task_dfa T m) s t = Some (after_token T s t) /\ after_token T s t < length (labels T)).
  { intros s t Hs Ht. assert (Hr : In (nth s (following T) []) (following T)) by (apply nth_In; lia). specialize (H3 _ Hr). apply andb_prop in H3. destruct H3 as [L1 L2]. apply Nat.eqb_eq in L1.
    unfold step, task_dfa, after_token. cbn [moves]. change (@nil (option nat)) with (map (@Some nat) []). rewrite map_nth. rewrite (nth_indep _ None (Some 0)) by (rewrite map_length; lia). rewrite map_nth. split; [reflexivity|].
    rewrite forallb_forall in L2. apply Nat.ltb_lt, L2, nth_In. lia. }
  unfold accepts, label_of. intros Hx. revert H1. generalize 0 at 1 2 3. induction x as [|t x IH]; intros s Hs; cbn [accepts_from fold_left].
  - unfold final, task_dfa. cbn [accepting]. rewrite (nth_indep _ false (Nat.eqb 0 m)) by (rewrite map_length; exact Hs). apply (map_nth (fun l => Nat.eqb l m)).
  - destruct (S1 s t Hs (Hx t (or_introl eq_refl))) as [E L]. rewrite E. apply IH; [intros; apply Hx; right; assumption|exact L].
Qed.

(** * Certificates: parts of a label, about a pool of queries or about one query *)
Inductive body := Pool (t : tree (list grid)) | Lower (t : tree low_leaf) | Upper (t : tree up_leaf).
Record part := { queries : list nat; shape : body }.
Record group := { g_label : nat; g_map : list image; g_dfa : dfa; g_relative : option nat; g_weights : list Z; g_parts : list part }.
Definition is_pool (p : part) : bool := match shape p with Pool _ => true | _ => false end.

Section Check.
Variables (N : network) (v : nat) (T : task) (Ms : list (list Z)) (margin : number) (centre mu : tensor).
Local Notation k := (n_ctx N). Local Notation out := (n_out N). Local Notation rA := (rA N centre). Local Notation rB := (rB N centre mu).
Definition own_masks (A : dfa) (Q : list nat) : list (list bool) := heavies (masks_of v k A Q) Ms.
(** What a side of a certificate bounds in each part: what fails (below), or what is right (above). *)
Definition good (m : nat) (x : list nat) : bool := Nat.ltb m out && winsb rA rB (real margin) out m x.
Definition bad (below : bool) (m : nat) (x : list nat) : bool := if below then negb (good m x) else good m x.
Record shared := { s_r : list vec; s_p : vec; s_s : vec; s_att : list mat; s_pos : mat; s_E : list mat; s_P : mat }.
Definition share (D : ready) (g : group) : shared :=
  let t := d_tables D in let w := g_weights g in let m := g_label g in let pools := existsb is_pool (g_parts g) in let pairs := negb (forallb is_pool (g_parts g)) in
  {| s_r := if pools then map (brackets out m w None) (t_EVOU t) else []; s_p := if pools then brackets out m w None (t_PVOU t) else []; s_s := if pools then brackets out m w (less_own margin) (t_EU t) else [];
     s_att := if pools then own_attention (g_relative g) (d_attention D) else []; s_pos := d_places D;
     s_E := if pairs then map (less_column m) (d_EVOU_columns D) else []; s_P := if pairs then less_column m (d_PVOU_columns D) else [] |}.
(** A label that no output has, or no label at all: nothing of it is right. *)
Definition part_bad (below : bool) (D : ready) (m : nat) (S : shared) (A : dfa) (p : part) : option Z :=
  let masks := own_masks A (queries p) in
  if negb (Nat.ltb m out) then if below then None else Some 0%Z else
  match shape p, below with
  | Pool t, true => in_tree Ms masks (pool_leaf Ms masks (pooled N v (s_r S) (s_p S) (s_s S) (s_att S) (s_pos S) (queries p))) A t
  | Lower t, true => match queries p with
      | [q] => let P := make_pair N margin D (s_E S) (s_P S) m q in let gs := gains N m P masks in in_tree Ms masks (lower_leaf N Ms m q P masks gs) A t
      | _ => None end
  | Upper t, false => match queries p with
      | [q] => let P := make_pair N margin D (s_E S) (s_P S) m q in in_tree Ms masks (upper_leaf N Ms m q P masks) A t
      | _ => None end
  | _, _ => None
  end.
Definition part_sum (below : bool) (D : ready) (m : nat) (S : shared) (A : dfa) (p : part) : Z :=
  match part_bad below D m S A p with Some f => Z.max 0 (all_of Ms (own_masks A (queries p)) A - f) | None => 0%Z end.
Definition group_sum (below : bool) (D : ready) (g : group) : Z := let S := share D g in zsum (part_sum below D (g_label g) S (g_dfa g)) (g_parts g).
Fixpoint different (l : list nat) : bool := match l with [] => true | a :: l' => negb (existsb (Nat.eqb a) l') && different l' end.
Lemma different_NoDup l : different l = true -> NoDup l.
Proof.
  induction l as [|a l IH]; intros H; [constructor|]. simpl in H. apply andb_prop in H. destruct H as [H1 H2]. constructor; [|auto]. intros Hin. apply negb_true_iff in H1.
  assert (existsb (Nat.eqb a) l = true) by (apply existsb_exists; exists a; split; [exact Hin|apply Nat.eqb_refl]). congruence.
Qed.
Definition group_fine (g : group) : bool :=
  merges (g_map g) (task_dfa T (g_label g)) (g_dfa g) && closed (g_dfa g) && Nat.leb (length (live (g_dfa g))) v &&
  forallb (Z.ltb 0) (g_weights g) && different (flat_map queries (g_parts g)).
Definition groups_fine (groups : list group) : bool := different (map g_label groups) && forallb group_fine groups.
(** A norm at the end keeps the order of logits if it adds nothing to single outputs; margins are then another question. *)
Definition readable : bool :=
  match last_norm N with
  | Unchanged => true
  | LayerNorm eps _ bias | RMSNorm eps _ bias => (units margin =? 0)%Z && (0 <=? units eps)%Z && forallb (Z.eqb 0) (nth 0 (entries bias) []) &&
      let b := nth 0 (entries (b_U N)) [] in forallb (fun o => nth o b 0 =? nth 0 b 0)%Z (seq 0 out)
  end.
Definition question_fine : bool := readable && complete v T && nonneg Ms && Nat.eqb (length Ms) k && Nat.ltb 0 k.
Definition total : Z := fold_right (fun M a => (zsum (fun t => nth t M 0%Z) (seq 0 v) * a)%Z) 1%Z Ms.
Definition check (at_least : Z) (at_most : option Z) (lower upper : list group) : bool :=
  question_fine && groups_fine lower && groups_fine upper &&
  let D := prepare N centre mu in (at_least <=? zsum (group_sum true D) lower)%Z && match at_most with Some n => (total <=? n + zsum (group_sum false D) upper)%Z | None => true end.

Lemma form_is x o : x <> [] -> readout (n_model N) (rU N) (rbU N) (stream_of N x) o = logit rA rB x o.
Proof.
  intros Hx. apply (additive_form _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ (rU N) (rbU N) (rcarrier N centre) (rplace N centre) (value mu 0) x); [|exact Hx]. intros i t j _. apply parts.
Qed.
Lemma readout_ext d W b b' x x' o : (forall j, x j = x' j) -> b o = b' o -> readout d W b x o = readout d W b' x' o.
Proof. intros H E. unfold readout. rewrite E. f_equal. apply rsum_ext. intros j. rewrite H. reflexivity. Qed.
Lemma order_is x o m : readable = true -> x <> [] -> o < out -> m < out -> ((logits N x o + real margin < logits N x m)%R <-> (logit rA rB x o + real margin < logit rA rB x m)%R).
Proof.
  intros HR Hx Ho Hm. rewrite <- !form_is by exact Hx. unfold logits. unfold rU, rbU, readable in *. set (y := stream_of N x). clearbody y.
  assert (Same : forall bias : tensor, forallb (Z.eqb 0) (nth 0 (entries bias) []) = true -> forall j, value bias 0 j = 0%R).
  { intros bias H j. unfold value. rewrite forallb_forall in H. destruct (nth_in_or_default j (nth 0 (entries bias) []) 0%Z) as [Hin| ->]; [|ring]. apply H, Z.eqb_eq in Hin. rewrite <- Hin. ring. }
  assert (Equal : forallb (fun o => nth o (nth 0 (entries (b_U N)) []) 0 =? nth 0 (nth 0 (entries (b_U N)) []) 0)%Z (seq 0 out) = true -> forall o, o < out -> value (b_U N) 0 o = value (b_U N) 0 0).
  { intros H u Hu. rewrite forallb_forall in H. specialize (H u ltac:(apply in_seq; lia)). apply Z.eqb_eq in H. unfold value. rewrite H. reflexivity. }
  destruct (last_norm N) as [|eps gain bias|eps gain bias]; [reflexivity| |];
    (apply andb_prop in HR; destruct HR as [HR H4]; apply andb_prop in HR; destruct HR as [HR H3]; apply andb_prop in HR; destruct HR as [H1 H2]; apply Z.eqb_eq in H1; apply Z.leb_le in H2;
     assert (He : (0 <= real eps)%R) by (unfold real; apply Rmult_le_pos; [apply IZR_le, H2|left; apply unit_pos]);
     replace (real margin) with 0%R by (unfold real; rewrite H1; ring); rewrite !Rplus_0_r).
  - assert (E : forall u, u < out -> readout (n_model N) (value (W_U N)) (value (b_U N) 0) (normed (n_model N) (LayerNorm eps gain bias) y) u =
      readout (n_model N) (value (W_U N)) (fun _ => value (b_U N) 0 0) (layer_norm (n_model N) (real eps) (value gain 0) (fun _ => 0%R) y) u).
    { intros u Hu. apply readout_ext; [|apply Equal; assumption]. intros j. cbn [normed]. unfold layer_norm, rms_norm. rewrite (Same bias H3). reflexivity. }
    rewrite !E by assumption. apply (layer_order (n_model N) (real eps) (value gain 0) (value (W_U N)) (value (b_U N) 0 0) y o m He).
  - assert (E : forall u, u < out -> readout (n_model N) (value (W_U N)) (value (b_U N) 0) (normed (n_model N) (RMSNorm eps gain bias) y) u =
      readout (n_model N) (value (W_U N)) (fun _ => value (b_U N) 0 0) (rms_norm (n_model N) (real eps) (value gain 0) (fun _ => 0%R) y) u).
    { intros u Hu. apply readout_ext; [|apply Equal; assumption]. intros j. cbn [normed]. unfold rms_norm. rewrite (Same bias H3). reflexivity. }
    rewrite !E by assumption. apply (rms_order (n_model N) (real eps) (value gain 0) (value (W_U N)) (value (b_U N) 0 0) y o m He).
Qed.
Lemma rightb_is x : readable = true -> x <> [] -> rightb N T margin x = good (label_of T x) x.
Proof.
  intros HR Hx. unfold rightb, good, winsb. destruct (Nat.ltb_spec (label_of T x) out) as [Hm|Hm]; [|reflexivity]. cbn [andb].
  assert (H : forall l, (forall o, In o l -> o < out) -> forallb (fun o => Nat.eqb o (label_of T x) || if Rlt_dec (logits N x o + real margin) (logits N x (label_of T x)) then true else false) l =
    forallb (fun o => Nat.eqb o (label_of T x) || if Rlt_dec (logit rA rB x o + real margin) (logit rA rB x (label_of T x)) then true else false) l); [|apply H; intros o Ho; apply in_seq in Ho; lia].
  induction l as [|o l IH]; intros Hl; [reflexivity|]. cbn [forallb]. rewrite IH by (intros; apply Hl; right; assumption). f_equal. f_equal.
  pose proof (order_is x o _ HR Hx (Hl o (or_introl eq_refl)) Hm) as Q. destruct (Rlt_dec _ _) as [P1|P1]; destruct (Rlt_dec _ _) as [P2|P2]; try reflexivity; exfalso; tauto.
Qed.
Lemma queries_once q ps : NoDup (flat_map queries ps) -> (zsum (fun p => one (existsb (Nat.eqb q) (queries p))) ps <= 1)%Z.
Proof.
  assert (Z0 : forall ps, ~ In q (flat_map queries ps) -> zsum (fun p => one (existsb (Nat.eqb q) (queries p))) ps = 0%Z).
  { induction ps0 as [|p ps0 IH]; intros H; [reflexivity|]. rewrite zsum_cons, IH by (intros K; apply H; simpl; apply in_or_app; right; exact K).
    destruct (existsb (Nat.eqb q) (queries p)) eqn:E; [|reflexivity]. exfalso. apply H. simpl. apply in_or_app. left. apply existsb_exists in E. destruct E as (u & Hu & E). apply Nat.eqb_eq in E. subst; exact Hu. }
  induction ps as [|p ps IH]; intros H; [simpl; lia|]. rewrite zsum_cons. simpl in H. destruct (existsb (Nat.eqb q) (queries p)) eqn:E.
  - rewrite Z0; [simpl; lia|]. intros Hin. apply existsb_exists in E. destruct E as (u & Hu & E). apply Nat.eqb_eq in E. subst u.
    clear -H Hu Hin. induction (queries p) as [|a l IHl]; [destruct Hu|]. simpl in H. inversion H; subst. destruct Hu as [->|Hu]; [apply H2, in_or_app; right; exact Hin|auto].
  - assert (NoDup (flat_map queries ps)) as H' by (clear -H; induction (queries p) as [|a l IHl]; [exact H|inversion H; auto]). specialize (IH H'). simpl one. lia.
Qed.
Lemma labels_once l (f : group -> Z) gs : NoDup (map g_label gs) -> (forall g, In g gs -> (0 <= f g <= one (Nat.eqb l (g_label g)))%Z) -> (zsum f gs <= 1)%Z.
Proof.
  induction gs as [|g gs IH]; intros H Hf; [simpl; lia|]. rewrite zsum_cons. simpl in H. inversion H; subst. pose proof (Hf g (or_introl eq_refl)) as Hg. destruct (Nat.eqb_spec l (g_label g)) as [->|Hne].
  - rewrite (zsum_ext f (fun _ => 0%Z)); [rewrite zsum_zero; simpl in Hg; lia|]. intros g' Hg'. specialize (Hf g' (or_intror Hg')). destruct (Nat.eqb_spec (g_label g) (g_label g')) as [E|_]; [|simpl in Hf; lia].
    exfalso. apply H2. rewrite E. apply in_map, Hg'.
  - specialize (IH H3 (fun g' Hg' => Hf g' (or_intror Hg'))). simpl in Hg. lia.
Qed.
Definition inside (y : group * part) (x : list nat) : bool := Nat.eqb (label_of T x) (g_label (fst y)) && existsb (Nat.eqb (query x)) (queries (snd y)).

Lemma masks_short A Q : length (live A) <= v -> forallb (fun b => Nat.leb (length b) v) (masks_of v k A Q) = true.
Proof.
  intros H. unfold masks_of. rewrite forallb_app. apply andb_true_intro. split.
  - induction (k - 1); [reflexivity|]. simpl. rewrite (proj2 (Nat.leb_le _ _) H). exact IHn.
  - simpl. rewrite andb_true_r. apply Nat.leb_le. unfold mask_of. rewrite map_length, seq_length. lia.
Qed.
Lemma own_short A Q : length (live A) <= v -> forallb (fun b => Nat.leb (length b) v) (own_masks A Q) = true.
Proof. intros H. apply heavies_short, masks_short, H. Qed.
Lemma part_bad_ok below D g p n : question_fine = true -> ready_ok N centre mu D -> closed (g_dfa g) = true -> length (live (g_dfa g)) <= v -> (forall o, (0 < weight (g_weights g) o)%R) -> In p (g_parts g) ->
  part_bad below D (g_label g) (share D g) (g_dfa g) p = Some n ->
  (integral v Ms (fun x => one ((accepts (g_dfa g) x && fits (own_masks (g_dfa g) (queries p)) x) && bad below (g_label g) x)) <= n)%Z.
Proof.
  unfold question_fine. intros Hq HD HA Hlive Hw Hp H. apply andb_prop in Hq. destruct Hq as [Hq H4]. apply andb_prop in Hq. destruct Hq as [Hq H3]. apply andb_prop in Hq. destruct Hq as [_ H2]. apply Nat.eqb_eq in H3. apply Nat.ltb_lt in H4.
  assert (Hlen : length (own_masks (g_dfa g) (queries p)) = length Ms) by (apply heavies_length; rewrite masks_length by exact H4; symmetry; exact H3). pose proof (own_short (g_dfa g) (queries p) Hlive) as Hv.
  assert (Fit : forall x, fits (own_masks (g_dfa g) (queries p)) x = true -> fits (masks_of v k (g_dfa g) (queries p)) x = true).
  { intros x. apply heavies_fits. rewrite masks_length by exact H4. symmetry; exact H3. }
  assert (Pair : forall q, queries p = [q] -> forall x, fits (own_masks (g_dfa g) (queries p)) x = true -> query x = q /\ x <> []).
  { intros q Eq x Hx. apply Fit in Hx. rewrite Eq in Hx. apply fits_query in Hx. destruct Hx as [[E|[]] Hne]. auto. }
  unfold part_bad in H. unfold bad, good. destruct (Nat.ltb_spec (g_label g) out) as [Hm|Hm]; cbn [negb] in H.
  2: { destruct below; [discriminate|]. injection H as <-. rewrite <- (integral_zero v Ms). apply integral_le; [exact H2|]. intros x _. cbn [andb]. rewrite andb_false_r. reflexivity. }
  cbn [andb]. destruct (shape p) as [t|t|t] eqn:Es; destruct below; try discriminate.
  - assert (EP : existsb is_pool (g_parts g) = true) by (apply existsb_exists; exists p; split; [exact Hp|unfold is_pool; rewrite Es; reflexivity]).
    eapply (in_tree_ok v Ms _ H2 Hlen Hv _ (fails N margin centre mu (g_label g))); [|exact HA|exact H]. intros A l n' HA' Hl.
    eapply (pool_leaf_ok N v Ms margin centre mu (g_label g) (queries p)); [exact H2|exact Hlen|exact H3|exact Hv| | |exact HA'|exact Hl].
    + intros x Hx. apply Fit in Hx. eapply fits_query; eauto.
    + destruct HD as (R1 & R2 & R3 & R4 & R5 & _). intros q o Hq Ho Hne. unfold share. rewrite EP. cbn [s_r s_p s_s s_att s_pos]. apply (pooled_ok N v margin centre mu (g_label g) (g_weights g)); auto.
      * intros i t' o' Hi Ho' Hne'. apply (pick_map (fun a => ub (at1 a t') _) (brackets out (g_label g) (g_weights g) None) []); [destruct t'; apply ub_nai|].
        rewrite <- (Rminus_0_r (rEVOU N centre mu i t' (g_label g))). apply brackets_ok; [reflexivity|apply (R3 i Hi)|exact Ho'|exact Hne'].
      * intros i o' Ho' Hne'. rewrite <- (Rminus_0_r (rPVOU N centre i (g_label g))). apply brackets_ok; [reflexivity|exact R4|exact Ho'|exact Hne'].
      * intros q' o' Ho' Hne'. apply brackets_ok; [apply less_own_ok|exact R5|exact Ho'|exact Hne'].
      * intros q'. apply own_ok; [exact H4|apply R1].
  - destruct (queries p) as [|q [|q' Q]] eqn:Eq; try discriminate. assert (EP : forallb is_pool (g_parts g) = false).
    { destruct (forallb is_pool (g_parts g)) eqn:F; [|reflexivity]. rewrite forallb_forall in F. specialize (F p Hp). unfold is_pool in F. rewrite Es in F. discriminate. }
    unfold share in H. rewrite EP in H. cbn [negb s_E s_P] in H. destruct (make_pair_ok N margin centre mu D (g_label g) q HD) as (c & Hc).
    eapply (in_tree_ok v Ms _ H2 Hlen Hv _ (fun x => negb (winsb rA rB (real margin) out (g_label g) x))); [|exact HA|exact H]. intros A l n' HA' Hl.
    eapply (lower_leaf_ok N v Ms margin centre mu (g_label g) q c); [exact Hc|rewrite Hlen; exact H3|apply (Pair q eq_refl)|exact H2|exact Hlen|exact Hv|exact HA'|exact Hl].
  - destruct (queries p) as [|q [|q' Q]] eqn:Eq; try discriminate. assert (EP : forallb is_pool (g_parts g) = false).
    { destruct (forallb is_pool (g_parts g)) eqn:F; [|reflexivity]. rewrite forallb_forall in F. specialize (F p Hp). unfold is_pool in F. rewrite Es in F. discriminate. }
    unfold share in H. rewrite EP in H. cbn [negb s_E s_P] in H. destruct (make_pair_ok N margin centre mu D (g_label g) q HD) as (c & Hc).
    eapply (in_tree_ok v Ms _ H2 Hlen Hv _ (winsb rA rB (real margin) out (g_label g))); [|exact HA|exact H]. intros A l n' HA' Hl.
    eapply (upper_leaf_ok N v Ms margin centre mu (g_label g) q c); [exact Hc|rewrite Hlen; exact H3|apply (Pair q eq_refl)|exact H2|exact Hlen|exact Hv|exact HA'|exact Hl].
Qed.
(** One side of a certificate: what its parts prove good (right below, wrong above) is at most what is. *)
Theorem side_sound below D groups : question_fine = true -> groups_fine groups = true -> ready_ok N centre mu D ->
  (zsum (group_sum below D) groups <= integral v Ms (fun x => one (negb (bad below (label_of T x) x))))%Z.
Proof.
  intros HQ HG HD. pose proof HQ as H. unfold question_fine in H. apply andb_prop in H. destruct H as [H H4]. apply andb_prop in H. destruct H as [H H3]. apply andb_prop in H. destruct H as [H1 H2]. apply andb_prop in H1. destruct H1 as [_ H1]. apply Nat.eqb_eq in H3. apply Nat.ltb_lt in H4.
  unfold groups_fine in HG. apply andb_prop in HG. destruct HG as [H5 H6]. apply different_NoDup in H5. rewrite forallb_forall in H6.
  set (parts := flat_map (fun g => map (pair g) (g_parts g)) groups). set (P := fun x => negb (bad below (label_of T x) x)).
  assert (Split : forall y, In y parts -> In (fst y) groups /\ In (snd y) (g_parts (fst y))).
  { intros y Hy. apply in_flat_map in Hy. destruct Hy as (g & Hg & Hy). apply in_map_iff in Hy. destruct Hy as (p0 & <- & Hp). auto. }
  assert (Facts : forall g, In g groups -> closed (g_dfa g) = true /\ length (live (g_dfa g)) <= v /\ (forall o, (0 < weight (g_weights g) o)%R) /\ NoDup (flat_map queries (g_parts g)) /\
    forall x, word v k x -> accepts (g_dfa g) x = Nat.eqb (label_of T x) (g_label g)).
  { intros g Hg. specialize (H6 g Hg). unfold group_fine in H6. do 4 (apply andb_prop in H6; let K := fresh "K" in destruct H6 as [H6 K]). apply Nat.leb_le in K1. apply different_NoDup in K. rewrite forallb_forall in K0.
    repeat split; auto.
    - intros o. unfold weight. apply IZR_lt. destruct (nth_in_or_default o (g_weights g) 1%Z) as [Hin| ->]; [apply Z.ltb_lt, K0, Hin|lia].
    - intros x [_ Hx]. rewrite <- (merges_accepts _ _ _ H6 x). apply (task_dfa_accepts v); assumption. }
  assert (InX : forall y x, In y parts -> word v k x -> mass Ms x <> 0%Z -> inside y x = accepts (g_dfa (fst y)) x && fits (own_masks (g_dfa (fst y)) (queries (snd y))) x).
  { intros y x Hy Hx Hmass. unfold own_masks. rewrite fits_heavies by (try assumption; rewrite masks_length by exact H4; symmetry; exact H3). destruct (Split y Hy) as [Hg Hp]. destruct (Facts _ Hg) as (F1 & F2 & F3 & F4 & F5). unfold inside. rewrite <- F5 by exact Hx. destruct (accepts (g_dfa (fst y)) x) eqn:EA; [|reflexivity]. cbn [andb].
    destruct (existsb (Nat.eqb (query x)) (queries (snd y))) eqn:EQ.
    - symmetry. apply masks_fit; [apply Hx|exact H4| |].
      + intros t Ht. split; [apply Hx, Ht|]. eapply accepts_live; eauto.
      + apply existsb_exists in EQ. destruct EQ as (u & Hu & E). apply Nat.eqb_eq in E. subst; exact Hu.
    - destruct (fits _ x) eqn:EF; [|reflexivity]. exfalso. apply fits_query in EF. destruct EF as [EF _]. assert (existsb (Nat.eqb (query x)) (queries (snd y)) = true) by (apply existsb_exists; exists (query x); split; [exact EF|apply Nat.eqb_refl]). congruence. }
  set (W := fun y : group * part => all_of Ms (own_masks (g_dfa (fst y)) (queries (snd y))) (g_dfa (fst y))).
  set (F := fun y : group * part => match part_bad below D (g_label (fst y)) (share D (fst y)) (g_dfa (fst y)) (snd y) with Some f => f | None => W y end).
  assert (EW : forall y, In y parts -> W y = integral v Ms (fun x => one (inside y x))).
  { intros y Hy. destruct (Split y Hy) as [Hg Hp]. destruct (Facts _ Hg) as (F1 & F2 & _). unfold W. rewrite (all_of_is v Ms).
    - apply integral_heavy. intros x Hx Hmass. rewrite H3 in Hx. rewrite (InX y x Hy Hx Hmass). reflexivity.
    - apply heavies_length. rewrite masks_length by exact H4. symmetry; exact H3.
    - apply own_short, F2. }
  apply Z.le_trans with (zsum (fun y => Z.max 0 (integral v Ms (fun x => one (inside y x)) - F y)) parts).
  - assert (Q : forall gs, (forall g, In g gs -> In g groups) ->
      (zsum (group_sum below D) gs <= zsum (fun y => Z.max 0 (integral v Ms (fun x => one (inside y x)) - F y)) (flat_map (fun g => map (pair g) (g_parts g)) gs))%Z); [|apply Q; auto].
    induction gs as [|g gs IH]; intros Hsub; [simpl; lia|]. cbn [flat_map]. rewrite zsum_cons, zsum_app. apply Z.add_le_mono; [|apply IH; intros; apply Hsub; right; assumption].
    rewrite zsum_map. unfold group_sum. apply zsum_le. intros pt Hpt. assert (Hy : In (g, pt) parts) by (apply in_flat_map; exists g; split; [apply Hsub; left; reflexivity|apply in_map, Hpt]).
    rewrite <- (EW _ Hy). unfold part_sum, F, W. cbn [fst snd]. destruct (part_bad _ _ _ _ _ pt); lia.
  - apply (parts_bound v Ms P); [exact H2| |].
    + intros x Hx. rewrite H3 in Hx. unfold parts. clear -H5 Facts Hx.
      assert (E : forall gs, zsum (fun y => one (inside y x)) (flat_map (fun g => map (pair g) (g_parts g)) gs) = zsum (fun g => zsum (fun pt => one (inside (g, pt) x)) (g_parts g)) gs).
      { induction gs as [|g gs IH]; [reflexivity|]. cbn [flat_map]. rewrite zsum_app, zsum_map, zsum_cons, IH. reflexivity. }
      rewrite E. apply (labels_once (label_of T x)); [exact H5|]. intros g Hg. destruct (Facts g Hg) as (_ & _ & _ & F4 & _). split; [apply zsum_nonneg; intros pt _; destruct (inside (g, pt) x); simpl; lia|].
      unfold inside. cbn [fst snd]. destruct (Nat.eqb (label_of T x) (g_label g)); cbn [andb].
      * apply queries_once, F4.
      * rewrite zsum_zero. simpl. lia.
    + intros y Hy. destruct (Split y Hy) as [Hg Hp]. destruct (Facts _ Hg) as (F1 & F2 & F3 & F4 & F5). set (m := g_label (fst y)).
      assert (EX : integral v Ms (fun x => one (inside y x && negb (P x))) = integral v Ms (fun x => one ((accepts (g_dfa (fst y)) x && fits (own_masks (g_dfa (fst y)) (queries (snd y))) x) && bad below m x))).
      { apply integral_heavy. intros x Hx Hmass. rewrite H3 in Hx. rewrite (InX y x Hy Hx Hmass). unfold P. rewrite negb_involutive, (F5 x Hx). destruct (Nat.eqb_spec (label_of T x) (g_label (fst y))) as [->|]; reflexivity. }
      rewrite EX. unfold F. destruct (part_bad _ _ _ _ _ (snd y)) as [f|] eqn:Ef.
      * apply (part_bad_ok below D (fst y) (snd y) f); auto.
      * unfold W. apply all_of_ge; [exact H2| |apply own_short, F2]. apply heavies_length. rewrite masks_length by exact H4. symmetry; exact H3.
Qed.
Lemma total_is : total = integral v Ms (fun _ => 1%Z).
Proof.
  unfold total. induction Ms as [|M l IH]; [reflexivity|]. cbn [fold_right integral]. rewrite IH. generalize (integral v l (fun _ => 1%Z)). intros a. rewrite Z.mul_comm, <- zsum_scale. apply zsum_ext. intros; lia.
Qed.
Lemma right_mass_is : readable = true -> length Ms = k -> 0 < k -> right_mass N v T Ms margin = integral v Ms (fun x => one (good (label_of T x) x)).
Proof.
  intros HR H3 H4. unfold right_mass. rewrite integral_words, H3. apply zsum_ext. intros x Hx. apply words_word in Hx. destruct Hx as [Hl _]. rewrite rightb_is by (exact HR || (intros ->; simpl in Hl; lia)).
  destruct (good _ x); simpl; lia.
Qed.
Theorem check_sound at_least at_most lower upper : check at_least at_most lower upper = true ->
  (at_least <= right_mass N v T Ms margin)%Z /\ match at_most with Some n => (right_mass N v T Ms margin <= n)%Z | None => True end.
Proof.
  unfold check. intros H. apply andb_prop in H. destruct H as [H HC]. apply andb_prop in H. destruct H as [H HU]. apply andb_prop in H. destruct H as [HQ HL]. apply andb_prop in HC. destruct HC as [C1 C2]. apply Z.leb_le in C1.
  pose proof (prepare_ok N centre mu) as HD. set (D := prepare N centre mu) in *. clearbody D. pose proof HQ as K. unfold question_fine in K. apply andb_prop in K. destruct K as [K K4]. apply andb_prop in K. destruct K as [K K3]. apply andb_prop in K. destruct K as [K _]. apply andb_prop in K. destruct K as [KR _]. apply Nat.eqb_eq in K3. apply Nat.ltb_lt in K4.
  rewrite (right_mass_is KR K3 K4). split.
  - eapply Z.le_trans; [exact C1|]. eapply Z.le_trans; [apply (side_sound true D lower HQ HL HD)|]. apply Z.eq_le_incl. apply integral_same. intros x. cbn [bad]. rewrite negb_involutive. reflexivity.
  - destruct at_most as [n|]; [|exact I]. apply Z.leb_le in C2. pose proof (side_sound false D upper HQ HU HD) as S. cbn [bad] in S.
    assert (E : total = (integral v Ms (fun x => one (good (label_of T x) x)) + integral v Ms (fun x => one (negb (good (label_of T x) x))))%Z).
    { rewrite total_is, <- integral_add. apply integral_same. intros x. destruct (good _ x); reflexivity. }
    lia.
Qed.
End Check.

(** For the task max: the states that matter for label [m] are "smaller so far" and "m has occurred". *)
Definition max_map (v m : nat) : list image := map (fun s => if Nat.ltb s m then At 0 else if Nat.eqb s m then At (if Nat.eqb m 0 then 0 else 1) else Dead) (seq 0 v).
Definition max_dfa (v m : nat) : dfa :=
  if Nat.eqb m 0 then {| moves := [map (fun t => if Nat.eqb t 0 then Some 0 else None) (seq 0 v)]; accepting := [true] |}
  else {| moves := [map (fun t => if Nat.ltb t m then Some 0 else if Nat.eqb t m then Some 1 else None) (seq 0 v); map (fun t => if Nat.leb t m then Some 1 else None) (seq 0 v)];
          accepting := [false; true] |}.
