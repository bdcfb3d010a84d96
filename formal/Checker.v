(** The executable checker of factored certificates: [check_sound] says that what it accepts is true of the transformer over the reals. *)
From Coq Require Import Floats Uint63.
From Coq Require Import Reals Lra Lia List ZArith Bool Arith.
From CompactProofs Require Import Words Automaton Count Threshold Grid Rule Model Enclosure Harms.
Import ListNotations.
Local Open Scope nat_scope.

(** * The question: an automaton whose state 0 is first gives every sequence its label. *)
Record task := { following : list (list nat); labels : list nat }.
Definition after_token (T : task) (s t : nat) := nth t (nth s (following T) []) 0.
Definition label_of (T : task) (x : list nat) : nat := nth (fold_left (after_token T) x 0) (labels T) 0.
Definition max_task (v : nat) : task := {| following := map (fun s => map (Nat.max s) (seq 0 v)) (seq 0 v); labels := seq 0 v |}.
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

(** * Certificates *)
Inductive tree := GivenUp | Leaf (grids : list grid) | Split (token n : nat) (more fewer : tree).
Record part := { queries : list nat; shape : tree }.
Record group := { g_label : nat; g_map : list image; g_dfa : dfa; g_relative : option nat; g_weights : list Z; g_parts : list part }.

Definition mask_of (v : nat) (Q : list nat) : list bool := map (fun t => existsb (Nat.eqb t) Q) (seq 0 v).
Lemma mask_nth v Q t : nth t (mask_of v Q) false = true -> In t Q.
Proof.
  unfold mask_of. intros H. destruct (Nat.lt_ge_cases t v) as [Ht|Ht]; [|rewrite nth_overflow in H by (rewrite map_length, seq_length; exact Ht); discriminate].
  rewrite nth_map_seq in H by exact Ht. apply existsb_exists in H. destruct H as (u & Hu & E). apply Nat.eqb_eq in E. subst; exact Hu.
Qed.
Definition masks_of (v k : nat) (A : dfa) (Q : list nat) : list (list bool) := repeat (live A) (k - 1) ++ [mask_of v Q].
Lemma masks_length v k A Q : 0 < k -> length (masks_of v k A Q) = k.
Proof. intros H. unfold masks_of. rewrite app_length, repeat_length. simpl. lia. Qed.
Lemma fits_query v k A Q x : fits (masks_of v k A Q) x = true -> In (query x) Q /\ x <> [].
Proof.
  unfold masks_of. generalize (k - 1). intros n. revert x. induction n as [|n IH]; intros [|t x] H; simpl in H; try discriminate.
  - apply andb_prop in H. destruct H as [H1 H2]. destruct x; [|discriminate]. split; [apply (mask_nth v), H1|discriminate].
  - apply andb_prop in H. destruct H as [_ H]. destruct (IH x H) as [H1 H2]. split; [|discriminate]. destruct x; [congruence|exact H1].
Qed.
Lemma masks_fit v k A Q x : length x = k -> 0 < k -> (forall t, In t x -> t < v /\ nth t (live A) false = true) -> In (query x) Q -> fits (masks_of v k A Q) x = true.
Proof.
  unfold masks_of. intros Hl Hk. replace k with (S (k - 1)) in Hl by lia. revert Hl. generalize (k - 1). intros n. clear Hk. revert x. induction n as [|n IH]; intros [|t x] Hl Hx Hq; try discriminate.
  - destruct x; [|discriminate]. simpl. rewrite andb_true_r. unfold mask_of. rewrite nth_map_seq by (apply Hx; left; reflexivity). apply existsb_exists. exists t. split; [exact Hq|apply Nat.eqb_refl].
  - simpl. destruct (Hx t (or_introl eq_refl)) as [_ ->]. simpl. apply IH; [simpl in Hl; lia|intros; apply Hx; right; assumption|]. destruct x; [discriminate|exact Hq].
Qed.

Section Check.
Variables (N : network) (v : nat) (T : task) (Ms : list (list Z)) (centre mu : tensor).
Local Notation k := (n_ctx N). Local Notation out := (n_out N).
Definition rA q i t := exp (rEQKE N centre q t + rEQKP N centre q i)%R.
Definition rB q o i t := (rEVOU N centre mu t o + rPVOU N centre i o + rEU N mu q o)%R.
Lemma rA_pos q i t : (0 < rA q i t)%R. Proof. apply exp_pos. Qed.

(** What the checker computes once. *)
Record ready := { d_tables : tables; d_attention : mat; d_places : mat }.
Definition prepare : ready :=
  let t := compute N centre mu in
  {| d_tables := t; d_attention := map (fun a => relative (top_of PrimFloat.neg_infinity 0 0 a) a) (t_EQKE t); d_places := map plain (t_EQKP t) |}.
Definition ready_ok (D : ready) := (forall q, scaled_row (nth q (d_attention D) []) (rEQKE N centre q)) /\ (forall q, scaled_row (nth q (d_places D) []) (rEQKP N centre q)) /\
  cm (t_EVOU (d_tables D)) (rEVOU N centre mu) /\ cm (t_PVOU (d_tables D)) (rPVOU N centre) /\ cm (t_EU (d_tables D)) (rEU N mu).
Lemma scaled_map (g : vec -> vec) M f q : cm M f -> (forall a i, cv a (f i) -> scaled_row (g a) (f i)) -> scaled_row (nth q (map g M) []) (f q).
Proof.
  intros H Hg. destruct (Nat.lt_ge_cases q (length M)) as [Hq|Hq].
  - rewrite (nth_indep _ [] (g [])) by (rewrite map_length; exact Hq). rewrite map_nth. apply Hg, cm_row, H.
  - rewrite nth_overflow by (rewrite map_length; exact Hq). exists 1%R. split; [lra|apply cv_nil].
Qed.
Lemma prepare_ok : ready_ok prepare.
Proof.
  destruct (compute_ok N centre mu) as (H1 & H2 & H3 & H4 & H5). unfold prepare. repeat split; cbn [d_tables d_attention d_places]; auto.
  - intros q. apply (scaled_map (fun a => relative (top_of PrimFloat.neg_infinity 0 0 a) a) _ (rEQKE N centre)); [exact H1|]. intros a i Ha. apply relative_ok, Ha.
  - intros q. apply (scaled_map plain _ (rEQKP N centre)); [exact H2|]. intros a i Ha. apply plain_ok, Ha.
Qed.

(** ** Pools: one table for a label and some queries *)
Definition own_attention (rel : option nat) (a : vec) : vec := match rel with Some c => relative_to c a | None => a end.
Lemma own_ok rel a f : scaled_row a f -> scaled_row (own_attention rel a) f.
Proof. destruct rel; [apply relative_to_ok|auto]. Qed.
Definition pooled (r p s : vec) (att pos : mat) (Q : list nat) : mat :=
  let A := joined (map (fun q => nth q att []) Q) in let b := joined (map (fun q => nth q pos []) Q) in
  let sw := joined1 (map (at1 s) Q) in
  map (fun i => let y := I.add prec (at1 p i) sw in let bi := at1 b i in zip (fun a x => I.mul prec (I.mul prec a bi) (I.add prec x y)) A r) (seq 0 (k - 1)) ++
  [map (fun q => if existsb (Nat.eqb q) Q then I.mul prec (I.mul prec (at2 att q q) (at2 pos q (k - 1))) (I.add prec (at1 r q) (I.add prec (at1 p (k - 1)) (at1 s q))) else nai) (seq 0 v)].
Lemma zip_ub op a : forall b t (f : R), (forall x y, x = at1 a t -> y = at1 b t -> ub (op x y) f) -> ub (at1 (zip op a b) t) f.
Proof.
  induction a as [|x a IH]; intros [|y b] [|t] f H; try apply ub_nai; [apply H; reflexivity|]. unfold at1 in *. simpl. apply (IH b t f). intros x' y' Ex Ey. apply H; assumption.
Qed.
Section Pool.
Variables (m : nat) (w : list Z) (r p s : vec) (att pos : mat) (Q : list nat).
Hypothesis Hw : forall o, (0 < weight w o)%R.
Hypothesis Hr : forall t o, o < out -> o <> m -> ub (at1 r t) (weight w o * (rEVOU N centre mu t o - rEVOU N centre mu t m)).
Hypothesis Hp : forall i o, o < out -> o <> m -> ub (at1 p i) (weight w o * (rPVOU N centre i o - rPVOU N centre i m)).
Hypothesis Hs : forall q o, o < out -> o <> m -> ub (at1 s q) (weight w o * (rEU N mu q o - rEU N mu q m)).
Hypothesis Ha : forall q, scaled_row (nth q att []) (rEQKE N centre q).
Hypothesis Hb : forall q, scaled_row (nth q pos []) (rEQKP N centre q).
Theorem pooled_ok q o : In q Q -> o < out -> o <> m -> exists c, (0 < c)%R /\ forall i t, i < k -> (S i = k -> t = q) ->
  ub (at2 (pooled r p s att pos Q) i t) (c * G rA rB q m o i t).
Proof.
  intros Hq Ho Hne. destruct (Ha q) as (s1 & P1 & C1). destruct (Hb q) as (s2 & P2 & C2). exists (s1 * s2 * weight w o)%R. split; [apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; assumption|apply Hw]|].
  intros i t Hi Hl.
  replace (s1 * s2 * weight w o * G rA rB q m o i t)%R with ((s1 * exp (rEQKE N centre q t)) * (s2 * exp (rEQKP N centre q i)) *
    (weight w o * (rEVOU N centre mu t o - rEVOU N centre mu t m) + (weight w o * (rPVOU N centre i o - rPVOU N centre i m) + weight w o * (rEU N mu q o - rEU N mu q m))))%R
    by (unfold G, rA, rB; rewrite exp_plus; ring).
  assert (P : (0 <= s1 * exp (rEQKE N centre q t) * (s2 * exp (rEQKP N centre q i)))%R) by (pose proof (exp_pos (rEQKE N centre q t)); pose proof (exp_pos (rEQKP N centre q i)); apply Rmult_le_pos; apply Rmult_le_pos; lra).
  unfold at2, pooled. destruct (Nat.eq_dec (S i) k) as [E|E].
  - specialize (Hl E). subst t. rewrite app_nth2 by (rewrite map_length, seq_length; lia). rewrite map_length, seq_length. replace (i - (k - 1)) with 0 by lia. cbn [nth]. unfold at1 at 1.
    destruct (Nat.lt_ge_cases q v) as [Hv|Hv]; [|rewrite nth_overflow by (rewrite map_length, seq_length; exact Hv); apply ub_nai]. rewrite nth_map_seq by exact Hv.
    destruct (existsb (Nat.eqb q) Q); [|apply ub_nai]. replace (k - 1) with i by lia. apply ub_mul; [exact P|apply ct_mul; [apply (C1 q)|apply (C2 i)]|]. apply ub_add; [apply Hr; assumption|]. apply ub_add; [apply Hp|apply Hs]; assumption.
  - rewrite app_nth1 by (rewrite map_length, seq_length; lia). rewrite nth_map_seq by lia. apply zip_ub. intros x y -> ->. apply ub_mul; [exact P| |].
    + apply ct_mul; [apply (cv_joined _ (nth q att []) _ (in_map (fun q => nth q att []) Q q Hq) C1 t)|apply (cv_joined _ (nth q pos []) _ (in_map (fun q => nth q pos []) Q q Hq) C2 i)].
    + apply ub_add; [apply Hr; assumption|]. apply ub_add; [apply Hp; assumption|]. apply (ub_joined1 _ (at1 s q)); [apply in_map, Hq|apply Hs; assumption].
Qed.
End Pool.

(** ** Leaves and trees *)
Definition plus (a b : option Z) : option Z := match a, b with Some x, Some y => Some (x + y)%Z | _, _ => None end.
Definition cdiv (x c : Z) : Z := (- (- x / c))%Z.
Definition count_grid (masks : list (list bool)) (hs : mat) (A : dfa) (g : grid) : option (list row * Z * Z) :=
  let floors := repeat (depth g) (length masks - 1) ++ [(4 * depth g)%Z] in let start := cdiv (isum (offsets g)) 256 in
  if (0 <? mantissa g)%Z && Nat.eqb (length (offsets g)) (length masks) && Nat.ltb 0 (length masks) then
    let rows := grid_rows (inverse_step g) (isum floors) start masks hs (offsets g) floors in
    match count_up A rows Ms start with Some n => Some (rows, start, n) | None => None end
  else None.
Fixpoint count_grids (masks : list (list bool)) (hs : mat) (A : dfa) (gs : list grid) : option Z :=
  match gs with [] => Some 0%Z | g :: gs' => match count_grid masks hs A g with Some (_, _, n) => plus (Some n) (count_grids masks hs A gs') | None => None end end.
Fixpoint failing (masks : list (list bool)) (hs : mat) (A : dfa) (t : tree) : option Z :=
  match t with
  | GivenUp => Some (nth 0 (whole A masks Ms) 0%Z)
  | Leaf gs => match gs with
      | [] => None
      | [_] => count_grids masks hs A gs
      | _ => match count_grids masks hs A gs with Some n => Some (Z.min n (nth 0 (whole A masks Ms) 0%Z)) | None => None end end
  | Split tok n more fewer => match split_dfa A tok n true, split_dfa A tok n false with
      | Some A1, Some A2 => plus (failing masks hs A1 more) (failing masks hs A2 fewer) | _, _ => None end
  end.
Lemma cdiv_ge x : (IZR x / 256 <= IZR (cdiv x 256))%R.
Proof. unfold cdiv. pose proof (Z.mul_div_le (- x) 256 ltac:(lia)) as H. apply Rmult_le_reg_r with 256%R; [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. rewrite <- mult_IZR. apply IZR_le. lia. Qed.
Lemma isum_app a b : isum (a ++ b) = (isum a + isum b)%Z.
Proof. induction a as [|x a IH]; [reflexivity|]. simpl. unfold isum in *. rewrite IH. lia. Qed.

Section Failing.
Variables (m : nat) (Q : list nat) (masks : list (list bool)) (hs : mat).
Hypothesis HM : nonneg Ms = true.
Hypothesis Hlen : length masks = length Ms.
Hypothesis Hk : length Ms = k.
Hypothesis Hv : forallb (fun b => Nat.leb (length b) v) masks = true.
Hypothesis Hfit : forall x, fits masks x = true -> In (query x) Q /\ x <> [].
Hypothesis Hub : forall q o, In q Q -> o < out -> o <> m -> exists c, (0 < c)%R /\ forall i t, i < k -> (S i = k -> t = q) -> ub (at2 hs i t) (c * G rA rB q m o i t).
Definition fails (x : list nat) : bool := negb (winsb rA rB out m x).
Lemma grid_hits A g rows start n x : count_grid masks hs A g = Some (rows, start, n) -> fits masks x = true -> fails x = true -> reaches rows start x = true.
Proof.
  unfold count_grid. destruct (_ && _) eqn:E; [|discriminate]. apply andb_prop in E. destruct E as [E E3]. apply andb_prop in E. destruct E as [E1 E2]. apply Z.ltb_lt in E1. apply Nat.eqb_eq in E2. apply Nat.ltb_lt in E3.
  set (floors := repeat (depth g) (length masks - 1) ++ [(4 * depth g)%Z]). set (st := cdiv (isum (offsets g)) 256). set (rs := grid_rows _ _ _ _ _ _ _).
  destruct (count_up A rs Ms st) as [n0|]; [|discriminate]. injection 1 as <- <- _. intros Hx Hf. destruct (Hfit x Hx) as [Hq Hne].
  assert (Lf : length floors = length masks) by (unfold floors; rewrite app_length, repeat_length; simpl; lia).
  destruct (grid_rows_along (inverse_step g) (isum floors) st masks hs (offsets g) floors x E2 Lf Hx) as (z & Hz). fold rs in Hz. unfold reaches. rewrite Hz. apply Z.leb_le.
  destruct (some_term_hits rA rB rA_pos out m x [{| cover := map (fun o => (o, None)) (filter (fun o => negb (Nat.eqb o m)) (seq 0 out)); hit := fun _ => (0 <=? st + z)%Z |}]) as (T0 & [<-|[]] & HT).
  - exact Hne.
  - split; [|exact I]. intros o p H. cbn [cover] in H. apply in_map_iff in H. destruct H as (o' & E & _). discriminate.
  - intros T0 [<-|[]] o pp Hin Ho _. cbn [cover hit] in *. apply in_map_iff in Hin. destruct Hin as (o' & E & Hin). injection E as -> _. apply filter_In in Hin. destruct Hin as [Hin Hn]. apply in_seq in Hin.
    assert (Hnm : o <> m) by (intros ->; rewrite Nat.eqb_refl in Hn; discriminate). destruct (Hub (query x) o Hq ltac:(lia) Hnm) as (c & Pc & Uc). destruct (step_facts g E1) as [Ps _].
    apply Z.leb_le. apply (lemma_G (step_of g) (isum floors) st Ps false (fun i t => c * G rA rB (query x) m o i t)%R rs (offsets g) floors x z); auto.
    + apply grid_rows_gridded; auto. intros j t Ht Hl. simpl. destruct (Nat.lt_ge_cases j (length masks)) as [Hj|Hj]; [|rewrite (nth_overflow masks) in Ht by exact Hj; destruct t; discriminate].
      apply Uc; [lia|]. intros Ej. apply Hl. lia.
    + rewrite Rminus_0_r. apply cdiv_ge.
    + apply (joint rA rB x m o c Pc Ho).
  - intros o Ho Hnm. left. cbn [covered cover]. rewrite app_nil_r, map_map. cbn [fst]. rewrite map_id. apply filter_In. split; [apply in_seq; lia|]. destruct (Nat.eqb_spec o m); [contradiction|reflexivity].
  - unfold fails in Hf. intros W. apply winsb_spec in W. rewrite W in Hf. discriminate.
  - apply Z.leb_le. exact HT.
Qed.
Lemma count_grid_up A g rows start n : count_grid masks hs A g = Some (rows, start, n) -> count_up A rows Ms start = Some n.
Proof.
  unfold count_grid. destruct (_ && _); [|discriminate]. set (st := cdiv _ _). set (rs := grid_rows _ _ _ _ _ _ _). clearbody st rs. destruct (count_up A rs Ms st) as [c|] eqn:E; [|discriminate].
  injection 1 as <- <- <-. exact E.
Qed.
Lemma count_grids_ok A gs : closed A = true -> gs <> [] -> forall n, count_grids masks hs A gs = Some n ->
  (integral v Ms (fun x => one ((accepts A x && fits masks x) && fails x)) <= n)%Z.
Proof.
  intros HA Hne n Hn. destruct gs as [|g gs]; [congruence|]. clear Hne. cbn [count_grids] in Hn. destruct (count_grid masks hs A g) as [[[rows start] c]|] eqn:Eg; [|discriminate].
  assert (Hrest : forall l r, count_grids masks hs A l = Some r -> (0 <= r)%Z).
  { induction l as [|g' l IH]; intros r H; cbn [count_grids] in H; [injection H as <-; lia|]. destruct (count_grid masks hs A g') as [[[rows' start'] c']|] eqn:Eg'; [|discriminate].
    destruct (count_grids masks hs A l) as [r'|]; [|discriminate]. injection H as <-. specialize (IH r' eq_refl). enough (0 <= c')%Z by lia.
    apply count_grid_up in Eg'. rename Eg' into Ec.
    apply (count_up_ge A v HA _ Ms _ _ HM) in Ec. eapply Z.le_trans; [|exact Ec]. rewrite <- (integral_zero v Ms). apply integral_le; [exact HM|]. intros y _. destruct (_ && _); simpl; lia. }
  destruct (count_grids masks hs A gs) as [r|] eqn:Er; [|discriminate]. injection Hn as <-. specialize (Hrest gs r Er). enough (integral v Ms (fun x => one ((accepts A x && fits masks x) && fails x)) <= c)%Z by lia.
  pose proof (count_grid_up A g rows start c Eg) as Ec.
  apply (count_up_ge A v HA _ Ms _ _ HM) in Ec. eapply Z.le_trans; [|exact Ec]. apply integral_le; [exact HM|]. intros x _.
  destruct (accepts A x); [|simpl; lia]. destruct (fits masks x) eqn:Ef; [|simpl; destruct (reaches rows start x); simpl; lia]. destruct (fails x) eqn:Ex; [|simpl; destruct (reaches rows start x); simpl; lia].
  rewrite (grid_hits A g rows start c x Eg Ef Ex). simpl. lia.
Qed.
Lemma whole_ok A : nth 0 (whole A masks Ms) 0%Z = integral v Ms (fun x => one (accepts A x && fits masks x)).
Proof. apply whole_is; assumption. Qed.
Lemma whole_ge A : (integral v Ms (fun x => one ((accepts A x && fits masks x) && fails x)) <= nth 0 (whole A masks Ms) 0%Z)%Z.
Proof. rewrite whole_ok. apply integral_le; [exact HM|]. intros x _. destruct (_ && fits masks x); destruct (fails x); simpl; lia. Qed.
Theorem failing_ok t : forall A n, closed A = true -> failing masks hs A t = Some n -> (integral v Ms (fun x => one ((accepts A x && fits masks x) && fails x)) <= n)%Z.
Proof.
  induction t as [|gs|tok c more IH1 fewer IH2]; intros A n HA H; cbn [failing] in H.
  - injection H as <-. apply whole_ge.
  - destruct gs as [|g gs]; [discriminate|]. destruct gs as [|g' gs].
    + apply (count_grids_ok A [g]); [exact HA|discriminate|exact H].
    + destruct (count_grids masks hs A (g :: g' :: gs)) as [r|] eqn:E; [|discriminate]. injection H as <-. apply Z.min_glb; [|apply whole_ge]. apply (count_grids_ok A (g :: g' :: gs)); [exact HA|discriminate|exact E].
  - destruct (split_dfa A tok c true) as [A1|] eqn:E1; [|discriminate]. destruct (split_dfa A tok c false) as [A2|] eqn:E2; [|discriminate].
    destruct (failing masks hs A1 more) as [n1|] eqn:F1; [|discriminate]. destruct (failing masks hs A2 fewer) as [n2|] eqn:F2; [|discriminate]. injection H as <-.
    apply split_dfa_ok in E1, E2. destruct E1 as [C1 E1]. destruct E2 as [C2 E2]. specialize (IH1 A1 n1 C1 F1). specialize (IH2 A2 n2 C2 F2).
    apply (split_bound v Ms (fun x => accepts A x && fits masks x) fails (half tok c true)); [exact HM| |].
    + eapply Z.le_trans; [|exact IH1]. apply integral_le; [exact HM|]. intros x _. rewrite E1. destruct (accepts A x); destruct (half tok c true x); destruct (fits masks x); destruct (fails x); simpl; lia.
    + eapply Z.le_trans; [|exact IH2]. apply integral_le; [exact HM|]. intros x _. rewrite E2, half_either, negb_involutive. destruct (accepts A x); destruct (half tok c false x); destruct (fits masks x); destruct (fails x); simpl; lia.
Qed.
End Failing.

(** ** Parts, groups of a label, and the whole certificate *)
Definition part_fails (r p s : vec) (att pos : mat) (A : dfa) (P : part) : option Z :=
  failing (masks_of v k A (queries P)) (pooled r p s att pos (queries P)) A (shape P).
Definition part_sum (r p s : vec) (att pos : mat) (A : dfa) (P : part) : Z :=
  match part_fails r p s att pos A P with Some f => Z.max 0 (nth 0 (whole A (masks_of v k A (queries P)) Ms) 0%Z - f) | None => 0%Z end.
Definition group_sum (D : ready) (g : group) : Z :=
  let t := d_tables D in let w := g_weights g in let m := g_label g in
  let r := brackets out m w (t_EVOU t) in let p := brackets out m w (t_PVOU t) in let s := brackets out m w (t_EU t) in
  let att := map (own_attention (g_relative g)) (d_attention D) in
  zsum (part_sum r p s att (d_places D) (g_dfa g)) (g_parts g).
Fixpoint different (l : list nat) : bool := match l with [] => true | a :: l' => negb (existsb (Nat.eqb a) l') && different l' end.
Lemma different_NoDup l : different l = true -> NoDup l.
Proof.
  induction l as [|a l IH]; intros H; [constructor|]. simpl in H. apply andb_prop in H. destruct H as [H1 H2]. constructor; [|auto]. intros Hin. apply negb_true_iff in H1.
  assert (existsb (Nat.eqb a) l = true) by (apply existsb_exists; exists a; split; [exact Hin|apply Nat.eqb_refl]). congruence.
Qed.
Definition group_fine (g : group) : bool :=
  merges (g_map g) (task_dfa T (g_label g)) (g_dfa g) && closed (g_dfa g) && Nat.leb (length (live (g_dfa g))) v &&
  forallb (Z.ltb 0) (g_weights g) && different (flat_map queries (g_parts g)).
Definition check (claim : Z) (groups : list group) : bool :=
  complete v T && nonneg Ms && Nat.eqb (length Ms) k && Nat.ltb 0 k && different (map g_label groups) && forallb group_fine groups &&
  let D := prepare in (claim <=? zsum (group_sum D) groups)%Z.

(** Right answers of the transformer, and their mass. *)
Definition rightb (x : list nat) : bool :=
  forallb (fun o => Nat.eqb o (label_of T x) || if Rlt_dec (logits N x o) (logits N x (label_of T x)) then true else false) (seq 0 out).
Definition right_mass : Z := zsum (fun x => if rightb x then mass Ms x else 0%Z) (words v k).
Lemma rightb_is x : x <> [] -> rightb x = winsb rA rB out (label_of T x) x.
Proof.
  intros Hx. unfold rightb, winsb.
  assert (E : forall o, logits N x o = logit rA rB x o) by (intros o; apply (additive_form _ _ _ _ _ _ _ _ _ _ _ (value centre 0) (value mu 0) x o Hx)).
  induction (seq 0 out) as [|o l IH]; [reflexivity|]. cbn [forallb]. rewrite IH, !E. reflexivity.
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

Theorem check_sound claim groups : check claim groups = true -> (claim <= right_mass)%Z.
Proof.
  unfold check. intros H. apply andb_prop in H. destruct H as [H H7]. apply andb_prop in H. destruct H as [H H6]. apply andb_prop in H. destruct H as [H H5]. apply andb_prop in H. destruct H as [H H4].
  apply andb_prop in H. destruct H as [H H3]. apply andb_prop in H. destruct H as [H1 H2]. apply Nat.eqb_eq in H3. apply Nat.ltb_lt in H4. apply different_NoDup in H5. rewrite forallb_forall in H6. apply Z.leb_le in H7.
  destruct prepare_ok as (R1 & R2 & R3 & R4 & R5). set (D := prepare) in *. clearbody D.
  set (parts := flat_map (fun g => map (pair g) (g_parts g)) groups).
  set (P := fun x => winsb rA rB out (label_of T x) x).
  assert (ER : right_mass = integral v Ms (fun x => one (P x))).
  { unfold right_mass. rewrite integral_words, H3. apply zsum_ext. intros x Hx. apply words_word in Hx. destruct Hx as [Hl _]. rewrite rightb_is by (intros ->; simpl in Hl; lia). unfold P. destruct (winsb _ _ _ _ x); simpl; lia. }
  rewrite ER. clear ER.
  (* facts about each part *)
  set (r := fun g => brackets out (g_label g) (g_weights g) (t_EVOU (d_tables D))). set (p := fun g => brackets out (g_label g) (g_weights g) (t_PVOU (d_tables D))). set (s := fun g => brackets out (g_label g) (g_weights g) (t_EU (d_tables D))).
  set (att := fun g => map (own_attention (g_relative g)) (d_attention D)).
  assert (Split : forall y, In y parts -> In (fst y) groups /\ In (snd y) (g_parts (fst y))).
  { intros y Hy. apply in_flat_map in Hy. destruct Hy as (g & Hg & Hy). apply in_map_iff in Hy. destruct Hy as (p0 & <- & Hp). auto. }
  assert (Facts : forall g, In g groups -> closed (g_dfa g) = true /\ length (live (g_dfa g)) <= v /\ (forall o, (0 < weight (g_weights g) o)%R) /\ NoDup (flat_map queries (g_parts g)) /\
    forall x, word v k x -> accepts (g_dfa g) x = Nat.eqb (label_of T x) (g_label g)).
  { intros g Hg. specialize (H6 g Hg). unfold group_fine in H6. do 4 (apply andb_prop in H6; let K := fresh "K" in destruct H6 as [H6 K]). apply Nat.leb_le in K1. apply different_NoDup in K. rewrite forallb_forall in K0.
    repeat split; auto.
    - intros o. unfold weight. apply IZR_lt. destruct (nth_in_or_default o (g_weights g) 1%Z) as [Hin| ->]; [apply Z.ltb_lt, K0, Hin|lia].
    - intros x [_ Hx]. rewrite <- (merges_accepts _ _ _ H6 x). apply (task_dfa_accepts v); assumption. }
  assert (InX : forall y x, In y parts -> word v k x -> inside y x = accepts (g_dfa (fst y)) x && fits (masks_of v k (g_dfa (fst y)) (queries (snd y))) x).
  { intros y x Hy Hx. destruct (Split y Hy) as [Hg Hp]. destruct (Facts _ Hg) as (F1 & F2 & F3 & F4 & F5). unfold inside. rewrite <- F5 by exact Hx. destruct (accepts (g_dfa (fst y)) x) eqn:EA; [|reflexivity]. cbn [andb].
    destruct (existsb (Nat.eqb (query x)) (queries (snd y))) eqn:EQ.
    - symmetry. apply masks_fit; [apply Hx|exact H4| |].
      + intros t Ht. split; [apply Hx, Ht|]. eapply accepts_live; eauto.
      + apply existsb_exists in EQ. destruct EQ as (u & Hu & E). apply Nat.eqb_eq in E. subst; exact Hu.
    - destruct (fits _ x) eqn:EF; [|reflexivity]. exfalso. apply fits_query in EF. destruct EF as [EF _]. assert (existsb (Nat.eqb (query x)) (queries (snd y)) = true) by (apply existsb_exists; exists (query x); split; [exact EF|apply Nat.eqb_refl]). congruence. }
  set (W := fun y : group * part => nth 0 (whole (g_dfa (fst y)) (masks_of v k (g_dfa (fst y)) (queries (snd y))) Ms) 0%Z).
  set (F := fun y : group * part => match part_fails (r (fst y)) (p (fst y)) (s (fst y)) (att (fst y)) (d_places D) (g_dfa (fst y)) (snd y) with Some f => f | None => W y end).
  assert (EW : forall y, In y parts -> W y = integral v Ms (fun x => one (inside y x))).
  { intros y Hy. destruct (Split y Hy) as [Hg Hp]. destruct (Facts _ Hg) as (F1 & F2 & _). unfold W. rewrite (whole_is (g_dfa (fst y)) v).
    - apply integral_ext; [exact H2|]. intros x Hx. rewrite H3 in Hx. rewrite (InX y x Hy Hx). reflexivity.
    - rewrite masks_length by exact H4. symmetry; exact H3.
    - unfold masks_of. rewrite forallb_app. apply andb_true_intro. split.
      + clear -F2. induction (k - 1); [reflexivity|]. simpl. rewrite (proj2 (Nat.leb_le _ _) F2). exact IHn.
      + simpl. rewrite andb_true_r. apply Nat.leb_le. unfold mask_of. rewrite map_length, seq_length. lia. }
  apply Z.le_trans with (zsum (fun y => Z.max 0 (integral v Ms (fun x => one (inside y x)) - F y)) parts).
  - eapply Z.le_trans; [exact H7|].
    assert (Q : forall gs, (forall g, In g gs -> In g groups) ->
      (zsum (group_sum D) gs <= zsum (fun y => Z.max 0 (integral v Ms (fun x => one (inside y x)) - F y)) (flat_map (fun g => map (pair g) (g_parts g)) gs))%Z); [|apply Q; auto].
    induction gs as [|g gs IH]; intros Hsub; [simpl; lia|]. cbn [flat_map]. rewrite zsum_cons, zsum_app. apply Z.add_le_mono; [|apply IH; intros; apply Hsub; right; assumption].
    rewrite zsum_map. unfold group_sum. apply zsum_le. intros pt Hpt. assert (Hy : In (g, pt) parts) by (apply in_flat_map; exists g; split; [apply Hsub; left; reflexivity|apply in_map, Hpt]).
    rewrite <- (EW _ Hy). unfold part_sum, F, W. cbn [fst snd]. unfold r, p, s, att. destruct (part_fails _ _ _ _ _ _ pt); lia.
  - apply parts_bound; [exact H2| |].
    + intros x Hx. rewrite H3 in Hx. unfold parts. clear -H5 Facts Hx.
      assert (E : forall gs, zsum (fun y => one (inside y x)) (flat_map (fun g => map (pair g) (g_parts g)) gs) = zsum (fun g => zsum (fun pt => one (inside (g, pt) x)) (g_parts g)) gs).
      { induction gs as [|g gs IH]; [reflexivity|]. cbn [flat_map]. rewrite zsum_app, zsum_map, zsum_cons, IH. reflexivity. }
      rewrite E. apply (labels_once (label_of T x)); [exact H5|]. intros g Hg. destruct (Facts g Hg) as (_ & _ & _ & F4 & _). split; [apply zsum_nonneg; intros pt _; destruct (inside (g, pt) x); simpl; lia|].
      unfold inside. cbn [fst snd]. destruct (Nat.eqb (label_of T x) (g_label g)); cbn [andb].
      * apply queries_once, F4.
      * rewrite zsum_zero. simpl. lia.
    + intros y Hy. destruct (Split y Hy) as [Hg Hp]. destruct (Facts _ Hg) as (F1 & F2 & F3 & F4 & F5). set (m := g_label (fst y)).
      assert (EX : integral v Ms (fun x => one (inside y x && negb (P x))) = integral v Ms (fun x => one ((accepts (g_dfa (fst y)) x && fits (masks_of v k (g_dfa (fst y)) (queries (snd y))) x) && fails m x))).
      { apply integral_ext; [exact H2|]. intros x Hx. rewrite H3 in Hx. rewrite (InX y x Hy Hx). unfold P, fails. rewrite (F5 x Hx). destruct (Nat.eqb_spec (label_of T x) (g_label (fst y))) as [->|]; reflexivity. }
      rewrite EX. unfold F. destruct (part_fails _ _ _ _ _ _ (snd y)) as [f|] eqn:Ef.
      * unfold part_fails in Ef. eapply (failing_ok m (queries (snd y))); [exact H2| |exact H3| | | |exact F1|exact Ef].
        { rewrite masks_length by exact H4. symmetry; exact H3. }
        { unfold masks_of. rewrite forallb_app. apply andb_true_intro. split.
          - clear -F2. induction (k - 1); [reflexivity|]. simpl. rewrite (proj2 (Nat.leb_le _ _) F2). exact IHn.
          - simpl. rewrite andb_true_r. apply Nat.leb_le. unfold mask_of. rewrite map_length, seq_length. lia. }
        { intros x Hx. eapply fits_query; eauto. }
        { intros q o Hq Ho Hne. apply (pooled_ok m (g_weights (fst y))); auto.
          - intros t o' Ho' Hne'. apply brackets_ok; assumption.
          - intros i o' Ho' Hne'. apply brackets_ok; assumption.
          - intros q' o' Ho' Hne'. apply brackets_ok; assumption.
          - intros q'. unfold att. destruct (Nat.lt_ge_cases q' (length (d_attention D))) as [Hq'|Hq'].
            + rewrite (nth_indep _ [] (own_attention (g_relative (fst y)) [])) by (rewrite map_length; exact Hq'). rewrite map_nth. apply own_ok, R1.
            + rewrite nth_overflow by (rewrite map_length; exact Hq'). exists 1%R. split; [lra|apply cv_nil]. }
      * rewrite (EW y Hy). apply integral_le; [exact H2|]. intros x Hx. rewrite H3 in Hx. rewrite (InX y x Hy Hx). destruct (_ && fits _ x); destruct (fails m x); simpl; lia.
Qed.
End Check.

(** For the task max: the states that matter for label [m] are "smaller so far" and "m has occurred". *)
Definition max_map (v m : nat) : list image := map (fun s => if Nat.ltb s m then At 0 else if Nat.eqb s m then At (if Nat.eqb m 0 then 0 else 1) else Dead) (seq 0 v).
Definition max_dfa (v m : nat) : dfa :=
  if Nat.eqb m 0 then {| moves := [map (fun t => if Nat.eqb t 0 then Some 0 else None) (seq 0 v)]; accepting := [true] |}
  else {| moves := [map (fun t => if Nat.ltb t m then Some 0 else if Nat.eqb t m then Some 1 else None) (seq 0 v); map (fun t => if Nat.leb t m then Some 1 else None) (seq 0 v)];
          accepting := [false; true] |}.
Definition uniform (v k : nat) : list (list Z) := repeat (repeat 1%Z v) k.
