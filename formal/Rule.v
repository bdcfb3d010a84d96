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
Theorem apart x m o p n1 n2 : 0 < n1 -> 0 <= n2 -> 0 <= Sum x m o -> Sum x m p < 0 ->
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

(** Theorem 2, 3: terms in order. A term covers pairs (o, p): output [o], less [p] if there is one. *)
Record term := { cover : list (nat * option nat); hit : list nat -> bool }.
Definition sound (m : nat) (x : list nat) (T : term) := forall o p, In (o, p) (cover T) -> 0 <= Sum x m o ->
  match p with Some p => Sum x m p < 0 | None => True end -> hit T x = true.
Fixpoint earlier (cov : list nat) (Ts : list term) : Prop :=
  match Ts with [] => True | T :: Ts' => (forall o p, In (o, Some p) (cover T) -> In p cov) /\ earlier (map fst (cover T) ++ cov) Ts' end.
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
  - left. exists T. split; [left; reflexivity|]. apply Exists_exists in F. destruct F as ([o p] & Hin & Hn). simpl in Hn. apply Rnot_lt_le in Hn.
    apply (Hs T (or_introl eq_refl) o p Hin Hn). destruct p as [p|]; [|exact I]. apply Hc. eapply E1; eauto.
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
