(** Harms of factored terms, and their integers on a grid, from enclosures. *)
From Coq Require Import Floats Uint63.
From Coq Require Import Reals Lra Lia List ZArith Bool Arith.
From CompactProofs Require Import Words Automaton Count Threshold Grid Rule Model Enclosure.
Import ListNotations.
Local Open Scope R_scope.

(** * Attention, up to a positive factor for each query *)
Definition scaled_row (a : vec) (f : nat -> R) := exists s, 0 < s /\ cv a (fun j => s * exp (f j)).
Definition relative (top : nat) (a : vec) : vec := let x := at1 a top in map (fun y => I.exp prec (I.sub prec y x)) a.
Lemma relative_ok top a f : cv a f -> scaled_row (relative top a) f.
Proof.
  intros H. exists (exp (- f top)). split; [apply exp_pos|]. apply cv_map with (1 := H). intros j i Hi. rewrite <- exp_plus. replace (- f top + f j) with (f j - f top) by ring.
  apply ct_exp, ct_sub; [exact Hi|apply H].
Qed.
Definition plain (a : vec) : vec := map (I.exp prec) a.
Lemma plain_ok a f : cv a f -> scaled_row (plain a) f.
Proof. intros H. exists 1. split; [lra|]. apply cv_map with (1 := H). intros j i Hi. rewrite Rmult_1_l. apply ct_exp, Hi. Qed.
(** The greatest entry, by a comparison of floats: a hint. *)
Fixpoint top_of (best : PrimFloat.float) (found j : nat) (a : vec) : nat :=
  match a with [] => found | x :: a' => let u := I.upper x in if PrimFloat.ltb best u then top_of u j (S j) a' else top_of best found (S j) a' end.

(** Attention to tokens, in sheets: the same factor for all positions of a query. *)
Definition scaled_rows (k : nat) (S : list mat) (q : nat) (f : nat -> nat -> R) := exists s, 0 < s /\ forall i, (i < k)%nat -> cv (nth q (pick [] S i) []) (fun t => s * exp (f i t)).
Definition greatest (best : PrimFloat.float) (a : vec) := fold_left (fun b x => let u := I.upper x in if PrimFloat.ltb b u then u else b) a best.
Definition tops (S : list mat) : vec := map (fun q => I.singleton (fold_left (fun b M => greatest b (nth q M [])) S PrimFloat.neg_infinity)) (seq 0 (length (hd [] S))).
Lemma tops_some S q : exists r, ct (at1 (tops S) q) r.
Proof.
  unfold at1, tops. set (g := fun q => I.singleton _). destruct (Nat.lt_ge_cases q (length (hd [] S))) as [H|H].
  - rewrite nth_map_seq by exact H. eexists. apply I.singleton_correct.
  - rewrite nth_overflow by (rewrite map_length, seq_length; exact H). exists 0. apply ct_nai.
Qed.
Definition relative_all (S : list mat) : list mat := let ts := tops S in map (rows_with (fun y x => I.exp prec (I.sub prec y x)) ts) S.
Lemma row_pick k (g : mat -> mat) S q (f h : nat -> nat -> R) : (forall i, (i < k)%nat -> cv (nth q (pick [] S i) []) (f i)) -> (forall i M, cv (nth q M []) (f i) -> cv (nth q (g M) []) (h i)) ->
  forall i, (i < k)%nat -> cv (nth q (pick [] (map g S) i) []) (h i).
Proof. intros H Hg i Hi. apply (pick_map (fun M => cv (nth q M []) (h i)) g []); [destruct q; apply cv_nil|]. apply Hg, H, Hi. Qed.
Lemma relative_all_ok k S q f : cms k S (fun i q t => f q i t) -> scaled_rows k (relative_all S) q (f q).
Proof.
  intros H. destruct (tops_some S q) as (r & Hr). exists (exp (- r)). split; [apply exp_pos|].
  apply (row_pick k (rows_with (fun y x => I.exp prec (I.sub prec y x)) (tops S)) S q (f q) (fun i t => exp (- r) * exp (f q i t))).
  - intros i Hi j. apply (H i Hi q j).
  - intros i M HM. apply cv_rows_with with (1 := HM). intros j y Hy. rewrite <- exp_plus. replace (- r + f q i j) with (f q i j - r) by ring. apply ct_exp, ct_sub; assumption.
Qed.
(** Relative to a token, at the first position. *)
Definition relative_to (c : nat) (S : list mat) : list mat := let inverses := map (fun a => I.inv prec (at1 a c)) (hd [] S) in map (rows_with (I.mul prec) inverses) S.
Lemma relative_to_ok k c S q f : (0 < k)%nat -> scaled_rows k S q f -> scaled_rows k (relative_to c S) q f.
Proof.
  intros Hk (s & Hs & H). pose proof (exp_pos (f O c)) as He. set (x := s * exp (f O c)). assert (Hc : 0 < x) by (apply Rmult_lt_0_compat; assumption).
  exists (s * / x). split; [apply Rmult_lt_0_compat; [assumption|apply Rinv_0_lt_compat, Hc]|]. unfold relative_to. apply (row_pick k _ S q _ _ H). intros i M HM. apply cv_rows_with with (1 := HM). intros j y Hy.
  replace (s * / x * exp (f i j)) with (s * exp (f i j) * / x) by ring. apply ct_mul; [exact Hy|]. unfold at1. destruct (Nat.lt_ge_cases q (length (hd [] S))) as [Hq|Hq].
  - rewrite (nth_indep _ nai (I.inv prec (at1 [] c))) by (rewrite map_length; exact Hq). rewrite (map_nth (fun a => I.inv prec (at1 a c))). apply ct_inv. specialize (H O Hk c).
    replace (pick [] S 0) with (hd [] S) in H by (destruct S as [|M0 [|M1 S]]; reflexivity). exact H.
  - rewrite nth_overflow by (rewrite map_length; exact Hq). apply ct_nai.
Qed.

Fixpoint joined (rows : list vec) : vec := match rows with [] => [] | a :: l => match l with [] => a | _ => zip I.join a (joined l) end end.
Lemma cv_join_l a : forall b f, cv a f -> cv (zip I.join a b) f.
Proof.
  induction a as [|x a IH]; intros [|y b] f H; try apply cv_nil. intros [|j]; unfold at1; simpl; [apply ct_join_l, (H O)|]. apply (IH b (fun j => f (S j))). intros i. apply (H (S i)).
Qed.
Lemma cv_join_r a : forall b f, cv b f -> cv (zip I.join a b) f.
Proof.
  induction a as [|x a IH]; intros [|y b] f H; try apply cv_nil. intros [|j]; unfold at1; simpl; [apply ct_join_r, (H O)|]. apply (IH b (fun j => f (S j))). intros i. apply (H (S i)).
Qed.
Lemma cv_joined rows a f : In a rows -> cv a f -> cv (joined rows) f.
Proof.
  induction rows as [|b rows IH]; intros Hin H; [destruct Hin|]. destruct rows as [|c rows]; [destruct Hin as [->|[]]; exact H|].
  change (cv (zip I.join b (joined (c :: rows))) f). destruct Hin as [->|Hin]; [apply cv_join_l, H|apply cv_join_r, IH; assumption].
Qed.
Fixpoint joined1 (l : vec) : I.type := match l with [] => nai | x :: l' => match l' with [] => x | _ => I.join x (joined1 l') end end.
Lemma ub_joined1 l x r : In x l -> ub x r -> ub (joined1 l) r.
Proof.
  induction l as [|y l IH]; intros Hin H; [destruct Hin|]. destruct l as [|z l]; [destruct Hin as [->|[]]; exact H|].
  change (ub (I.join y (joined1 (z :: l))) r). destruct Hin as [->|Hin]; [apply ub_join_l, H|apply ub_join_r, IH; assumption].
Qed.

(** * Brackets: above w_o (f o - f m) for every output o other than m; [own] is a number for f m *)
Fixpoint worst (n o m : nat) (own : I.type) (w : list Z) (a : vec) : option I.type :=
  match n with
  | O => None
  | S n' => let rest := worst n' (S o) m own (tl w) (tl a) in
      if Nat.eqb o m then rest else let x := I.mul prec (I.fromZ prec (hd 1%Z w)) (I.sub prec (hd nai a) own) in Some (match rest with None => x | Some r => I.join x r end)
  end.
Definition weight (w : list Z) (o : nat) : R := IZR (nth o w 1%Z).
Lemma worst_ok n : forall o m own w a (f : nat -> R) (fm : R), ct own fm -> cv a (fun j => f (o + j)%nat) -> forall j, (j < n)%nat -> (o + j)%nat <> m ->
  exists r, worst n o m own w a = Some r /\ ub r (weight w j * (f (o + j)%nat - fm)).
Proof.
  induction n as [|n IH]; intros o m own w a f fm Hm Ha j Hj Hne; [lia|]. cbn [worst].
  assert (Ha' : cv (tl a) (fun j => f (S o + j)%nat)). { intros i. pose proof (cv_tl _ _ Ha i) as T. cbv beta in T. replace (S o + i)%nat with (o + S i)%nat by lia. exact T. }
  assert (Hw : forall i, nth i (tl w) 1%Z = nth (S i) w 1%Z) by (intros i; destruct w; [destruct i|]; reflexivity).
  destruct j as [|j].
  - rewrite Nat.add_0_r in *. destruct (Nat.eqb_spec o m) as [|_]; [contradiction|]. eexists. split; [reflexivity|].
    assert (U : ub (I.mul prec (I.fromZ prec (hd 1%Z w)) (I.sub prec (hd nai a) own)) (weight w 0 * (f o - fm))).
    { apply ub_ct. unfold weight. replace (nth 0 w 1%Z) with (hd 1%Z w) by (destruct w; reflexivity). apply ct_mul; [apply ct_Z|]. apply ct_sub; [|exact Hm]. pose proof (cv_hd _ _ Ha) as T. cbv beta in T. rewrite Nat.add_0_r in T. exact T. }
    destruct (worst n (S o) m own (tl w) (tl a)); [apply ub_join_l, U|exact U].
  - destruct (IH (S o) m own (tl w) (tl a) f fm Hm Ha' j ltac:(lia) ltac:(lia)) as (r & E & U). rewrite E.
    replace (S o + j)%nat with (o + S j)%nat in U by lia. unfold weight in *. rewrite Hw in U.
    destruct (Nat.eqb o m); [exists r; auto|]. eexists. split; [reflexivity|]. apply ub_join_r, U.
Qed.
(** [less] is taken off f m: the margin, or nothing. *)
Definition bracket (n m : nat) (w : list Z) (less : option I.type) (a : vec) : I.type :=
  match worst n 0 m (match less with Some y => I.sub prec (at1 a m) y | None => at1 a m end) w a with Some r => r | None => nai end.
Definition brackets (n m : nat) (w : list Z) (less : option I.type) (M : mat) : vec := map (bracket n m w less) M.
Definition is_less (less : option I.type) (y : R) := match less with Some i => ct i y | None => y = 0 end.
Lemma bracket_ok n m w less y a f : is_less less y -> cv a f -> forall o, (o < n)%nat -> o <> m -> ub (bracket n m w less a) (weight w o * (f o - (f m - y))).
Proof.
  intros Hy H o Ho Hne. unfold bracket. set (own := match less with Some _ => _ | None => _ end). assert (Ho' : ct own (f m - y)).
  { unfold own. destruct less as [i|]; [apply ct_sub; [apply H|exact Hy]|]. cbn in Hy. subst y. rewrite Rminus_0_r. apply H. }
  destruct (worst_ok n 0 m own w a f (f m - y) Ho' H o Ho Hne) as (r & E & U). rewrite E. exact U.
Qed.
Lemma brackets_ok n m w less y M f : is_less less y -> cm M f -> forall i o, (o < n)%nat -> o <> m -> ub (at1 (brackets n m w less M) i) (weight w o * (f i o - (f i m - y))).
Proof.
  intros Hy H i o Ho Hne. unfold at1, brackets. destruct (Nat.lt_ge_cases i (length M)) as [Hi|Hi]; [|rewrite nth_overflow by (rewrite map_length; exact Hi); apply ub_nai].
  rewrite (nth_indep _ nai (bracket n m w less [])) by (rewrite map_length; exact Hi). rewrite map_nth. apply bracket_ok; auto. apply cm_row, H.
Qed.

(** * Grids *)
Record grid := { mantissa : Z; exponent : Z; depth : Z; offsets : list Z }.
Definition step_of (g : grid) : R := IZR (mantissa g * 2 ^ Z.max 0 (exponent g)) * / IZR (2 ^ Z.max 0 (- exponent g)).
Definition inverse_step (g : grid) : I.type := I.mul prec (I.fromZ prec (2 ^ Z.max 0 (- exponent g))) (I.inv prec (I.fromZ prec (mantissa g * 2 ^ Z.max 0 (exponent g)))).
Lemma step_facts g : (0 < mantissa g)%Z -> 0 < step_of g /\ ct (inverse_step g) (/ step_of g).
Proof.
  intros Hm. pose proof (Z.pow_pos_nonneg 2 (Z.max 0 (exponent g)) ltac:(lia) ltac:(lia)). pose proof (Z.pow_pos_nonneg 2 (Z.max 0 (- exponent g)) ltac:(lia) ltac:(lia)).
  assert (H1 : 0 < IZR (mantissa g * 2 ^ Z.max 0 (exponent g))) by (apply IZR_lt; nia). assert (H2 : 0 < IZR (2 ^ Z.max 0 (- exponent g))) by (apply IZR_lt; lia).
  unfold step_of, inverse_step. split; [apply Rmult_lt_0_compat; [exact H1|apply Rinv_0_lt_compat, H2]|].
  replace (/ (IZR (mantissa g * 2 ^ Z.max 0 (exponent g)) * / IZR (2 ^ Z.max 0 (- exponent g)))) with (IZR (2 ^ Z.max 0 (- exponent g)) * / IZR (mantissa g * 2 ^ Z.max 0 (exponent g))) by (field; lra).
  apply ct_mul; [apply ct_Z|]. apply ct_inv, ct_Z.
Qed.
Definition below (y : I.type) (d : Z) := nonpos (I.sub prec y (I.fromZ prec d)).
Definition rounded (inv off : I.type) (fl ceiling : Z) (h : I.type) : Z :=
  let y := I.sub prec (I.mul prec h inv) off in let d := Z.max (guess (I.upper y)) (- fl) in let c := Z.max ceiling (- fl) in
  if (ceiling <=? d)%Z then c else if below y d then d else if (ceiling <=? d + 1)%Z then c else if below y (d + 1) then (d + 1)%Z else c.
Definition offset (a : Z) : I.type := I.mul prec (I.fromZ prec a) (I.inv prec (I.fromZ prec 256)).
Lemma rounded_good g F start a fl h r : (0 < mantissa g)%Z -> ub h r -> good (step_of g) F start r a fl (rounded (inverse_step g) (offset a) fl (F - fl - start) h).
Proof.
  intros Hm (u & Hu & Cu). destruct (step_facts g Hm) as [Hs Ci]. unfold rounded. set (y := I.sub prec (I.mul prec h (inverse_step g)) (offset a)). set (d := Z.max _ (- fl)). set (c := (F - fl - start)%Z).
  assert (Cy : ct y (u * / step_of g - IZR a * / 256)).
  { apply ct_sub; [apply ct_mul; assumption|]. unfold offset. apply ct_mul; [apply ct_Z|]. apply ct_inv, ct_Z. }
  assert (K : forall e, below y e = true -> r / step_of g - IZR a / 256 <= IZR e).
  { intros e He. pose proof (nonpos_ok _ _ He (ct_sub _ _ _ _ Cy (ct_Z e))) as N. assert (r * / step_of g <= u * / step_of g) by (apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Hs|exact Hu]). unfold Rdiv. lra. }
  assert (Hc : good (step_of g) F start r a fl (Z.max c (- fl))) by (unfold c; split; [lia|right; lia]).
  destruct (c <=? d)%Z; [exact Hc|]. destruct (below y d) eqn:E1; [split; [unfold d; lia|left; apply K, E1]|].
  destruct (c <=? d + 1)%Z; [exact Hc|]. destruct (below y (d + 1)) eqn:E2; [split; [unfold d; lia|left; apply K, E2]|exact Hc].
Qed.
Fixpoint grid_row (inv off : I.type) (fl ceiling : Z) (mask : list bool) (h : vec) : row :=
  match mask with [] => [] | b :: mask' => (if b then Some (rounded inv off fl ceiling (hd nai h)) else None) :: grid_row inv off fl ceiling mask' (tl h) end.
Lemma grid_row_nth inv off fl ceiling mask : forall h t, nth t (grid_row inv off fl ceiling mask h) None = if nth t mask false then Some (rounded inv off fl ceiling (at1 h t)) else None.
Proof.
  induction mask as [|b mask IH]; intros h [|t]; cbn [grid_row nth]; try reflexivity.
  - unfold at1. destruct h; reflexivity.
  - rewrite IH. replace (at1 (tl h) t) with (at1 h (S t)); [reflexivity|]. unfold at1. destruct h; [destruct t|]; reflexivity.
Qed.
Fixpoint grid_rows (inv : I.type) (F start : Z) (masks : list (list bool)) (hs : mat) (offs floors : list Z) : list row :=
  match masks, offs, floors with
  | b :: masks', a :: offs', fl :: floors' => grid_row inv (offset a) fl (F - fl - start) b (hd [] hs) :: grid_rows inv F start masks' (tl hs) offs' floors'
  | _, _, _ => []
  end.
Lemma grid_rows_gridded g F start q h : (0 < mantissa g)%Z -> forall masks hs offs floors i, length offs = length masks -> length floors = length masks ->
  (forall j t, nth t (nth j masks []) false = true -> (S j = length masks -> t = q) -> ub (at2 hs j t) (h (i + j)%nat t)) ->
  gridded (step_of g) F start h q i (grid_rows (inverse_step g) F start masks hs offs floors) offs floors.
Proof.
  intros Hm. induction masks as [|b masks IH]; intros hs [|a offs] [|fl floors] i Ho Hf H; try discriminate; [exact I|]. cbn [grid_rows gridded]. split.
  - intros t D E Hl. rewrite grid_row_nth in E. destruct (nth t b false) eqn:Eb; [|discriminate]. injection E as <-. apply rounded_good; [exact Hm|].
    specialize (H O t Eb). rewrite Nat.add_0_r in H. unfold at2 in H. replace (nth 0 hs []) with (hd [] hs) in H by (destruct hs; reflexivity). apply H. intros Hlen. apply Hl.
    destruct masks; [reflexivity|discriminate].
  - apply IH; [simpl in Ho; lia|simpl in Hf; lia|]. intros j t Ht Hl. replace (S i + j)%nat with (i + S j)%nat by lia.
    replace (at2 (tl hs) j t) with (at2 hs (S j) t) by (unfold at2; destruct hs; [destruct j|]; reflexivity). apply H; [exact Ht|]. intros Hlen. apply Hl. simpl in Hlen. lia.
Qed.
Lemma grid_rows_along inv F start masks : forall hs offs floors x, length offs = length masks -> length floors = length masks -> fits masks x = true ->
  exists z, along (grid_rows inv F start masks hs offs floors) x = Some z.
Proof.
  induction masks as [|b masks IH]; intros hs [|a offs] [|fl floors] [|t x] Ho Hf H; try discriminate; [exists 0%Z; reflexivity|]. cbn [fits] in H. apply andb_prop in H. destruct H as [H1 H2].
  destruct (IH (tl hs) offs floors x ltac:(simpl in Ho; lia) ltac:(simpl in Hf; lia) H2) as (z & Hz). cbn [grid_rows along]. rewrite grid_row_nth, H1, Hz. eexists. reflexivity.
Qed.
