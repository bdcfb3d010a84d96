(** Enclosures by CoqInterval's intervals of primitive floats: weights, tables, attention. What lies outside of a list is not a number, which
    encloses everything, so that no lengths have to be checked. *)
From Coq Require Import Floats Uint63.
From Coq Require Import Reals Lra Lia List ZArith Bool Arith.
From Interval Require Import Primitive_ops Float_full Interval Xreal Basic.
From CompactProofs Require Import Words Model Statement.
Import ListNotations.
Module F := PrimitiveFloat.
(** Included, not applied: of an applied functor [coqchk] compares the definitions with those that applying it gives, which does not end. *)
Module I. Include FloatIntervalFull F. End I.
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
(** An enclosure of a quotient by zero is not a number, and encloses everything. *)
Lemma ct_inv a x : ct a x -> ct (I.inv prec a) (/ x).
Proof.
  intros H. pose proof (I.inv_correct prec a (Xreal x) H) as K. simpl in K. unfold Xinv' in K. unfold ct. destruct (is_zero x); [|exact K]. destruct (I.convert (I.inv prec a)); [exact Logic.I|destruct K].
Qed.
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
Proof. apply ct_inv, ct_Z. Qed.
Definition enclosed (W : tensor) : mat := let u := unit_i (bits W) in map (map (fun z => I.mul prec (I.fromZ prec z) u)) (entries W).
Lemma cm_enclosed W : cm (enclosed W) (value W).
Proof.
  intros i j. unfold at2, enclosed, value. destruct (Nat.lt_ge_cases i (length (entries W))) as [Hi|Hi].
  - set (g := fun z => I.mul prec (I.fromZ prec z) (unit_i (bits W))). rewrite (nth_indep _ [] (map g [])) by (rewrite map_length; exact Hi). rewrite (map_nth (map g)). unfold at1.
    destruct (Nat.lt_ge_cases j (length (nth i (entries W) []))) as [Hj|Hj]; [|rewrite nth_overflow by (rewrite map_length; exact Hj); apply ct_nai].
    rewrite (nth_indep _ nai (g 0%Z)) by (rewrite map_length; exact Hj). rewrite map_nth. apply ct_mul; [apply ct_Z|apply ct_unit].
  - rewrite nth_overflow by (rewrite map_length; exact Hi). destruct j; apply ct_nai.
Qed.

(** Operations with the rows of a matrix and a number for each; sums of coordinates. *)
Fixpoint rows_with (op : I.type -> I.type -> I.type) (xs : vec) (M : mat) : mat := match xs, M with x :: xs', a :: M' => map (fun y => op y x) a :: rows_with op xs' M' | _, _ => [] end.
Lemma rows_with_row op xs : forall M i, nth i (rows_with op xs M) [] = [] \/ nth i (rows_with op xs M) [] = map (fun y => op y (at1 xs i)) (nth i M []).
Proof. induction xs as [|x xs IH]; intros [|a M] [|i]; cbn [rows_with nth]; auto. apply IH. Qed.
Lemma cv_rows_with op xs M i f h : cv (nth i M []) f -> (forall j y, ct y (f j) -> ct (op y (at1 xs i)) (h j)) -> cv (nth i (rows_with op xs M) []) h.
Proof. intros Hf H. destruct (rows_with_row op xs M i) as [->| ->]; [apply cv_nil|]. apply cv_map with (1 := Hf). exact H. Qed.
Fixpoint total_i (d : nat) (a : vec) : I.type := match d with O => I.zero | S d' => I.add prec (hd nai a) (total_i d' (tl a)) end.
Lemma ct_total d : forall a f, cv a f -> ct (total_i d a) (rsum d f).
Proof. induction d as [|d IH]; intros a f H; simpl; [apply ct_zero|]. apply ct_add; [apply cv_hd, H|apply (IH _ _ (cv_tl _ _ H))]. Qed.

(** * Norms *)
Definition size_i (d : nat) := I.fromZ prec (Z.of_nat d).
Lemma ct_size d : ct (size_i d) (INR d). Proof. rewrite INR_IZR_INZ. apply ct_Z. Qed.
Definition mean_i (d : nat) (a : vec) := I.mul prec (total_i d a) (I.inv prec (size_i d)).
Lemma ct_mean d a f : cv a f -> ct (mean_i d a) (mean d f). Proof. intros H. apply ct_mul; [apply ct_total, H|apply ct_inv, ct_size]. Qed.
Definition real_i (x : number) := I.mul prec (I.fromZ prec (units x)) (unit_i (places x)).
Lemma ct_real x : ct (real_i x) (real x). Proof. apply ct_mul; [apply ct_Z|apply ct_unit]. Qed.
Definition only_row (W : tensor) : vec := nth 0 (enclosed W) [].
Lemma cv_only W : cv (only_row W) (value W 0). Proof. apply cm_row, cm_enclosed. Qed.
Definition rms_i (d : nat) (eps : I.type) (gain bias a : vec) : vec :=
  let r := I.inv prec (I.sqrt prec (I.add prec (mean_i d (map (fun x => I.mul prec x x) a)) eps)) in zip (I.add prec) (zip (I.mul prec) gain (map (fun x => I.mul prec x r) a)) bias.
Lemma cv_rms d eps e gain g bias b a f : ct eps e -> cv gain g -> cv bias b -> cv a f -> cv (rms_i d eps gain bias a) (rms_norm d e g b f).
Proof.
  intros He Hg Hb Ha. apply (cv_zip _ Rplus ct_add _ _ (fun j => g j * (f j / sqrt (mean d (fun j => f j * f j) + e))) b); [|exact Hb]. apply (cv_zip _ Rmult ct_mul); [exact Hg|].
  apply cv_map with (1 := Ha). intros j i Hi. apply ct_mul; [exact Hi|]. apply ct_inv, ct_sqrt, ct_add; [|exact He]. apply ct_mean. apply cv_map with (1 := Ha). intros; apply ct_mul; assumption.
Qed.
Definition norm_i (d : nat) (n : norm) (a : vec) : vec :=
  match n with
  | Unchanged => a
  | LayerNorm eps gain bias => let m := mean_i d a in rms_i d (real_i eps) (only_row gain) (only_row bias) (map (fun x => I.sub prec x m) a)
  | RMSNorm eps gain bias => rms_i d (real_i eps) (only_row gain) (only_row bias) a
  end.
Lemma cv_norm d n a f : cv a f -> cv (norm_i d n a) (normed d n f).
Proof.
  intros H. destruct n as [|eps gain bias|eps gain bias]; [exact H| |]; apply cv_rms; try apply ct_real; try apply cv_only; [|exact H].
  apply cv_map with (1 := H). intros j i Hi. apply ct_sub; [exact Hi|apply ct_mean, H].
Qed.

(** * Sheets: one matrix for all positions, or one for each *)
Definition pick {X} (d : X) (l : list X) (i : nat) : X := match l with [x] => x | _ => nth i l d end.
Definition cms (k : nat) (S : list mat) (f : nat -> nat -> nat -> R) := forall i, (i < k)%nat -> cm (pick [] S i) (f i).
Lemma cm_nil f : cm [] f. Proof. intros i j. unfold at2. destruct i; destruct j; apply ct_nai. Qed.
Lemma pick_map {X Y} (P : Y -> Prop) (g : X -> Y) (d : X) (e : Y) S i : P e -> P (g (pick d S i)) -> P (pick e (map g S) i).
Proof.
  intros He H. destruct S as [|x [|y S]]; [destruct i; exact He|exact H|]. unfold pick in *. cbn [map]. change (g x :: g y :: map g S) with (map g (x :: y :: S)).
  destruct (Nat.lt_ge_cases i (length (x :: y :: S))) as [Hi|Hi]; [|rewrite nth_overflow by (rewrite map_length; exact Hi); exact He].
  rewrite (nth_indep _ e (g d)) by (rewrite map_length; exact Hi). rewrite map_nth. exact H.
Qed.
Lemma pick_seq k i : (i < k)%nat -> pick 0%nat (seq 0 k) i = i.
Proof. intros Hi. destruct k as [|[|n]]; [lia|cbn; lia|]. exact (seq_nth 0 0%nat Hi). Qed.
Lemma cms_map k (g : mat -> mat) S f h : cms k S f -> (forall i M, cm M (f i) -> cm (g M) (h i)) -> cms k (map g S) h.
Proof. intros H Hg i Hi. apply (pick_map (fun M => cm M (h i)) g []); [apply cm_nil|]. apply Hg, H, Hi. Qed.

(** * The tables of a network *)
Record tables := { t_EQKE : list mat; t_EQKP : mat; t_EVOU : list mat; t_PVOU : mat; t_EU : mat }.
Section Tables.
Variables (N : network) (centre mu : tensor).   (* one row each *)
Let c := value centre 0. Let m := value mu 0. Let d := n_model N. Let h := n_head N. Let k := n_ctx N. Let out := n_out N.
Let E := value (W_E N). Let P := value (W_pos N). Let Q := value (W_Q N). Let K := value (W_K N). Let V := value (W_V N). Let O := value (W_O N).
Let bQ := value (b_Q N) 0. Let bV := value (b_V N) 0. Let bO := value (b_O N) 0. Let first := normed d (first_norm N).
(** Without a norm at the beginning [centre] is moved from positions to tokens; behind one, everything is in the carrier. *)
Definition rcarrier i t j := match first_norm N with Unchanged => E t j + c j | n => normed d n (stream E P i t) j end.
Definition rplace i j := match first_norm N with Unchanged => P i j - c j | _ => 0 end.
(** The unembedding; behind a norm at the end, one that compares outputs alike. *)
Definition rU j o := match last_norm N with Unchanged => value (W_U N) j o | LayerNorm _ gain _ => behind_layer d (value gain 0) (value (W_U N)) j o | RMSNorm _ gain _ => behind_rms (value gain 0) (value (W_U N)) j o end.
Definition rbU o := match last_norm N with Unchanged => value (b_U N) 0 o | _ => 0 end.
Definition rEQKE q i t := EQKE d h k first E P Q K bQ rcarrier q i t / sqrt (divisor_of N).
Definition rEQKP q i := EQKP d h k first E P Q K bQ rplace q i / sqrt (divisor_of N).
Definition rEVOU := EVOU d h V O bV rU rcarrier m.
Definition rPVOU := PVOU d h V O rU rplace.
Definition rEU := EU d k E P bO rU rbU m.
Lemma parts i t j : input first E P i t j = rcarrier i t j + rplace i j.
Proof. unfold input, first, rcarrier, rplace. destruct (first_norm N); [unfold normed, stream|..]; ring. Qed.
Definition root : I.type := I.inv prec (I.sqrt prec (I.mul prec (I.fromZ prec (Zpos (over N))) (I.inv prec (I.fromZ prec (Zpos (under N)))))).
Lemma ct_root : ct root (/ sqrt (divisor_of N)).
Proof.
  apply ct_inv, ct_sqrt, ct_mul; [apply ct_Z|]. apply ct_inv, ct_Z.
Qed.
Definition unembedding : mat :=
  let U := enclosed (W_U N) in
  match last_norm N with
  | Unchanged => U
  | LayerNorm _ gain _ => let M := rows_with (I.mul prec) (only_row gain) U in let sums := map (total_i d) (tr out M) in let s := size_i d in map (fun a => zip (I.sub prec) (map (I.mul prec s) a) sums) M
  | RMSNorm _ gain _ => rows_with (I.mul prec) (only_row gain) U
  end.
Definition at_end : mat := let last := nth (k - 1) (enclosed (W_pos N)) [] in map (fun a => zip (I.add prec) a last) (enclosed (W_E N)).
Definition carriers : list mat :=
  let iE := enclosed (W_E N) in
  match first_norm N with
  | Unchanged => let ic := only_row centre in [map (fun a => zip (I.add prec) a ic) iE]
  | n => let iP := enclosed (W_pos N) in map (fun i => let p := nth i iP [] in map (fun a => norm_i d n (zip (I.add prec) a p)) iE) (seq 0 k)
  end.
Definition places_i : mat :=
  match first_norm N with Unchanged => let ic := only_row centre in map (fun a => zip (I.sub prec) a ic) (enclosed (W_pos N)) | _ => map (fun _ => repeat I.zero d) (seq 0 k) end.
Definition queries_i : mat := let b := only_row (b_Q N) in mm h (map (fun a => zip (I.add prec) a b) (mm d (map (norm_i d (first_norm N)) at_end) (tr h (enclosed (W_Q N))))) (enclosed (W_K N)).
Definition compute : tables :=
  let r := root in let ut := tr out unembedding in let ou := tr out (mm d (enclosed (W_O N)) ut) in let vou := tr out (mm h (enclosed (W_V N)) ou) in
  let im := only_row mu in let bv := only_row (b_V N) in let bo := only_row (b_O N) in
  let bu := match last_norm N with Unchanged => only_row (b_U N) | _ => repeat I.zero out end in
  let of_values := zip (I.add prec) (map (dot h bv) ou) im in let of_stream := zip (I.sub prec) (zip (I.add prec) (map (dot d bo) ut) bu) im in
  let toks := carriers in let spots := places_i in let qk := queries_i in
  {| t_EQKE := map (fun M => map (map (fun x => I.mul prec x r)) (mm d qk M)) toks; t_EQKP := map (map (fun x => I.mul prec x r)) (mm d qk spots);
     t_EVOU := map (fun M => map (fun a => zip (I.add prec) a of_values) (mm d M vou)) toks; t_PVOU := mm d spots vou;
     t_EU := map (fun a => zip (I.add prec) a of_stream) (mm d at_end ut) |}.
Lemma cv_repeat n f : (forall j, f j = 0) -> cv (repeat I.zero n) f.
Proof.
  intros H j. unfold at1. destruct (Nat.lt_ge_cases j n) as [Hj|Hj]; [|rewrite nth_overflow by (rewrite repeat_length; exact Hj); apply ct_nai].
  rewrite H, (nth_indep _ nai I.zero) by (rewrite repeat_length; exact Hj). rewrite nth_repeat. apply ct_zero.
Qed.
Lemma cv_dots n x Y f g : cv x f -> cm Y g -> cv (map (dot n x) Y) (fun j => rsum n (fun i => f i * g j i)).
Proof.
  intros Hx HY j. unfold at1. destruct (Nat.lt_ge_cases j (length Y)) as [Hj|Hj]; [|rewrite nth_overflow by (rewrite map_length; exact Hj); apply ct_nai].
  rewrite (nth_indep _ nai (dot n x [])) by (rewrite map_length; exact Hj). rewrite map_nth. apply ct_dot; [exact Hx|apply cm_row, HY].
Qed.
Lemma c_end : cm at_end (fun q j => stream E P (k - 1) q j).
Proof. apply cm_map with (1 := cm_enclosed _). intros i a Ha. apply (cv_zip _ Rplus ct_add); [exact Ha|apply cm_row, cm_enclosed]. Qed.
Lemma c_rms gain : cm (rows_with (I.mul prec) (only_row gain) (enclosed (W_U N))) (behind_rms (value gain 0) (value (W_U N))).
Proof.
  intros i. apply (cv_rows_with _ _ _ _ (value (W_U N) i)); [apply cm_row, cm_enclosed|]. intros j y Hy. unfold behind_rms. rewrite Rmult_comm. apply ct_mul; [exact Hy|apply cv_only].
Qed.
Lemma c_unembedding : cm unembedding rU.
Proof.
  unfold unembedding, rU. destruct (last_norm N) as [|eps gain bias|eps gain bias]; [apply cm_enclosed| |apply c_rms]. apply cm_map with (1 := c_rms gain). intros i a Ha. unfold behind_layer.
  apply (cv_zip _ Rminus ct_sub _ _ (fun o => INR d * (value gain 0 i * value (W_U N) i o)) (fun o => rsum d (fun l => value gain 0 l * value (W_U N) l o))).
  - apply cv_map with (1 := Ha). intros o x Hx. apply ct_mul; [apply ct_size|exact Hx].
  - intros o. unfold at1. pose proof (cm_tr out _ _ (c_rms gain)) as T. set (M := tr out _) in *. destruct (Nat.lt_ge_cases o (length M)) as [Ho|Ho]; [|rewrite nth_overflow by (rewrite map_length; exact Ho); apply ct_nai].
    rewrite (nth_indep _ nai (total_i d [])) by (rewrite map_length; exact Ho). rewrite map_nth. apply ct_total, (cm_row _ _ _ T).
Qed.
Lemma c_ut : cm (tr out unembedding) (fun o j => rU j o). Proof. apply cm_tr, c_unembedding. Qed.
Lemma c_ou : cm (tr out (mm d (enclosed (W_O N)) (tr out unembedding))) (fun o h => OU d O rU h o).
Proof. apply (cm_tr _ _ (OU d O rU)). apply (cm_mm _ _ _ O (fun o j => rU j o)); [apply cm_enclosed|apply c_ut]. Qed.
Lemma c_vou : cm (tr out (mm h (enclosed (W_V N)) (tr out (mm d (enclosed (W_O N)) (tr out unembedding))))) (fun o j => VOU d h V O rU j o).
Proof. apply (cm_tr _ _ (VOU d h V O rU)). apply (cm_mm _ _ _ V (fun o h => OU d O rU h o)); [apply cm_enclosed|apply c_ou]. Qed.
Lemma c_carriers : cms k carriers (fun i t j => rcarrier i t j).
Proof.
  unfold carriers, rcarrier. assert (Norm : forall n, cms k (map (fun i => map (fun a => norm_i d n (zip (I.add prec) a (nth i (enclosed (W_pos N)) []))) (enclosed (W_E N))) (seq 0 k)) (fun i t j => normed d n (stream E P i t) j)).
  { intros n i Hi. assert (G : cm (map (fun a => norm_i d n (zip (I.add prec) a (nth i (enclosed (W_pos N)) []))) (enclosed (W_E N))) (fun t j => normed d n (stream E P i t) j)).
    { apply cm_map with (1 := cm_enclosed _). intros t a Ha. apply cv_norm. apply (cv_zip _ Rplus ct_add); [exact Ha|apply cm_row, cm_enclosed]. }
    apply (pick_map (fun M => cm M _) _ 0%nat); [apply cm_nil|]. rewrite pick_seq by exact Hi. exact G. }
  destruct (first_norm N) as [|eps gain bias|eps gain bias]; [|apply Norm|apply Norm].
  intros i Hi. unfold pick. apply cm_map with (1 := cm_enclosed _). intros t a Ha. apply (cv_zip _ Rplus ct_add); [exact Ha|apply cv_only].
Qed.
Lemma c_places : cm places_i rplace.
Proof.
  unfold places_i, rplace. assert (Z0 : cm (map (fun _ : nat => repeat I.zero d) (seq 0 k)) (fun _ _ => 0)).
  { intros i. unfold at2. destruct (Nat.lt_ge_cases i k) as [Hi|Hi]; [rewrite (nth_map_seq (fun _ => repeat I.zero d)) by exact Hi; apply cv_repeat; reflexivity|]. rewrite nth_overflow by (rewrite map_length, seq_length; exact Hi). apply cv_nil. }
  destruct (first_norm N); [|exact Z0|exact Z0]. apply cm_map with (1 := cm_enclosed _). intros i a Ha. apply (cv_zip _ Rminus ct_sub); [exact Ha|apply cv_only].
Qed.
Lemma c_queries : cm queries_i (QK d h k first E P Q K bQ).
Proof.
  apply (cm_mm _ _ _ (query_of d k first E P Q bQ) K); [|apply cm_enclosed].
  apply (cm_map _ _ (fun q h => rsum d (fun j => input first E P (k - 1) q j * Q j h))).
  - apply (cm_mm _ _ _ (fun q j => input first E P (k - 1) q j) (fun h j => Q j h)); [|apply cm_tr, cm_enclosed]. apply cm_map with (1 := c_end). intros q a Ha. apply cv_norm, Ha.
  - intros q a Ha. apply (cv_zip _ Rplus ct_add); [exact Ha|apply cv_only].
Qed.
Lemma c_scaled M f : cm M f -> cm (map (map (fun x => I.mul prec x root)) M) (fun i j => f i j / sqrt (divisor_of N)).
Proof. intros H. apply cm_map with (1 := H). intros i a Ha. apply cv_map with (1 := Ha). intros j x Hx. apply ct_mul; [exact Hx|apply ct_root]. Qed.
Theorem compute_ok : cms k (t_EQKE compute) (fun i q t => rEQKE q i t) /\ cm (t_EQKP compute) rEQKP /\ cms k (t_EVOU compute) rEVOU /\ cm (t_PVOU compute) rPVOU /\ cm (t_EU compute) rEU.
Proof.
  repeat split.
  - apply cms_map with (1 := c_carriers). intros i M HM. apply (c_scaled _ (fun q t => EQKE d h k first E P Q K bQ rcarrier q i t)). apply (cm_mm _ _ _ _ _ c_queries HM).
  - apply (c_scaled _ (EQKP d h k first E P Q K bQ rplace)). apply (cm_mm _ _ _ _ _ c_queries c_places).
  - apply cms_map with (1 := c_carriers). intros i M HM. apply cm_map with (1 := cm_mm _ _ _ _ _ HM c_vou). intros t a Ha.
    apply (cv_zip _ Rplus ct_add _ _ _ (fun o => added d h O bV rU o + m o) Ha). apply (cv_zip _ Rplus ct_add); [|apply cv_only]. apply (cv_dots _ _ _ _ _ (cv_only _) c_ou).
  - apply (cm_mm _ _ _ _ _ c_places c_vou).
  - apply cm_map with (1 := cm_mm _ _ _ _ _ c_end c_ut). intros q a Ha. apply (cv_zip _ Rplus ct_add _ _ _ (fun o => rsum d (fun j => bO j * rU j o) + rbU o - m o) Ha).
    apply (cv_zip _ Rminus ct_sub _ _ (fun o => rsum d (fun j => bO j * rU j o) + rbU o) m); [|apply cv_only]. apply (cv_zip _ Rplus ct_add); [apply (cv_dots _ _ _ _ _ (cv_only _) c_ut)|].
    unfold rbU. destruct (last_norm N); [apply cv_only|apply cv_repeat; reflexivity..].
Qed.
End Tables.

(** The integer part of a float below 2^62 in size; nothing is proved about it. *)
Definition guess (f : PrimFloat.float) : Z :=
  let '(m, e) := PrimFloat.frshiftexp (PrimFloat.abs f) in
  let n := PrimFloat.normfr_mantissa m in let s := (e - 2101)%uint63 in
  let a := if (s <=? 53)%uint63 then (n >> (53 - s))%uint63 else if (s <=? 62)%uint63 then (n << (s - 53))%uint63 else 4611686018427387904%uint63 in
  let a := if PrimFloat.ltb (PrimFloat.abs f) PrimFloat.one then 0%uint63 else a in
  if PrimFloat.ltb f PrimFloat.zero then (- Uint63.to_Z a)%Z else Uint63.to_Z a.
