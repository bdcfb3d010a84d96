(** Counting (docs, section 7). [count_up] walks from the last position to the first and holds, for each state, a list of primitive integers:
    entry [n] is at least the mass of the ways to finish from the partial sum [lo + n], in units. The window [lo, lo + width) of each
    position is a hint: a sum below it is raised to [lo], one above it is counted for good. Both only count more, so windows need no proof. *)
From Coq Require Import ZArith List Lia Bool Permutation Uint63 Mergesort Orders.
From CompactProofs Require Import Words Automaton.
Import ListNotations.
Local Open Scope Z_scope.

Definition row := list (option Z).   (* the harm of each token that may stand at a position *)

(** * The programme *)
Fixpoint addpos (n : int) (A : list int) (T : int) (acc : list int) : list int :=
  match acc with
  | [] => []
  | a :: acc' => match A with
    | [] => (a + n * T)%uint63 :: addpos n [] T acc'
    | x :: A' => (a + n * x)%uint63 :: addpos n A' T acc' end
  end.
Fixpoint addneg (d n x0 : int) (A : list int) (T : int) (acc : list int) : list int :=
  if (d =? 0)%uint63 then addpos n A T acc else
  match acc with
  | [] => []
  | a :: acc' => (a + n * x0)%uint63 :: addneg (d - 1)%uint63 n x0 A T acc'
  end.
Fixpoint skip (d : int) (A : list int) : list int :=
  if (d =? 0)%uint63 then A else match A with [] => [] | _ :: A' => skip (d - 1)%uint63 A' end.
(** A table is a window of counts and a bound of all counts. *)
Definition table := (list int * int)%type.
Definition small := 2 ^ 62.
(** Adds [n] times the table read [d] entries further on. *)
Definition shifted (d n : Z) (tab acc : table) : table :=
  let '(A, T) := tab in let n := Uint63.of_Z n in
  (if (0 <=? d) && (d <? small) then addpos n (skip (Uint63.of_Z d) A) T (fst acc)
   else if (d <? 0) && (- small <? d) then addneg (Uint63.of_Z (- d)) n (hd T A) A T (fst acc)
   else addpos n [] T (fst acc),
   (snd acc + n * T)%uint63).
(** The moves of a state: next state, harm, mass. Equal neighbours are taken together. *)
Fixpoint steps (mv : list (option nat)) (D : row) (M : list Z) : list (nat * Z * Z) :=
  match mv, D, M with
  | a :: mv', h :: D', n :: M' => match a, h with Some s, Some h => (s, h, n) :: steps mv' D' M' | _, _ => steps mv' D' M' end
  | _, _, _ => []
  end.
Fixpoint rle (l : list (nat * Z * Z)) : list (nat * Z * Z) :=
  match l with
  | [] => []
  | (s, h, n) :: l' => match rle l' with
    | (s1, h1, n1) :: g => if Nat.eqb s s1 && (h =? h1) then (s, h, n + n1) :: g else (s, h, n) :: (s1, h1, n1) :: g
    | [] => [(s, h, n)] end
  end.
Module Order <: TotalLeBool.
  Definition t := (nat * Z * Z)%type.
  Definition leb (x y : t) := (snd (fst x) <? snd (fst y)) || ((snd (fst x) =? snd (fst y)) && Nat.leb (fst (fst x)) (fst (fst y))).
  Lemma leb_total x y : leb x y = true \/ leb y x = true.
  Proof.
    unfold leb. destruct x as [[s h] n]. destruct y as [[s' h'] n']. cbn [fst snd]. destruct (Z.ltb_spec h h'); destruct (Z.ltb_spec h' h); auto.
    replace (h =? h') with true by (symmetry; apply Z.eqb_eq; lia). replace (h' =? h) with true by (symmetry; apply Z.eqb_eq; lia). simpl.
    destruct (Nat.leb_spec s s'); auto. right. apply Nat.leb_le. lia.
  Qed.
End Order.
Module Sorting := Sort Order.
Definition round1 (e ones x : int) : int := ((x + ones) >> e)%uint63.
Definition up (x e : Z) : Z := (x + (2 ^ e - 1)) / 2 ^ e.
Definition round (e : Z) (tab : table) : table :=
  if e =? 0 then tab else let o := Uint63.of_Z (2 ^ e - 1) in let e := Uint63.of_Z e in (map (round1 e o) (fst tab), round1 e o (snd tab)).
Fixpoint here (D : row) (M : list Z) : Z :=
  match D, M with h :: D', n :: M' => match h with Some _ => n + here D' M' | None => here D' M' end | _, _ => 0 end.
(** The least [e] that keeps numbers below 2^62. *)
Fixpoint exponent (fuel : nat) (e total most : Z) : Z :=
  match fuel with O => e | S fuel' => if total * up most e <? small then e else exponent fuel' (e + 1) total most end.

Record level := { lo : Z; tabs : list table; scale : Z; most : Z }.
Definition window := (Z * nat)%type.
Section Programme.
Variable A : dfa.
Definition last_level : level :=
  {| lo := -1; tabs := map (fun s => ([0%uint63], if final A s then 1%uint63 else 0%uint63)) (seq 0 (states A)); scale := 1; most := 1 |}.
Definition next (L : level) (D : row) (M : list Z) (w : window) : option level :=
  let total := here D M in let e := if total * most L <? small then 0 else exponent 62 1 total (most L) in
  let B := Z.max 1 (total * up (most L) e) in
  if (B <? small) && (0 <=? e) && (e <? 62) then
    let from := map (round e) (tabs L) in let zero := (repeat 0%uint63 (snd w), 0%uint63) in let delta := fst w - lo L in
    Some {| lo := fst w;
            tabs := map (fun s => fold_left (fun acc g => let '(s', d, n) := g in shifted (d + delta) n (nth s' from ([], 0%uint63)) acc)
                                    (rle (Sorting.sort (steps (nth s (moves A) []) D M))) zero) (seq 0 (states A));
            scale := scale L * 2 ^ e; most := B |}
  else None.
Fixpoint levels (rows : list row) (Ms : list (list Z)) (ws : list window) : option level :=
  match rows, Ms, ws with
  | [], [], _ => Some last_level
  | r :: rows', M :: Ms', w :: ws' => match levels rows' Ms' ws' with Some L => next L r M w | None => None end
  | _, _, _ => None
  end.
Definition read (tab : table) (u : Z) : Z := to_Z (nth (Z.to_nat u) (fst tab) (snd tab)).
Definition count_in (rows : list row) (Ms : list (list Z)) (ws : list window) (start : Z) : option Z :=
  match levels rows Ms ws with Some L => Some (scale L * read (nth 0 (tabs L) ([], 0%uint63)) (start - lo L)) | None => None end.

(** Windows: nothing is proved about them. *)
Definition ends (D : row) : Z * Z :=
  let l := flat_map (fun h => match h with Some h => [h] | None => [] end) D in
  match l with [] => (0, 0) | h :: l' => (fold_left Z.min l' h, fold_left Z.max l' h) end.
Fixpoint forward (least greatest : Z) (rs : list (Z * Z)) : list (Z * Z) :=
  match rs with [] => [] | (a, b) :: rs' => (least, greatest) :: forward (least + a) (greatest + b) rs' end.
Fixpoint backward (rs : list (Z * Z)) : list (Z * Z) :=
  match rs with [] => [] | (a, b) :: rs' => match backward rs' with [] => [(a, b)] | (c, d) :: l => (a + c, b + d) :: (c, d) :: l end end.
Definition windows (rows : list row) (start : Z) : list window :=
  let rs := map ends rows in
  map (fun p => let '((least, greatest), (a, b)) := p in
    let l := Z.max least (Z.min greatest (- b - 1)) in (l, Z.to_nat (Z.min greatest (- a) - l + 1))) (combine (forward start start rs) (backward rs)).
Definition count_up (rows : list row) (Ms : list (list Z)) (start : Z) : option Z := count_in rows Ms (windows rows start) start.

(** * The truth *)
Fixpoint along (rows : list row) (x : list nat) : option Z :=
  match rows, x with
  | [], [] => Some 0
  | r :: rows', t :: x' => match nth t r None, along rows' x' with Some h, Some z => Some (h + z) | _, _ => None end
  | _, _ => None
  end.
Definition reaches (rows : list row) (z : Z) (x : list nat) : bool := match along rows x with Some d => 0 <=? z + d | None => false end.
Definition counted (rows : list row) (s : nat) (z : Z) (x : list nat) : bool := accepts_from A s x && reaches rows z x.
Definition one (b : bool) : Z := if b then 1 else 0.
Lemma counted_cons r rows s z t x : counted (r :: rows) s z (t :: x) =
  match step A s t, nth t r None with Some s', Some h => counted rows s' (z + h) x | _, _ => false end.
Proof.
  unfold counted, reaches. cbn [accepts_from along]. destruct (step A s t); [|reflexivity]. destruct (nth t r None) as [h|]; [|apply andb_false_r].
  destruct (along rows x); [|reflexivity]. rewrite Z.add_assoc. reflexivity.
Qed.
Section Sound.
Variable v : nat.
Definition cnt (rows : list row) (Ms : list (list Z)) (s : nat) (z : Z) : Z := integral v Ms (fun x => one (counted rows s z x)).
Lemma cnt_cons r rows M Ms s z : cnt (r :: rows) (M :: Ms) s z =
  zsum (fun t => match step A s t, nth t r None with Some s', Some h => nth t M 0 * cnt rows Ms s' (z + h) | _, _ => 0 end) (seq 0 v).
Proof.
  unfold cnt. cbn [integral]. apply zsum_ext. intros t _.
  assert (E : integral v Ms (fun x => one (counted (r :: rows) s z (t :: x))) =
    match step A s t, nth t r None with Some s', Some h => integral v Ms (fun x => one (counted rows s' (z + h) x)) | _, _ => 0 end).
  { destruct (step A s t) as [s'|] eqn:E1; [destruct (nth t r None) as [h|] eqn:E2|].
    - apply integral_same. intros x. rewrite counted_cons, E1, E2. reflexivity.
    - rewrite <- (integral_zero v Ms). apply integral_same. intros x. rewrite counted_cons, E1, E2. reflexivity.
    - rewrite <- (integral_zero v Ms). apply integral_same. intros x. rewrite counted_cons, E1. reflexivity. }
  rewrite E. destruct (step A s t); [destruct (nth t r None)|]; lia.
Qed.
Lemma cnt_mono rows Ms s z z' : nonneg Ms = true -> z <= z' -> cnt rows Ms s z <= cnt rows Ms s z'.
Proof.
  intros HM H. apply integral_le; [exact HM|]. intros x _. unfold counted, reaches. destruct (accepts_from A s x); [|simpl; lia]. simpl.
  destruct (along rows x) as [d|]; [|simpl; lia]. destruct (Z.leb_spec 0 (z + d)); destruct (Z.leb_spec 0 (z' + d)); simpl; lia.
Qed.
Lemma cnt_nonneg rows Ms s z : nonneg Ms = true -> 0 <= cnt rows Ms s z.
Proof. intros HM. rewrite <- (integral_zero v Ms). apply integral_le; [exact HM|]. intros x _. destruct (counted rows s z x); simpl; lia. Qed.

(** * Soundness *)
Lemma addpos_nth n T acc : forall A u d, (u < length acc)%nat -> nth u (addpos n A T acc) d = (nth u acc d + n * nth u A T)%uint63.
Proof.
  induction acc as [|a acc IH]; intros B u d Hu; simpl in Hu; [lia|]. destruct B as [|x B]; destruct u; simpl; auto.
  - rewrite IH by lia. destruct u; reflexivity.
  - rewrite IH by lia. reflexivity.
Qed.
Lemma addpos_length n T acc : forall A, length (addpos n A T acc) = length acc.
Proof. induction acc as [|a acc IH]; intros [|x B]; simpl; auto. Qed.
Lemma pred_Z d : (d =? 0)%uint63 = false -> to_Z (d - 1) = to_Z d - 1 /\ 0 < to_Z d.
Proof.
  intros H. assert (to_Z d <> 0) by (intros E; apply eqb_false_spec in H; apply H, to_Z_inj; rewrite E; reflexivity).
  pose proof (to_Z_bounded d). rewrite sub_spec. change (to_Z 1) with 1. rewrite Z.mod_small by lia. lia.
Qed.
Lemma zero_Z d : (d =? 0)%uint63 = true -> to_Z d = 0. Proof. intros H. apply eqb_spec in H. subst. reflexivity. Qed.
Lemma skip_nth T B : forall d u, nth u (skip d B) T = nth (u + Z.to_nat (to_Z d)) B T.
Proof.
  induction B as [|x B IH]; intros d u; simpl; destruct (d =? 0)%uint63 eqn:E.
  - destruct u; destruct (_ + _)%nat; reflexivity.
  - destruct u; destruct (_ + _)%nat; reflexivity.
  - rewrite (zero_Z d E). simpl. rewrite Nat.add_0_r. reflexivity.
  - destruct (pred_Z d E) as [E1 E2]. rewrite IH, E1. replace (u + Z.to_nat (to_Z d))%nat with (S (u + Z.to_nat (to_Z d - 1)))%nat by lia. reflexivity.
Qed.
Lemma addneg_nth n x0 T B acc : forall d u df, (u < length acc)%nat ->
  nth u (addneg d n x0 B T acc) df = (nth u acc df + n * (if (Z.of_nat u <? to_Z d)%Z then x0 else nth (u - Z.to_nat (to_Z d)) B T))%uint63.
Proof.
  induction acc as [|a acc IH]; intros d u df Hu; simpl in Hu; [lia|]. cbn [addneg]. destruct (d =? 0)%uint63 eqn:E.
  - rewrite addpos_nth by (simpl; lia). rewrite (zero_Z d E). simpl Z.to_nat. rewrite Nat.sub_0_r. destruct (Z.ltb_spec (Z.of_nat u) 0); [lia|reflexivity].
  - destruct (pred_Z d E) as [E1 E2]. destruct u; cbn [nth].
    + destruct (Z.ltb_spec (Z.of_nat 0) (to_Z d)); [reflexivity|simpl in *; lia].
    + rewrite IH by lia. rewrite E1. replace (Z.of_nat u <? to_Z d - 1) with (Z.of_nat (S u) <? to_Z d).
      * replace (S u - Z.to_nat (to_Z d))%nat with (u - Z.to_nat (to_Z d - 1))%nat by lia. reflexivity.
      * destruct (Z.ltb_spec (Z.of_nat (S u)) (to_Z d)); destruct (Z.ltb_spec (Z.of_nat u) (to_Z d - 1)); lia.
Qed.
Lemma addneg_length n x0 T B acc : forall d, length (addneg d n x0 B T acc) = length acc.
Proof. induction acc as [|a acc IH]; intros d; cbn [addneg]; destruct (_ =? _)%uint63; auto using addpos_length. cbn [length]. rewrite IH. reflexivity. Qed.
Lemma of_Z_small n : 0 <= n < small -> to_Z (Uint63.of_Z n) = n.
Proof. intros H. rewrite of_Z_spec. apply Z.mod_small. unfold small in H. change wB with (2 ^ 63). lia. Qed.
(** Adding and multiplying without overflow. *)
Lemma madd a n x : to_Z a + to_Z n * to_Z x < wB -> to_Z (a + n * x) = to_Z a + to_Z n * to_Z x.
Proof.
  intros H. pose proof (to_Z_bounded a). pose proof (to_Z_bounded n). pose proof (to_Z_bounded x). rewrite add_spec, mul_spec.
  rewrite (Z.mod_small (to_Z n * to_Z x)) by nia. apply Z.mod_small. nia.
Qed.

(** A table is above a function of the partial sum, with entries of at most [M]. *)
Definition above (c : Z -> Z) (l k M : Z) (tab : table) :=
  (forall z, c z <= k * read tab (z - l)) /\ (forall z, c z <= k * to_Z (snd tab)) /\ (forall x, In x (fst tab) -> to_Z x <= M) /\ to_Z (snd tab) <= M.
(** The same for an unfinished table: only entries of the window count. *)
Definition partial (c : Z -> Z) (l k M : Z) (tab : table) :=
  (forall u, (u < length (fst tab))%nat -> c (l + Z.of_nat u) <= k * to_Z (nth u (fst tab) 0%uint63) /\ to_Z (nth u (fst tab) 0%uint63) <= M) /\
  (forall z, c z <= k * to_Z (snd tab)) /\ to_Z (snd tab) <= M.
Lemma partial_above c l k M tab : 0 <= k -> (forall z z', z <= z' -> c z <= c z') -> partial c l k M tab -> above c l k M tab.
Proof.
  intros Hk Hm (H1 & H2 & H3). repeat split; auto.
  - intros z. unfold read. destruct (Nat.lt_ge_cases (Z.to_nat (z - l)) (length (fst tab))) as [Hu|Hu].
    + rewrite (nth_indep _ _ 0%uint63) by exact Hu. destruct (H1 _ Hu) as [H _]. eapply Z.le_trans; [apply Hm|exact H]. lia.
    + rewrite nth_overflow by exact Hu. apply H2.
  - intros x Hx. destruct (In_nth _ _ 0%uint63 Hx) as (u & Hu & <-). apply H1, Hu.
Qed.
Lemma above_read c l k M tab u : above c l k M tab -> to_Z (nth u (fst tab) (snd tab)) <= M.
Proof. intros (_ & _ & H & H'). destruct (nth_in_or_default u (fst tab) (snd tab)) as [Hin| ->]; auto. Qed.
Lemma hd_nth (T : int) B : hd T B = nth 0 B T. Proof. destruct B; reflexivity. Qed.
Lemma shifted_ok c c' l l' k M B n d tab acc : 0 <= k -> 0 <= n < small -> B + n * M < small ->
  above c l k M tab -> partial c' l' k B acc -> partial (fun z => c' z + n * c (z + d)) l' k (B + n * M) (shifted (d + (l' - l)) n tab acc).
Proof.
  intros Hk Hn HB Hab (P1 & P2 & P3). pose proof (above_read _ _ _ _ _ O Hab) as HM. pose proof Hab as (A1 & A2 & A3 & A4). destruct tab as [E T]. destruct acc as [acc S]. simpl fst in *. simpl snd in *.
  assert (Esn : to_Z (Uint63.of_Z n) = n) by (apply of_Z_small; auto).
  assert (W : small < wB) by (unfold small; change wB with (2 ^ 63); lia).
  assert (V : forall a x y b, b <= k * to_Z a -> to_Z a <= B -> y <= k * to_Z x -> to_Z x <= M ->
     b + n * y <= k * to_Z (a + Uint63.of_Z n * x) /\ to_Z (a + Uint63.of_Z n * x) <= B + n * M).
  { intros a x y b H1 H2 H3 H4. pose proof (to_Z_bounded x). rewrite madd by (rewrite Esn; nia). rewrite Esn. split; nia. }
  unfold shifted. set (nn := Uint63.of_Z n) in *. split; [|split; [|]]; cbn [fst snd].
  - intros u Hu.
    assert (Hu' : (u < length acc)%nat).
    { revert Hu. destruct (_ && _); [rewrite addpos_length; auto|]. destruct (_ && _); [rewrite addneg_length; auto|rewrite addpos_length; auto]. }
    destruct (P1 u Hu') as [Q1 Q2].
    assert (R : forall j, j = Z.to_nat (l' + Z.of_nat u + d - l) -> c (l' + Z.of_nat u + d) <= k * to_Z (nth j E T) /\ to_Z (nth j E T) <= M).
    { intros j ->. split; [apply (A1 (l' + Z.of_nat u + d))|apply (above_read _ _ _ _ (E, T) _ Hab)]. }
    destruct ((0 <=? d + (l' - l)) && (d + (l' - l) <? small)) eqn:E1; [|destruct ((d + (l' - l) <? 0) && (- small <? d + (l' - l))) eqn:E2].
    + apply andb_prop in E1. destruct E1 as [E1 E1']. apply Z.leb_le in E1. apply Z.ltb_lt in E1'. rewrite addpos_nth, skip_nth, of_Z_small by (auto; lia).
      destruct (R (u + Z.to_nat (d + (l' - l)))%nat ltac:(lia)). apply V; auto.
    + apply andb_prop in E2. destruct E2 as [E2 E2']. apply Z.ltb_lt in E2. apply Z.ltb_lt in E2'. rewrite addneg_nth, of_Z_small by (auto; lia).
      destruct (Z.ltb_spec (Z.of_nat u) (- (d + (l' - l)))).
      * rewrite hd_nth. destruct (R O ltac:(lia)). apply V; auto.
      * destruct (R (u - Z.to_nat (- (d + (l' - l))))%nat ltac:(lia)). apply V; auto.
    + rewrite addpos_nth by auto. destruct u; apply V; auto.
  - intros z. apply V; auto.
  - apply (V S T (c 0) (c' 0)); auto.
Qed.
Lemma partial_le c c' l k M tab : (forall z, c' z <= c z) -> partial c l k M tab -> partial c' l k M tab.
Proof. intros E (H1 & H2 & H3). repeat split; auto; [eapply Z.le_trans; [apply E|apply H1; auto]|apply H1; auto|intros z; eapply Z.le_trans; [apply E|auto]]. Qed.

Definition weigh (f : nat -> Z -> Z) (g : nat * Z * Z) := let '(s, h, n) := g in n * f s h.
Lemma rle_sum f l : zsum (weigh f) (rle l) = zsum (weigh f) l.
Proof.
  induction l as [|[[s h] n] l IH]; [reflexivity|]. cbn [rle]. rewrite zsum_cons, <- IH. destruct (rle l) as [|[[s1 h1] n1] g]; [reflexivity|].
  destruct (Nat.eqb_spec s s1); destruct (Z.eqb_spec h h1); cbn [andb]; rewrite !zsum_cons; cbn [weigh]; subst; lia.
Qed.
Lemma rle_in l g : In g (rle l) -> exists n, In (fst g, n) l.
Proof.
  revert g. induction l as [|[[s h] n] l IH]; intros g; simpl; [tauto|]. destruct (rle l) as [|[[s1 h1] n1] g0].
  - intros [<-|[]]. exists n. auto.
  - destruct (Nat.eqb s s1 && (h =? h1)); simpl; intros [<-|H]; try (exists n; left; reflexivity).
    + destruct (IH g (or_intror H)) as (m & Hm). exists m. auto.
    + destruct (IH g H) as (m & Hm). exists m. auto.
Qed.
Lemma rle_nonneg l : (forall g, In g l -> 0 <= snd g) -> forall g, In g (rle l) -> 0 <= snd g.
Proof.
  induction l as [|[[s h] n] l IH]; intros H g; simpl; [tauto|]. pose proof (H _ (or_introl eq_refl)) as Hn. simpl in Hn.
  specialize (IH (fun g Hg => H g (or_intror Hg))). destruct (rle l) as [|[[s1 h1] n1] g0]; [intros [<-|[]]; exact Hn|].
  destruct (Nat.eqb s s1 && (h =? h1)); simpl; intros [<-|K]; auto; [|apply IH; right; exact K]. specialize (IH _ (or_introl eq_refl)). simpl in *. lia.
Qed.
Lemma steps_ge (f : nat -> Z -> Z) : (forall s h, 0 <= f s h) -> forall mv D M, (forall t, 0 <= nth t M 0) -> forall n,
  zsum (fun t => match nth t mv None, nth t D None with Some s, Some h => nth t M 0 * f s h | _, _ => 0 end) (seq 0 n) <= zsum (weigh f) (steps mv D M).
Proof.
  intros Hf. induction mv as [|a mv IH]; intros D M HM n.
  - rewrite (zsum_ext _ (fun _ => 0)) by (intros t _; destruct t; reflexivity). rewrite zsum_zero. simpl. lia.
  - destruct D as [|h D]; [rewrite (zsum_ext _ (fun _ => 0)) by (intros t _; destruct (nth t (a :: mv) None); destruct t; reflexivity); rewrite zsum_zero; simpl; lia|].
    destruct M as [|m M].
    { rewrite (zsum_ext _ (fun _ => 0)); [rewrite zsum_zero; destruct a; destruct h; simpl; lia|]. intros t _. destruct (nth t (a :: mv) None); [|reflexivity].
      destruct (nth t (h :: D) None); [|reflexivity]. destruct t; reflexivity. }
    destruct n as [|n].
    { simpl (zsum _ (seq 0 0)). assert (forall mv D M, (forall t, 0 <= nth t M 0) -> 0 <= zsum (weigh f) (steps mv D M)) as P.
      { clear -Hf. induction mv as [|a mv IH]; intros [|h D] [|m M] HM; simpl; try lia. pose proof (HM O) as Hm. simpl in Hm. specialize (IH D M (fun t => HM (S t))).
        destruct a; destruct h; auto. rewrite zsum_cons. cbn [weigh]. specialize (Hf n z). nia. }
      apply P, HM. }
    rewrite zsum_seq. cbn [nth]. specialize (IH D M (fun t => HM (S t)) n). cbn [steps].
    destruct a as [s|]; [destruct h as [h|]|]; try rewrite zsum_cons; cbn [weigh]; lia.
Qed.
Lemma steps_in mv : forall D M s h n, In (s, h, n) (steps mv D M) -> (exists t, nth t mv None = Some s) /\ In n M.
Proof.
  induction mv as [|a mv IH]; intros [|d D] [|m M] s h n H; simpl in H; try contradiction.
  destruct a as [s0|]; [destruct d as [h0|]|].
  - destruct H as [E|H]; [injection E as -> -> ->; split; [exists O; reflexivity|left; reflexivity]|]. destruct (IH _ _ _ _ _ H) as ((t & Ht) & Hm). split; [exists (S t); exact Ht|right; exact Hm].
  - destruct (IH _ _ _ _ _ H) as ((t & Ht) & Hm). split; [exists (S t); exact Ht|right; exact Hm].
  - destruct (IH _ _ _ _ _ H) as ((t & Ht) & Hm). split; [exists (S t); exact Ht|right; exact Hm].
Qed.
Lemma steps_here c mv : 0 <= c -> forall D M, (forall n, In n M -> 0 <= n) -> zsum (weigh (fun _ _ => c)) (steps mv D M) <= here D M * c.
Proof.
  intros Hc. induction mv as [|a mv IH]; intros [|d D] [|m M] HM; simpl; try lia.
  - assert (P : forall D M, (forall n, In n M -> 0 <= n) -> 0 <= here D M).
    { clear. induction D as [|h D IH]; intros [|n M] HM; simpl; try lia. specialize (IH M (fun x Hx => HM x (or_intror Hx))). specialize (HM n (or_introl eq_refl)). destruct h; lia. }
    specialize (P D M (fun x Hx => HM x (or_intror Hx))). specialize (HM m (or_introl eq_refl)). destruct d; nia.
  - specialize (IH D M (fun x Hx => HM x (or_intror Hx))). specialize (HM m (or_introl eq_refl)). destruct a; destruct d; try rewrite zsum_cons; cbn [weigh]; nia.
Qed.

Hypothesis HA : closed A = true.
Definition fine (rows : list row) (Ms : list (list Z)) (L : level) := 0 < scale L /\ 1 <= most L < small /\ length (tabs L) = states A /\
  forall s, (s < states A)%nat -> above (cnt rows Ms s) (lo L) (scale L) (most L) (nth s (tabs L) ([], 0%uint63)).
Lemma fine_last : fine [] [] last_level.
Proof.
  assert (E : forall s z, cnt [] [] s z = one (final A s && (0 <=? z))) by (intros; unfold cnt, counted, reaches; cbn; rewrite Z.add_0_r; reflexivity).
  split; [reflexivity|]. split; [split; reflexivity|]. split; [simpl; rewrite map_length, seq_length; reflexivity|].
  intros s Hs. unfold last_level. cbn [tabs lo scale most]. rewrite nth_map_seq by exact Hs. repeat split; cbn [fst snd].
  - intros z. rewrite E. unfold read. cbn [fst snd]. destruct (Z.leb_spec 0 z) as [Hz|Hz].
    + replace (Z.to_nat (z - -1)) with (S (Z.to_nat z)) by lia. cbn [nth]. destruct (final A s); destruct (Z.to_nat z); cbn; lia.
    + replace (Z.to_nat (z - -1)) with O by lia. destruct (final A s); cbn; lia.
  - intros z. rewrite E. destruct (final A s); destruct (0 <=? z); cbn; lia.
  - intros x [<-|[]]. cbn. lia.
  - destruct (final A s); cbn; lia.
Qed.
Lemma up_ge x e : 0 <= e -> x <= 2 ^ e * up x e.
Proof.
  intros He. unfold up. assert (P : 0 < 2 ^ e) by (apply Z.pow_pos_nonneg; lia). pose proof (Z.div_mod (x + (2 ^ e - 1)) (2 ^ e) ltac:(lia)).
  pose proof (Z.mod_pos_bound (x + (2 ^ e - 1)) (2 ^ e) P). lia.
Qed.
Lemma up_mono x y e : 0 <= e -> x <= y -> up x e <= up y e.
Proof. intros He H. apply Z.div_le_mono; [apply Z.pow_pos_nonneg; lia|lia]. Qed.
Lemma round1_ok e x : 0 < e < 62 -> to_Z x < small -> to_Z (round1 (Uint63.of_Z e) (Uint63.of_Z (2 ^ e - 1)) x) = up (to_Z x) e.
Proof.
  intros He Hx. assert (P : 0 < 2 ^ e) by (apply Z.pow_pos_nonneg; lia). assert (Q : 2 ^ e <= 2 ^ 61) by (apply Z.pow_le_mono_r; lia).
  pose proof (to_Z_bounded x). unfold round1, up. rewrite lsr_spec, add_spec, !of_Z_small by (unfold small; lia).
  rewrite Z.mod_small; [reflexivity|]. unfold small in Hx. change wB with (2 ^ 63). lia.
Qed.
Lemma round_ok c l k M e tab : 0 <= k -> 0 <= e < 62 -> M < small -> above c l k M tab -> above c l (k * 2 ^ e) (up M e) (round e tab).
Proof.
  intros Hk He HM (H1 & H2 & H3 & H4). unfold round. destruct (Z.eqb_spec e 0) as [->|Hne].
  - assert (U : up M 0 = M) by (unfold up; rewrite Z.pow_0_r, Z.div_1_r; lia). rewrite U, Z.pow_0_r, Z.mul_1_r. repeat split; auto.
  - set (o := Uint63.of_Z (2 ^ e - 1)). set (e' := Uint63.of_Z e). destruct tab as [B T]. cbn [fst snd] in *.
    assert (V : forall x, to_Z x <= M -> to_Z x <= 2 ^ e * to_Z (round1 e' o x) /\ to_Z (round1 e' o x) <= up M e).
    { intros x Hx. unfold e', o. rewrite round1_ok by lia. split; [apply up_ge; lia|apply up_mono; lia]. }
    repeat split; cbn [fst snd].
    + intros z. specialize (H1 z). unfold read in *. cbn [fst snd] in *.
      assert (E : forall u, nth u (map (round1 e' o) B) (round1 e' o T) = round1 e' o (nth u B T)) by (intros; apply map_nth).
      rewrite E. destruct (V (nth (Z.to_nat (z - l)) B T)) as [V1 _]; [destruct (nth_in_or_default (Z.to_nat (z - l)) B T) as [Hin| ->]; auto|]. nia.
    + intros z. specialize (H2 z). destruct (V T H4) as [V1 _]. nia.
    + intros x Hx. apply in_map_iff in Hx. destruct Hx as (y & <- & Hy). apply V, H3, Hy.
    + apply V, H4.
Qed.
Lemma fold_ok rows Ms l0 k M from l' : nonneg Ms = true -> 0 <= k -> 0 <= M ->
  (forall s, (s < states A)%nat -> above (cnt rows Ms s) l0 k M (nth s from ([], 0%uint63))) -> forall gs c B acc,
  (forall g, In g gs -> 0 <= snd g < small /\ (fst (fst g) < states A)%nat) -> 0 <= B -> B + zsum (weigh (fun _ _ => M)) gs < small ->
  partial c l' k B acc ->
  partial (fun z => c z + zsum (weigh (fun s h => cnt rows Ms s (z + h))) gs) l' k (B + zsum (weigh (fun _ _ => M)) gs)
    (fold_left (fun acc g => let '(s', d, n) := g in shifted (d + (l' - l0)) n (nth s' from ([], 0%uint63)) acc) gs acc).
Proof.
  intros HM Hk HM0 HF. induction gs as [|[[s h] n] gs IH]; intros c B acc Hg HB HS Hp.
  - cbn. rewrite Z.add_0_r. eapply partial_le; [|exact Hp]. intros z. cbn. lia.
  - cbn [fold_left]. rewrite zsum_cons in *. cbn [weigh] in HS |- *. destruct (Hg _ (or_introl eq_refl)) as [Hn Hs]. simpl in Hn, Hs.
    assert (Hrest : 0 <= zsum (weigh (fun _ _ => M)) gs).
    { apply zsum_nonneg. intros [[a b] m] Hin. destruct (Hg _ (or_intror Hin)) as [Hm _]. simpl in *. nia. }
    assert (partial (fun z => c z + n * cnt rows Ms s (z + h)) l' k (B + n * M) (shifted (h + (l' - l0)) n (nth s from ([], 0%uint63)) acc)) as Hp' by (apply shifted_ok; auto; nia).
    replace (B + (n * M + zsum (weigh (fun _ _ => M)) gs)) with (B + n * M + zsum (weigh (fun _ _ => M)) gs) by lia.
    eapply partial_le; [|apply IH; [intros; apply Hg; right; auto|nia|lia|exact Hp']]. intros z. cbv beta. rewrite zsum_cons. cbn [weigh]. lia.
Qed.
Lemma partial_weaken c l k M M' tab : M <= M' -> partial c l k M tab -> partial c l k M' tab.
Proof. intros H (H1 & H2 & H3). repeat split; auto; try apply H1; auto; try lia. destruct (H1 u H0). lia. Qed.
Lemma nonneg_in M Ms : nonneg (M :: Ms) = true -> forall n, In n M -> 0 <= n.
Proof. unfold nonneg. simpl. intros HM. apply andb_prop in HM. destruct HM as [HM _]. rewrite forallb_forall in HM. intros n Hn. apply Z.leb_le, HM, Hn. Qed.
(** The moves of a state, sorted and taken together: their masses, and what they add up. *)
Lemma groups_ok s r M c : 1 <= c -> (forall n, In n M -> 0 <= n) -> let gs := rle (Sorting.sort (steps (nth s (moves A) []) r M)) in
  zsum (weigh (fun _ _ => c)) gs <= here r M * c /\ (forall g, In g gs -> 0 <= snd g /\ snd g <= here r M * c /\ (fst (fst g) < states A)%nat) /\
  forall f : nat -> Z -> Z, (forall s h, 0 <= f s h) ->
    zsum (fun t => match step A s t, nth t r None with Some s', Some h => nth t M 0 * f s' h | _, _ => 0 end) (seq 0 v) <= zsum (weigh f) gs.
Proof.
  intros Hc HMn gs. set (ms := steps (nth s (moves A) []) r M) in *. pose proof (Sorting.Permuted_sort ms) as HP.
  assert (HMt : forall t, 0 <= nth t M 0) by (intros t; destruct (nth_in_or_default t M 0) as [Hin| ->]; [auto|lia]).
  assert (S1 : zsum (weigh (fun _ _ => c)) gs <= here r M * c).
  { unfold gs. rewrite rle_sum, <- (zsum_perm _ _ _ HP). apply steps_here; [lia|exact HMn]. }
  assert (G : forall g, In g gs -> 0 <= snd g /\ (fst (fst g) < states A)%nat).
  { intros g Hg. split.
    - revert g Hg. apply rle_nonneg. intros [[s1 h1] n1] Hg. apply (Permutation_in _ (Permutation_sym HP)) in Hg. apply steps_in in Hg. apply HMn, Hg.
    - destruct (rle_in _ _ Hg) as (m & Hm). apply (Permutation_in _ (Permutation_sym HP)) in Hm. destruct g as [[s1 h1] n1]. apply steps_in in Hm. destruct Hm as ((t & Ht) & _).
      simpl. exact (closed_step A s t s1 HA Ht). }
  split; [exact S1|split].
  - intros g Hg. destruct (G g Hg) as [G1 G2]. split; [exact G1|split; [|exact G2]]. eapply Z.le_trans; [|exact S1]. clear -Hg G Hc.
    induction gs as [|a l IH]; [destruct Hg|]. rewrite zsum_cons.
    assert (0 <= zsum (weigh (fun _ _ => c)) l). { apply zsum_nonneg. intros [[x y] n] Hin. destruct (G _ (or_intror Hin)). simpl in *. nia. }
    destruct Hg as [->|Hg].
    + destruct (G _ (or_introl eq_refl)) as [G1 _]. destruct g as [[x y] n]. simpl in *. nia.
    + specialize (IH (fun g' H' => G g' (or_intror H')) Hg). destruct (G _ (or_introl eq_refl)) as [G1 _]. destruct a as [[x y] n]. simpl in *. nia.
  - intros f Hf. unfold gs. rewrite rle_sum, <- (zsum_perm _ _ _ HP). apply (steps_ge f Hf); exact HMt.
Qed.
Lemma next_ok rows Ms r M L w L' : nonneg (M :: Ms) = true -> fine rows Ms L -> next L r M w = Some L' -> fine (r :: rows) (M :: Ms) L'.
Proof.
  intros HM (F1 & F2 & F3 & F4). unfold next. set (e := if _ <? small then 0 else _). set (B := Z.max 1 (here r M * up (most L) e)).
  destruct ((B <? small) && (0 <=? e) && (e <? 62)) eqn:E; [|discriminate]. apply andb_prop in E. destruct E as [E E3]. apply andb_prop in E. destruct E as [E1 E2]. apply Z.ltb_lt in E1, E3. apply Z.leb_le in E2.
  assert (P : 0 < 2 ^ e) by (apply Z.pow_pos_nonneg; lia). pose proof (nonneg_tail _ _ HM) as HM'.
  assert (U1 : 1 <= up (most L) e). { pose proof (up_ge (most L) e E2). nia. }
  injection 1 as <-. split; [simpl; nia|split; [|split]]; cbn [lo tabs scale most]; [unfold B in *; lia|rewrite map_length, seq_length; reflexivity|].
  intros s Hs. rewrite nth_map_seq by exact Hs. apply partial_above; [nia|intros; apply cnt_mono; auto|].
  destruct (groups_ok s r M (up (most L) e) ltac:(lia) (nonneg_in M Ms HM)) as (S1 & S2 & S3). set (gs := rle _) in *.
  apply (partial_weaken _ _ _ (0 + zsum (weigh (fun _ _ => up (most L) e)) gs)); [unfold B; lia|].
  assert (HF : forall s1, (s1 < states A)%nat -> above (cnt rows Ms s1) (lo L) (scale L * 2 ^ e) (up (most L) e) (nth s1 (map (round e) (tabs L)) ([], 0%uint63))).
  { intros s1 Hs1. rewrite (nth_indep _ _ (round e ([], 0%uint63))) by (rewrite map_length; lia). rewrite map_nth. apply round_ok; auto; try lia. }
  eapply partial_le; [|apply (fold_ok rows Ms (lo L) (scale L * 2 ^ e) (up (most L) e) (map (round e) (tabs L)) (fst w) HM' ltac:(nia) ltac:(lia) HF gs (fun _ => 0) 0)].
  - intros z. cbv beta. rewrite cnt_cons, Z.add_0_l. apply (S3 (fun s' h => cnt rows Ms s' (z + h))). intros; apply cnt_nonneg, HM'.
  - intros g Hg. destruct (S2 g Hg) as (G1 & G2 & G3). split; [|exact G3]. unfold B in E1. lia.
  - lia.
  - unfold B in E1. lia.
  - split; [|split]; cbn [fst snd]; [|intros z; change (to_Z 0) with 0; lia|change (to_Z 0) with 0; lia].
    intros u Hu. rewrite nth_repeat. change (to_Z 0) with 0. lia.
Qed.
Lemma levels_ok rows : forall Ms ws L, nonneg Ms = true -> levels rows Ms ws = Some L -> fine rows Ms L.
Proof.
  induction rows as [|r rows IH]; intros [|M Ms] [|w ws] L HM H; simpl in H; try discriminate; try (injection H as <-; apply fine_last).
  destruct (levels rows Ms ws) as [L0|] eqn:E; [|discriminate]. eapply next_ok; eauto. eapply IH; [|exact E]. apply (nonneg_tail M), HM.
Qed.
(** The programme counts at least the true mass. *)
Theorem count_up_ge rows Ms start n : nonneg Ms = true -> count_up rows Ms start = Some n ->
  integral v Ms (fun x => one (accepts A x && reaches rows start x)) <= n.
Proof.
  unfold count_up, count_in. intros HM. destruct (levels rows Ms (windows rows start)) as [L|] eqn:E; [|discriminate]. injection 1 as <-.
  destruct (levels_ok _ _ _ _ HM E) as (_ & _ & _ & F). destruct (F O (closed_first A HA)) as (F' & _). apply F'.
Qed.
End Sound.

(** * The mass of an automaton's sequences, exactly *)
Fixpoint ways (mv : list (option nat)) (mask : list bool) (M W : list Z) : Z :=
  match mv, mask, M with
  | a :: mv', b :: mask', m :: M' => match a with Some s => if b then m * nth s W 0 + ways mv' mask' M' W else ways mv' mask' M' W | None => ways mv' mask' M' W end
  | _, _, _ => 0
  end.
Fixpoint whole (masks : list (list bool)) (Ms : list (list Z)) : list Z :=
  match masks, Ms with
  | [], [] => map one (accepting A)
  | b :: masks', M :: Ms' => let W := whole masks' Ms' in map (fun mv => ways mv b M W) (moves A)
  | _, _ => []
  end.
Fixpoint fits (masks : list (list bool)) (x : list nat) : bool :=
  match masks, x with [], [] => true | b :: masks', t :: x' => nth t b false && fits masks' x' | _, _ => false end.
Lemma ways_is v (W : list Z) : forall mv mask M, (length mask <= v)%nat ->
  ways mv mask M W = zsum (fun t => match nth t mv None with Some s => if nth t mask false then nth t M 0 * nth s W 0 else 0 | None => 0 end) (seq 0 v).
Proof.
  revert v. intros v mv. revert v. induction mv as [|a mv IH]; intros v mask M Hl.
  - rewrite (zsum_ext _ (fun _ => 0)) by (intros t _; destruct t; reflexivity). rewrite zsum_zero. reflexivity.
  - destruct mask as [|b mask]; [rewrite (zsum_ext _ (fun _ => 0)) by (intros t _; destruct (nth t (a :: mv) None); destruct t; reflexivity); rewrite zsum_zero; destruct a; reflexivity|].
    destruct M as [|m M].
    { rewrite (zsum_ext _ (fun _ => 0)); [rewrite zsum_zero; destruct a; reflexivity|]. intros t _. destruct (nth t (a :: mv) None); [|reflexivity]. destruct (nth t (b :: mask) false); [|reflexivity]. destruct t; reflexivity. }
    simpl in Hl. destruct v as [|v]; [lia|]. rewrite zsum_seq. cbn [nth ways]. rewrite (IH v) by lia. destruct a as [s|]; [destruct b|]; lia.
Qed.
Theorem whole_is v masks : forall Ms, length masks = length Ms -> forallb (fun b => Nat.leb (length b) v) masks = true -> forall s,
  nth s (whole masks Ms) 0 = integral v Ms (fun x => one (accepts_from A s x && fits masks x)).
Proof.
  induction masks as [|b masks IH]; intros [|M Ms] Hl Hv s; try discriminate.
  - cbn. unfold final. rewrite andb_true_r. change 0 with (one false). apply map_nth.
  - simpl in Hv. apply andb_prop in Hv. destruct Hv as [Hb Hv]. apply Nat.leb_le in Hb. cbn [whole integral]. set (W := whole masks Ms).
    transitivity (ways (nth s (moves A) []) b M W).
    { change 0 with (ways [] b M W). apply (map_nth (fun mv => ways mv b M W)). }
    rewrite (ways_is v) by exact Hb. apply zsum_ext. intros t _. fold (step A s t). cbn [accepts_from fits].
    destruct (step A s t) as [s'|] eqn:E.
    + destruct (nth t b false); simpl andb.
      * unfold W. rewrite IH by (auto; simpl in Hl; lia). reflexivity.
      * rewrite (integral_same v Ms _ (fun _ => 0)) by (intros x; rewrite andb_false_r; reflexivity). rewrite integral_zero. lia.
    + rewrite (integral_same v Ms _ (fun _ => 0)) by reflexivity. rewrite integral_zero. lia.
Qed.
End Programme.

(** * Two sums at once *)
(** What a token adds to the two sums is written as one number, so that rows, moves and their order are those of one sum. *)
Definition wide := 2 ^ 40.
Definition paired (d e : Z) : Z := e * wide + (d + wide / 2).
Definition first_of (h : Z) : Z := h mod wide - wide / 2.
Definition second_of (h : Z) : Z := h / wide.
Definition pairable (d : Z) : bool := (- (wide / 2) <=? d) && (d <? wide / 2).
Lemma paired_first d e : pairable d = true -> first_of (paired d e) = d.
Proof.
  unfold pairable, first_of, paired. intros H. apply andb_prop in H. destruct H as [H1 H2]. apply Z.leb_le in H1. apply Z.ltb_lt in H2. change (wide / 2) with (2 ^ 39) in *. change wide with (2 ^ 40).
  rewrite Z.add_comm, Z.mod_add, Z.mod_small by lia. lia.
Qed.
Lemma paired_second d e : pairable d = true -> second_of (paired d e) = e.
Proof.
  unfold pairable, second_of, paired. intros H. apply andb_prop in H. destruct H as [H1 H2]. apply Z.leb_le in H1. apply Z.ltb_lt in H2. change (wide / 2) with (2 ^ 39) in *. change wide with (2 ^ 40).
  rewrite Z.add_comm, Z.div_add, Z.div_small by lia. lia.
Qed.
Fixpoint pair_row (D E : row) : option row :=
  match D, E with
  | h1 :: D', h2 :: E' => match pair_row D' E' with
    | Some r => match h1, h2 with Some d, Some e => if pairable d then Some (Some (paired d e) :: r) else None | _, _ => Some (None :: r) end
    | None => None end
  | _, _ => Some []
  end.
Fixpoint pair_rows (Ds Es : list row) : option (list row) :=
  match Ds, Es with
  | [], [] => Some []
  | D :: Ds', E :: Es' => match pair_row D E, pair_rows Ds' Es' with Some r, Some l => Some (r :: l) | _, _ => None end
  | _, _ => None
  end.
Fixpoint along_both (rows : list row) (x : list nat) : option (Z * Z) :=
  match rows, x with
  | [], [] => Some (0, 0)
  | r :: rows', t :: x' => match nth t r None, along_both rows' x' with Some h, Some (z, y) => Some (first_of h + z, second_of h + y) | _, _ => None end
  | _, _ => None
  end.
Lemma pair_row_nth D : forall E r t d e, pair_row D E = Some r -> nth t D None = Some d -> nth t E None = Some e -> exists h, nth t r None = Some h /\ first_of h = d /\ second_of h = e.
Proof.
  induction D as [|h1 D IH]; intros [|h2 E] r t d e H Hd He; try (destruct t; discriminate). cbn [pair_row] in H. destruct (pair_row D E) as [r'|] eqn:Er; [|discriminate].
  destruct t as [|t]; cbn [nth] in Hd, He.
  - subst h1 h2. destruct (pairable d) eqn:Ep; [|discriminate]. injection H as <-. eexists. split; [reflexivity|]. split; [apply paired_first, Ep|apply paired_second, Ep].
  - destruct (IH E r' t d e Er Hd He) as (h & Hh). exists h. destruct h1 as [d1|]; [destruct h2 as [e1|]; [destruct (pairable d1); [|discriminate]|]|]; injection H as <-; exact Hh.
Qed.
Lemma pair_rows_along Ds : forall Es rows x a b, pair_rows Ds Es = Some rows -> along Ds x = Some a -> along Es x = Some b -> along_both rows x = Some (a, b).
Proof.
  induction Ds as [|D Ds IH]; intros [|E Es] rows [|t x] a b H Ha Hb; try discriminate; cbn [pair_rows along] in *.
  - injection H as <-. injection Ha as <-. injection Hb as <-. reflexivity.
  - destruct (pair_row D E) as [r|] eqn:Er; [|discriminate]. destruct (pair_rows Ds Es) as [l|] eqn:El; [|discriminate]. injection H as <-.
    destruct (nth t D None) as [d|] eqn:Ed; [|discriminate]. destruct (along Ds x) as [a'|] eqn:Ea; [|discriminate]. injection Ha as <-.
    destruct (nth t E None) as [e|] eqn:Ee; [|discriminate]. destruct (along Es x) as [b'|] eqn:Eb; [|discriminate]. injection Hb as <-.
    destruct (pair_row_nth D E r t d e Er Ed Ee) as (h & Eh & <- & <-). cbn [along_both]. rewrite Eh, (IH Es l x a' b' El Ea Eb). reflexivity.
Qed.

(** A band is a table of the first sum, with the sum that it begins at, and a sum below which no rest can help. A sheet has a band for each
    value of the second sum in a window, from where it begins, and one for all that is above. What is below a window is raised to where it
    begins; what has come above it is counted for good. *)
Record band := { b_from : Z; b_need : Z; b_table : table }.
Definition sheet := (Z * (list band * band))%type.
Fixpoint keeping (j : int) (f : list int -> list int) (acc : list int) : list int :=
  if (j =? 0)%uint63 then f acc else match acc with [] => [] | a :: acc' => a :: keeping (j - 1)%uint63 f acc' end.
(** [shifted], but the first [j] entries are left as they are: nothing is counted there. *)
Definition shifted_beyond (j d n : Z) (tab acc : table) : table :=
  let i := Z.max 0 (Z.min j wide) in let T := (snd acc + Uint63.of_Z n * snd tab)%uint63 in
  (keeping (Uint63.of_Z i) (fun l => fst (shifted (d + i) n tab (l, T))) (fst acc), T).
Definition band_shifted (d n : Z) (from acc : band) : band :=
  if (snd (b_table from) =? 0)%uint63 then acc else
  {| b_from := b_from acc; b_need := Z.min (b_need acc) (b_need from - d);
     b_table := shifted_beyond (b_need from - d - b_from acc) (d + (b_from acc - b_from from)) n (b_table from) (b_table acc) |}.
Fixpoint add_bands (d n : Z) (B : list band) (T : band) (acc : list band) : list band :=
  match acc with
  | [] => []
  | a :: acc' => match B with
    | [] => band_shifted d n T a :: add_bands d n [] T acc'
    | b :: B' => band_shifted d n b a :: add_bands d n B' T acc' end
  end.
(** The bands read [e] further on, as many as are needed. *)
Definition further (e : Z) (B : list band) (T : band) (many : nat) : list band :=
  if 0 <=? e then skipn (Z.to_nat (Z.min e (Z.of_nat (length B)))) B else repeat (hd T B) (Z.to_nat (Z.min (- e) (Z.of_nat many))) ++ B.
Definition sheet_shifted (h n : Z) (from acc : sheet) : sheet :=
  let d := first_of h in let '(l, (B, T)) := from in let '(l', (bands, U)) := acc in
  (l', (add_bands d n (further (second_of h + (l' - l)) B T (length bands)) T bands, band_shifted d n T U)).
Definition band_rounded (e : Z) (b : band) : band := {| b_from := b_from b; b_need := b_need b; b_table := round e (b_table b) |}.
Definition sheet_rounded (e : Z) (s : sheet) : sheet := (fst s, (map (band_rounded e) (fst (snd s)), band_rounded e (snd (snd s)))).
(** Hints: the windows of a state. *)
Definition panes := (Z * (list window * window))%type.
Definition blank (w : window) : band := {| b_from := fst w; b_need := small; b_table := (repeat 0%uint63 (snd w), 0%uint63) |}.
Definition blanks (w : panes) : sheet := (fst w, (map blank (fst (snd w)), blank (snd (snd w)))).
Definition no_sheet : sheet := blanks (0, ([], (0, O))).
Record level_both := { sheets : list sheet; scale_both : Z; most_both : Z }.

Section Both.
Variable A : dfa.
Definition last_both : level_both :=
  {| sheets := map (fun s => (-1, ([blank (0, O)], {| b_from := 0; b_need := 0; b_table := ([], if final A s then 1%uint63 else 0%uint63) |}))) (seq 0 (states A)); scale_both := 1; most_both := 1 |}.
Definition groups (s : nat) (D : row) (M : list Z) : list (nat * Z * Z) := rle (Sorting.sort (steps (nth s (moves A) []) D M)).
Definition next_both (L : level_both) (D : row) (M : list Z) (ws : list panes) : option level_both :=
  let total := here D M in let e := if total * most_both L <? small then 0 else exponent 62 1 total (most_both L) in
  let B := Z.max 1 (total * up (most_both L) e) in
  if (B <? small) && (0 <=? e) && (e <? 62) then
    let from := map (sheet_rounded e) (sheets L) in
    Some {| sheets := map (fun s => fold_left (fun acc g => let '(s', h, n) := g in sheet_shifted h n (nth s' from no_sheet) acc)
                        (groups s D M) (blanks (nth s ws (0, ([], (0, O)))))) (seq 0 (states A));
            scale_both := scale_both L * 2 ^ e; most_both := B |}
  else None.
Fixpoint levels_both (rows : list row) (Ms : list (list Z)) (ws : list (list panes)) : option level_both :=
  match rows, Ms, ws with
  | [], [], _ => Some last_both
  | r :: rows', M :: Ms', w :: ws' => match levels_both rows' Ms' ws' with Some L => next_both L r M w | None => None end
  | _, _, _ => None
  end.
Definition band_at (s : sheet) (y : Z) : band := nth (Z.to_nat (y - fst s)) (fst (snd s)) (snd (snd s)).
Definition read_both (s : sheet) (z y : Z) : Z := let b := band_at s y in if z <? b_need b then 0 else read (b_table b) (z - b_from b).
Definition count_both_in (rows : list row) (Ms : list (list Z)) (ws : list (list panes)) (z y : Z) : option Z :=
  match levels_both rows Ms ws with Some L => Some (scale_both L * read_both (nth 0 (sheets L) no_sheet) z y) | None => None end.

(** ** Windows: nothing is proved about them. Backwards, the least and greatest that the rest can add to each sum; forwards, between which
    values the first sum lies for each value of the second. Both sums are kept between [-reach] and [reach]. *)
Definition hull := option (Z * Z).
Definition joined_hull (a b : hull) : hull := match a, b with Some (l, g), Some (l', g') => Some (Z.min l l', Z.max g g') | None, _ => b | _, None => a end.
Definition moved_hull (d floor : Z) (a : hull) : hull := match a with Some (l, g) => Some (Z.max floor (l + d), Z.max floor (g + d)) | None => None end.
Definition move := (nat * Z * Z)%type.
Fixpoint all_moves (rows : list row) (Ms : list (list Z)) : list (list (list move)) :=
  match rows, Ms with r :: rows', M :: Ms' => map (fun s => groups s r M) (seq 0 (states A)) :: all_moves rows' Ms' | _, _ => [] end.
Definition endings := (hull * hull)%type.
Definition endings_before (ends : list endings) (gs : list move) : endings :=
  fold_left (fun acc g => let '(s', h, _) := g in let '(z, y) := nth s' ends (None, None) in
    (joined_hull (fst acc) (moved_hull (first_of h) (- small) z), joined_hull (snd acc) (moved_hull (second_of h) (- small) y))) gs (None, None).
Fixpoint all_endings (ms : list (list (list move))) : list (list endings) :=
  match ms with
  | [] => [map (fun f : bool => if f then (Some (0, 0), Some (0, 0)) else (None, None)) (accepting A)]
  | gs :: ms' => let l := all_endings ms' in map (endings_before (hd [] l)) gs :: l
  end.
(** Where a window begins and how long it is, for sums that lie in a hull. *)
Definition window_in (reach : Z) (sums ending : hull) : window :=
  match sums, ending with
  | Some (l, g), Some (least, greatest) => let from := Z.max (- reach) (Z.max l (- greatest)) in (from, Z.to_nat (Z.min (g + 1) (Z.min (- least) reach) - from))
  | _, _ => (0, O)
  end.
(** For the second sum: bands that no rest can help are held too; they are empty. *)
Definition sure (ending : hull) : hull := match ending with Some (least, _) => Some (least, small) | None => None end.
Record frame := { f_from : Z; f_bands : list hull; f_top : hull }.
Definition blank_frame (w : window) : frame := {| f_from := fst w; f_bands := repeat None (snd w); f_top := None |}.
(** Pours hulls into the bands that they move to. *)
Fixpoint pour (d floor : Z) (src dst : list hull) (top : hull) : list hull * hull :=
  match src with
  | [] => (dst, top)
  | a :: src' => match dst with
    | [] => ([], fold_left (fun t b => joined_hull t (moved_hull d floor b)) src top)
    | b :: dst' => let p := pour d floor src' dst' top in (joined_hull b (moved_hull d floor a) :: fst p, snd p) end
  end.
Definition poured (h floor : Z) (from acc : frame) : frame :=
  let d := first_of h in let far := f_from from + second_of h - f_from acc in let top := joined_hull (f_top acc) (moved_hull d floor (f_top from)) in
  if 0 <=? far then let n := Z.to_nat (Z.min far (Z.of_nat (length (f_bands acc)))) in let p := pour d floor (f_bands from) (skipn n (f_bands acc)) top in
    {| f_from := f_from acc; f_bands := firstn n (f_bands acc) ++ fst p; f_top := snd p |}
  else let n := Z.to_nat (Z.min (- far) (Z.of_nat (length (f_bands from)))) in let low := fold_left joined_hull (firstn n (f_bands from)) None in
    let p := pour d floor (match skipn n (f_bands from) with [] => [low] | a :: l => joined_hull low a :: l end) (f_bands acc) top in
    {| f_from := f_from acc; f_bands := fst p; f_top := snd p |}.
Fixpoint change {X} (n : nat) (f : X -> X) (l : list X) : list X := match l, n with [], _ => [] | a :: l', O => f a :: l' | a :: l', S n' => a :: change n' f l' end.
Definition over {X} (f : X -> Z -> X -> X) (from : list X) (ms : list (list move)) (blank : list X) : list X :=
  fold_left (fun acc p => fold_left (fun acc g => let '(s', h, _) := g in change s' (f (fst p) h) acc) (snd p) acc) (combine from ms) blank.
Definition panes_in (reach : Z) (p : frame * endings) : panes :=
  let '(f, (ending, _)) := p in (f_from f, (map (fun a => window_in reach a ending) (f_bands f), window_in reach (f_top f) ending)).
Fixpoint all_panes (reach : Z) (ms : list (list (list move))) (ends : list (list endings)) (ys : list hull) (frames : list frame) : list (list panes) :=
  match ms, ends with
  | gs :: ms', E :: ends' =>
      let ys' := over (fun y h acc => joined_hull acc (moved_hull (second_of h) (- reach) y)) ys gs (map (fun _ => None) ys) in
      let frames' := over (fun f h acc => poured h (- reach) f acc) frames gs (map (fun p => blank_frame (window_in reach (fst p) (sure (snd (snd p))))) (combine ys' (hd [] ends'))) in
      map (panes_in reach) (combine frames E) :: all_panes reach ms' ends' ys' frames'
  | _, _ => []
  end.
Definition of_first {X} (a b : X) : list X := map (fun s => if Nat.eqb s 0 then a else b) (seq 0 (states A)).
Definition windows_both (rows : list row) (Ms : list (list Z)) (reach z y : Z) : list (list panes) :=
  let ms := all_moves rows Ms in let ends := all_endings ms in let z := Z.max (- reach) z in let y := Z.max (- reach) y in
  let w := window_in reach (Some (y, y)) (sure (snd (nth 0 (hd [] ends) (None, None)))) in
  let start := match snd w with O => {| f_from := y; f_bands := []; f_top := Some (z, z) |} | _ => {| f_from := y; f_bands := [Some (z, z)]; f_top := None |} end in
  all_panes reach ms ends (of_first (Some (y, y)) None) (of_first start (blank_frame (0, O))).
Definition count_both (Ds Es : list row) (Ms : list (list Z)) (reach z y : Z) : option Z :=
  match pair_rows Ds Es with Some rows => count_both_in rows Ms (windows_both rows Ms reach z y) z y | None => None end.

(** ** The truth *)
Definition reaches_both (rows : list row) (z y : Z) (x : list nat) : bool := match along_both rows x with Some (d, e) => (0 <=? z + d) && (0 <=? y + e) | None => false end.
Definition counted_both (rows : list row) (s : nat) (z y : Z) (x : list nat) : bool := accepts_from A s x && reaches_both rows z y x.
Lemma counted_both_cons r rows s z y t x : counted_both (r :: rows) s z y (t :: x) =
  match step A s t, nth t r None with Some s', Some h => counted_both rows s' (z + first_of h) (y + second_of h) x | _, _ => false end.
Proof.
  unfold counted_both, reaches_both. cbn [accepts_from along_both]. destruct (step A s t); [|reflexivity]. destruct (nth t r None) as [h|]; [|apply andb_false_r].
  destruct (along_both rows x) as [[d e]|]; [|reflexivity]. rewrite !Z.add_assoc. reflexivity.
Qed.
Variable v : nat.
Definition cnt_both (rows : list row) (Ms : list (list Z)) (s : nat) (z y : Z) : Z := integral v Ms (fun x => one (counted_both rows s z y x)).
Lemma cnt_both_cons r rows M Ms s z y : cnt_both (r :: rows) (M :: Ms) s z y =
  zsum (fun t => match step A s t, nth t r None with Some s', Some h => nth t M 0 * cnt_both rows Ms s' (z + first_of h) (y + second_of h) | _, _ => 0 end) (seq 0 v).
Proof.
  unfold cnt_both. cbn [integral]. apply zsum_ext. intros t _.
  assert (E : integral v Ms (fun x => one (counted_both (r :: rows) s z y (t :: x))) =
    match step A s t, nth t r None with Some s', Some h => integral v Ms (fun x => one (counted_both rows s' (z + first_of h) (y + second_of h) x)) | _, _ => 0 end).
  { destruct (step A s t) as [s'|] eqn:E1; [destruct (nth t r None) as [h|] eqn:E2|].
    - apply integral_same. intros x. rewrite counted_both_cons, E1, E2. reflexivity.
    - rewrite <- (integral_zero v Ms). apply integral_same. intros x. rewrite counted_both_cons, E1, E2. reflexivity.
    - rewrite <- (integral_zero v Ms). apply integral_same. intros x. rewrite counted_both_cons, E1. reflexivity. }
  rewrite E. destruct (step A s t); [destruct (nth t r None)|]; lia.
Qed.
Lemma cnt_both_mono rows Ms s z z' y y' : nonneg Ms = true -> z <= z' -> y <= y' -> cnt_both rows Ms s z y <= cnt_both rows Ms s z' y'.
Proof.
  intros HM Hz Hy. apply integral_le; [exact HM|]. intros x _. unfold counted_both, reaches_both. destruct (accepts_from A s x); [|simpl; lia]. cbn [andb].
  destruct (along_both rows x) as [[d e]|]; [|simpl; lia]. destruct (Z.leb_spec 0 (z + d)); destruct (Z.leb_spec 0 (z' + d)); destruct (Z.leb_spec 0 (y + e)); destruct (Z.leb_spec 0 (y' + e)); simpl; lia.
Qed.
Lemma cnt_both_nonneg rows Ms s z y : nonneg Ms = true -> 0 <= cnt_both rows Ms s z y.
Proof. intros HM. rewrite <- (integral_zero v Ms). apply integral_le; [exact HM|]. intros x _. destruct (counted_both rows s z y x); simpl; lia. Qed.

(** ** Soundness *)
Definition above_band (c : Z -> Z) (k M : Z) (b : band) := above c (b_from b) k M (b_table b) /\ forall z, z < b_need b -> c z <= 0.
Definition partial_band (c : Z -> Z) (k M : Z) (b : band) := partial c (b_from b) k M (b_table b) /\ forall z, z < b_need b -> c z <= 0.
Definition above_both (c : Z -> Z -> Z) (k M : Z) (s : sheet) := (forall y, above_band (fun z => c z y) k M (band_at s y)) /\ (forall y, above_band (fun z => c z y) k M (snd (snd s))).
Definition partial_both (c : Z -> Z -> Z) (k M : Z) (s : sheet) :=
  (forall u, (u < length (fst (snd s)))%nat -> partial_band (fun z => c z (fst s + Z.of_nat u)) k M (nth u (fst (snd s)) (snd (snd s)))) /\ (forall y, partial_band (fun z => c z y) k M (snd (snd s))).
Lemma partial_band_le c c' k M b : (forall z, c' z <= c z) -> partial_band c k M b -> partial_band c' k M b.
Proof. intros E [H1 H2]. split; [eapply partial_le; eauto|]. intros z Hz. eapply Z.le_trans; [apply E|apply H2, Hz]. Qed.
Lemma partial_above_band c k M b : 0 <= k -> (forall z z', z <= z' -> c z <= c z') -> partial_band c k M b -> above_band c k M b.
Proof. intros Hk Hm [H1 H2]. split; [apply partial_above; assumption|exact H2]. Qed.
Lemma partial_above_both c k M s : 0 <= k -> (forall z z' y y', z <= z' -> y <= y' -> c z y <= c z' y') -> partial_both c k M s -> above_both c k M s.
Proof.
  intros Hk Hm [P1 P2]. assert (Q : forall y, above_band (fun z => c z y) k M (snd (snd s))) by (intros y; apply partial_above_band; [exact Hk|intros; apply Hm; lia|apply P2]).
  split; [|exact Q]. intros y. unfold band_at. destruct (Nat.lt_ge_cases (Z.to_nat (y - fst s)) (length (fst (snd s)))) as [Hu|Hu].
  - apply partial_above_band; [exact Hk|intros; apply Hm; lia|]. eapply partial_band_le; [|apply (P1 _ Hu)]. intros z. apply Hm; lia.
  - rewrite nth_overflow by exact Hu. apply Q.
Qed.
Lemma nth_skipn {X} n : forall (l : list X) u d, nth u (skipn n l) d = nth (n + u) l d.
Proof. induction n as [|n IH]; intros l u d; [reflexivity|]. destruct l as [|a l]; [destruct u; reflexivity|apply IH]. Qed.
Lemma keeping_nth f acc : forall j u df, (u < length acc)%nat -> nth u (keeping j f acc) df = if Z.of_nat u <? to_Z j then nth u acc df else nth (u - Z.to_nat (to_Z j)) (f (skipn (Z.to_nat (to_Z j)) acc)) df.
Proof.
  induction acc as [|a acc IH]; intros j u df Hu; simpl in Hu; [lia|]. cbn [keeping]. destruct (j =? 0)%uint63 eqn:E.
  - rewrite (zero_Z j E). destruct (Z.ltb_spec (Z.of_nat u) 0); [lia|]. simpl. rewrite Nat.sub_0_r. reflexivity.
  - destruct (pred_Z j E) as [E1 E2]. destruct u as [|u]; cbn [nth].
    + destruct (Z.ltb_spec (Z.of_nat 0) (to_Z j)); [reflexivity|simpl in *; lia].
    + rewrite IH, E1 by lia. replace (Z.of_nat (S u) <? to_Z j) with (Z.of_nat u <? to_Z j - 1) by (destruct (Z.ltb_spec (Z.of_nat u) (to_Z j - 1)); destruct (Z.ltb_spec (Z.of_nat (S u)) (to_Z j)); lia).
      replace (Z.to_nat (to_Z j)) with (S (Z.to_nat (to_Z j - 1))) by lia. cbn [skipn]. reflexivity.
Qed.
Lemma keeping_length f acc : (forall l, length (f l) = length l) -> forall j, length (keeping j f acc) = length acc.
Proof. intros Hf. induction acc as [|a acc IH]; intros j; cbn [keeping]; destruct (_ =? _)%uint63; auto. cbn [length]. rewrite IH. reflexivity. Qed.
Lemma shifted_length d n tab acc : length (fst (shifted d n tab acc)) = length (fst acc).
Proof. unfold shifted. destruct tab as [E T]. cbn [fst]. destruct (_ && _); [apply addpos_length|]. destruct (_ && _); [apply addneg_length|apply addpos_length]. Qed.
Lemma shifted_beyond_ok c c' l l' k M B n d j tab acc : 0 <= k -> 0 <= n < small -> B + n * M < small -> (forall u, Z.of_nat u < j -> c (l' + Z.of_nat u + d) <= 0) ->
  above c l k M tab -> partial c' l' k B acc -> partial (fun z => c' z + n * c (z + d)) l' k (B + n * M) (shifted_beyond j (d + (l' - l)) n tab acc).
Proof.
  intros Hk Hn HB Hj Hab (P1 & P2 & P3). unfold shifted_beyond. set (i := Z.max 0 (Z.min j wide)). assert (Hi : 0 <= i <= wide) by (change wide with (2 ^ 40) in *; lia).
  assert (Wi : to_Z (Uint63.of_Z i) = i) by (apply of_Z_small; unfold small; change wide with (2 ^ 40) in Hi; lia). destruct acc as [acc U]. cbn [fst snd] in *.
  assert (Rest : partial (fun z => c' z + n * c (z + d)) (l' + i) k (B + n * M) (shifted (d + (l' + i - l)) n tab (skipn (Z.to_nat i) acc, U))).
  { apply shifted_ok; auto. split; [|split]; cbn [fst snd]; auto. intros u Hu. rewrite skipn_length in Hu. rewrite nth_skipn. specialize (P1 (Z.to_nat i + u)%nat ltac:(lia)).
    replace (l' + i + Z.of_nat u) with (l' + Z.of_nat (Z.to_nat i + u)) by lia. exact P1. }
  destruct Rest as (R1 & R2 & R3). assert (T0 : forall acc' V, fst (shifted (d + (l' + i - l)) n tab (acc', V)) = fst (shifted (d + (l' + i - l)) n tab (acc', U))) by (intros; destruct tab; reflexivity).
  assert (TT : snd (shifted (d + (l' + i - l)) n tab (skipn (Z.to_nat i) acc, U)) = (U + Uint63.of_Z n * snd tab)%uint63) by (destruct tab; reflexivity). rewrite TT in R2, R3.
  assert (HM0 : 0 <= n * M) by (destruct Hab as (_ & _ & _ & H); pose proof (to_Z_bounded (snd tab)); nia).
  replace (d + (l' - l) + i) with (d + (l' + i - l)) by lia. split; [|split]; cbn [fst snd]; [|exact R2|exact R3].
  intros u Hu. rewrite keeping_length in Hu by (intros; apply shifted_length). rewrite keeping_nth by exact Hu. rewrite Wi. destruct (Z.ltb_spec (Z.of_nat u) i) as [Hlt|Hge].
  - destruct (P1 u Hu). specialize (Hj u ltac:(lia)). split; nia.
  - rewrite T0. specialize (R1 (u - Z.to_nat i)%nat). rewrite shifted_length in R1. cbn [fst] in R1. rewrite skipn_length in R1. specialize (R1 ltac:(lia)).
    replace (l' + i + Z.of_nat (u - Z.to_nat i)) with (l' + Z.of_nat u) in R1 by lia. exact R1.
Qed.
Lemma further_nth e B T many u : (u < many)%nat -> nth u (further e B T many) T = nth (Z.to_nat (Z.of_nat u + e)) B T.
Proof.
  intros Hu. unfold further. destruct (Z.leb_spec 0 e) as [He|He].
  - rewrite nth_skipn. destruct (Z.le_gt_cases e (Z.of_nat (length B))); [f_equal; lia|]. rewrite !nth_overflow by lia. reflexivity.
  - destruct (Nat.lt_ge_cases u (Z.to_nat (Z.min (- e) (Z.of_nat many)))) as [H|H].
    + rewrite app_nth1 by (rewrite repeat_length; exact H). replace (Z.to_nat (Z.of_nat u + e)) with O by lia.
      rewrite (nth_indep _ T (hd T B)) by (rewrite repeat_length; exact H). rewrite nth_repeat. destruct B; reflexivity.
    + rewrite app_nth2 by (rewrite repeat_length; exact H). rewrite repeat_length. f_equal. lia.
Qed.
Lemma add_bands_length d n T acc : forall B, length (add_bands d n B T acc) = length acc.
Proof. induction acc as [|a acc IH]; intros [|b B]; simpl; auto. Qed.
Lemma add_bands_nth d n T df df' acc : forall B u, (u < length acc)%nat -> nth u (add_bands d n B T acc) df = band_shifted d n (nth u B T) (nth u acc df').
Proof.
  induction acc as [|a acc IH]; intros [|b B] u Hu; simpl in Hu; try lia; (destruct u as [|u]; [reflexivity|]); cbn [add_bands nth]; rewrite IH by lia; [destruct u|]; reflexivity.
Qed.
Lemma band_shifted_ok c c' k M B n d from acc : 0 <= k -> 0 <= n < small -> B + n * M < small ->
  above_band c k M from -> partial_band c' k B acc -> partial_band (fun z => c' z + n * c (z + d)) k (B + n * M) (band_shifted d n from acc).
Proof.
  intros Hk Hn HB [A1 A2] [P1 P2]. unfold band_shifted. destruct (snd (b_table from) =? 0)%uint63 eqn:E.
  - assert (Z0 : forall z, c z <= 0) by (intros z; destruct A1 as (_ & H & _); specialize (H z); rewrite (zero_Z _ E) in H; lia).
    assert (HM : 0 <= M) by (destruct A1 as (_ & _ & _ & H); pose proof (to_Z_bounded (snd (b_table from))); lia).
    split; [eapply partial_weaken; [|eapply partial_le; [|exact P1]]; [nia|intros z; specialize (Z0 (z + d)); cbv beta; nia]|]. intros z Hz. specialize (P2 z Hz). specialize (Z0 (z + d)). nia.
  - split; cbn [b_from b_need b_table].
    + apply shifted_beyond_ok; auto. intros u Hu. apply A2. lia.
    + intros z Hz. specialize (P2 z ltac:(lia)). specialize (A2 (z + d) ltac:(lia)). nia.
Qed.
Lemma sheet_shifted_ok c c' k M B n h from acc : 0 <= k -> 0 <= n < small -> B + n * M < small -> above_both c k M from -> partial_both c' k B acc ->
  partial_both (fun z y => c' z y + n * c (z + first_of h) (y + second_of h)) k (B + n * M) (sheet_shifted h n from acc).
Proof.
  intros Hk Hn HB [A1 A2] [P1 P2]. destruct from as [l [Bs T]]. destruct acc as [l' [bands U]]. unfold sheet_shifted. unfold band_at in A1. cbn [fst snd] in *. split; cbn [fst snd].
  - intros u Hu. rewrite add_bands_length in Hu. specialize (P1 u Hu). rewrite (add_bands_nth _ _ _ _ U) by exact Hu. rewrite further_nth by exact Hu.
    replace (Z.to_nat (Z.of_nat u + (second_of h + (l' - l)))) with (Z.to_nat (l' + Z.of_nat u + second_of h - l)) by (f_equal; lia).
    apply (band_shifted_ok (fun z => c z (l' + Z.of_nat u + second_of h)) (fun z => c' z (l' + Z.of_nat u))); auto.
  - intros y. apply (band_shifted_ok (fun z => c z (y + second_of h)) (fun z => c' z y)); auto.
Qed.
Lemma partial_both_le c c' k M s : (forall z y, c' z y <= c z y) -> partial_both c k M s -> partial_both c' k M s.
Proof. intros E [H1 H2]. split; [intros u Hu|intros y]; eapply partial_band_le; [intros z; apply E|apply H1, Hu|intros z; apply E|apply H2]. Qed.
Lemma partial_both_weaken c k M M' s : M <= M' -> partial_both c k M s -> partial_both c k M' s.
Proof. intros E [H1 H2]. split; [intros u Hu; destruct (H1 u Hu) as [P Q]|intros y; destruct (H2 y) as [P Q]]; (split; [eapply partial_weaken; [exact E|exact P]|exact Q]). Qed.
Lemma sheet_rounded_ok c k M e s : 0 <= k -> 0 <= e < 62 -> M < small -> above_both c k M s -> above_both c (k * 2 ^ e) (up M e) (sheet_rounded e s).
Proof.
  intros Hk He HM [H1 H2]. assert (Q : forall c b, above_band c k M b -> above_band c (k * 2 ^ e) (up M e) (band_rounded e b)) by (intros c' b [P1 P2]; split; [apply round_ok; auto|exact P2]).
  split; intros y; [|apply Q, H2]. specialize (H1 y). unfold band_at in *. cbn [sheet_rounded fst snd]. rewrite (map_nth (band_rounded e)). apply Q, H1.
Qed.
Lemma blanks_ok k w : partial_both (fun _ _ => 0) k 0 (blanks w).
Proof.
  assert (E : forall w c l, (forall z, c z = 0) -> partial c l k 0 (repeat 0%uint63 w, 0%uint63)).
  { intros n c l Hc. split; [|split]; cbn [fst snd]; [|intros z; rewrite Hc; change (to_Z 0) with 0; lia|change (to_Z 0) with 0; lia].
    intros u Hu. rewrite Hc. replace (nth u (repeat 0%uint63 n) 0%uint63) with 0%uint63 by (symmetry; apply nth_repeat). change (to_Z 0) with 0. lia. }
  split; [intros u Hu|intros y]; cbn [blanks fst snd]; [rewrite (map_nth blank)|]; (split; [apply E; reflexivity|reflexivity]).
Qed.
Hypothesis HA : closed A = true.
Definition fine_both (rows : list row) (Ms : list (list Z)) (L : level_both) := 0 < scale_both L /\ 1 <= most_both L < small /\ length (sheets L) = states A /\
  forall s, (s < states A)%nat -> above_both (cnt_both rows Ms s) (scale_both L) (most_both L) (nth s (sheets L) no_sheet).
Lemma fine_both_last : fine_both [] [] last_both.
Proof.
  assert (E : forall s z y, cnt_both [] [] s z y = one (final A s && ((0 <=? z) && (0 <=? y)))) by (intros; unfold cnt_both, counted_both, reaches_both; cbn; rewrite !Z.add_0_r; reflexivity).
  split; [reflexivity|]. split; [split; reflexivity|]. split; [simpl; rewrite map_length, seq_length; reflexivity|].
  intros s Hs. unfold last_both. cbn [sheets scale_both most_both]. rewrite nth_map_seq by exact Hs.
  assert (T : forall y, above_band (fun z => cnt_both [] [] s z y) 1 1 {| b_from := 0; b_need := 0; b_table := ([], if final A s then 1%uint63 else 0%uint63) |}).
  { intros y. assert (Q : forall z, cnt_both [] [] s z y <= to_Z (if final A s then 1%uint63 else 0%uint63)) by (intros z; rewrite E; destruct (final A s); destruct (0 <=? z); destruct (0 <=? y); cbn; lia).
    split; [repeat split; cbn [b_from b_table fst snd]|cbn [b_need]].
    - intros z. specialize (Q z). unfold read. cbn [fst snd]. destruct (Z.to_nat _); cbn [nth]; lia.
    - intros z. specialize (Q z). lia.
    - intros x [].
    - destruct (final A s); cbn; lia.
    - intros z Hz. rewrite E. destruct (Z.leb_spec 0 z); [lia|]. rewrite andb_false_r. cbn. lia. }
  split; intros y; [|apply T]. unfold band_at. cbn [fst snd]. destruct (Z.leb_spec 0 y) as [Hy|Hy].
  - replace (Z.to_nat (y - -1)) with (S (Z.to_nat y)) by lia. cbn [nth]. destruct (Z.to_nat y); apply T.
  - replace (Z.to_nat (y - -1)) with O by lia. cbn [nth]. assert (E0 : forall z, cnt_both [] [] s z y = 0) by (intros z; rewrite E; destruct (Z.leb_spec 0 y); [lia|]; rewrite !andb_false_r; reflexivity).
    unfold blank. split; [repeat split; cbn [b_from b_table fst snd repeat]|intros z _; rewrite E0; lia].
    + intros z. rewrite E0. unfold read. cbn [fst snd]. destruct (Z.to_nat _); cbn; lia.
    + intros z. rewrite E0. cbn. lia.
    + intros x [].
    + cbn. lia.
Qed.
Definition weigh_both (f : nat -> Z -> Z -> Z) (z y : Z) (l : list (nat * Z * Z)) : Z := zsum (weigh (fun s h => f s (z + first_of h) (y + second_of h))) l.
Lemma fold_both_ok rows Ms k M from : nonneg Ms = true -> 0 <= k -> 0 <= M ->
  (forall s, (s < states A)%nat -> above_both (cnt_both rows Ms s) k M (nth s from no_sheet)) -> forall gs c B acc,
  (forall g, In g gs -> 0 <= snd g < small /\ (fst (fst g) < states A)%nat) -> 0 <= B -> B + zsum (weigh (fun _ _ => M)) gs < small -> partial_both c k B acc ->
  partial_both (fun z y => c z y + weigh_both (cnt_both rows Ms) z y gs) k (B + zsum (weigh (fun _ _ => M)) gs)
    (fold_left (fun acc g => let '(s', h, n) := g in sheet_shifted h n (nth s' from no_sheet) acc) gs acc).
Proof.
  unfold weigh_both. intros HM Hk HM0 HF. induction gs as [|[[s h] n] gs IH]; intros c B acc Hg HB HS Hp.
  - cbn. rewrite Z.add_0_r. eapply partial_both_le; [|exact Hp]. intros z y. cbn. lia.
  - cbn [fold_left]. rewrite zsum_cons in *. cbn [weigh] in HS |- *. destruct (Hg _ (or_introl eq_refl)) as [Hn Hs]. simpl in Hn, Hs.
    assert (Hrest : 0 <= zsum (weigh (fun _ _ => M)) gs).
    { apply zsum_nonneg. intros [[a b] m] Hin. destruct (Hg _ (or_intror Hin)) as [Hm _]. simpl in *. nia. }
    assert (Hp' : partial_both (fun z y => c z y + n * cnt_both rows Ms s (z + first_of h) (y + second_of h)) k (B + n * M) (sheet_shifted h n (nth s from no_sheet) acc)) by (apply sheet_shifted_ok; auto; nia).
    replace (B + (n * M + zsum (weigh (fun _ _ => M)) gs)) with (B + n * M + zsum (weigh (fun _ _ => M)) gs) by lia.
    eapply partial_both_le; [|apply IH; [intros; apply Hg; right; auto|nia|lia|exact Hp']]. intros z y. cbv beta. rewrite zsum_cons. cbn [weigh]. lia.
Qed.
Lemma next_both_ok rows Ms r M L w L' : nonneg (M :: Ms) = true -> fine_both rows Ms L -> next_both L r M w = Some L' -> fine_both (r :: rows) (M :: Ms) L'.
Proof.
  intros HM (F1 & F2 & F3 & F4). unfold next_both. set (e := if _ <? small then 0 else _). set (B := Z.max 1 (here r M * up (most_both L) e)).
  destruct ((B <? small) && (0 <=? e) && (e <? 62)) eqn:E; [|discriminate]. apply andb_prop in E. destruct E as [E E3]. apply andb_prop in E. destruct E as [E1 E2]. apply Z.ltb_lt in E1, E3. apply Z.leb_le in E2.
  assert (P : 0 < 2 ^ e) by (apply Z.pow_pos_nonneg; lia). pose proof (nonneg_tail _ _ HM) as HM'.
  assert (U1 : 1 <= up (most_both L) e). { pose proof (up_ge (most_both L) e E2). nia. }
  injection 1 as <-. split; [simpl; nia|split; [|split]]; cbn [sheets scale_both most_both]; [unfold B in *; lia|rewrite map_length, seq_length; reflexivity|].
  intros s Hs. rewrite nth_map_seq by exact Hs. apply partial_above_both; [nia|intros; apply cnt_both_mono; auto|].
  destruct (groups_ok A v HA s r M (up (most_both L) e) ltac:(lia) (nonneg_in M Ms HM)) as (S1 & S2 & S3). fold (groups s r M) in S1, S2, S3.
  apply (partial_both_weaken _ _ (0 + zsum (weigh (fun _ _ => up (most_both L) e)) (groups s r M))); [unfold B; lia|].
  assert (HF : forall s1, (s1 < states A)%nat -> above_both (cnt_both rows Ms s1) (scale_both L * 2 ^ e) (up (most_both L) e) (nth s1 (map (sheet_rounded e) (sheets L)) no_sheet)).
  { intros s1 Hs1. rewrite (nth_indep _ _ (sheet_rounded e no_sheet)) by (rewrite map_length; lia). rewrite map_nth. apply sheet_rounded_ok; auto; lia. }
  eapply partial_both_le; [|apply (fold_both_ok rows Ms (scale_both L * 2 ^ e) (up (most_both L) e) (map (sheet_rounded e) (sheets L)) HM' ltac:(nia) ltac:(lia) HF (groups s r M) (fun _ _ => 0) 0)].
  - intros z y. cbv beta. unfold weigh_both. rewrite cnt_both_cons, Z.add_0_l. apply (S3 (fun s' h => cnt_both rows Ms s' (z + first_of h) (y + second_of h))). intros; apply cnt_both_nonneg, HM'.
  - intros g Hg. destruct (S2 g Hg) as (G1 & G2 & G3). split; [|exact G3]. unfold B in E1. nia.
  - lia.
  - unfold B in E1. lia.
  - apply blanks_ok.
Qed.
Lemma levels_both_ok rows : forall Ms ws L, nonneg Ms = true -> levels_both rows Ms ws = Some L -> fine_both rows Ms L.
Proof.
  induction rows as [|r rows IH]; intros [|M Ms] [|w ws] L HM H; simpl in H; try discriminate; try (injection H as <-; apply fine_both_last).
  destruct (levels_both rows Ms ws) as [L0|] eqn:E; [|discriminate]. eapply next_both_ok; eauto. eapply IH; [|exact E]. apply (nonneg_tail M), HM.
Qed.
(** The programme counts at least the true mass, whatever the windows. *)
Theorem count_both_ge Ds Es Ms reach z y n : nonneg Ms = true -> count_both Ds Es Ms reach z y = Some n ->
  integral v Ms (fun x => one (accepts A x && (reaches Ds z x && reaches Es y x))) <= n.
Proof.
  unfold count_both, count_both_in. intros HM. destruct (pair_rows Ds Es) as [rows|] eqn:Er; [|discriminate]. destruct (levels_both rows Ms _) as [L|] eqn:E; [|discriminate]. injection 1 as <-.
  destruct (levels_both_ok _ _ _ _ HM E) as (_ & _ & _ & F). destruct (F O (closed_first A HA)) as [F' _]. destruct (F' y) as [(F'' & _) F3].
  eapply Z.le_trans; [|unfold read_both; destruct (Z.ltb_spec z (b_need (band_at (nth 0 (sheets L) no_sheet) y))) as [Hz|Hz]; [rewrite Z.mul_0_r; apply (F3 z Hz)|apply (F'' z)]]. apply integral_le; [exact HM|]. intros x _. unfold counted_both, reaches_both, reaches, accepts. destruct (accepts_from A 0 x); [|simpl; lia]. cbn [andb].
  destruct (along Ds x) as [a|] eqn:Ea; [|cbn; destruct (match along_both rows x with Some _ => _ | None => _ end); cbn; lia]. destruct (along Es x) as [b|] eqn:Eb; [|rewrite andb_false_r; cbn; destruct (match along_both rows x with Some _ => _ | None => _ end); cbn; lia].
  rewrite (pair_rows_along Ds Es rows x a b Er Ea Eb). lia.
Qed.
End Both.
