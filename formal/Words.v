(** Sequences of tokens and their masses. [integral Ms f] is the sum of [mass x * f x] over all sequences [x] (lemma [integral_words]). *)
From Coq Require Import ZArith List Lia Bool Permutation.
Import ListNotations.
Local Open Scope Z_scope.

Definition zsum {A} (f : A -> Z) (l : list A) : Z := fold_right (fun a s => f a + s) 0 l.
Lemma zsum_cons {A} (f : A -> Z) a l : zsum f (a :: l) = f a + zsum f l. Proof. reflexivity. Qed.
Lemma zsum_le {A} (f g : A -> Z) l : (forall a, In a l -> f a <= g a) -> zsum f l <= zsum g l.
Proof.
  induction l as [|a l IH]; intros H; [reflexivity|]. rewrite !zsum_cons.
  specialize (IH (fun b Hb => H b (or_intror Hb))). specialize (H a (or_introl eq_refl)). lia.
Qed.
Lemma zsum_ext {A} (f g : A -> Z) l : (forall a, In a l -> f a = g a) -> zsum f l = zsum g l.
Proof. intros H. apply Z.le_antisymm; apply zsum_le; intros a Ha; rewrite (H a Ha); lia. Qed.
Lemma zsum_add {A} (f g : A -> Z) l : zsum (fun a => f a + g a) l = zsum f l + zsum g l.
Proof. induction l as [|a l IH]; [reflexivity|]. rewrite !zsum_cons, IH. lia. Qed.
Lemma zsum_scale {A} (c : Z) (f : A -> Z) l : zsum (fun a => c * f a) l = c * zsum f l.
Proof. induction l as [|a l IH]; [simpl; lia|]. rewrite !zsum_cons, IH. lia. Qed.
Lemma zsum_zero {A} (l : list A) : zsum (fun _ => 0) l = 0.
Proof. induction l as [|a l IH]; [reflexivity|]. rewrite zsum_cons, IH. reflexivity. Qed.
Lemma zsum_nonneg {A} (f : A -> Z) l : (forall a, In a l -> 0 <= f a) -> 0 <= zsum f l.
Proof. intros H. rewrite <- (zsum_zero l). apply zsum_le, H. Qed.
Lemma zsum_perm {A} (f : A -> Z) l l' : Permutation l l' -> zsum f l = zsum f l'.
Proof. induction 1; simpl; lia. Qed.
Lemma zsum_app {A} (f : A -> Z) l l' : zsum f (l ++ l') = zsum f l + zsum f l'.
Proof. induction l as [|a l IH]; [reflexivity|]. simpl app. rewrite !zsum_cons, IH. lia. Qed.
Lemma zsum_map {A B} (g : A -> B) (f : B -> Z) l : zsum f (map g l) = zsum (fun a => f (g a)) l.
Proof. induction l as [|a l IH]; [reflexivity|]. simpl map. rewrite !zsum_cons, IH. reflexivity. Qed.
Lemma zsum_seq (f : nat -> Z) n : zsum f (seq 0 (S n)) = f O + zsum (fun t => f (S t)) (seq 0 n).
Proof. simpl seq. rewrite zsum_cons, <- seq_shift, zsum_map. reflexivity. Qed.

Lemma nth_map_seq {X} (f : nat -> X) n i d : (i < n)%nat -> nth i (map f (seq 0 n)) d = f i.
Proof. intros H. rewrite (nth_indep _ d (f O)) by (rewrite map_length, seq_length; auto). rewrite map_nth, seq_nth; auto. Qed.

Section Words.
Variable v : nat.
Fixpoint integral (Ms : list (list Z)) (f : list nat -> Z) : Z :=
  match Ms with
  | [] => f []
  | M :: Ms' => zsum (fun t => nth t M 0 * integral Ms' (fun x => f (t :: x))) (seq 0 v)
  end.
Definition word (k : nat) (x : list nat) := length x = k /\ forall t, In t x -> (t < v)%nat.
Definition nonneg (Ms : list (list Z)) := forallb (forallb (Z.leb 0)) Ms.

Lemma nonneg_nth Ms M t : nonneg Ms = true -> In M Ms -> 0 <= nth t M 0.
Proof.
  unfold nonneg. rewrite forallb_forall. intros H HM. specialize (H M HM). rewrite forallb_forall in H.
  destruct (nth_in_or_default t M 0) as [Hin| ->]; [apply Z.leb_le, H, Hin|lia].
Qed.
Lemma nonneg_tail M Ms : nonneg (M :: Ms) = true -> nonneg Ms = true.
Proof. unfold nonneg. simpl. intros H. apply andb_prop in H. apply H. Qed.
Lemma integral_le Ms : nonneg Ms = true -> forall f g, (forall x, word (length Ms) x -> f x <= g x) -> integral Ms f <= integral Ms g.
Proof.
  induction Ms as [|M Ms IH]; intros HM f g H; [apply H; split; [reflexivity|intros t []]|]. simpl. apply zsum_le. intros t Ht. apply in_seq in Ht.
  apply Z.mul_le_mono_nonneg_l; [apply (nonneg_nth (M :: Ms) M t HM); left; reflexivity|]. apply IH; [apply (nonneg_tail M), HM|].
  intros x [Hl Hx]. apply H. split; [simpl; congruence|]. intros u [<-|Hu]; [lia|auto].
Qed.
Lemma integral_ext Ms f g : nonneg Ms = true -> (forall x, word (length Ms) x -> f x = g x) -> integral Ms f = integral Ms g.
Proof. intros HM H. apply Z.le_antisymm; apply integral_le; auto; intros x Hx; rewrite (H x Hx); lia. Qed.
Lemma integral_same Ms : forall f g, (forall x, f x = g x) -> integral Ms f = integral Ms g.
Proof. induction Ms as [|M Ms IH]; intros f g H; [apply H|]. cbn [integral]. apply zsum_ext. intros t _. f_equal. apply IH. intros; apply H. Qed.
Lemma integral_add Ms : forall f g, integral Ms (fun x => f x + g x) = integral Ms f + integral Ms g.
Proof. induction Ms as [|M Ms IH]; intros f g; [reflexivity|]. simpl. rewrite <- zsum_add. apply zsum_ext. intros t _. rewrite IH. lia. Qed.
Lemma integral_zero Ms : integral Ms (fun _ => 0) = 0.
Proof. induction Ms as [|M Ms IH]; [reflexivity|]. cbn [integral]. transitivity (zsum (fun _ : nat => 0) (seq 0 v)); [|apply zsum_zero]. apply zsum_ext. intros t _. rewrite IH. lia. Qed.
Lemma integral_opp Ms f : integral Ms (fun x => - f x) = - integral Ms f.
Proof.
  assert (integral Ms (fun x => f x + - f x) = 0) as H.
  { rewrite <- (integral_zero Ms). revert f. induction Ms as [|M Ms IH]; intros f; [simpl; lia|]. cbn [integral]. apply zsum_ext. intros t _. rewrite (IH (fun x => f (t :: x))). reflexivity. }
  rewrite integral_add in H. lia.
Qed.
Lemma integral_scale Ms c : forall f, integral Ms (fun x => c * f x) = c * integral Ms f.
Proof. induction Ms as [|M Ms IH]; intros f; [reflexivity|]. cbn [integral]. rewrite <- zsum_scale. apply zsum_ext. intros t _. rewrite IH. lia. Qed.
Lemma integral_zsum {A} Ms (f : A -> list nat -> Z) l : integral Ms (fun x => zsum (fun a => f a x) l) = zsum (fun a => integral Ms (f a)) l.
Proof. induction l as [|a l IH]; [apply integral_zero|]. simpl. rewrite integral_add. f_equal. exact IH. Qed.

(** The same as a sum over a list of all sequences. *)
Fixpoint words (k : nat) : list (list nat) := match k with O => [[]] | S k' => flat_map (fun t => map (cons t) (words k')) (seq 0 v) end.
Fixpoint mass (Ms : list (list Z)) (x : list nat) : Z :=
  match Ms, x with [], [] => 1 | M :: Ms', t :: x' => nth t M 0 * mass Ms' x' | _, _ => 0 end.
Theorem integral_words Ms : forall f, integral Ms f = zsum (fun x => mass Ms x * f x) (words (length Ms)).
Proof.
  induction Ms as [|M Ms IH]; intros f; [unfold zsum; cbn [integral length words fold_right mass]; lia|]. cbn [integral length words]. induction (seq 0 v) as [|t l IHl]; [reflexivity|].
  cbn [flat_map]. rewrite zsum_cons, zsum_app, IHl, zsum_map. f_equal. rewrite IH, <- zsum_scale. apply zsum_ext. intros x _. cbn [mass]. lia.
Qed.
Lemma words_word k : forall x, In x (words k) <-> word k x.
Proof.
  induction k as [|k IH]; intros x; cbn [words].
  - split; [intros [<-|[]]; split; [reflexivity|intros t []]|]. intros [H _]. destruct x; [left; reflexivity|discriminate].
  - rewrite in_flat_map. split.
    + intros (t & Ht & H). apply in_map_iff in H. destruct H as (y & <- & Hy). apply IH in Hy. destruct Hy as [H1 H2]. apply in_seq in Ht.
      split; [simpl; congruence|]. intros u [<-|Hu]; [lia|auto].
    + intros [H1 H2]. destruct x as [|t x]; [discriminate|]. exists t. split; [apply in_seq; specialize (H2 t (or_introl eq_refl)); lia|].
      apply in_map, IH. split; [simpl in H1; congruence|]. intros u Hu. apply H2. right; exact Hu.
Qed.
End Words.
(** Sums of masses of a list of different sequences. *)
Fixpoint eqs (x y : list nat) : bool := match x, y with [], [] => true | a :: x', b :: y' => Nat.eqb a b && eqs x' y' | _, _ => false end.
Lemma eqs_spec x : forall y, eqs x y = true <-> x = y.
Proof.
  induction x as [|a x IH]; intros [|b y]; simpl; try (split; discriminate || congruence). rewrite andb_true_iff, Nat.eqb_eq, IH. split; [intros [-> ->]; reflexivity|].
  injection 1 as -> ->. auto.
Qed.
Lemma integral_single v Ms : nonneg Ms = true -> forall y, word v (length Ms) y -> integral v Ms (fun x => if eqs x y then 1 else 0) = mass Ms y.
Proof.
  induction Ms as [|M Ms IH]; intros HM y [Hl Hy]; destruct y as [|u y]; try discriminate; [reflexivity|]. cbn [integral mass].
  assert (E : forall t, integral v Ms (fun x => if eqs (t :: x) (u :: y) then 1 else 0) = if Nat.eqb t u then mass Ms y else 0).
  { intros t. cbn [eqs]. destruct (Nat.eqb t u); cbn [andb]; [|apply integral_zero]. apply IH; [apply (nonneg_tail M), HM|]. split; [simpl in Hl; congruence|]. intros; apply Hy; right; auto. }
  rewrite (zsum_ext _ (fun t => if Nat.eqb t u then nth u M 0 * mass Ms y else 0)).
  - assert (K : forall l, NoDup l -> In u l -> zsum (fun t => if Nat.eqb t u then nth u M 0 * mass Ms y else 0) l = nth u M 0 * mass Ms y).
    { induction l as [|a l IHl]; intros HN Hin; [destruct Hin|]. inversion HN; subst. rewrite zsum_cons. destruct (Nat.eqb_spec a u).
      - subst. rewrite (zsum_ext _ (fun _ => 0)); [rewrite zsum_zero; lia|]. intros b Hb. destruct (Nat.eqb_spec b u); [subst; contradiction|reflexivity].
      - destruct Hin as [->|Hin]; [contradiction|]. rewrite IHl by auto. lia. }
    apply K; [apply seq_NoDup|]. apply in_seq. specialize (Hy u (or_introl eq_refl)). lia.
  - intros t _. rewrite E. destruct (Nat.eqb_spec t u); [subst; reflexivity|lia].
Qed.
Definition listed (L : list (list nat)) (x : list nat) : bool := existsb (eqs x) L.
Lemma integral_listed v Ms L : nonneg Ms = true -> NoDup L -> (forall y, In y L -> word v (length Ms) y) ->
  integral v Ms (fun x => if listed L x then 1 else 0) = zsum (mass Ms) L.
Proof.
  intros HM HN HL. induction L as [|y L IH]; [apply integral_zero|]. inversion HN; subst. rewrite zsum_cons, <- IH by (auto; intros; apply HL; right; auto).
  rewrite <- (integral_single v Ms HM y) by (apply HL; left; reflexivity). rewrite <- integral_add. apply integral_ext; [exact HM|]. intros x _. cbn [listed existsb].
  destruct (eqs x y) eqn:E; [|reflexivity]. apply eqs_spec in E. subst x. simpl. destruct (listed L y) eqn:E; [|reflexivity]. exfalso.
  apply existsb_exists in E. destruct E as (z & Hz & E). apply eqs_spec in E. subst. contradiction.
Qed.
(** Strictly ascending lists have no duplicates. *)
Fixpoint before (x y : list nat) : bool := match x, y with [], _ :: _ => true | a :: x', b :: y' => Nat.ltb a b || (Nat.eqb a b && before x' y') | _, _ => false end.
Lemma before_irrefl x : before x x = false.
Proof. induction x as [|a x IH]; [reflexivity|]. simpl. rewrite IH, Nat.ltb_irrefl, andb_false_r. reflexivity. Qed.
Lemma before_trans x : forall y z, before x y = true -> before y z = true -> before x z = true.
Proof.
  induction x as [|a x IH]; intros [|b y] [|c z]; simpl; try discriminate; try reflexivity.
  rewrite !orb_true_iff, !andb_true_iff, !Nat.ltb_lt, !Nat.eqb_eq. intros [H|[-> H]] [K|[-> K]]; try (left; lia). right. split; [reflexivity|eapply IH; eauto].
Qed.
Fixpoint ascending (L : list (list nat)) : bool := match L with x :: ((y :: _) as L') => before x y && ascending L' | _ => true end.
Lemma ascending_NoDup L : ascending L = true -> NoDup L.
Proof.
  assert (H : forall L x, ascending (x :: L) = true -> ascending L = true /\ forall y, In y L -> before x y = true).
  { induction L0 as [|y L0 IH]; intros x E; [split; [reflexivity|intros y []]|]. cbn [ascending] in E. apply andb_prop in E. destruct E as [E1 E2]. split; [exact E2|].
    intros z [<-|Hz]; [exact E1|]. apply (before_trans _ y); [exact E1|]. apply (IH y); auto. }
  induction L as [|x L IH]; intros E; constructor; destruct (H L x E) as [H1 H2]; [|auto]. intros Hx. specialize (H2 x Hx). rewrite before_irrefl in H2. discriminate.
Qed.
