(** One label and one query: tables of each output, walks, joint and apart terms and two of them at once, spoilers (one, two at once, or
    several with overlaps), and listed sequences. *)
From Coq Require Import Floats Uint63.
From Coq Require Import Reals Lra Lia List ZArith Bool Arith.
From CompactProofs Require Import Words Automaton Count Threshold Grid Rule Model Statement Enclosure Harms Leaves Pools.
Import ListNotations.
Local Open Scope nat_scope.

(** * Vectors and matrices, entry by entry. What holds of [nai] holds outside of them. *)
Section Entries.
Variable P : I.type -> Prop.
Hypothesis Pn : P nai.
Lemma at_nil t : P (at1 [] t). Proof. destruct t; exact Pn. Qed.
Lemma zip_at op a : forall b t, P (op (at1 a t) (at1 b t)) -> P (at1 (zip op a b) t).
Proof. induction a as [|x a IH]; intros [|y b] [|t] H; try apply at_nil; try exact H. apply (IH b t H). Qed.
Fixpoint mzip (op : I.type -> I.type -> I.type) (mask : list bool) (a b : vec) : vec :=
  match mask, a, b with m :: mask', x :: a', y :: b' => (if m then op x y else nai) :: mzip op mask' a' b' | _, _, _ => [] end.
Lemma mzip_at op mask : forall a b t, P (op (at1 a t) (at1 b t)) -> P (at1 (mzip op mask a b) t).
Proof. induction mask as [|m mask IH]; intros [|x a] [|y b] [|t] H; try apply at_nil; [destruct m; [exact H|exact Pn]|]. apply (IH a b t H). Qed.
Lemma map_at f a : forall t, P (f (at1 a t)) -> P (at1 (map f a) t).
Proof. induction a as [|x a IH]; intros [|t] H; try apply at_nil; [exact H|]. apply (IH t H). Qed.
Fixpoint zipm (op : I.type -> I.type -> I.type) (A B : mat) : mat := match A, B with a :: A', b :: B' => zip op a b :: zipm op A' B' | _, _ => [] end.
Lemma zipm_at op A : forall B i t, P (op (at2 A i t) (at2 B i t)) -> P (at2 (zipm op A B) i t).
Proof. induction A as [|a A IH]; intros [|b B] [|i] t H; try apply at_nil; [apply zip_at, H|]. apply (IH B i t H). Qed.
Definition mapm (f : I.type -> I.type) (A : mat) : mat := map (map f) A.
Lemma mapm_at f A : forall i t, P (f (at2 A i t)) -> P (at2 (mapm f A) i t).
Proof. induction A as [|a A IH]; intros [|i] t H; try apply at_nil; [apply map_at, H|]. apply (IH i t H). Qed.
End Entries.
Definition only (q : nat) (x : I.type) : vec := repeat nai q ++ [x].
Lemma only_at q x : at1 (only q x) q = x.
Proof. unfold at1, only. rewrite app_nth2 by (rewrite repeat_length; lia). rewrite repeat_length, Nat.sub_diag. reflexivity. Qed.
Fixpoint most (l : list mat) : mat := match l with [] => [] | A :: l' => match l' with [] => A | _ => zipm I.join A (most l') end end.
Lemma most_ub l A i t r : In A l -> ub (at2 A i t) r -> ub (at2 (most l) i t) r.
Proof.
  induction l as [|B l IH]; intros Hin H; [destruct Hin|]. destruct l as [|C l]; [destruct Hin as [->|[]]; exact H|].
  change (ub (at2 (zipm I.join B (most (C :: l))) i t) r). apply (zipm_at (fun j => ub j r)); [apply ub_nai|]. destruct Hin as [->|Hin]; [apply ub_join_l, H|apply ub_join_r, IH; assumption].
Qed.
Lemma joined_ub rows a t r : In a rows -> ub (at1 a t) r -> ub (at1 (joined rows) t) r.
Proof.
  induction rows as [|b rows IH]; intros Hin H; [destruct Hin|]. destruct rows as [|c rows]; [destruct Hin as [->|[]]; exact H|].
  change (ub (at1 (zip I.join b (joined (c :: rows))) t) r). apply (zip_at (fun j => ub j r)); [apply ub_nai|]. destruct Hin as [->|Hin]; [apply ub_join_l, H|apply ub_join_r, IH; assumption].
Qed.

(** The row of an output in each sheet. *)
Definition all_rows (k o : nat) (S : list mat) : list vec := match S with [M] => [nth o M []] | _ => map (fun i => nth o (nth i S []) []) (seq 0 k) end.
Lemma all_rows_in k o S i : i < k -> In (nth o (pick [] S i) []) (all_rows k o S).
Proof.
  intros Hi. assert (G : In (nth o (nth i S []) []) (map (fun i => nth o (nth i S []) []) (seq 0 k))) by (apply (in_map (fun i => nth o (nth i S []) [])), in_seq; lia).
  destruct S as [|M [|M' S]]; [exact G|left; reflexivity|exact G].
Qed.

(** * Walks: the largest sum over the sequences of an automaton, for each state; [None] if there is no sequence. *)
Definition larger (a b : option I.type) := match a, b with Some x, Some y => Some (I.join x y) | Some x, None => Some x | None, _ => b end.
Fixpoint walk_row (mv : list (option nat)) (mask : list bool) (h : vec) (W : list (option I.type)) : option I.type :=
  match mv, mask with
  | a :: mv', b :: mask' => let rest := walk_row mv' mask' (tl h) W in
      match a with Some s => if b then match nth s W None with Some w => larger (Some (I.add prec (hd nai h) w)) rest | None => rest end else rest | None => rest end
  | _, _ => None
  end.
Fixpoint walk (A : dfa) (masks : list (list bool)) (hs : mat) : list (option I.type) :=
  match masks with
  | [] => map (fun f : bool => if f then Some I.zero else None) (accepting A)
  | b :: masks' => let W := walk A masks' (tl hs) in map (fun mv => walk_row mv b (hd [] hs) W) (moves A)
  end.
Definition stays_negative (A : dfa) (masks : list (list bool)) (hs : mat) : bool := match nth 0 (walk A masks hs) None with Some u => negative u | None => true end.
Lemma walk_row_ok W s w z : nth s W None = Some w -> ub w z -> forall mv mask h t r, nth t mv None = Some s -> nth t mask false = true -> ub (at1 h t) r ->
  exists u, walk_row mv mask h W = Some u /\ ub u (r + z).
Proof.
  intros Hw Hz. induction mv as [|a mv IH]; intros mask h t r Ht Hm Hr; [destruct t; discriminate|]. destruct mask as [|b mask]; [destruct t; discriminate|]. cbn [walk_row]. destruct t as [|t].
  - cbn [nth] in Ht, Hm. subst a b. rewrite Hw. assert (U : ub (I.add prec (hd nai h) w) (r + z)) by (apply ub_add; [destruct h; exact Hr|exact Hz]).
    cbn [larger]. destruct (walk_row mv mask (tl h) W); eexists; (split; [reflexivity|]); [apply ub_join_l|]; exact U.
  - cbn [nth] in Ht, Hm. destruct (IH mask (tl h) t r Ht Hm) as (u & E & U); [destruct h; [destruct t|]; exact Hr|]. rewrite E.
    destruct a as [s'|]; [|exists u; auto]. destruct b; [|exists u; auto]. destruct (nth s' W None); [|exists u; auto]. cbn [larger]. eexists. split; [reflexivity|apply ub_join_r, U].
Qed.
Lemma walk_ok A (h : nat -> nat -> R) : forall masks hs i x s, accepts_from A s x = true -> fits masks x = true ->
  (forall j t, j < length masks -> (S j = length masks -> t = query x) -> ub (at2 hs j t) (h (i + j) t)) -> exists u, nth s (walk A masks hs) None = Some u /\ ub u (sumx h i x).
Proof.
  induction masks as [|b masks IH]; intros hs i [|t x] s Ha Hf H; try discriminate.
  - cbn [walk sumx]. cbn [accepts_from] in Ha. unfold final in Ha. exists I.zero. split; [|apply ub_ct, ct_zero].
    change None with ((fun f : bool => if f then Some I.zero else None) false). rewrite map_nth, Ha. reflexivity.
  - cbn [fits] in Hf. apply andb_prop in Hf. destruct Hf as [F1 F2]. cbn [accepts_from] in Ha. destruct (step A s t) as [s'|] eqn:Es; [|discriminate]. cbn [walk sumx].
    destruct (IH (tl hs) (S i) x s' Ha F2) as (w & Ew & Uw).
    { intros j u Hj Hl. replace (S i + j) with (i + S j) by lia. replace (at2 (tl hs) j u) with (at2 hs (S j) u) by (unfold at2; destruct hs; [destruct j|]; reflexivity).
      apply H; [simpl; lia|]. intros E. simpl in E. rewrite Hl by lia. destruct x; [destruct masks; [simpl in Hj; lia|discriminate]|reflexivity]. }
    change None with (walk_row [] b (hd [] hs) (walk A masks (tl hs))). rewrite (map_nth (fun mv => walk_row mv b (hd [] hs) (walk A masks (tl hs)))).
    apply (walk_row_ok _ s' w _ Ew Uw) with (t := t); [exact Es|exact F1|].
    specialize (H 0 t). rewrite Nat.add_0_r in H. replace (at1 (hd [] hs) t) with (at2 hs 0 t) by (unfold at2; destruct hs; reflexivity). apply H; [simpl; lia|].
    intros E. destruct masks; [|discriminate]. destruct x; [reflexivity|discriminate].
Qed.
Lemma stays_negative_ok A masks hs h x : stays_negative A masks hs = true -> accepts A x = true -> fits masks x = true ->
  (forall j t, j < length masks -> (S j = length masks -> t = query x) -> ub (at2 hs j t) (h j t)) -> (sumx h 0 x < 0)%R.
Proof.
  intros HN Ha Hf H. destruct (walk_ok A h masks hs 0 x 0 Ha Hf H) as (u & E & U). unfold stays_negative in HN. rewrite E in HN. apply (ub_negative u _ HN U).
Qed.
Lemma fits_word v masks : forall x, forallb (fun b => Nat.leb (length b) v) masks = true -> fits masks x = true -> word v (length masks) x.
Proof.
  induction masks as [|b masks IH]; intros [|t x] Hv Hf; try discriminate; [split; [reflexivity|intros t []]|]. cbn [fits forallb] in *. apply andb_prop in Hv. destruct Hv as [V1 V2]. apply andb_prop in Hf. destruct Hf as [F1 F2].
  apply Nat.leb_le in V1. destruct (IH x V2 F2) as [L1 L2]. split; [simpl; congruence|]. intros u [<-|Hu]; [|auto]. destruct (Nat.lt_ge_cases t (length b)); [lia|]. rewrite nth_overflow in F1 by assumption. discriminate.
Qed.

Inductive term := Joint (outputs : list (nat * Z)) | Apart (o less : nat) (n1 n2 : Z).
Inductive low_term := Alone (t : term) (g : grid) | Both (t : term) (g : grid) (t' : term) (g' : grid) (reach : Z).
(** Listed sequences are lists of primitive integers. *)
Definition listing := list (list int).
Definition sequence (l : list int) : list nat := map (fun t => Z.to_nat (to_Z t)) l.
Record pair_tables := { p_E : list mat; p_P : mat; p_U : vec; p_A : mat }.   (* B_o - B_m as [o][t] in sheets, [o][i], [o], the margin in the last; attention [i][t] *)

Section Pairs.
Variables (N : network) (v : nat) (Ms : list (list Z)) (margin : number) (centre mu : tensor).
Local Notation k := (n_ctx N). Local Notation out := (n_out N).
Local Notation rA := (rA N centre). Local Notation rB := (rB N centre mu). Local Notation G := (G rA rB (real margin)). Local Notation Sum := (Sum rA rB (real margin)).

(** ** Tables *)
Definition less_column (m : nat) (M : mat) : mat := let own := nth m M [] in map (fun a => zip (I.sub prec) a own) M.
Lemma less_column_ok m M f : cm M f -> cm (less_column m M) (fun o t => f o t - f m t)%R.
Proof. intros H. apply cm_map with (1 := H). intros o a Ha. apply (cv_zip _ Rminus ct_sub); [exact Ha|apply cm_row, H]. Qed.
Definition make_pair (D : ready) (E : list mat) (P : mat) (m q : nat) : pair_tables :=
  let u := nth q (t_EU (d_tables D)) [] in let own := match less_own margin with Some y => I.sub prec (at1 u m) y | None => at1 u m end in
  let rows := map (fun M => nth q M []) (d_attention D) in let b := nth q (d_pair_places D) [] in
  {| p_E := E; p_P := P; p_U := map (fun x => I.sub prec x own) u;
     p_A := map (fun i => let y := at1 b i in map (fun x => I.mul prec x y) (pick [] rows i)) (seq 0 (k - 1)) ++ [only q (I.mul prec (at1 (pick [] rows (k - 1)) q) (at1 b (k - 1)))] |}.
Definition pair_ok (m q : nat) (c : R) (P : pair_tables) := (0 < c)%R /\ cms k (p_E P) (fun i o t => rEVOU N centre mu i t o - rEVOU N centre mu i t m)%R /\
  cm (p_P P) (fun o i => rPVOU N centre i o - rPVOU N centre i m)%R /\ cv (p_U P) (fun o => rEU N mu q o - (rEU N mu q m - real margin))%R /\
  forall i t, i < k -> (S i = k -> t = q) -> ct (at2 (p_A P) i t) (c * rA q i t).
Lemma last_row {X} (f : nat -> X) (y d : X) i : i < k -> nth i (map f (seq 0 (k - 1)) ++ [y]) d = if Nat.eqb (S i) k then y else f i.
Proof.
  intros Hi. destruct (Nat.eqb_spec (S i) k) as [E|E].
  - rewrite app_nth2 by (rewrite map_length, seq_length; lia). rewrite map_length, seq_length. replace (i - (k - 1)) with 0 by lia. reflexivity.
  - rewrite app_nth1 by (rewrite map_length, seq_length; lia). rewrite nth_map_seq by lia. reflexivity.
Qed.
Lemma make_pair_ok D m q : ready_ok N centre mu D -> exists c, pair_ok m q c (make_pair D (map (less_column m) (d_EVOU_columns D)) (less_column m (d_PVOU_columns D)) m q).
Proof.
  intros (R1 & R2 & R3 & R4 & R5 & R6 & R7 & R8). destruct (R1 q) as (s1 & P1 & C1). destruct (R6 q) as (s2 & P2 & C2). exists (s1 * s2)%R.
  unfold make_pair, pair_ok. cbn [p_E p_P p_U p_A]. split; [apply Rmult_lt_0_compat; assumption|]. split; [apply cms_map with (1 := R7); intros i M HM; apply (less_column_ok m _ _ HM)|]. split; [apply (less_column_ok m _ _ R8)|]. split.
  - apply cv_map with (1 := cm_row _ _ q R5). intros o i Hi. apply ct_sub; [exact Hi|]. pose proof (less_own_ok margin) as L. destruct (less_own margin) as [y|]; cbn in L; [apply ct_sub; [apply R5|exact L]|rewrite L, Rminus_0_r; apply R5].
  - intros i t Hi Hl. replace (s1 * s2 * rA q i t)%R with ((s1 * exp (rEQKE N centre q i t)) * (s2 * exp (rEQKP N centre q i)))%R by (unfold Pools.rA; rewrite exp_plus; ring).
    assert (C1' : cv (pick [] (map (fun M => nth q M []) (d_attention D)) i) (fun t => s1 * exp (rEQKE N centre q i t))%R) by (apply (pick_map (fun a => cv a _) (fun M => nth q M []) []); [apply cv_nil|apply C1, Hi]).
    unfold at2. rewrite last_row by exact Hi. destruct (Nat.eqb_spec (S i) k) as [E|E].
    + rewrite Hl by exact E. rewrite only_at. replace (k - 1) with i by lia. apply ct_mul; [apply C1'|apply C2].
    + apply (map_at (fun j => ct j _)); [apply ct_nai|]. apply ct_mul; [apply C1'|apply C2].
Qed.

Section Pair.
Variables (m q : nat) (c : R) (P : pair_tables) (masks : list (list bool)).
Hypothesis HP : pair_ok m q c P.
Definition rest (o i : nat) := I.add prec (at2 (p_P P) o i) (at1 (p_U P) o).
Definition entry (o i t : nat) := I.mul prec (at2 (p_A P) i t) (I.add prec (at2 (pick [] (p_E P) i) o t) (rest o i)).
Definition table (o : nat) : mat :=
  let es := map (fun M => nth o M []) (p_E P) in
  map (fun i => let y := rest o i in mzip (fun a x => I.mul prec a (I.add prec x y)) (nth i masks []) (nth i (p_A P) []) (pick [] es i)) (seq 0 (k - 1)) ++ [only q (entry o (k - 1) q)].
Lemma bracket_is o i t : (G q m o i t = rA q i t * ((rEVOU N centre mu i t o - rEVOU N centre mu i t m) + ((rPVOU N centre i o - rPVOU N centre i m) + (rEU N mu q o - (rEU N mu q m - real margin)))))%R.
Proof. unfold Threshold.G, Pools.rB. ring. Qed.
Lemma entry_ok o i t : i < k -> (S i = k -> t = q) -> ct (entry o i t) (c * G q m o i t).
Proof.
  destruct HP as (H1 & H2 & H3 & H4 & H5). intros Hi Hl. rewrite bracket_is, <- Rmult_assoc. apply ct_mul; [apply H5; assumption|]. apply ct_add; [apply (H2 i Hi)|]. apply ct_add; [apply H3|apply H4].
Qed.
Lemma table_ok o i t : i < k -> (S i = k -> t = q) -> ct (at2 (table o) i t) (c * G q m o i t).
Proof.
  intros Hi Hl. unfold at2, table. rewrite last_row by exact Hi. destruct (Nat.eqb_spec (S i) k) as [E|E].
  - rewrite Hl by exact E. rewrite only_at. replace (k - 1) with i by lia. apply entry_ok; auto.
  - apply (mzip_at (fun j => ct j _)); [apply ct_nai|]. destruct HP as (H1 & H2 & H3 & H4 & H5). rewrite bracket_is, <- Rmult_assoc. apply ct_mul; [apply H5; assumption|].
    apply ct_add; [|apply ct_add; [apply H3|apply H4]]. apply (pick_map (fun a => ct (at1 a t) _) (fun M => nth o M []) []); [destruct t; apply ct_nai|apply (H2 i Hi)].
Qed.
Fixpoint sum_at (o i : nat) (x : list nat) : I.type := match x with [] => I.zero | t :: x' => I.add prec (entry o i t) (sum_at o (S i) x') end.
Lemma sum_at_ok o x : forall i, i + length x = k -> (x <> [] -> query x = q) -> ct (sum_at o i x) (sumx (fun i t => c * G q m o i t)%R i x).
Proof.
  induction x as [|t x IH]; intros i Hl Hq; [apply ct_zero|]. cbn [sum_at sumx]. simpl in Hl. apply ct_add.
  - apply entry_ok; [lia|]. intros E. destruct x; [|simpl in Hl; lia]. apply Hq. discriminate.
  - apply IH; [lia|]. intros Hx. rewrite <- Hq by discriminate. destruct x; [congruence|reflexivity].
Qed.
Lemma Sum_scaled o x : query x = q -> (sumx (fun i t => c * G q m o i t)%R 0 x = c * Sum x m o)%R.
Proof. intros Hq. rewrite sumx_scale. unfold Threshold.Sum. rewrite Hq. reflexivity. Qed.

(** ** Harmless outputs: every position taken for its worst, several outputs at once; a failure halves them *)
Definition anywhere : list bool := fold_right either [] masks.
Definition gain (live : list bool) (o : nat) : vec :=
  let y := I.add prec (joined1 (map (at2 (p_P P) o) (seq 0 k))) (at1 (p_U P) o) in let e := joined (all_rows k o (p_E P)) in mzip (fun x _ => I.add prec x y) live e e.
Definition gains : list (nat * vec) := let live := anywhere in map (fun o => (o, gain live o)) (filter (fun o => negb (Nat.eqb o m)) (seq 0 out)).
Definition worst_table (w : vec) : mat :=
  map (fun i => mzip (I.mul prec) (nth i masks []) (nth i (p_A P) []) w) (seq 0 (k - 1)) ++ [only q (I.mul prec (at2 (p_A P) (k - 1) q) (at1 w q))].
Fixpoint harmless (fuel : nat) (A : dfa) (os : list (nat * vec)) : bool :=
  match os with
  | [] => true
  | _ => if stays_negative A masks (worst_table (joined (map snd os))) then true else
      match fuel with
      | O => false
      | S fuel' => match os with
        | [(o, _)] => stays_negative A masks (table o)
        | _ => let n := Nat.div2 (length os) in harmless fuel' A (firstn n os) && harmless fuel' A (skipn n os) end end
  end.
Lemma gain_ok live o i t : i < k -> ub (at1 (gain live o) t) ((rEVOU N centre mu i t o - rEVOU N centre mu i t m) + ((rPVOU N centre i o - rPVOU N centre i m) + (rEU N mu q o - (rEU N mu q m - real margin)))).
Proof.
  destruct HP as (H1 & H2 & H3 & H4 & H5). intros Hi. unfold gain. apply (mzip_at (fun j => ub j _)); [apply ub_nai|]. apply ub_add; [apply (joined_ub _ _ t _ (all_rows_in k o _ i Hi)), ub_ct, (H2 i Hi)|]. apply ub_add; [|apply ub_ct, H4].
  apply (ub_joined1 _ (at2 (p_P P) o i)); [apply in_map, in_seq; lia|apply ub_ct, H3].
Qed.
Lemma worst_table_ok w o i t : (forall i t, i < k -> ub (at1 w t) ((rEVOU N centre mu i t o - rEVOU N centre mu i t m) + ((rPVOU N centre i o - rPVOU N centre i m) + (rEU N mu q o - (rEU N mu q m - real margin))))) ->
  i < k -> (S i = k -> t = q) -> ub (at2 (worst_table w) i t) (c * G q m o i t).
Proof.
  destruct HP as (H1 & H2 & H3 & H4 & H5). intros Hw Hi Hl. rewrite bracket_is, <- Rmult_assoc.
  assert (C : ct (at2 (p_A P) i t) (c * rA q i t)) by (apply H5; assumption). assert (Pos : (0 <= c * rA q i t)%R) by (pose proof (rA_pos N centre q i t); nra).
  unfold at2, worst_table. rewrite last_row by exact Hi. destruct (Nat.eqb_spec (S i) k) as [E|E].
  - specialize (Hl E). subst t. rewrite only_at. replace (k - 1) with i by lia. apply ub_mul; auto.
  - apply (mzip_at (fun j => ub j _)); [apply ub_nai|]. apply ub_mul; auto.
Qed.
Hypothesis Hk : length masks = k.
Hypothesis Hfit : forall x, fits masks x = true -> query x = q /\ x <> [].
Lemma negative_sum A hs o x : stays_negative A masks hs = true -> accepts A x = true -> fits masks x = true ->
  (forall i t, i < k -> (S i = k -> t = q) -> ub (at2 hs i t) (c * G q m o i t)) -> (Sum x m o < 0)%R.
Proof.
  intros HN Ha Hf H. destruct (Hfit x Hf) as [Hq _]. pose proof (stays_negative_ok A masks hs (fun i t => c * G q m o i t)%R x HN Ha Hf) as K. rewrite Hk, Hq in K. specialize (K H).
  rewrite Sum_scaled in K by exact Hq. destruct HP as (H1 & _). nra.
Qed.
Lemma harmless_ok A x : accepts A x = true -> fits masks x = true -> forall fuel os, harmless fuel A os = true -> (forall o g, In (o, g) os -> g = gain anywhere o) -> forall o g, In (o, g) os -> (Sum x m o < 0)%R.
Proof.
  intros Ha Hf. induction fuel as [|fuel IH]; intros os H Hg o g Hin; (destruct os as [|og os]; [destruct Hin|]); cbn [harmless] in H; set (l := og :: os) in *;
    (destruct (stays_negative A masks (worst_table (joined (map snd l)))) eqn:E;
      [apply (negative_sum A _ o x E Ha Hf); intros i t Hi Hl; apply worst_table_ok; auto; intros i' t' Hi'; apply (joined_ub _ g); [apply (in_map snd l (o, g) Hin)|rewrite (Hg o g Hin); apply gain_ok, Hi']|]); [discriminate|].
  assert (Halves : forall n, harmless fuel A (firstn n l) && harmless fuel A (skipn n l) = true -> (Sum x m o < 0)%R).
  { intros n Hh. apply andb_prop in Hh. destruct Hh as [Ha1 Ha2]. rewrite <- (firstn_skipn n l) in Hin. apply in_app_or in Hin. destruct Hin as [Hin|Hin].
    - apply (IH _ Ha1) with (g := g); [|exact Hin]. intros o' g' Hin'. apply Hg. rewrite <- (firstn_skipn n l). apply in_or_app. left; exact Hin'.
    - apply (IH _ Ha2) with (g := g); [|exact Hin]. intros o' g' Hin'. apply Hg. rewrite <- (firstn_skipn n l). apply in_or_app. right; exact Hin'. }
  unfold l in H. destruct og as [o' g']. destruct os as [|og2 os]; [|apply (Halves _ H)].
  destruct Hin as [Eo|[]]. injection Eo as -> ->. apply (negative_sum A _ o x H Ha Hf). intros i t Hi Hl. apply ub_ct, table_ok; assumption.
Qed.

(** ** Terms *)
Definition scaled (w : Z) (M : mat) : mat := if (w =? 1)%Z then M else mapm (I.mul prec (I.fromZ prec w)) M.
Lemma scaled_ok w M i t r : ct (at2 M i t) r -> ct (at2 (scaled w M) i t) (IZR w * r).
Proof.
  intros H. unfold scaled. destruct (Z.eqb_spec w 1) as [->|_]; [rewrite Rmult_1_l; exact H|]. apply (mapm_at (fun j => ct j _)); [apply ct_nai|]. apply ct_mul; [apply ct_Z|exact H].
Qed.
Definition table_of (t : term) : mat :=
  match t with
  | Joint ws => most (map (fun ow => scaled (snd ow) (table (fst ow))) ws)
  | Apart o p n1 n2 => zipm (I.sub prec) (scaled n1 (table o)) (scaled n2 (table p))
  end.
Definition is_output (o : nat) : bool := Nat.ltb o out && negb (Nat.eqb o m).
Definition cover_of (t : term) : list (nat * list nat) := match t with Joint ws => map (fun ow => (fst ow, [])) ws | Apart o p _ _ => [(o, [p])] end.
Definition low_cover (t : low_term) : list (nat * list nat) := match t with Alone t _ => cover_of t | Both t _ t' _ _ => common (cover_of t) (cover_of t') end.
Definition covers (t : low_term) : list nat := map fst (low_cover t).
Definition term_fine (cov : list nat) (t : term) : bool :=
  match t with
  | Joint ws => forallb (fun ow => is_output (fst ow) && (0 <? snd ow)%Z) ws
  | Apart o p n1 n2 => is_output o && existsb (Nat.eqb p) cov && (0 <=? n1)%Z && (0 <=? n2)%Z
  end.
Definition low_fine (cov : list nat) (t : low_term) : bool := match t with Alone t _ => term_fine cov t | Both t _ t' _ _ => term_fine cov t && term_fine cov t' end.
Fixpoint terms_fine (cov : list nat) (ts : list low_term) : bool := match ts with [] => true | t :: ts' => low_fine cov t && terms_fine (covers t ++ cov) ts' end.
Fixpoint covered_by (cov : list nat) (ts : list low_term) : list nat := match ts with [] => cov | t :: ts' => covered_by (covers t ++ cov) ts' end.
Definition counter_of (A : dfa) (t : low_term) : option counter :=
  match t with Alone t g => count_grid Ms masks false (table_of t) A g | Both t g t' g' reach => count_two Ms masks (table_of t) g (table_of t') g' reach A end.
Fixpoint counters (A : dfa) (ts : list low_term) : option (list counter) :=
  match ts with
  | [] => Some []
  | t :: ts' => match counter_of A t, counters A ts' with Some n, Some l => Some (n :: l) | _, _ => None end
  end.
Fixpoint as_terms (ts : list low_term) (cs : list counter) : list Rule.term :=
  match ts, cs with t :: ts', n :: cs' => {| cover := low_cover t; hit := hit_by n |} :: as_terms ts' cs' | _, _ => [] end.
Lemma cover_earlier cov t : term_fine cov t = true -> forall o ps p, In (o, ps) (cover_of t) -> In p ps -> In p cov.
Proof.
  intros H1 o ps p Hin Hp. destruct t as [ws|o' p' n1 n2]; cbn [cover_of] in Hin.
  - apply in_map_iff in Hin. destruct Hin as (ow & E & _). injection E as _ <-. destruct Hp.
  - destruct Hin as [E|[]]. injection E as _ <-. destruct Hp as [<-|[]]. cbn [term_fine] in H1. apply andb_prop in H1. destruct H1 as [H1 _]. apply andb_prop in H1. destruct H1 as [H1 _]. apply andb_prop in H1. destruct H1 as [_ H1].
    apply existsb_exists in H1. destruct H1 as (u & Hu & E). apply Nat.eqb_eq in E. subst; exact Hu.
Qed.
Lemma as_terms_earlier ts : forall cov cs, terms_fine cov ts = true -> earlier cov (as_terms ts cs).
Proof.
  induction ts as [|t ts IH]; intros cov [|n cs] H; try exact I. cbn [terms_fine] in H. apply andb_prop in H. destruct H as [H1 H2]. cbn [as_terms earlier cover]. split; [|apply IH, H2].
  intros o ps p Hin Hp. destruct t as [t g|t g t' g' reach]; cbn [low_cover low_fine] in *; [apply (cover_earlier cov t H1 o ps p Hin Hp)|].
  apply andb_prop in H1. destruct H1 as [H1 H1']. apply common_in in Hin. destruct Hin as (ps1 & ps2 & C1 & C2 & ->). apply in_app_or in Hp. destruct Hp as [Hp|Hp]; [apply (cover_earlier cov t H1 o ps1 p C1 Hp)|apply (cover_earlier cov t' H1' o ps2 p C2 Hp)].
Qed.
Lemma as_terms_covered A ts : forall cov cs, counters A ts = Some cs -> covered cov (as_terms ts cs) = covered_by cov ts.
Proof.
  induction ts as [|t ts IH]; intros cov cs H; cbn [counters] in H; [injection H as <-; reflexivity|]. destruct (counter_of A t) as [n|]; [|discriminate]. destruct (counters A ts) as [l|]; [|discriminate]. injection H as <-.
  cbn [as_terms covered covered_by cover]. apply IH. reflexivity.
Qed.
Lemma term_sound cov t g s x : fits masks x = true -> term_fine cov t = true -> on_grid masks false (table_of t) g = Some s -> sound rA rB (real margin) m x {| cover := cover_of t; hit := reached s |}.
Proof.
  intros Hf H1 En. destruct (Hfit x Hf) as [Hq Hne]. destruct HP as (Pc & _). intros o ps Hin Ho Hp. cbn [cover hit] in *. destruct t as [ws|o' p' n1 n2]; cbn [cover_of term_fine] in *.
  - apply in_map_iff in Hin. destruct Hin as ([o1 w] & E & Hin). injection E as -> _. rewrite forallb_forall in H1. specialize (H1 _ Hin). cbn [fst snd] in *. apply andb_prop in H1. destruct H1 as [_ Hw]. apply Z.ltb_lt in Hw.
    assert (Pw : (0 < IZR w * c)%R) by (apply Rmult_lt_0_compat; [apply IZR_lt, Hw|exact Pc]).
    apply (on_grid_hits masks false _ g s x (fun i t => (IZR w * c) * G (query x) m o i t)%R En Hf); [|apply (joint rA rB (real margin) x m o _ Pw Ho)].
    rewrite Hk, Hq. intros i t Hi Hl. apply (most_ub _ (scaled w (table o))); [apply (in_map (fun ow => scaled (snd ow) (table (fst ow))) ws (o, w) Hin)|]. apply ub_ct. rewrite Rmult_assoc. apply scaled_ok, table_ok; assumption.
  - destruct Hin as [E|[]]. injection E as <- <-. specialize (Hp p' (or_introl eq_refl)). apply andb_prop in H1. destruct H1 as [H1 Hn2]. apply andb_prop in H1. destruct H1 as [_ Hn1]. apply Z.leb_le in Hn1, Hn2.
    assert (P1 : (0 <= IZR n1 * c)%R) by (apply Rmult_le_pos; [apply IZR_le, Hn1|lra]). assert (P2 : (0 <= IZR n2 * c)%R) by (apply Rmult_le_pos; [apply IZR_le, Hn2|lra]).
    apply (on_grid_hits masks false _ g s x (fun i t => (IZR n1 * c) * G (query x) m o' i t + - (IZR n2 * c) * G (query x) m p' i t)%R En Hf); [|apply (apart rA rB (real margin) x m o' p' _ _ P1 P2 Ho Hp)].
    rewrite Hk, Hq. intros i t Hi Hl. apply ub_ct. cbn [table_of]. apply (zipm_at (fun j => ct j _)); [apply ct_nai|].
    replace (IZR n1 * c * G q m o' i t + - (IZR n2 * c) * G q m p' i t)%R with (IZR n1 * (c * G q m o' i t) - IZR n2 * (c * G q m p' i t))%R by ring. apply ct_sub; apply scaled_ok, table_ok; assumption.
Qed.
Lemma grid_sums strict hs A g n : count_grid Ms masks strict hs A g = Some n -> exists s, on_grid masks strict hs g = Some s /\ c_sums n = [s].
Proof. unfold count_grid. destruct (on_grid masks strict hs g) as [[rows start]|]; [|discriminate]. destruct (count_up _ _ _ _); [|discriminate]. injection 1 as <-. eexists. split; reflexivity. Qed.
Lemma two_sums hs g hs' g' reach A n : count_two Ms masks hs g hs' g' reach A = Some n -> exists s s', on_grid masks false hs g = Some s /\ on_grid masks false hs' g' = Some s' /\ c_sums n = [s; s'].
Proof.
  unfold count_two. destruct (on_grid masks false hs g) as [[D z]|]; [|discriminate]. destruct (on_grid masks false hs' g') as [[E y]|]; [|discriminate]. destruct (count_both _ _ _ _ _ _ _); [|discriminate].
  injection 1 as <-. do 2 eexists. repeat split; reflexivity.
Qed.
Lemma counter_sound A cov t n x : fits masks x = true -> low_fine cov t = true -> counter_of A t = Some n -> sound rA rB (real margin) m x {| cover := low_cover t; hit := hit_by n |}.
Proof.
  intros Hf H1 Hn o ps Hin Ho Hp. cbn [cover hit] in *. unfold hit_by. destruct t as [t g|t g t' g' reach]; cbn [low_cover low_fine counter_of] in *.
  - destruct (grid_sums _ _ _ _ _ Hn) as (s & Es & ->). cbn [forallb]. rewrite andb_true_r. apply (term_sound cov t g s x Hf H1 Es o ps Hin Ho Hp).
  - apply andb_prop in H1. destruct H1 as [H1 H1']. destruct (two_sums _ _ _ _ _ _ _ Hn) as (s & s' & Es & Es' & ->). cbn [forallb]. rewrite andb_true_r.
    apply (both_sound rA rB (real margin) m x _ _ (term_sound cov t g s x Hf H1 Es) (term_sound cov t' g' s' x Hf H1' Es') o ps Hin Ho Hp).
Qed.
Lemma as_terms_sound A x : fits masks x = true -> forall ts cov cs, terms_fine cov ts = true -> counters A ts = Some cs -> forall T, In T (as_terms ts cs) -> sound rA rB (real margin) m x T.
Proof.
  intros Hf. induction ts as [|t ts IH]; intros cov cs H Hc T HT; cbn [counters] in Hc; [injection Hc as <-; destruct HT|].
  destruct (counter_of A t) as [n|] eqn:En; [|discriminate]. destruct (counters A ts) as [l|]; [|discriminate]. injection Hc as <-. cbn [terms_fine] in H. apply andb_prop in H. destruct H as [H1 H2].
  cbn [as_terms] in HT. destruct HT as [<-|HT]; [|apply (IH _ l H2 eq_refl T HT)]. apply (counter_sound A cov t n x Hf H1 En).
Qed.

(** ** Leaves below *)
Definition surely_right (x : list nat) : bool := forallb (fun o => Nat.eqb o m || negative (sum_at o 0 x)) (seq 0 out).
Definition surely_wrong (x : list nat) : bool := existsb (fun o => negb (Nat.eqb o m) && nonnegative (sum_at o 0 x)) (seq 0 out).
Lemma word_sum o x : fits masks x = true -> ct (sum_at o 0 x) (c * Sum x m o).
Proof.
  intros Hf. destruct (Hfit x Hf) as [Hq Hne]. rewrite <- (Sum_scaled o x Hq). apply sum_at_ok; [|auto]. simpl. clear -Hf Hk. rewrite <- Hk. clear Hk. revert x Hf. induction masks as [|b ms IH]; intros [|t x] H; try discriminate; [reflexivity|].
  cbn [fits] in H. apply andb_prop in H. simpl. f_equal. apply IH, H.
Qed.
Lemma surely_right_ok x : fits masks x = true -> surely_right x = true -> winsb rA rB (real margin) out m x = true.
Proof.
  intros Hf H. destruct (Hfit x Hf) as [_ Hne]. destruct HP as (Pc & _). apply winsb_spec, (proj2 (wins_iff rA rB (real margin) (rA_pos N centre) out m x Hne)). intros o Ho Hom. unfold surely_right in H. rewrite forallb_forall in H. specialize (H o ltac:(apply in_seq; lia)).
  destruct (Nat.eqb_spec o m); [contradiction|]. cbn [orb] in H. pose proof (negative_ok _ _ H (word_sum o x Hf)). nra.
Qed.
Lemma surely_wrong_ok x : fits masks x = true -> surely_wrong x = true -> winsb rA rB (real margin) out m x = false.
Proof.
  intros Hf H. destruct (Hfit x Hf) as [_ Hne]. destruct HP as (Pc & _). destruct (winsb rA rB (real margin) out m x) eqn:E; [|reflexivity]. exfalso. apply winsb_spec in E. rewrite (wins_iff rA rB (real margin) (rA_pos N centre) out m x Hne) in E.
  unfold surely_wrong in H. apply existsb_exists in H. destruct H as (o & Ho & H). apply in_seq in Ho. apply andb_prop in H. destruct H as [H1 H2]. destruct (Nat.eqb_spec o m) as [|Hom]; [discriminate|]. specialize (E o ltac:(lia) Hom).
  pose proof (nonnegative_ok _ _ H2 (word_sum o x Hf)). nra.
Qed.
Definition low_leaf : Type := list low_term * listing.
Definition counted_by (cs : list counter) (x : list nat) : bool := existsb (fun n => hit_by n x) cs.
(** Listed sequences that no term counts are left out. *)
Definition lower_leaf (gs : list (nat * vec)) (A : dfa) (l : low_leaf) : option Z :=
  let ts := fst l in let L0 := map sequence (snd l) in let cov := covered_by [] ts in
  if terms_fine [] ts && ascending L0 && harmless out A (filter (fun og => negb (existsb (Nat.eqb (fst og)) cov)) gs) then
    match counters A ts with
    | Some cs => let L := filter (counted_by cs) L0 in if forallb (fun x => accepts A x && fits masks x && surely_right x) L then
        let n := (zsum c_count cs - zsum (mass Ms) L)%Z in Some (match ts with _ :: _ :: _ => Z.min n (all_of Ms masks A) | _ => n end) else None
    | None => None end
  else None.
Hypothesis HM : nonneg Ms = true.
Hypothesis Hlen : length masks = length Ms.
Hypothesis Hv : forallb (fun b => Nat.leb (length b) v) masks = true.
Lemma counters_each A ts : closed A = true -> forall cs, counters A ts = Some cs -> forall n, In n cs -> (integral v Ms (fun x => one ((accepts A x && fits masks x) && hit_by n x)) <= c_count n)%Z.
Proof.
  intros HA. induction ts as [|t ts IH]; intros cs H n Hn; cbn [counters] in H; [injection H as <-; destruct Hn|]. destruct (counter_of A t) as [n0|] eqn:E; [|discriminate]. destruct (counters A ts) as [l|]; [|discriminate].
  injection H as <-. destruct Hn as [<-|Hn]; [|apply (IH l eq_refl n Hn)]. destruct t as [t g|t g t' g' reach]; cbn [counter_of] in E; [apply (counter_in v Ms masks HM _ _ _ _ _ HA E)|apply fitting; [exact HM|]; apply (two_ge v Ms masks HM _ _ _ _ _ _ _ HA E)].
Qed.
Lemma as_terms_hit ts : forall cs T, In T (as_terms ts cs) -> exists n, In n cs /\ hit T = hit_by n.
Proof. induction ts as [|t ts IH]; intros [|n cs] T H; try destruct H as [<-|H]; try contradiction; [exists n; split; [left|]; reflexivity|]. destruct (IH cs T H) as (n' & H1 & H2). exists n'. split; [right; exact H1|exact H2]. Qed.
Theorem lower_leaf_ok A l n : closed A = true -> lower_leaf gains A l = Some n -> (integral v Ms (fun x => one ((accepts A x && fits masks x) && negb (winsb rA rB (real margin) out m x))) <= n)%Z.
Proof.
  intros HA. unfold lower_leaf. destruct l as [ts L1]. cbn [fst snd]. set (L0 := map sequence L1). clearbody L0. set (cov := covered_by [] ts). destruct (_ && _) eqn:E; [|discriminate]. apply andb_prop in E. destruct E as [E E3]. apply andb_prop in E. destruct E as [E1 E2].
  destruct (counters A ts) as [cs|] eqn:Ec; [|discriminate]. set (L := filter (counted_by cs) L0). destruct (forallb _ L) eqn:EL; [|discriminate]. rewrite forallb_forall in EL. intros Hn.
  enough (Bound : (integral v Ms (fun x => one ((accepts A x && fits masks x) && negb (winsb rA rB (real margin) out m x))) <= zsum c_count cs - zsum (mass Ms) L)%Z).
  { injection Hn as <-. destruct ts as [|t1 [|t2 ts]]; try exact Bound. apply Z.min_glb; [exact Bound|]. apply (all_of_ge v Ms masks HM Hlen Hv A (fun x => negb (winsb rA rB (real margin) out m x))). }
  replace (zsum c_count cs) with (zsum snd (map (fun n => (hit_by n, c_count n)) cs)) by (rewrite zsum_map; reflexivity).
  apply (leaf_bound v Ms (fun x => accepts A x && fits masks x) (fun x => negb (winsb rA rB (real margin) out m x))); [exact HM| | |apply NoDup_filter, ascending_NoDup, E2|].
  - intros h d Hin. apply in_map_iff in Hin. destruct Hin as (n1 & E & Hn1). injection E as <- <-. apply (counters_each A ts HA cs Ec n1 Hn1).
  - intros x _ HX HF. apply andb_prop in HX. destruct HX as [Ha Hf]. destruct (Hfit x Hf) as [Hq Hne].
    destruct (some_term_hits rA rB (real margin) (rA_pos N centre) out m x (as_terms ts cs) Hne) as (T & HT & Hh).
    + apply as_terms_earlier, E1.
    + apply (as_terms_sound A x Hf ts [] cs E1 Ec).
    + intros o Ho Hom. rewrite (as_terms_covered A ts [] cs Ec). fold cov. destruct (existsb (Nat.eqb o) cov) eqn:Eo.
      * left. apply existsb_exists in Eo. destruct Eo as (u & Hu & E). apply Nat.eqb_eq in E. subst; exact Hu.
      * right. apply (harmless_ok A x Ha Hf _ _ E3) with (g := gain anywhere o).
        { intros o' g' Hin. apply filter_In in Hin. destruct Hin as [Hin _]. unfold gains in Hin. apply in_map_iff in Hin. destruct Hin as (o2 & E & _). injection E as -> <-. reflexivity. }
        apply filter_In. split; [|cbn [fst]; rewrite Eo; reflexivity]. unfold gains. apply (in_map (fun o => (o, gain anywhere o))). apply filter_In. split; [apply in_seq; lia|]. destruct (Nat.eqb_spec o m); [contradiction|reflexivity].
    + intros W. apply winsb_spec in W. rewrite W in HF. discriminate.
    + destruct (as_terms_hit ts cs T HT) as (n1 & Hn1 & E). exists (hit_by n1), (c_count n1). split; [apply (in_map (fun n => (hit_by n, c_count n)) cs n1 Hn1)|]. rewrite <- E. exact Hh.
  - intros x Hx. specialize (EL x Hx). apply filter_In in Hx. destruct Hx as [_ H3]. apply andb_prop in EL. destruct EL as [EL H4]. apply andb_prop in EL. destruct EL as [H1 H2].
    split; [rewrite <- Hlen; apply fits_word; assumption|]. split; [rewrite H1, H2; reflexivity|]. split; [rewrite (surely_right_ok x H2 H4); reflexivity|].
    apply existsb_exists in H3. destruct H3 as (n1 & Hn1 & Hh). exists (hit_by n1), (c_count n1). split; [apply (in_map (fun n => (hit_by n, c_count n)) cs n1 Hn1)|exact Hh].
Qed.

(** ** Leaves above: a spoiler, two at once, none, or several with overlaps *)
Inductive spoiling := One (o : nat) | Two (o p : nat) (n1 n2 : Z).
(** What a spoiler spoils and one of some other outputs too. *)
Record overlap := { own_weight : Z; own_grid : grid; others : list (nat * Z); others_grid : grid; within : Z }.
Inductive up_leaf := Upto (s : option (spoiling * grid)) (L : listing) | Several (l : list (nat * grid * list overlap)).
Definition spoil_fine (s : spoiling) : bool := match s with One o => is_output o | Two o p n1 n2 => is_output o && is_output p && (0 <? n1)%Z && (0 <? n2)%Z end.
Definition spoil_table (s : spoiling) : mat := mapm I.neg (match s with One o => table o | Two o p n1 n2 => zipm (I.add prec) (scaled n1 (table o)) (scaled n2 (table p)) end).
Lemma is_output_ok o : is_output o = true -> o < out /\ o <> m.
Proof. intros H. apply andb_prop in H. destruct H as [H1 H2]. apply Nat.ltb_lt in H1. destruct (Nat.eqb_spec o m); [discriminate|]. split; assumption. Qed.
Lemma spoil_ok s x : spoil_fine s = true -> fits masks x = true -> winsb rA rB (real margin) out m x = true ->
  exists h, (forall i t, i < k -> (S i = k -> t = q) -> ub (at2 (spoil_table s) i t) (h i t)) /\ (0 < sumx h 0 x)%R.
Proof.
  intros Hs Hf W. destruct (Hfit x Hf) as [Hq Hne]. destruct HP as (Pc & _). apply winsb_spec in W. destruct s as [o|o p n1 n2]; cbn [spoil_fine] in Hs.
  - apply is_output_ok in Hs. destruct Hs as [Ho Hom]. exists (fun i t => c * - G (query x) m o i t)%R. split; [|apply (spoiler rA rB (real margin) (rA_pos N centre) x m o c out Hne Ho Hom Pc W)].
    intros i t Hi Hl. rewrite Hq. apply ub_ct. apply (mapm_at (fun j => ct j _)); [apply ct_nai|]. replace (c * - G q m o i t)%R with (- (c * G q m o i t))%R by ring. apply ct_neg, table_ok; assumption.
  - apply andb_prop in Hs. destruct Hs as [Hs Hn2]. apply andb_prop in Hs. destruct Hs as [Hs Hn1]. apply andb_prop in Hs. destruct Hs as [Ho Hp]. apply is_output_ok in Ho, Hp. destruct Ho as [Ho Hom]. destruct Hp as [Hp Hpm]. apply Z.ltb_lt in Hn1, Hn2.
    assert (P1 : (0 < IZR n1 * c)%R) by (apply Rmult_lt_0_compat; [apply IZR_lt, Hn1|exact Pc]). assert (P2 : (0 < IZR n2 * c)%R) by (apply Rmult_lt_0_compat; [apply IZR_lt, Hn2|exact Pc]).
    exists (fun i t => - (IZR n1 * c) * G (query x) m o i t + - (IZR n2 * c) * G (query x) m p i t)%R. split; [|apply (spoilers rA rB (real margin) (rA_pos N centre) x m o p _ _ out Hne Ho Hom Hp Hpm P1 P2 W)].
    intros i t Hi Hl. rewrite Hq. apply ub_ct. apply (mapm_at (fun j => ct j _)); [apply ct_nai|].
    replace (- (IZR n1 * c) * G q m o i t + - (IZR n2 * c) * G q m p i t)%R with (- (IZR n1 * (c * G q m o i t) + IZR n2 * (c * G q m p i t)))%R by ring.
    apply ct_neg. apply (zipm_at (fun j => ct j _)); [apply ct_nai|]. apply ct_add; apply scaled_ok, table_ok; assumption.
Qed.
Definition upto_leaf (A : dfa) (sp : option (spoiling * grid)) (L1 : listing) : option Z :=
  let L0 := map sequence L1 in
  let found := match sp with
    | None => Some (fun _ => true, all_of Ms masks A)
    | Some (s, g) => if spoil_fine s then match count_grid Ms masks true (spoil_table s) A g with Some n => Some (hit_by n, c_count n) | None => None end else None end in
  match found with
  | Some (h, n) => let L := filter h L0 in if ascending L0 && forallb (fun x => accepts A x && fits masks x && surely_wrong x) L then Some (n - zsum (mass Ms) L)%Z else None
  | None => None
  end.
Lemma upto_leaf_ok A sp L1 n : closed A = true -> upto_leaf A sp L1 = Some n -> (integral v Ms (fun x => one ((accepts A x && fits masks x) && winsb rA rB (real margin) out m x)) <= n)%Z.
Proof.
  intros HA. unfold upto_leaf. set (L0 := map sequence L1). clearbody L0. set (found := match sp with Some _ => _ | None => _ end).
  assert (F : forall h d, found = Some (h, d) -> (integral v Ms (fun x => one ((accepts A x && fits masks x) && h x)) <= d)%Z /\ forall x, fits masks x = true -> winsb rA rB (real margin) out m x = true -> h x = true).
  { unfold found. intros h d E. destruct sp as [[s g]|].
    - destruct (spoil_fine s) eqn:Es; [|discriminate]. destruct (count_grid Ms masks true (spoil_table s) A g) as [n1|] eqn:En; [|discriminate]. injection E as <- <-. split; [apply (counter_in v Ms masks HM _ _ _ _ _ HA En)|].
      intros x Hf W. destruct (Hfit x Hf) as [Hq Hne]. destruct (spoil_ok s x Es Hf W) as (h & Hub & Hpos). apply (grid_hits Ms masks true _ A g n1 x h En Hf); [|exact Hpos]. rewrite Hk, Hq. exact Hub.
    - injection E as <- <-. split; [|reflexivity]. rewrite (all_of_is v Ms masks Hlen Hv). apply integral_le; [exact HM|]. intros x _. rewrite andb_true_r. lia. }
  clearbody found. destruct found as [[h d]|]; [|discriminate]. destruct (F h d eq_refl) as [F1 F2]. set (L := filter h L0). destruct (ascending L0 && _) eqn:E; [|discriminate]. apply andb_prop in E. destruct E as [E1 E2]. rewrite forallb_forall in E2. injection 1 as <-.
  assert (Ed : zsum snd [(h, d)] = d) by (unfold zsum; cbn [fold_right snd]; lia). rewrite <- Ed.
  apply (leaf_bound v Ms (fun x => accepts A x && fits masks x) (winsb rA rB (real margin) out m)); [exact HM| | |apply NoDup_filter, ascending_NoDup, E1|].
  - intros h' d' [E|[]]. injection E as <- <-. exact F1.
  - intros x _ HX W. apply andb_prop in HX. destruct HX as [Ha Hf]. exists h, d. split; [left; reflexivity|apply F2; assumption].
  - intros x Hx. specialize (E2 x Hx). apply filter_In in Hx. destruct Hx as [_ H3]. apply andb_prop in E2. destruct E2 as [E2 H4]. apply andb_prop in E2. destruct E2 as [H1 H2].
    split; [rewrite <- Hlen; apply fits_word; assumption|]. split; [rewrite H1, H2; reflexivity|]. split; [apply surely_wrong_ok; assumption|]. exists h, d. split; [left; reflexivity|exact H3].
Qed.
(** Several spoilers: each has overlaps with all those before it. *)
Fixpoint overlaps_of (A : dfa) (o : nat) (l : list overlap) : option (list (list nat * ((list nat -> bool) * Z))) :=
  match l with
  | [] => Some []
  | v :: l' => if (0 <? own_weight v)%Z && term_fine [] (Joint (others v)) then
      match count_two Ms masks (table_of (Joint [(o, own_weight v)])) (own_grid v) (table_of (Joint (others v))) (others_grid v) (within v) A, overlaps_of A o l' with
      | Some n, Some r => Some ((map fst (others v), (hit_by n, c_count n)) :: r) | _, _ => None end
    else None
  end.
Fixpoint spoilers_of (A : dfa) (before : list nat) (l : list (nat * grid * list overlap)) : option (list spoiled) :=
  match l with
  | [] => Some []
  | (o, g, ov) :: l' => if is_output o && forallb (fun p => existsb (fun v => existsb (Nat.eqb p) (map fst (others v))) ov) before then
      match count_grid Ms masks true (spoil_table (One o)) A g, overlaps_of A o ov, spoilers_of A (o :: before) l' with
      | Some n, Some r, Some rest => Some ({| s_output := o; s_hit := (hit_by n, c_count n); s_overlaps := r |} :: rest) | _, _, _ => None end
    else None
  end.
Definition upper_leaf (A : dfa) (l : up_leaf) : option Z :=
  match l with
  | Upto sp L => upto_leaf A sp L
  | Several l => match spoilers_of A [] l with
    | Some U => let whole := all_of Ms masks A in Some (Z.min whole (zsum snd (flat_map s_hits U) - (Z.of_nat (length U) - 1) * whole)) | None => None end
  end.
Definition spoilsb (o : nat) (x : list nat) : bool := if Rle_dec 0 (Sum x m o) then true else false.
Lemma overlaps_each A o (Ho : is_output o = true) l : forall r, overlaps_of A o l = Some r -> forall e, In e r ->
  (closed A = true -> integral v Ms (fun x => one ((accepts A x && fits masks x) && fst (snd e) x)) <= snd (snd e))%Z /\
  forall x p, fits masks x = true -> In p (fst e) -> spoilsb o x = true -> spoilsb p x = true -> fst (snd e) x = true.
Proof.
  induction l as [|ov l IH]; intros r H e He; cbn [overlaps_of] in H; [injection H as <-; destruct He|]. destruct (_ && _) eqn:E; [|discriminate]. apply andb_prop in E. destruct E as [E1 E2].
  destruct (count_two _ _ _ _ _ _ _ _) as [n|] eqn:En; [|discriminate]. destruct (overlaps_of A o l) as [r'|]; [|discriminate]. injection H as <-. destruct He as [<-|He]; [|apply (IH r' eq_refl e He)]. cbn [fst snd]. split.
  - intros HA. apply fitting; [exact HM|]. apply (two_ge v Ms masks HM _ _ _ _ _ _ _ HA En).
  - intros x p Hf Hp So Sp. unfold spoilsb in So, Sp. destruct (Rle_dec 0 (Sum x m o)) as [Ro|]; [|discriminate]. destruct (Rle_dec 0 (Sum x m p)) as [Rp|]; [|discriminate].
    destruct (two_sums _ _ _ _ _ _ _ En) as (s & s' & Es & Es' & Ec). unfold hit_by. rewrite Ec. cbn [forallb]. rewrite andb_true_r. apply andb_true_intro. split.
    + apply (term_sound [] (Joint [(o, own_weight ov)]) (own_grid ov) s x Hf) with (o := o) (ps := []); [|exact Es|left; reflexivity|exact Ro|intros p' []]. cbn [term_fine forallb fst snd]. rewrite Ho, E1. reflexivity.
    + apply in_map_iff in Hp. destruct Hp as (ow & <- & Hp). apply (term_sound [] (Joint (others ov)) (others_grid ov) s' x Hf E2 Es' (fst ow) []); [|exact Rp|intros p' []]. apply (in_map (fun ow => (fst ow, [])) _ ow Hp).
Qed.
Lemma spoilers_each A l : forall before U, spoilers_of A before l = Some U -> overlapping before U /\ forall s, In s U -> is_output (s_output s) = true /\
  (closed A = true -> forall h n, In (h, n) (s_hits s) -> integral v Ms (fun x => one ((accepts A x && fits masks x) && h x)) <= n)%Z /\ forall x, fits masks x = true -> spoiled_sound spoilsb x s.
Proof.
  induction l as [|[[o g] ov] l IH]; intros before U H; cbn [spoilers_of] in H; [injection H as <-; split; [exact I|intros s []]|]. destruct (_ && _) eqn:E; [|discriminate]. apply andb_prop in E. destruct E as [E1 E2].
  destruct (count_grid _ _ _ _ _ _) as [n|] eqn:En; [|discriminate]. destruct (overlaps_of A o ov) as [r|] eqn:Er; [|discriminate]. destruct (spoilers_of A (o :: before) l) as [rest'|] eqn:El; [|discriminate]. injection H as <-.
  destruct (IH _ _ El) as [I1 I2]. split.
  - split; [|exact I1]. cbn [s_overlaps]. intros p Hp. rewrite forallb_forall in E2. specialize (E2 p Hp). clear -E2 Er. revert r Er. induction ov as [|u ov IHv]; intros r Er; [discriminate|]. cbn [overlaps_of existsb] in *.
    destruct (_ && _); [|discriminate]. destruct (count_two _ _ _ _ _ _ _ _) as [n|]; [|discriminate]. destruct (overlaps_of A o ov) as [r'|]; [|discriminate]. injection Er as <-. destruct (existsb (Nat.eqb p) (map fst (others u))) eqn:Ep.
    + eexists. split; [left; reflexivity|]. cbn [fst]. apply existsb_exists in Ep. destruct Ep as (p' & Hp' & Ep). apply Nat.eqb_eq in Ep. subst; exact Hp'.
    + destruct (IHv E2 r' eq_refl) as (e & He & Hpe). exists e. split; [right; exact He|exact Hpe].
  - intros s [<-|Hs]; [|apply I2, Hs]. cbn [s_output]. split; [exact E1|]. split.
    + intros HA h d Hin. unfold s_hits in Hin. cbn [s_hit s_overlaps] in Hin. destruct Hin as [E|Hin]; [injection E as <- <-; apply (counter_in v Ms masks HM _ _ _ _ _ HA En)|].
      apply in_map_iff in Hin. destruct Hin as (e & Ee & Hin). destruct (overlaps_each A o E1 ov r Er e Hin) as [O1 _]. specialize (O1 HA). rewrite Ee in O1. exact O1.
    + intros x Hf. destruct (Hfit x Hf) as [Hq Hne]. destruct HP as (Pc & _). split; cbn [s_output s_hit s_overlaps fst].
      * intros Hs. unfold spoilsb in Hs. destruct (Rle_dec 0 (Sum x m o)) as [|Hn]; [discriminate|]. apply Rnot_le_lt in Hn.
        apply (grid_hits Ms masks true _ A g n x (fun i t => c * - G (query x) m o i t)%R En Hf).
        -- rewrite Hk, Hq. intros i t Hi Hl. apply ub_ct. cbn [spoil_table]. apply (mapm_at (fun j => ct j _)); [apply ct_nai|]. replace (c * - G q m o i t)%R with (- (c * G q m o i t))%R by ring. apply ct_neg, table_ok; assumption.
        -- replace (sumx (fun i t => c * - G (query x) m o i t)%R 0 x) with (- c * Sum x m o)%R; [nra|]. unfold Threshold.Sum. rewrite <- sumx_scale. apply sumx_ext. intros. ring.
      * intros e p He Hp So Sp. destruct (overlaps_each A o E1 ov r Er e He) as [_ O2]. apply (O2 x p Hf Hp So Sp).
Qed.
Theorem upper_leaf_ok A l n : closed A = true -> upper_leaf A l = Some n -> (integral v Ms (fun x => one ((accepts A x && fits masks x) && winsb rA rB (real margin) out m x)) <= n)%Z.
Proof.
  intros HA. destruct l as [sp L|l]; cbn [upper_leaf]; [apply upto_leaf_ok, HA|]. destruct (spoilers_of A [] l) as [U|] eqn:E; [|discriminate]. injection 1 as <-. destruct (spoilers_each A l [] U E) as [O1 O2].
  apply Z.min_glb; [apply (all_of_ge v Ms masks HM Hlen Hv)|]. rewrite (all_of_is v Ms masks Hlen Hv).
  apply (several_bound v Ms (fun x => accepts A x && fits masks x) (winsb rA rB (real margin) out m) spoilsb); [exact HM| | | |exact O1].
  - intros s h d Hs Hin. destruct (O2 s Hs) as (_ & O3 & _). apply (O3 HA h d Hin).
  - intros x s _ HX Hs. apply andb_prop in HX. destruct HX as [_ Hf]. destruct (O2 s Hs) as (_ & _ & O4). apply (O4 x Hf).
  - intros x s _ HX Hs W. apply andb_prop in HX. destruct HX as [_ Hf]. destruct (Hfit x Hf) as [_ Hne]. destruct (O2 s Hs) as (Ho & _). apply is_output_ok in Ho. destruct Ho as [Ho Hom]. apply winsb_spec in W.
    pose proof (proj1 (wins_iff rA rB (real margin) (rA_pos N centre) out m x Hne) W (s_output s) Ho Hom) as K. unfold spoilsb. destruct (Rle_dec 0 (Sum x m (s_output s))); [lra|reflexivity].
Qed.
End Pair.
End Pairs.
