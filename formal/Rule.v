(** The rule (docs, sections 2, 4, 5 and 6), over the reals and for masses. *)
From Coq Require Import Reals Lra Lia List ZArith Bool Arith.
From CompactProofs Require Import Words Automaton Count Threshold.
Import ListNotations.
Local Open Scope R_scope.

Section Rule.
Variables (A : nat -> nat -> nat -> R) (B : nat -> nat -> nat -> nat -> R) (margin : R).
Hypothesis A_pos : forall q i t, 0 < A q i t.
Notation G := (G A B margin). Notation Sum := (Sum A B margin). Notation wins := (wins A B margin).

(** Theorem 2, 1 (joint): an output that spoils is counted by [w G_o], and so by anything above it. *)
Theorem joint x m o w : 0 < w -> 0 <= Sum x m o -> 0 <= sumx (fun i t => w * G (query x) m o i t) 0 x.
Proof. intros Hw H. rewrite sumx_scale. fold (Sum x m o). nra. Qed.
(** Theorem 2, 2 (apart). *)
Theorem apart x m o p n1 n2 : 0 <= n1 -> 0 <= n2 -> 0 <= Sum x m o -> Sum x m p < 0 ->
  0 <= sumx (fun i t => n1 * G (query x) m o i t + - n2 * G (query x) m p i t) 0 x.
Proof. intros H1 H2 Ho Hp. rewrite sumx_lin. fold (Sum x m o). fold (Sum x m p). nra. Qed.
(** Theorem 3 (factored), for one place: a bracket [b] above [w (B_o - B_m + margin)] and attention between two bounds. *)
Theorem factored q m o i t w gamma b low high : 0 < w -> 0 < gamma -> w * (B q o i t - B q m i t + margin) <= b ->
  0 <= low -> low <= gamma * A q i t <= high -> w * gamma * G q m o i t <= if Rlt_dec 0 b then high * b else low * b.
Proof.
  intros Hw Hg Hb Hl [H1 H2]. unfold Threshold.G. set (a := gamma * A q i t) in *. set (d := B q o i t - B q m i t + margin) in *.
  replace (w * gamma * (A q i t * d)) with (a * (w * d)) by (unfold a; ring). assert (a * (w * d) <= a * b) by nra. destruct (Rlt_dec 0 b); nra.
Qed.
(** The other side: where the label wins, [- G_o] adds up to more than zero. *)
Theorem spoiler x m o w outputs : x <> [] -> (o < outputs)%nat -> o <> m -> 0 < w -> wins outputs m x ->
  0 < sumx (fun i t => w * - G (query x) m o i t) 0 x.
Proof.
  intros Hx Ho Hne Hw H. apply (proj1 (wins_iff A B margin A_pos outputs m x Hx)) with (o := o) in H; auto.
  replace (sumx (fun i t => w * - G (query x) m o i t) 0 x) with (- w * Sum x m o); [nra|]. unfold Threshold.Sum. rewrite <- sumx_scale. apply sumx_ext. intros. ring.
Qed.
(** Two spoilers at once: both sums are negative, and so is a positive combination of them. *)
Theorem spoilers x m o p n1 n2 outputs : x <> [] -> (o < outputs)%nat -> o <> m -> (p < outputs)%nat -> p <> m -> 0 < n1 -> 0 < n2 -> wins outputs m x ->
  0 < sumx (fun i t => - n1 * G (query x) m o i t + - n2 * G (query x) m p i t) 0 x.
Proof.
  intros Hx Ho Hno Hp Hnp H1 H2 H. pose proof (proj1 (wins_iff A B margin A_pos outputs m x Hx) H) as W. pose proof (W o Ho Hno) as Wo. pose proof (W p Hp Hnp) as Wp.
  rewrite sumx_lin. fold (Sum x m o). fold (Sum x m p). nra.
Qed.

(** Theorem 2, 3: terms in order. A term covers pairs (o, ps): output [o], if none of [ps] spoils. *)
Record term := { cover : list (nat * list nat); hit : list nat -> bool }.
Definition sound (m : nat) (x : list nat) (T : term) := forall o ps, In (o, ps) (cover T) -> 0 <= Sum x m o -> (forall p, In p ps -> Sum x m p < 0) -> hit T x = true.
(** Two terms at once: what both cover, where both hit. *)
Definition common (C1 C2 : list (nat * list nat)) : list (nat * list nat) :=
  flat_map (fun op1 => map (fun op2 => (fst op1, snd op1 ++ snd op2)) (filter (fun op2 => Nat.eqb (fst op1) (fst op2)) C2)) C1.
Definition both (T1 T2 : term) : term := {| cover := common (cover T1) (cover T2); hit := fun x => hit T1 x && hit T2 x |}.
Lemma common_in C1 C2 o ps : In (o, ps) (common C1 C2) <-> exists ps1 ps2, In (o, ps1) C1 /\ In (o, ps2) C2 /\ ps = ps1 ++ ps2.
Proof.
  unfold common. rewrite in_flat_map. split.
  - intros ([o1 ps1] & H1 & H). apply in_map_iff in H. destruct H as ([o2 ps2] & E & H2). apply filter_In in H2. cbn [fst snd] in *. destruct H2 as [H2 Eo]. apply Nat.eqb_eq in Eo. subst o2. injection E as -> <-. exists ps1, ps2. auto.
  - intros (ps1 & ps2 & H1 & H2 & ->). exists (o, ps1). split; [exact H1|]. apply in_map_iff. exists (o, ps2). split; [reflexivity|]. apply filter_In. split; [exact H2|apply Nat.eqb_refl].
Qed.
Theorem both_sound m x T1 T2 : sound m x T1 -> sound m x T2 -> sound m x (both T1 T2).
Proof.
  intros S1 S2 o ps H Ho Hp. apply common_in in H. destruct H as (ps1 & ps2 & H1 & H2 & ->). cbn [both hit].
  rewrite (S1 o ps1 H1 Ho), (S2 o ps2 H2 Ho) by (intros p Hin; apply Hp, in_or_app; auto). reflexivity.
Qed.
Fixpoint earlier (cov : list nat) (Ts : list term) : Prop :=
  match Ts with [] => True | T :: Ts' => (forall o ps p, In (o, ps) (cover T) -> In p ps -> In p cov) /\ earlier (map fst (cover T) ++ cov) Ts' end.
Fixpoint covered (cov : list nat) (Ts : list term) : list nat := match Ts with [] => cov | T :: Ts' => covered (map fst (cover T) ++ cov) Ts' end.
Lemma first_hit m x Ts : forall cov, (forall o, In o cov -> Sum x m o < 0) -> earlier cov Ts -> (forall T, In T Ts -> sound m x T) ->
  (exists T, In T Ts /\ hit T x = true) \/ forall o, In o (covered cov Ts) -> Sum x m o < 0.
Proof.
  induction Ts as [|T Ts IH]; intros cov Hc He Hs; [right; exact Hc|]. destruct He as [E1 E2].
  destruct (Forall_Exists_dec (fun op => Sum x m (fst op) < 0) (fun op => Rlt_dec _ _) (cover T)) as [F|F].
  - destruct (IH (map fst (cover T) ++ cov)) as [(T' & H1 & H2)|H]; auto.
    + intros o Ho. apply in_app_or in Ho. destruct Ho as [Ho|Ho]; [|auto]. apply in_map_iff in Ho. destruct Ho as (op & <- & Hop). rewrite Forall_forall in F. apply F, Hop.
    + intros T' HT'. apply Hs. right; exact HT'.
    + left. exists T'. split; [right; exact H1|exact H2].
  - left. exists T. split; [left; reflexivity|]. apply Exists_exists in F. destruct F as ([o ps] & Hin & Hn). simpl in Hn. apply Rnot_lt_le in Hn.
    apply (Hs T (or_introl eq_refl) o ps Hin Hn). intros p Hp. apply Hc. eapply E1; eauto.
Qed.
Theorem some_term_hits outputs m x Ts : x <> [] -> earlier [] Ts -> (forall T, In T Ts -> sound m x T) ->
  (forall o, (o < outputs)%nat -> o <> m -> In o (covered [] Ts) \/ Sum x m o < 0) -> ~ wins outputs m x -> exists T, In T Ts /\ hit T x = true.
Proof.
  intros Hx He Hs Hc Hw. destruct (first_hit m x Ts [] (fun o H => match H with end) He Hs) as [H|H]; [exact H|]. exfalso. apply Hw, (proj2 (wins_iff A B margin A_pos outputs m x Hx)).
  intros o Ho Hne. destruct (Hc o Ho Hne) as [K|K]; auto.
Qed.
End Rule.

Local Open Scope Z_scope.
(** Theorem 4 and the other side, for one leaf: [P] is "fails" or "is right". What has [P] is hit; listed sequences are hit and do not have [P]. *)
Theorem leaf_bound v Ms (X P : list nat -> bool) (hits : list ((list nat -> bool) * Z)) (L : list (list nat)) : nonneg Ms = true ->
  (forall h c, In (h, c) hits -> integral v Ms (fun x => one (X x && h x)) <= c) ->
  (forall x, word v (length Ms) x -> X x = true -> P x = true -> exists h c, In (h, c) hits /\ h x = true) ->
  NoDup L -> (forall x, In x L -> word v (length Ms) x /\ X x = true /\ P x = false /\ exists h c, In (h, c) hits /\ h x = true) ->
  integral v Ms (fun x => one (X x && P x)) <= zsum snd hits - zsum (mass Ms) L.
Proof.
  intros HM HC HP HN HL. rewrite <- (integral_listed v Ms L) by (auto; intros y Hy; apply HL, Hy).
  assert (H : integral v Ms (fun x => one (X x && P x)) + integral v Ms (fun x => if listed L x then 1 else 0) <= zsum snd hits).
  { rewrite <- integral_add. apply Z.le_trans with (integral v Ms (fun x => zsum (fun hc => one (X x && fst hc x)) hits)).
    - apply integral_le; [exact HM|]. intros x Hx. assert (Q : forall h c, In (h, c) hits -> h x = true -> X x = true -> 1 <= zsum (fun hc => one (X x && fst hc x)) hits).
      { intros h c Hin Hh HX. clear HC HP HL. induction hits as [|hc l IH]; [destruct Hin|]. rewrite zsum_cons.
        assert (0 <= zsum (fun hc => one (X x && fst hc x)) l) by (apply zsum_nonneg; intros hc' _; destruct (X x && fst hc' x); simpl; lia).
        destruct Hin as [->|Hin]; [assert (E1 : one (X x && fst (h, c) x) = 1) by (cbn [fst]; rewrite HX, Hh; reflexivity); lia|]. specialize (IH Hin). assert (0 <= one (X x && fst hc x)) by (destruct (X x && fst hc x); cbn; lia). lia. }
      assert (N : 0 <= zsum (fun hc => one (X x && fst hc x)) hits) by (apply zsum_nonneg; intros hc _; destruct (X x && fst hc x); simpl; lia).
      set (K := zsum (fun hc => one (X x && fst hc x)) hits) in *. clearbody K. destruct (listed L x) eqn:E.
      + apply existsb_exists in E. destruct E as (y & Hy & E). apply eqs_spec in E. subst y. destruct (HL x Hy) as (_ & H1 & H2 & h & c & Hin & Hh). rewrite H2, andb_false_r.
        specialize (Q h c Hin Hh H1). cbn [one]. lia.
      + destruct (X x) eqn:EX; [|cbn [andb one]; lia]. destruct (P x) eqn:EP; [|cbn [andb one]; lia]. destruct (HP x Hx EX EP) as (h & c & Hin & Hh). specialize (Q h c Hin Hh eq_refl). cbn [andb one]. lia.
    - rewrite integral_zsum. apply zsum_le. intros [h c] Hin. apply (HC h c Hin). }
  lia.
Qed.
(** Several spoilers of one leaf, each with overlaps: an overlap counts what its own spoiler and one of a set of earlier ones both spoil.
    A sequence that [j > 0] of [n] spoil is counted by [n - j], and by an overlap of each of the [j] but the first: [n - 1] times at least. *)
Record spoiled := { s_output : nat; s_hit : (list nat -> bool) * Z; s_overlaps : list (list nat * ((list nat -> bool) * Z)) }.
Definition s_hits (s : spoiled) : list ((list nat -> bool) * Z) := s_hit s :: map snd (s_overlaps s).
Fixpoint overlapping (before : list nat) (l : list spoiled) : Prop :=
  match l with [] => True | s :: l' => (forall p, In p before -> exists o, In o (s_overlaps s) /\ In p (fst o)) /\ overlapping (s_output s :: before) l' end.
Section Several.
Variables (spoils : nat -> list nat -> bool) (x : list nat).
Definition spoiled_sound (s : spoiled) : Prop :=
  (spoils (s_output s) x = false -> fst (s_hit s) x = true) /\
  forall o p, In o (s_overlaps s) -> In p (fst o) -> spoils (s_output s) x = true -> spoils p x = true -> fst (snd o) x = true.
Lemma one_nonneg b : 0 <= one b. Proof. destruct b; cbn; lia. Qed.
Lemma hits_often (l : list spoiled) : forall before, overlapping before l -> (forall s, In s l -> spoiled_sound s) ->
  Z.of_nat (length l) - (if existsb (fun p => spoils p x) before then 0 else one (existsb (fun s => spoils (s_output s) x) l)) <= zsum (fun h => one (fst h x)) (flat_map s_hits l).
Proof.
  induction l as [|s l IH]; intros before Ho Hs; [cbn; destruct (existsb _ before); cbn; lia|]. destruct Ho as [O1 O2]. destruct (Hs s (or_introl eq_refl)) as [S1 S2].
  specialize (IH (s_output s :: before) O2 (fun s' H => Hs s' (or_intror H))). cbn [flat_map length existsb] in *. rewrite zsum_app, Nat2Z.inj_succ. unfold s_hits at 1. rewrite zsum_cons, zsum_map.
  set (rest := zsum _ (flat_map s_hits l)) in *. set (own := zsum _ (s_overlaps s)). assert (Own : 0 <= own) by (apply zsum_nonneg; intros; apply one_nonneg).
  pose proof (one_nonneg (fst (s_hit s) x)) as Hit. destruct (spoils (s_output s) x) eqn:Es; cbn [orb one] in *.
  - destruct (existsb (fun p => spoils p x) before) eqn:Eb; [|lia]. apply existsb_exists in Eb. destruct Eb as (p & Hp & Sp). destruct (O1 p Hp) as (o & Ho & Hpo).
    specialize (S2 o p Ho Hpo eq_refl Sp). enough (1 <= own) by lia. unfold own. clear -Ho S2. induction (s_overlaps s) as [|o' l IH]; [destruct Ho|]. rewrite zsum_cons.
    assert (0 <= zsum (fun a : list nat * ((list nat -> bool) * Z) => one (fst (snd a) x)) l) by (apply zsum_nonneg; intros; apply one_nonneg).
    destruct Ho as [->|Ho]; [rewrite S2; cbn [one]; lia|]. specialize (IH Ho). pose proof (one_nonneg (fst (snd o') x)). lia.
  - rewrite (S1 eq_refl). cbn [one]. lia.
Qed.
End Several.
(** The mass that is right, given that what a spoiler spoils is not: the counts less the mass of the leaf for all spoilers but one. *)
Theorem several_bound v Ms (X P : list nat -> bool) (spoils : nat -> list nat -> bool) (l : list spoiled) : nonneg Ms = true ->
  (forall s h c, In s l -> In (h, c) (s_hits s) -> integral v Ms (fun x => one (X x && h x)) <= c) ->
  (forall x s, word v (length Ms) x -> X x = true -> In s l -> spoiled_sound spoils x s) ->
  (forall x s, word v (length Ms) x -> X x = true -> In s l -> P x = true -> spoils (s_output s) x = false) -> overlapping [] l ->
  integral v Ms (fun x => one (X x && P x)) <= zsum snd (flat_map s_hits l) - (Z.of_nat (length l) - 1) * integral v Ms (fun x => one (X x)).
Proof.
  intros HM HC HS HP HO. set (n := Z.of_nat (length l) - 1). assert (Scaled : n * integral v Ms (fun x => one (X x)) = integral v Ms (fun x => n * one (X x))) by (symmetry; apply integral_scale).
  enough (H : integral v Ms (fun x => one (X x && P x)) + integral v Ms (fun x => n * one (X x)) <= zsum snd (flat_map s_hits l)) by lia.
  rewrite <- integral_add. apply Z.le_trans with (integral v Ms (fun x => zsum (fun hc => one (X x && fst hc x)) (flat_map s_hits l))).
  - apply integral_le; [exact HM|]. intros x Hx. destruct (X x) eqn:EX; [|cbn [andb one]; rewrite zsum_zero; lia]. cbn [andb].
    pose proof (hits_often spoils x l [] HO (fun s H => HS x s Hx EX H)) as K. cbn [existsb] in K. destruct (P x) eqn:EP; cbn [one].
    + replace (existsb (fun s => spoils (s_output s) x) l) with false in K; [cbn [one] in K; unfold n; lia|]. symmetry. apply not_true_iff_false. intros E. apply existsb_exists in E. destruct E as (s & Hs & E). rewrite (HP x s Hx EX Hs EP) in E. discriminate.
    + assert (one (existsb (fun s => spoils (s_output s) x) l) <= 1) by (destruct (existsb _ l); cbn; lia). unfold n. lia.
  - rewrite integral_zsum. apply zsum_le. intros [h c] Hin. apply in_flat_map in Hin. destruct Hin as (s & Hs & Hin). apply (HC s h c Hs Hin).
Qed.
(** The halves of a split. *)
Theorem split_bound v Ms (X P h : list nat -> bool) a b : nonneg Ms = true ->
  integral v Ms (fun x => one ((X x && h x) && P x)) <= a -> integral v Ms (fun x => one ((X x && negb (h x)) && P x)) <= b ->
  integral v Ms (fun x => one (X x && P x)) <= a + b.
Proof.
  intros HM Ha Hb. apply Z.le_trans with (2 := Z.add_le_mono _ _ _ _ Ha Hb). rewrite <- integral_add. apply integral_le; [exact HM|].
  intros x _. destruct (X x); destruct (h x); destruct (P x); simpl; lia.
Qed.
(** Parts: what is right of each adds up, if no sequence is in two of them; and what is not right, likewise. *)
Theorem parts_bound {Y} v Ms (P : list nat -> bool) (X : Y -> list nat -> bool) (parts : list Y) (F : Y -> Z) : nonneg Ms = true ->
  (forall x, word v (length Ms) x -> zsum (fun p => one (X p x)) parts <= 1) ->
  (forall p, In p parts -> integral v Ms (fun x => one (X p x && negb (P x))) <= F p) ->
  zsum (fun p => Z.max 0 (integral v Ms (fun x => one (X p x)) - F p)) parts <= integral v Ms (fun x => one (P x)).
Proof.
  intros HM HX HF. apply Z.le_trans with (zsum (fun p => integral v Ms (fun x => one (X p x && P x))) parts).
  - apply zsum_le. intros p Hp. specialize (HF p Hp). assert (0 <= integral v Ms (fun x => one (X p x && P x))).
    { rewrite <- (integral_zero v Ms). apply integral_le; [exact HM|]. intros x _. destruct (_ && _); simpl; lia. }
    assert (integral v Ms (fun x => one (X p x)) = integral v Ms (fun x => one (X p x && P x)) + integral v Ms (fun x => one (X p x && negb (P x)))); [|lia].
    rewrite <- integral_add. apply integral_same. intros x. destruct (X p x); destruct (P x); reflexivity.
  - rewrite <- (integral_zsum v Ms (fun p x => one (X p x && P x)) parts). apply integral_le; [exact HM|]. intros x Hx. specialize (HX x Hx). destruct (P x).
    + simpl. rewrite (zsum_ext _ (fun p => one (X p x))); [exact HX|]. intros p _. rewrite andb_true_r. reflexivity.
    + rewrite (zsum_ext _ (fun _ => 0)) by (intros p _; rewrite andb_false_r; reflexivity). rewrite zsum_zero. simpl. lia.
Qed.
