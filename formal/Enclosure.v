(** Enclosures by CoqInterval's intervals of primitive floats: weights, tables, attention. What lies outside of a list is not a number, which
    encloses everything, so that no lengths have to be checked. *)
From Coq Require Import Floats Uint63.
From Coq Require Import Reals Lra Lia List ZArith Bool Arith.
From Interval Require Import Primitive_ops Float_full Interval Xreal Basic.
From CompactProofs Require Import Model Statement.
Import ListNotations.
Module F := PrimitiveFloat. Module I := FloatIntervalFull F.
Local Open Scope R_scope.

Definition prec := F.PtoP 53.
Definition ct (i : I.type) (r : R) := contains (I.convert i) (Xreal r).
Definition nai := I.nai.
Lemma ct_nai r : ct nai r. Proof. unfold ct, nai. rewrite I.nai_correct. exact Logic.I. Qed.
Lemma ct_add a b x y : ct a x -> ct b y -> ct (I.add prec a b) (x + y). Proof. intros. apply (I.add_correct prec a b (Xreal x) (Xreal y)); auto. Qed.
Lemma ct_sub a b x y : ct a x -> ct b y -> ct (I.sub prec a b) (x - y). Proof. intros. apply (I.sub_correct prec a b (Xreal x) (Xreal y)); auto. Qed.
Lemma ct_mul a b x y : ct a x -> ct b y -> ct (I.mul prec a b) (x * y). Proof. intros. apply (I.mul_correct prec a b (Xreal x) (Xreal y)); auto. Qed.
Lemma ct_exp a x : ct a x -> ct (I.exp prec a) (exp x). Proof. intros. apply (I.exp_correct prec a (Xreal x)); auto. Qed.
Lemma ct_Z z : ct (I.fromZ prec z) (IZR z). Proof. apply I.fromZ_correct. Qed.
Lemma ct_zero : ct I.zero 0. Proof. unfold ct. rewrite I.zero_correct. simpl. lra. Qed.
Lemma ct_inv a x : x <> 0 -> ct a x -> ct (I.inv prec a) (/ x).
Proof. intros Hx H. pose proof (I.inv_correct prec a (Xreal x) H) as K. simpl in K. unfold Xinv' in K. rewrite is_zero_false in K by auto. exact K. Qed.
Lemma ct_sqrt a x : ct a x -> ct (I.sqrt prec a) (sqrt x). Proof. intros H. exact (I.sqrt_correct prec a (Xreal x) H). Qed.
Lemma ct_join_l a b x : ct a x -> ct (I.join a b) x. Proof. intros. apply I.join_correct. left; assumption. Qed.
Lemma ct_join_r a b x : ct b x -> ct (I.join a b) x. Proof. intros. apply I.join_correct. right; assumption. Qed.
Definition nonpos (i : I.type) := match I.sign_large i with Xlt | Xeq => true | _ => false end.
Lemma nonpos_ok i r : nonpos i = true -> ct i r -> r <= 0.
Proof.
  unfold nonpos, ct. intros H C. pose proof (I.sign_large_correct i) as K. destruct (I.sign_large i); try discriminate; specialize (K _ C).
  - injection K as ->. lra.
  - apply K.
Qed.
Definition negative (i : I.type) := match I.sign_strict i with Xlt => true | _ => false end.
Lemma negative_ok i r : negative i = true -> ct i r -> r < 0.
Proof. unfold negative, ct. intros H C. pose proof (I.sign_strict_correct i) as K. destruct (I.sign_strict i); try discriminate. apply (K _ C). Qed.
Definition nonnegative (i : I.type) := match I.sign_large i with Xgt | Xeq => true | _ => false end.
Lemma nonnegative_ok i r : nonnegative i = true -> ct i r -> 0 <= r.
Proof.
  unfold nonnegative, ct. intros H C. pose proof (I.sign_large_correct i) as K. destruct (I.sign_large i); try discriminate; specialize (K _ C).
  - injection K as ->. lra.
  - apply K.
Qed.
Lemma ct_neg a x : ct a x -> ct (I.neg a) (- x). Proof. intros H. exact (I.neg_correct a (Xreal x) H). Qed.
(** An upper bound: some number of the interval is at least [r]. *)
Definition ub (i : I.type) (r : R) := exists u, r <= u /\ ct i u.
Lemma ub_ct i r : ct i r -> ub i r. Proof. intros H. exists r. split; [lra|exact H]. Qed.
Lemma ub_negative i r : negative i = true -> ub i r -> r < 0. Proof. intros H (u & Hu & C). pose proof (negative_ok i u H C). lra. Qed.
Lemma ub_nai r : ub nai r. Proof. apply ub_ct, ct_nai. Qed.
Lemma ub_add a b x y : ub a x -> ub b y -> ub (I.add prec a b) (x + y).
Proof. intros (u & Hu & Cu) (w & Hw & Cw). exists (u + w). split; [lra|apply ct_add; assumption]. Qed.
Lemma ub_mul a b x y : 0 <= x -> ct a x -> ub b y -> ub (I.mul prec a b) (x * y).
Proof. intros Hx Ha (w & Hw & Cw). exists (x * w). split; [nra|apply ct_mul; assumption]. Qed.
Lemma ub_join_l a b x : ub a x -> ub (I.join a b) x. Proof. intros (u & Hu & C). exists u. split; [exact Hu|apply ct_join_l, C]. Qed.
Lemma ub_join_r a b x : ub b x -> ub (I.join a b) x. Proof. intros (u & Hu & C). exists u. split; [exact Hu|apply ct_join_r, C]. Qed.

(** * Vectors and matrices *)
Notation vec := (list I.type). Notation mat := (list (list I.type)).
Definition at1 (a : vec) (j : nat) := nth j a nai.
Definition at2 (M : mat) (i j : nat) := at1 (nth i M []) j.
Definition cv (a : vec) (f : nat -> R) := forall j, ct (at1 a j) (f j).
Definition cm (M : mat) (f : nat -> nat -> R) := forall i j, ct (at2 M i j) (f i j).
Lemma cm_row M f i : cm M f -> cv (nth i M []) (f i). Proof. intros H j. apply H. Qed.
Lemma cv_nil f : cv [] f. Proof. intros [|j]; apply ct_nai. Qed.
Lemma cm_map (g : vec -> vec) M f h : cm M f -> (forall i a, cv a (f i) -> cv (g a) (h i)) -> cm (map g M) h.
Proof.
  intros H Hg i. unfold at2. destruct (Nat.lt_ge_cases i (length M)) as [Hi|Hi].
  - rewrite (nth_indep _ [] (g [])) by (rewrite map_length; exact Hi). rewrite map_nth. apply Hg, cm_row, H.
  - rewrite nth_overflow by (rewrite map_length; exact Hi). apply cv_nil.
Qed.
Lemma cv_map (g : I.type -> I.type) a f h : cv a f -> (forall j i, ct i (f j) -> ct (g i) (h j)) -> cv (map g a) h.
Proof.
  intros H Hg j. unfold at1. destruct (Nat.lt_ge_cases j (length a)) as [Hj|Hj].
  - rewrite (nth_indep _ nai (g nai)) by (rewrite map_length; exact Hj). rewrite map_nth. apply Hg, H.
  - rewrite nth_overflow by (rewrite map_length; exact Hj). apply ct_nai.
Qed.
Fixpoint zip (op : I.type -> I.type -> I.type) (a b : vec) : vec := match a, b with x :: a', y :: b' => op x y :: zip op a' b' | _, _ => [] end.
Lemma cv_zip op (rop : R -> R -> R) : (forall a b x y, ct a x -> ct b y -> ct (op a b) (rop x y)) -> forall a b f g, cv a f -> cv b g -> cv (zip op a b) (fun j => rop (f j) (g j)).
Proof.
  intros H. induction a as [|x a IH]; intros [|y b] f g Ha Hb; try apply cv_nil. intros [|j]; unfold at1; simpl.
  - apply H; [apply (Ha O)|apply (Hb O)].
  - apply (IH b (fun j => f (S j)) (fun j => g (S j))); intros i; [apply (Ha (S i))|apply (Hb (S i))].
Qed.
Fixpoint dot (d : nat) (a b : vec) : I.type := match d with O => I.zero | S d' => I.add prec (I.mul prec (hd nai a) (hd nai b)) (dot d' (tl a) (tl b)) end.
Lemma cv_hd a f : cv a f -> ct (hd nai a) (f O). Proof. intros H. specialize (H O). destruct a; exact H. Qed.
Lemma cv_tl a f : cv a f -> cv (tl a) (fun j => f (S j)). Proof. intros H j. specialize (H (S j)). destruct a; [destruct j; apply ct_nai|exact H]. Qed.
Lemma ct_dot d : forall a b f g, cv a f -> cv b g -> ct (dot d a b) (rsum d (fun j => f j * g j)).
Proof. induction d as [|d IH]; intros a b f g Ha Hb; simpl; [apply ct_zero|]. apply ct_add; [apply ct_mul; apply cv_hd; assumption|apply (IH _ _ _ _ (cv_tl _ _ Ha) (cv_tl _ _ Hb))]. Qed.
(** Rows of the first matrix times rows of the second. *)
Definition mm (d : nat) (X Y : mat) : mat := map (fun a => map (dot d a) Y) X.
Lemma cm_mm d X Y f g : cm X f -> cm Y g -> cm (mm d X Y) (fun i j => rsum d (fun h => f i h * g j h)).
Proof.
  intros HX HY. apply cm_map with (1 := HX). intros i a Ha j. unfold at1. destruct (Nat.lt_ge_cases j (length Y)) as [Hj|Hj].
  - rewrite (nth_indep _ nai (dot d a [])) by (rewrite map_length; exact Hj). rewrite map_nth. apply ct_dot; [exact Ha|apply cm_row, HY].
  - rewrite nth_overflow by (rewrite map_length; exact Hj). apply ct_nai.
Qed.
Definition tr (n : nat) (M : mat) : mat := map (fun j => map (fun a => at1 a j) M) (seq 0 n).
Lemma cm_tr n M f : cm M f -> cm (tr n M) (fun i j => f j i).
Proof.
  intros H i j. unfold at2, tr. destruct (Nat.lt_ge_cases i n) as [Hi|Hi].
  - rewrite (nth_indep _ [] (map (fun a => at1 a O) M)) by (rewrite map_length, seq_length; exact Hi). rewrite (map_nth (fun j => map (fun a => at1 a j) M)), seq_nth by exact Hi. simpl.
    unfold at1 at 1. destruct (Nat.lt_ge_cases j (length M)) as [Hj|Hj]; [|rewrite nth_overflow by (rewrite map_length; exact Hj); apply ct_nai].
    rewrite (nth_indep _ nai (at1 [] i)) by (rewrite map_length; exact Hj). rewrite (map_nth (fun a => at1 a i)). apply H.
  - rewrite nth_overflow by (rewrite map_length, seq_length; exact Hi). unfold at1. destruct j; apply ct_nai.
Qed.
Lemma cm_ext M f g : cm M f -> (forall i j, f i j = g i j) -> cm M g. Proof. intros H E i j. rewrite <- E. apply H. Qed.

(** * Weights: integers over a power of two *)
Definition unit_i (s : Z) := I.inv prec (I.fromZ prec (2 ^ Z.max 0 s)).
Lemma ct_unit s : ct (unit_i s) (unit_of s).
Proof. apply ct_inv; [|apply ct_Z]. apply IZR_neq. pose proof (Z.pow_pos_nonneg 2 (Z.max 0 s)). lia. Qed.
Definition enclosed (W : tensor) : mat := let u := unit_i (bits W) in map (map (fun z => I.mul prec (I.fromZ prec z) u)) (entries W).
Lemma cm_enclosed W : cm (enclosed W) (value W).
Proof.
  intros i j. unfold at2, enclosed, value. destruct (Nat.lt_ge_cases i (length (entries W))) as [Hi|Hi].
  - set (g := fun z => I.mul prec (I.fromZ prec z) (unit_i (bits W))). rewrite (nth_indep _ [] (map g [])) by (rewrite map_length; exact Hi). rewrite (map_nth (map g)). unfold at1.
    destruct (Nat.lt_ge_cases j (length (nth i (entries W) []))) as [Hj|Hj]; [|rewrite nth_overflow by (rewrite map_length; exact Hj); apply ct_nai].
    rewrite (nth_indep _ nai (g 0%Z)) by (rewrite map_length; exact Hj). rewrite map_nth. apply ct_mul; [apply ct_Z|apply ct_unit].
  - rewrite nth_overflow by (rewrite map_length; exact Hi). destruct j; apply ct_nai.
Qed.

(** * The tables of a network *)
Record tables := { t_EQKE : mat; t_EQKP : mat; t_EVOU : mat; t_PVOU : mat; t_EU : mat }.
Section Tables.
Variables (N : network) (centre mu : tensor).   (* one row each *)
Let c := value centre 0. Let m := value mu 0.
Let E := value (W_E N). Let P := value (W_pos N). Let Q := value (W_Q N). Let K := value (W_K N). Let V := value (W_V N). Let O := value (W_O N). Let U := value (W_U N).
Definition rEQKE q t := EQKE (n_model N) (n_head N) (n_ctx N) E P Q K c q t / sqrt (divisor_of N).
Definition rEQKP q i := EQKP (n_model N) (n_head N) (n_ctx N) E P Q K c q i / sqrt (divisor_of N).
Definition rEVOU := EVOU (n_model N) (n_head N) E V O U c m.
Definition rPVOU := PVOU (n_model N) (n_head N) P V O U c.
Definition rEU := EU (n_model N) (n_ctx N) E P U m.
Definition root : I.type := I.inv prec (I.sqrt prec (I.mul prec (I.fromZ prec (Zpos (over N))) (I.inv prec (I.fromZ prec (Zpos (under N)))))).
Lemma divisor_pos : 0 < divisor_of N. Proof. unfold divisor_of. apply Rdiv_lt_0_compat; apply IZR_lt; reflexivity. Qed.
Lemma ct_root : ct root (/ sqrt (divisor_of N)).
Proof.
  apply ct_inv; [apply Rgt_not_eq, sqrt_lt_R0, divisor_pos|]. apply ct_sqrt. apply ct_mul; [apply ct_Z|]. apply ct_inv; [|apply ct_Z]. apply IZR_neq. discriminate.
Qed.
Definition compute : tables :=
  let iE := enclosed (W_E N) in let iP := enclosed (W_pos N) in let ic := nth 0 (enclosed centre) [] in let im := nth 0 (enclosed mu) [] in
  let last := nth (n_ctx N - 1) iP [] in let r := root in
  let ut := tr (n_out N) (enclosed (W_U N)) in
  let vou := tr (n_out N) (mm (n_head N) (enclosed (W_V N)) (tr (n_out N) (mm (n_model N) (enclosed (W_O N)) ut))) in
  let xq := map (fun a => zip (I.add prec) a last) iE in
  let toks := map (fun a => zip (I.add prec) a ic) iE in let places := map (fun a => zip (I.sub prec) a ic) iP in
  let qk := mm (n_head N) (mm (n_model N) xq (tr (n_head N) (enclosed (W_Q N)))) (enclosed (W_K N)) in
  {| t_EQKE := map (map (fun x => I.mul prec x r)) (mm (n_model N) qk toks); t_EQKP := map (map (fun x => I.mul prec x r)) (mm (n_model N) qk places);
     t_EVOU := map (fun a => zip (I.add prec) a im) (mm (n_model N) toks vou); t_PVOU := mm (n_model N) places vou;
     t_EU := map (fun a => zip (I.sub prec) a im) (mm (n_model N) xq ut) |}.
Lemma c_last : cv (nth (n_ctx N - 1) (enclosed (W_pos N)) []) (P (n_ctx N - 1)%nat). Proof. apply cm_row, cm_enclosed. Qed.
Lemma c_xq : cm (map (fun a => zip (I.add prec) a (nth (n_ctx N - 1) (enclosed (W_pos N)) [])) (enclosed (W_E N))) (fun q j => stream E P (n_ctx N - 1) q j).
Proof. apply cm_map with (1 := cm_enclosed _). intros i a Ha. apply (cv_zip _ Rplus ct_add); [exact Ha|apply c_last]. Qed.
Lemma c_toks : cm (map (fun a => zip (I.add prec) a (nth 0 (enclosed centre) [])) (enclosed (W_E N))) (fun t j => token E c j t).
Proof. apply cm_map with (1 := cm_enclosed _). intros i a Ha. apply (cv_zip _ Rplus ct_add); [exact Ha|apply cm_row, cm_enclosed]. Qed.
Lemma c_places : cm (map (fun a => zip (I.sub prec) a (nth 0 (enclosed centre) [])) (enclosed (W_pos N))) (fun t j => place P c j t).
Proof. apply cm_map with (1 := cm_enclosed _). intros i a Ha. apply (cv_zip _ Rminus ct_sub); [exact Ha|apply cm_row, cm_enclosed]. Qed.
Lemma c_ut : cm (tr (n_out N) (enclosed (W_U N))) (fun o j => U j o). Proof. apply cm_tr, cm_enclosed. Qed.
Lemma c_vou : cm (tr (n_out N) (mm (n_head N) (enclosed (W_V N)) (tr (n_out N) (mm (n_model N) (enclosed (W_O N)) (tr (n_out N) (enclosed (W_U N))))))) (fun o j => VOU (n_model N) (n_head N) V O U j o).
Proof. apply (cm_tr _ _ (VOU (n_model N) (n_head N) V O U)). apply (cm_mm _ _ _ V (fun o h => OU (n_model N) O U h o)); [apply cm_enclosed|]. apply (cm_tr _ _ (OU (n_model N) O U)). apply (cm_mm _ _ _ O (fun o j => U j o)); [apply cm_enclosed|apply c_ut]. Qed.
Lemma c_qk : cm (mm (n_head N) (mm (n_model N) (map (fun a => zip (I.add prec) a (nth (n_ctx N - 1) (enclosed (W_pos N)) [])) (enclosed (W_E N))) (tr (n_head N) (enclosed (W_Q N)))) (enclosed (W_K N)))
  (QK (n_model N) (n_head N) (n_ctx N) E P Q K).
Proof. apply (cm_mm _ _ _ (query_of (n_model N) (n_ctx N) E P Q) K); [|apply cm_enclosed]. apply (cm_mm _ _ _ _ (fun h j => Q j h)); [apply c_xq|apply cm_tr, cm_enclosed]. Qed.
Lemma c_scaled M f : cm M f -> cm (map (map (fun x => I.mul prec x root)) M) (fun i j => f i j / sqrt (divisor_of N)).
Proof. intros H. apply cm_map with (1 := H). intros i a Ha. apply cv_map with (1 := Ha). intros j x Hx. apply ct_mul; [exact Hx|apply ct_root]. Qed.
Theorem compute_ok : cm (t_EQKE compute) rEQKE /\ cm (t_EQKP compute) rEQKP /\ cm (t_EVOU compute) rEVOU /\ cm (t_PVOU compute) rPVOU /\ cm (t_EU compute) rEU.
Proof.
  repeat split.
  - apply (c_scaled _ (EQKE (n_model N) (n_head N) (n_ctx N) E P Q K c)). apply (cm_mm _ _ _ _ _ c_qk c_toks).
  - apply (c_scaled _ (EQKP (n_model N) (n_head N) (n_ctx N) E P Q K c)). apply (cm_mm _ _ _ _ _ c_qk c_places).
  - apply cm_map with (1 := cm_mm _ _ _ _ _ c_toks c_vou). intros i a Ha. apply (cv_zip _ Rplus ct_add _ _ _ m Ha). apply cm_row, cm_enclosed.
  - apply (cm_mm _ _ _ _ _ c_places c_vou).
  - apply cm_map with (1 := cm_mm _ _ _ _ _ c_xq c_ut). intros i a Ha. apply (cv_zip _ Rminus ct_sub _ _ _ m Ha). apply cm_row, cm_enclosed.
Qed.
End Tables.

(** The integer part of a float below 2^62 in size; nothing is proved about it. *)
Definition guess (f : PrimFloat.float) : Z :=
  let '(m, e) := PrimFloat.frshiftexp (PrimFloat.abs f) in
  let n := PrimFloat.normfr_mantissa m in let s := (e - 2101)%uint63 in
  let a := if (s <=? 53)%uint63 then (n >> (53 - s))%uint63 else if (s <=? 62)%uint63 then (n << (s - 53))%uint63 else 4611686018427387904%uint63 in
  let a := if PrimFloat.ltb (PrimFloat.abs f) PrimFloat.one then 0%uint63 else a in
  if PrimFloat.ltb f PrimFloat.zero then (- Uint63.to_Z a)%Z else Uint63.to_Z a.
