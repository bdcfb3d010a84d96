(** What the checker computes once from the weights, and pools: one table for a label, all outputs and some queries (factored terms). *)
From Coq Require Import Floats Uint63.
From Coq Require Import Reals Lra Lia List ZArith Bool Arith.
From CompactProofs Require Import Words Automaton Count Threshold Grid Rule Model Statement Enclosure Harms Leaves.
Import ListNotations.
Local Open Scope nat_scope.

Section Pools.
Variables (N : network) (v : nat) (Ms : list (list Z)) (margin : number) (centre mu : tensor).
Local Notation k := (n_ctx N). Local Notation out := (n_out N).
Definition rA q i t := exp (rEQKE N centre q i t + rEQKP N centre q i)%R.
Definition rB q o i t := (rEVOU N centre mu i t o + rPVOU N centre i o + rEU N mu q o)%R.
Local Notation G := (G rA rB (real margin)). Local Notation winsb := (winsb rA rB (real margin)).
(** What is taken off the label's own entry of the direct path. *)
Definition less_own : option I.type := if (units margin =? 0)%Z then None else Some (real_i margin).
Lemma less_own_ok : is_less less_own (real margin).
Proof. unfold less_own. destruct (Z.eqb_spec (units margin) 0) as [E|_]; [unfold real; cbn; rewrite E; ring|apply ct_real]. Qed.
Lemma rA_pos q i t : (0 < rA q i t)%R. Proof. apply exp_pos. Qed.

(** What the checker computes once. *)
Record ready := { d_tables : tables; d_attention : list mat; d_places : mat;
  d_pair_places : mat; d_EVOU_columns : list mat; d_PVOU_columns : mat }.
Definition prepare : ready :=
  let t := compute N centre mu in
  {| d_tables := t; d_attention := relative_all (t_EQKE t); d_places := map plain (t_EQKP t);
     d_pair_places := map (fun a => relative (top_of PrimFloat.neg_infinity 0 0 a) a) (t_EQKP t); d_EVOU_columns := map (tr out) (t_EVOU t); d_PVOU_columns := tr out (t_PVOU t) |}.
Definition ready_ok (D : ready) := (forall q, scaled_rows k (d_attention D) q (rEQKE N centre q)) /\ (forall q, scaled_row (nth q (d_places D) []) (rEQKP N centre q)) /\
  cms k (t_EVOU (d_tables D)) (rEVOU N centre mu) /\ cm (t_PVOU (d_tables D)) (rPVOU N centre) /\ cm (t_EU (d_tables D)) (rEU N mu) /\
  (forall q, scaled_row (nth q (d_pair_places D) []) (rEQKP N centre q)) /\ cms k (d_EVOU_columns D) (fun i o t => rEVOU N centre mu i t o) /\ cm (d_PVOU_columns D) (fun o i => rPVOU N centre i o).
Lemma scaled_map (g : vec -> vec) M f q : cm M f -> (forall a i, cv a (f i) -> scaled_row (g a) (f i)) -> scaled_row (nth q (map g M) []) (f q).
Proof.
  intros H Hg. destruct (Nat.lt_ge_cases q (length M)) as [Hq|Hq].
  - rewrite (nth_indep _ [] (g [])) by (rewrite map_length; exact Hq). rewrite map_nth. apply Hg, cm_row, H.
  - rewrite nth_overflow by (rewrite map_length; exact Hq). exists 1%R. split; [lra|apply cv_nil].
Qed.
Lemma prepare_ok : ready_ok prepare.
Proof.
  destruct (compute_ok N centre mu) as (H1 & H2 & H3 & H4 & H5). unfold prepare. repeat split; cbn [d_tables d_attention d_places d_pair_places d_EVOU_columns d_PVOU_columns]; auto; try (apply cm_tr; assumption); try (apply cms_map with (1 := H3); intros i M HM; apply cm_tr, HM).
  - intros q. apply (relative_all_ok k _ q (rEQKE N centre)), H1.
  - intros q. apply (scaled_map plain _ (rEQKP N centre)); [exact H2|]. intros a i Ha. apply plain_ok, Ha.
  - intros q. apply (scaled_map (fun a => relative (top_of PrimFloat.neg_infinity 0 0 a) a) _ (rEQKP N centre)); [exact H2|]. intros a i Ha. apply relative_ok, Ha.
Qed.

(** ** Pools: one table for a label and some queries *)
Definition own_attention (rel : option nat) (S : list mat) : list mat := match rel with Some c => relative_to c S | None => S end.
Lemma own_ok rel S q f : 0 < k -> scaled_rows k S q f -> scaled_rows k (own_attention rel S) q f.
Proof. intros Hk. destruct rel; [apply relative_to_ok, Hk|auto]. Qed.
Definition pooled (r : list vec) (p s : vec) (att : list mat) (pos : mat) (Q : list nat) : mat :=
  let As := map (fun M => joined (map (fun q => nth q M []) Q)) att in let b := joined (map (fun q => nth q pos []) Q) in
  let sw := joined1 (map (at1 s) Q) in
  map (fun i => let y := I.add prec (at1 p i) sw in let bi := at1 b i in zip (fun a x => I.mul prec (I.mul prec a bi) (I.add prec x y)) (pick [] As i) (pick [] r i)) (seq 0 (k - 1)) ++
  [map (fun q => if existsb (Nat.eqb q) Q then I.mul prec (I.mul prec (at2 (pick [] att (k - 1)) q q) (at2 pos q (k - 1))) (I.add prec (at1 (pick [] r (k - 1)) q) (I.add prec (at1 p (k - 1)) (at1 s q))) else nai) (seq 0 v)].
Lemma zip_ub op a : forall b t (f : R), (forall x y, x = at1 a t -> y = at1 b t -> ub (op x y) f) -> ub (at1 (zip op a b) t) f.
Proof.
  induction a as [|x a IH]; intros [|y b] [|t] f H; try apply ub_nai; [apply H; reflexivity|]. unfold at1 in *. simpl. apply (IH b t f). intros x' y' Ex Ey. apply H; assumption.
Qed.
Section Pool.
Variables (m : nat) (w : list Z) (r : list vec) (p s : vec) (att : list mat) (pos : mat) (Q : list nat).
Hypothesis Hw : forall o, (0 < weight w o)%R.
Hypothesis Hr : forall i t o, i < k -> o < out -> o <> m -> ub (at1 (pick [] r i) t) (weight w o * (rEVOU N centre mu i t o - rEVOU N centre mu i t m)).
Hypothesis Hp : forall i o, o < out -> o <> m -> ub (at1 p i) (weight w o * (rPVOU N centre i o - rPVOU N centre i m)).
Hypothesis Hs : forall q o, o < out -> o <> m -> ub (at1 s q) (weight w o * (rEU N mu q o - (rEU N mu q m - real margin))).
Hypothesis Ha : forall q, scaled_rows k att q (rEQKE N centre q).
Hypothesis Hb : forall q, scaled_row (nth q pos []) (rEQKP N centre q).
Theorem pooled_ok q o : In q Q -> o < out -> o <> m -> exists c, (0 < c)%R /\ forall i t, i < k -> (S i = k -> t = q) ->
  ub (at2 (pooled r p s att pos Q) i t) (c * G q m o i t).
Proof.
  intros Hq Ho Hne. destruct (Ha q) as (s1 & P1 & C1). destruct (Hb q) as (s2 & P2 & C2). exists (s1 * s2 * weight w o)%R. split; [apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; assumption|apply Hw]|].
  intros i t Hi Hl.
  replace (s1 * s2 * weight w o * G q m o i t)%R with ((s1 * exp (rEQKE N centre q i t)) * (s2 * exp (rEQKP N centre q i)) *
    (weight w o * (rEVOU N centre mu i t o - rEVOU N centre mu i t m) + (weight w o * (rPVOU N centre i o - rPVOU N centre i m) + weight w o * (rEU N mu q o - (rEU N mu q m - real margin)))))%R
    by (unfold Threshold.G, rA, rB; rewrite exp_plus; ring).
  assert (P : (0 <= s1 * exp (rEQKE N centre q i t) * (s2 * exp (rEQKP N centre q i)))%R) by (pose proof (exp_pos (rEQKE N centre q i t)); pose proof (exp_pos (rEQKP N centre q i)); apply Rmult_le_pos; apply Rmult_le_pos; lra).
  unfold at2, pooled. destruct (Nat.eq_dec (S i) k) as [E|E].
  - specialize (Hl E). subst t. rewrite app_nth2 by (rewrite map_length, seq_length; lia). rewrite map_length, seq_length. replace (i - (k - 1)) with 0 by lia. cbn [nth]. unfold at1 at 1.
    destruct (Nat.lt_ge_cases q v) as [Hv|Hv]; [|rewrite nth_overflow by (rewrite map_length, seq_length; exact Hv); apply ub_nai]. rewrite nth_map_seq by exact Hv.
    destruct (existsb (Nat.eqb q) Q); [|apply ub_nai]. replace (k - 1) with i by lia. apply ub_mul; [exact P|apply ct_mul; [apply (C1 i Hi q)|apply (C2 i)]|]. apply ub_add; [apply Hr; assumption|]. apply ub_add; [apply Hp|apply Hs]; assumption.
  - rewrite app_nth1 by (rewrite map_length, seq_length; lia). rewrite nth_map_seq by lia. apply zip_ub. intros x y -> ->. apply ub_mul; [exact P| |].
    + apply ct_mul; [apply (pick_map (fun a => ct (at1 a t) _) (fun M => joined (map (fun q => nth q M []) Q)) []); [destruct t; apply ct_nai|]; apply (cv_joined _ (nth q (pick [] att i) []) _ (in_map (fun q => nth q (pick [] att i) []) Q q Hq) (C1 i Hi) t)|apply (cv_joined _ (nth q pos []) _ (in_map (fun q => nth q pos []) Q q Hq) C2 i)].
    + apply ub_add; [apply Hr; assumption|]. apply ub_add; [apply Hp; assumption|]. apply (ub_joined1 _ (at1 s q)); [apply in_map, Hq|apply Hs; assumption].
Qed.
End Pool.


(** ** Leaves of a pool *)
Fixpoint count_grids (masks : list (list bool)) (hs : mat) (A : dfa) (gs : list grid) : option Z :=
  match gs with [] => Some 0%Z | g :: gs' => match count_grid Ms masks false hs A g with Some c => plus (Some (c_count c)) (count_grids masks hs A gs') | None => None end end.
Definition pool_leaf (masks : list (list bool)) (hs : mat) (A : dfa) (gs : list grid) : option Z :=
  match gs with
  | [] => None
  | [_] => count_grids masks hs A gs
  | _ => match count_grids masks hs A gs with Some n => Some (Z.min n (all_of Ms masks A)) | None => None end
  end.
Section Failing.
Variables (m : nat) (Q : list nat) (masks : list (list bool)) (hs : mat).
Hypothesis HM : nonneg Ms = true.
Hypothesis Hlen : length masks = length Ms.
Hypothesis Hk : length Ms = k.
Hypothesis Hv : forallb (fun b => Nat.leb (length b) v) masks = true.
Hypothesis Hfit : forall x, fits masks x = true -> In (query x) Q /\ x <> [].
Hypothesis Hub : forall q o, In q Q -> o < out -> o <> m -> exists c, (0 < c)%R /\ forall i t, i < k -> (S i = k -> t = q) -> ub (at2 hs i t) (c * G q m o i t).
Definition fails (x : list nat) : bool := negb (winsb out m x).
Lemma pool_hits A g c x : count_grid Ms masks false hs A g = Some c -> fits masks x = true -> fails x = true -> hit_by c x = true.
Proof.
  intros Hc Hx Hf. destruct (Hfit x Hx) as [Hq Hne].
  destruct (some_term_hits rA rB (real margin) rA_pos out m x [{| cover := map (fun o => (o, [])) (filter (fun o => negb (Nat.eqb o m)) (seq 0 out)); hit := hit_by c |}]) as (T0 & [<-|[]] & HT).
  - exact Hne.
  - split; [|exact I]. intros o ps p H Hp. cbn [cover] in H. apply in_map_iff in H. destruct H as (o' & E & _). injection E as _ <-. destruct Hp.
  - intros T0 [<-|[]] o pp Hin Ho _. cbn [cover hit] in *. apply in_map_iff in Hin. destruct Hin as (o' & E & Hin). injection E as -> _. apply filter_In in Hin. destruct Hin as [Hin Hn]. apply in_seq in Hin.
    assert (Hnm : o <> m) by (intros ->; rewrite Nat.eqb_refl in Hn; discriminate). destruct (Hub (query x) o Hq ltac:(lia) Hnm) as (s & Ps & Us).
    apply (grid_hits Ms masks false hs A g c x (fun i t => s * G (query x) m o i t)%R Hc Hx); [|apply (joint rA rB (real margin) x m o s Ps Ho)]. rewrite Hlen, Hk. exact Us.
  - intros o Ho Hnm. left. cbn [covered cover]. rewrite app_nil_r, map_map. cbn [fst]. rewrite map_id. apply filter_In. split; [apply in_seq; lia|]. destruct (Nat.eqb_spec o m); [contradiction|reflexivity].
  - unfold fails in Hf. intros W. apply winsb_spec in W. rewrite W in Hf. discriminate.
  - exact HT.
Qed.
Lemma count_grids_ok A gs : closed A = true -> gs <> [] -> forall n, count_grids masks hs A gs = Some n ->
  (integral v Ms (fun x => one ((accepts A x && fits masks x) && fails x)) <= n)%Z.
Proof.
  intros HA Hne n Hn. destruct gs as [|g gs]; [congruence|]. clear Hne. cbn [count_grids] in Hn. destruct (count_grid Ms masks false hs A g) as [c|] eqn:Eg; [|discriminate].
  assert (Hpos : forall g c, count_grid Ms masks false hs A g = Some c -> (0 <= c_count c)%Z).
  { intros g' c' E. apply (counter_ge v Ms masks HM) in E; [|exact HA]. eapply Z.le_trans; [|exact E]. rewrite <- (integral_zero v Ms). apply integral_le; [exact HM|]. intros y _. destruct (_ && _); simpl; lia. }
  assert (Hrest : forall l r, count_grids masks hs A l = Some r -> (0 <= r)%Z).
  { induction l as [|g' l IH]; intros r H; cbn [count_grids] in H; [injection H as <-; lia|]. destruct (count_grid Ms masks false hs A g') as [c'|] eqn:Eg'; [|discriminate].
    destruct (count_grids masks hs A l) as [r'|]; [|discriminate]. injection H as <-. specialize (IH r' eq_refl). specialize (Hpos g' c' Eg'). lia. }
  destruct (count_grids masks hs A gs) as [r|] eqn:Er; [|discriminate]. injection Hn as <-. specialize (Hrest gs r Er).
  enough (integral v Ms (fun x => one ((accepts A x && fits masks x) && fails x)) <= c_count c)%Z by lia. eapply Z.le_trans; [|apply (counter_in v Ms masks HM false hs A g c HA Eg)].
  apply integral_le; [exact HM|]. intros x _. destruct (accepts A x); [|simpl; lia]. destruct (fits masks x) eqn:Ef; [|simpl; lia]. destruct (fails x) eqn:Ex; [|destruct (hit_by c x); simpl; lia].
  rewrite (pool_hits A g c x Eg Ef Ex). simpl. lia.
Qed.
Theorem pool_leaf_ok A gs n : closed A = true -> pool_leaf masks hs A gs = Some n -> (integral v Ms (fun x => one ((accepts A x && fits masks x) && fails x)) <= n)%Z.
Proof.
  intros HA H. unfold pool_leaf in H. destruct gs as [|g gs]; [discriminate|]. destruct gs as [|g' gs].
  - apply (count_grids_ok A [g]); [exact HA|discriminate|exact H].
  - destruct (count_grids masks hs A (g :: g' :: gs)) as [r|] eqn:E; [|discriminate]. injection H as <-. apply Z.min_glb; [|apply all_of_ge; assumption]. apply (count_grids_ok A (g :: g' :: gs)); [exact HA|discriminate|exact E].
Qed.
End Failing.
End Pools.
