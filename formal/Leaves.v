(** Trees of splits, their leaves, and counts on grids, for any table of harms. *)
From Coq Require Import Floats Uint63.
From Coq Require Import Reals Lra Lia List ZArith Bool Arith.
From CompactProofs Require Import Words Automaton Count Threshold Grid Rule Enclosure Harms.
Import ListNotations.
Local Open Scope nat_scope.

Inductive tree (L : Type) := GivenUp | Leaf (leaf : L) | Split (token n : nat) (more fewer : tree L).
Arguments GivenUp {L}. Arguments Leaf {L} leaf. Arguments Split {L} token n more fewer.

(** * Which tokens may stand where: live ones, and queries at the end *)
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

(** Tokens of mass zero are left out. *)
Fixpoint heavy (M : list Z) (b : list bool) : list bool := match b, M with x :: b', n :: M' => (x && (0 <? n)%Z) :: heavy M' b' | _, _ => [] end.
Fixpoint heavies (masks : list (list bool)) (Ms : list (list Z)) : list (list bool) := match masks, Ms with b :: masks', M :: Ms' => heavy M b :: heavies masks' Ms' | _, _ => [] end.
Lemma heavy_nth b : forall M t, nth t (heavy M b) false = nth t b false && (0 <? nth t M 0)%Z.
Proof. induction b as [|x b IH]; intros [|n M] [|t]; cbn [heavy nth]; try reflexivity; try apply IH; rewrite andb_false_r; reflexivity. Qed.
Lemma heavy_length b : forall M, length (heavy M b) <= length b.
Proof. induction b as [|x b IH]; intros [|n M]; simpl; try lia. specialize (IH M). lia. Qed.
Lemma heavies_length masks : forall Ms, length masks = length Ms -> length (heavies masks Ms) = length Ms.
Proof. induction masks as [|b masks IH]; intros [|M Ms] H; try discriminate; [reflexivity|]. simpl in *. rewrite IH; lia. Qed.
Lemma heavies_short v masks : forall Ms, forallb (fun b => Nat.leb (length b) v) masks = true -> forallb (fun b => Nat.leb (length b) v) (heavies masks Ms) = true.
Proof.
  induction masks as [|b masks IH]; intros [|M Ms] H; try reflexivity. simpl in *. apply andb_prop in H. destruct H as [H1 H2]. rewrite IH by exact H2. rewrite andb_true_r. apply Nat.leb_le in H1. apply Nat.leb_le. pose proof (heavy_length b M). lia.
Qed.
Lemma heavies_fits masks : forall Ms x, length masks = length Ms -> fits (heavies masks Ms) x = true -> fits masks x = true.
Proof.
  induction masks as [|b masks IH]; intros [|M Ms] [|t x] Hl H; try discriminate; [reflexivity|]. cbn [heavies fits] in *. rewrite heavy_nth in H. apply andb_prop in H. destruct H as [H1 H2]. apply andb_prop in H1. destruct H1 as [H1 _].
  rewrite H1. apply (IH Ms); [simpl in Hl; lia|exact H2].
Qed.
Lemma fits_heavies masks : forall Ms x, nonneg Ms = true -> length masks = length Ms -> mass Ms x <> 0%Z -> fits (heavies masks Ms) x = fits masks x.
Proof.
  induction masks as [|b masks IH]; intros [|M Ms] [|t x] HM Hl H; try discriminate; try reflexivity. cbn [heavies fits mass] in *. rewrite heavy_nth. rewrite (IH Ms); [|apply (nonneg_tail M), HM|simpl in Hl; lia|intros E; apply H; rewrite E; lia].
  pose proof (nonneg_nth (M :: Ms) M t HM (or_introl eq_refl)). destruct (Z.ltb_spec 0 (nth t M 0%Z)); [rewrite andb_true_r; reflexivity|]. exfalso. apply H. replace (nth t M 0%Z) with 0%Z by lia. reflexivity.
Qed.
Lemma integral_heavy v Ms f g : (forall x, word v (length Ms) x -> mass Ms x <> 0%Z -> f x = g x) -> integral v Ms f = integral v Ms g.
Proof.
  intros H. rewrite !integral_words. apply zsum_ext. intros x Hx. destruct (Z.eq_dec (mass Ms x) 0) as [->|E]; [reflexivity|]. rewrite H; [reflexivity|apply words_word, Hx|exact E].
Qed.

(** * Counts on a grid. [strict] counts sums above zero, else sums of at least zero. *)
Definition plus (a b : option Z) : option Z := match a, b with Some x, Some y => Some (x + y)%Z | _, _ => None end.
Definition cdiv (x c : Z) : Z := (- (- x / c))%Z.
Lemma cdiv_ge x : (IZR x / 256 <= IZR (cdiv x 256))%R.
Proof. unfold cdiv. pose proof (Z.mul_div_le (- x) 256 ltac:(lia)) as H. apply Rmult_le_reg_r with 256%R; [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra. rewrite <- mult_IZR. apply IZR_le. lia. Qed.
Section Leaves.
Variables (v : nat) (Ms : list (list Z)) (masks : list (list bool)).
(** The sums that have to reach zero, one or two of them, and what is counted. *)
Record counter := { c_sums : list (list row * Z); c_count : Z }.
Definition on_grid (strict : bool) (hs : mat) (g : grid) : option (list row * Z) :=
  let floors := repeat (depth g) (length masks - 1) ++ [(4 * depth g)%Z] in let start := (cdiv (isum (offsets g)) 256 - if strict then 1 else 0)%Z in
  if (0 <? mantissa g)%Z && Nat.eqb (length (offsets g)) (length masks) && Nat.ltb 0 (length masks)
  then Some (grid_rows (inverse_step g) (isum floors) start masks hs (offsets g) floors, start) else None.
Definition count_grid (strict : bool) (hs : mat) (A : dfa) (g : grid) : option counter :=
  match on_grid strict hs g with
  | Some (rows, start) => match count_up A rows Ms start with Some n => Some {| c_sums := [(rows, start)]; c_count := n |} | None => None end
  | None => None
  end.
(** Two sums at once, each on a grid of its own. *)
Definition count_two (hs : mat) (g : grid) (hs' : mat) (g' : grid) (reach : Z) (A : dfa) : option counter :=
  match on_grid false hs g, on_grid false hs' g' with
  | Some (D, z), Some (E, y) => match count_both A D E Ms reach z y with Some n => Some {| c_sums := [(D, z); (E, y)]; c_count := n |} | None => None end
  | _, _ => None
  end.
Definition reached (s : list row * Z) (x : list nat) : bool := reaches (fst s) (snd s) x.
Definition hit_by (c : counter) (x : list nat) : bool := forallb (fun s => reached s x) (c_sums c).
Lemma on_grid_hits strict hs g s x (h : nat -> nat -> R) : on_grid strict hs g = Some s -> fits masks x = true ->
  (forall i t, i < length masks -> (S i = length masks -> t = query x) -> ub (at2 hs i t) (h i t)) ->
  (if strict then (0 < sumx h 0 x)%R else (0 <= sumx h 0 x)%R) -> reached s x = true.
Proof.
  unfold on_grid, reached. destruct (_ && _) eqn:E; [|discriminate]. apply andb_prop in E. destruct E as [E E3]. apply andb_prop in E. destruct E as [E1 E2]. apply Z.ltb_lt in E1. apply Nat.eqb_eq in E2. apply Nat.ltb_lt in E3.
  set (floors := repeat (depth g) (length masks - 1) ++ [(4 * depth g)%Z]). set (st := (_ - _)%Z). set (rs := grid_rows _ _ _ _ _ _ _).
  injection 1 as <-. cbn [fst snd]. intros Hx Hub Hs.
  assert (Lf : length floors = length masks) by (unfold floors; rewrite app_length, repeat_length; simpl; lia).
  destruct (grid_rows_along (inverse_step g) (isum floors) st masks hs (offsets g) floors x E2 Lf Hx) as (z & Hz). fold rs in Hz. unfold reaches. rewrite Hz. apply Z.leb_le.
  destruct (step_facts g E1) as [Ps _]. apply (lemma_G (step_of g) (isum floors) st Ps strict h rs (offsets g) floors x z); auto.
  - apply grid_rows_gridded; auto. intros j t Ht Hl. simpl. destruct (Nat.lt_ge_cases j (length masks)) as [Hj|Hj]; [|rewrite (nth_overflow masks) in Ht by exact Hj; destruct t; discriminate].
    apply Hub; [exact Hj|exact Hl].
  - unfold st. rewrite minus_IZR. pose proof (cdiv_ge (isum (offsets g))). destruct strict; lra.
Qed.
Lemma grid_hits strict hs A g c x (h : nat -> nat -> R) : count_grid strict hs A g = Some c -> fits masks x = true ->
  (forall i t, i < length masks -> (S i = length masks -> t = query x) -> ub (at2 hs i t) (h i t)) ->
  (if strict then (0 < sumx h 0 x)%R else (0 <= sumx h 0 x)%R) -> hit_by c x = true.
Proof.
  unfold count_grid, hit_by. destruct (on_grid strict hs g) as [[rows start]|] eqn:E; [|discriminate]. destruct (count_up A rows Ms start) as [n|]; [|discriminate]. injection 1 as <-. cbn [c_sums forallb]. intros Hx Hub Hs.
  rewrite (on_grid_hits strict hs g _ x h E Hx Hub Hs). reflexivity.
Qed.
Hypothesis HM : nonneg Ms = true.
Lemma counter_ge strict hs A g c : closed A = true -> count_grid strict hs A g = Some c -> (integral v Ms (fun x => one (accepts A x && hit_by c x)) <= c_count c)%Z.
Proof.
  intros HA. unfold count_grid, hit_by. destruct (on_grid strict hs g) as [[rows start]|]; [|discriminate]. destruct (count_up A rows Ms start) as [n|] eqn:E; [|discriminate].
  injection 1 as <-. cbn [c_sums c_count forallb reached fst snd]. eapply Z.le_trans; [|apply (count_up_ge A v HA _ Ms _ _ HM E)]. apply Z.eq_le_incl, integral_same. intros x. unfold reached. cbn [fst snd]. rewrite andb_true_r. reflexivity.
Qed.
Lemma two_ge hs g hs' g' reach A c : closed A = true -> count_two hs g hs' g' reach A = Some c -> (integral v Ms (fun x => one (accepts A x && hit_by c x)) <= c_count c)%Z.
Proof.
  intros HA. unfold count_two, hit_by. destruct (on_grid false hs g) as [[D z]|]; [|discriminate]. destruct (on_grid false hs' g') as [[E y]|]; [|discriminate]. destruct (count_both A D E Ms reach z y) as [n|] eqn:En; [|discriminate].
  injection 1 as <-. cbn [c_sums c_count forallb]. eapply Z.le_trans; [|apply (count_both_ge A v HA _ _ Ms _ _ _ _ HM En)]. apply Z.eq_le_incl, integral_same. intros x. unfold reached. cbn [fst snd]. rewrite andb_true_r. reflexivity.
Qed.
Lemma fitting A (h : list nat -> bool) n : (integral v Ms (fun x => one (accepts A x && h x)) <= n)%Z -> (integral v Ms (fun x => one ((accepts A x && fits masks x) && h x)) <= n)%Z.
Proof. intros H. eapply Z.le_trans; [|exact H]. apply integral_le; [exact HM|]. intros x _. destruct (accepts A x); destruct (fits masks x); destruct (h x); simpl; lia. Qed.
Lemma counter_in strict hs A g c : closed A = true -> count_grid strict hs A g = Some c -> (integral v Ms (fun x => one ((accepts A x && fits masks x) && hit_by c x)) <= c_count c)%Z.
Proof.
  intros HA Hc. apply fitting. eapply counter_ge; eauto.
Qed.

Hypothesis Hlen : length masks = length Ms.
Hypothesis Hv : forallb (fun b => Nat.leb (length b) v) masks = true.
Definition all_of (A : dfa) : Z := nth 0 (whole A masks Ms) 0%Z.
Lemma all_of_is A : all_of A = integral v Ms (fun x => one (accepts A x && fits masks x)).
Proof. apply whole_is; assumption. Qed.
Lemma all_of_ge A (bad : list nat -> bool) : (integral v Ms (fun x => one ((accepts A x && fits masks x) && bad x)) <= all_of A)%Z.
Proof. rewrite all_of_is. apply integral_le; [exact HM|]. intros x _. destruct (_ && fits masks x); destruct (bad x); simpl; lia. Qed.

(** * Trees: [leaf A l] is at least what is bad in a leaf; so is [in_tree A t] for a tree. *)
Section Tree.
Context {L : Type}.
Variables (leaf : dfa -> L -> option Z) (bad : list nat -> bool).
Hypothesis leaf_ok : forall A l n, closed A = true -> leaf A l = Some n -> (integral v Ms (fun x => one ((accepts A x && fits masks x) && bad x)) <= n)%Z.
Fixpoint in_tree (A : dfa) (t : tree L) : option Z :=
  match t with
  | GivenUp => Some (all_of A)
  | Leaf l => leaf A l
  | Split tok n more fewer => match split_dfa A tok n true, split_dfa A tok n false with
      | Some A1, Some A2 => plus (in_tree A1 more) (in_tree A2 fewer) | _, _ => None end
  end.
Theorem in_tree_ok t : forall A n, closed A = true -> in_tree A t = Some n -> (integral v Ms (fun x => one ((accepts A x && fits masks x) && bad x)) <= n)%Z.
Proof.
  induction t as [|l|tok c more IH1 fewer IH2]; intros A n HA H; cbn [in_tree] in H.
  - injection H as <-. apply all_of_ge.
  - apply (leaf_ok A l n HA H).
  - destruct (split_dfa A tok c true) as [A1|] eqn:E1; [|discriminate]. destruct (split_dfa A tok c false) as [A2|] eqn:E2; [|discriminate].
    destruct (in_tree A1 more) as [n1|] eqn:F1; [|discriminate]. destruct (in_tree A2 fewer) as [n2|] eqn:F2; [|discriminate]. injection H as <-.
    apply split_dfa_ok in E1, E2. destruct E1 as [C1 E1]. destruct E2 as [C2 E2]. specialize (IH1 A1 n1 C1 F1). specialize (IH2 A2 n2 C2 F2).
    apply (split_bound v Ms (fun x => accepts A x && fits masks x) bad (half tok c true)); [exact HM| |].
    + eapply Z.le_trans; [|exact IH1]. apply integral_le; [exact HM|]. intros x _. rewrite E1. destruct (accepts A x); destruct (half tok c true x); destruct (fits masks x); destruct (bad x); simpl; lia.
    + eapply Z.le_trans; [|exact IH2]. apply integral_le; [exact HM|]. intros x _. rewrite E2, half_either, negb_involutive. destruct (accepts A x); destruct (half tok c false x); destruct (fits masks x); destruct (bad x); simpl; lia.
Qed.
End Tree.
End Leaves.
