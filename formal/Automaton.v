(** Deterministic automata as tables, with state 0 first. Two programmes are checked, not trusted: merging states, and splits. *)
From Coq Require Import List Arith Bool Lia.
Import ListNotations.

Record dfa := { moves : list (list (option nat)); accepting : list bool }.
Definition states (A : dfa) := length (moves A).
Definition step (A : dfa) (s t : nat) : option nat := nth t (nth s (moves A) []) None.
Definition final (A : dfa) (s : nat) : bool := nth s (accepting A) false.
Fixpoint accepts_from (A : dfa) (s : nat) (x : list nat) : bool :=
  match x with [] => final A s | t :: x' => match step A s t with Some s' => accepts_from A s' x' | None => false end end.
Definition accepts (A : dfa) (x : list nat) := accepts_from A 0 x.
(** Every move leads to a state. *)
Definition closed (A : dfa) : bool :=
  Nat.ltb 0 (states A) && forallb (forallb (fun o => match o with Some s => Nat.ltb s (states A) | None => true end)) (moves A).
Lemma closed_step A s t s' : closed A = true -> step A s t = Some s' -> s' < states A.
Proof.
  unfold closed, step. intros H E. apply andb_prop in H. destruct H as [_ H]. rewrite forallb_forall in H.
  destruct (nth_in_or_default s (moves A) []) as [Hin|Hd]; [|rewrite Hd in E; destruct t; discriminate]. specialize (H _ Hin). rewrite forallb_forall in H.
  destruct (nth_in_or_default t (nth s (moves A) []) None) as [Hin'|Hd]; [|congruence]. specialize (H _ Hin'). rewrite E in H. apply Nat.ltb_lt, H.
Qed.
Lemma closed_first A : closed A = true -> 0 < states A.
Proof. unfold closed. intros H. apply andb_prop in H. apply Nat.ltb_lt, H. Qed.

(** Tokens that some state has a move for. *)
Fixpoint either (a b : list bool) : list bool :=
  match a, b with [], _ => b | _, [] => a | x :: a', y :: b' => (x || y) :: either a' b' end.
Definition has_move (o : option nat) := match o with Some _ => true | None => false end.
Definition live (A : dfa) : list bool := fold_right (fun r => either (map has_move r)) [] (moves A).
Lemma either_nth a : forall b t, nth t (either a b) false = nth t a false || nth t b false.
Proof. induction a as [|x a IH]; intros [|y b] [|t]; simpl; auto using orb_false_r. Qed.
Lemma live_step A s t s' : step A s t = Some s' -> nth t (live A) false = true.
Proof.
  unfold step, live. intros H. revert s H. induction (moves A) as [|r l IH]; intros s H; [destruct s; destruct t; discriminate|].
  simpl. rewrite either_nth. destruct s as [|s]; simpl in H; [|rewrite (IH s H); apply orb_true_r].
  replace (nth t (map has_move r) false) with (has_move (nth t r None)); [rewrite H; reflexivity|]. symmetry. apply (map_nth has_move r None t).
Qed.
Lemma accepts_live A x : forall s, accepts_from A s x = true -> forall t, In t x -> nth t (live A) false = true.
Proof.
  induction x as [|u x IH]; intros s H t Ht; [destruct Ht|]. simpl in H. destruct (step A s u) as [s'|] eqn:E; [|discriminate].
  destruct Ht as [<-|Ht]; [eapply live_step; eauto|eapply IH; eauto].
Qed.

(** * Merging states: a map from the states of [A] to those of [B]; dead states have no accepted ending. *)
Inductive image := Unreached | Dead | At (b : nat).
Definition is_at (i : image) (b : nat) := match i with At b' => Nat.eqb b' b | _ => false end.
Definition is_dead (i : image) := match i with Dead => true | _ => false end.
Section Merge.
Variable f : list image.
Definition img (s : nat) := nth s f Unreached.
Fixpoint match_moves (la lb : list (option nat)) : bool :=
  match la, lb with
  | [], [] => true
  | a :: la', b :: lb' =>
      match a, b with None, None => true | Some s, Some b' => is_at (img s) b' | Some s, None => is_dead (img s) | None, Some _ => false end && match_moves la' lb'
  | _, _ => false
  end.
Definition merges (A B : dfa) : bool :=
  Nat.eqb (length f) (states A) && is_at (img 0) 0 &&
  forallb (fun s => match img s with
    | At b => Bool.eqb (final A s) (final B b) && match_moves (nth s (moves A) []) (nth b (moves B) [])
    | Dead => negb (final A s) && forallb (fun o => match o with Some z => is_dead (img z) | None => true end) (nth s (moves A) [])
    | Unreached => true end) (seq 0 (states A)).
Lemma match_moves_nth la : forall lb t, match_moves la lb = true ->
  match nth t la None, nth t lb None with None, None => True | Some s, Some b => img s = At b | Some s, None => img s = Dead | None, Some _ => False end.
Proof.
  induction la as [|a la IH]; intros [|b lb] t H; try discriminate; [destruct t; exact I|]. simpl in H. apply andb_prop in H. destruct H as [H1 H2]. destruct t as [|t]; simpl; [|apply IH, H2].
  destruct a as [s|]; destruct b as [b'|]; try discriminate; try exact I; destruct (img s); simpl in H1; try discriminate; [apply Nat.eqb_eq in H1; subst|]; reflexivity.
Qed.
Theorem merges_accepts A B : merges A B = true -> forall x, accepts A x = accepts B x.
Proof.
  unfold merges. intros H. apply andb_prop in H. destruct H as [H H3]. apply andb_prop in H. destruct H as [H1 H2]. apply Nat.eqb_eq in H1. rewrite forallb_forall in H3.
  assert (K : forall s, img s <> Unreached -> In s (seq 0 (states A))).
  { intros s Hs. apply in_seq. destruct (Nat.lt_ge_cases s (states A)); [lia|]. exfalso. apply Hs. unfold img. apply nth_overflow. lia. }
  assert (D : forall x s, img s = Dead -> accepts_from A s x = false).
  { induction x as [|t x IH]; intros s Hs; specialize (H3 s (K s ltac:(congruence))); rewrite Hs in H3; apply andb_prop in H3; destruct H3 as [H4 H5]; simpl.
    - destruct (final A s); [discriminate|reflexivity].
    - destruct (step A s t) as [z|] eqn:E; [|reflexivity]. apply IH. rewrite forallb_forall in H5. unfold step in E.
      destruct (nth_in_or_default t (nth s (moves A) []) None) as [Hin|Hd]; [|congruence]. rewrite E in Hin. specialize (H5 _ Hin). simpl in H5. destruct (img z); try discriminate; reflexivity. }
  assert (M : forall x s b, img s = At b -> accepts_from A s x = accepts_from B b x).
  { induction x as [|t x IH]; intros s b Hs; specialize (H3 s (K s ltac:(congruence))); rewrite Hs in H3; apply andb_prop in H3; destruct H3 as [H4 H5]; simpl; [apply eqb_prop, H4|].
    pose proof (match_moves_nth _ _ t H5) as N. fold (step A s t) in N. fold (step B b t) in N.
    destruct (step A s t) as [z|]; destruct (step B b t) as [b'|]; try contradiction; [apply IH, N|apply D, N|reflexivity]. }
  intros x. apply M. destruct (img 0); try discriminate. simpl in H2. apply Nat.eqb_eq in H2. subst; reflexivity.
Qed.
End Merge.

(** * Splits: token [tok] occurs at least [n] times ([more]), or fewer times. *)
Fixpoint copies (tok : nat) (x : list nat) : nat := match x with [] => 0 | t :: x' => (if Nat.eqb t tok then 1 else 0) + copies tok x' end.
Definition half (tok n : nat) (more : bool) (x : list nat) : bool := Bool.eqb more (Nat.leb n (copies tok x)).
Section Split.
Variables (tok n : nat) (more : bool).
(** State [b] of [B] stands for a state of [A] and a number of copies so far, [n] for [n] or more. *)
Variable g : list (nat * nat).
Definition stands (b : nat) := nth b g (0, S n).
Definition after (c t : nat) := Nat.min n (c + if Nat.eqb t tok then 1 else 0).
Fixpoint split_moves (c t : nat) (la lb : list (option nat)) : bool :=
  match la, lb with
  | [], [] => true
  | a :: la', b :: lb' =>
      match a, b with
      | None, None => true
      | Some z, Some b' => let '(z', c') := stands b' in Nat.eqb z' z && Nat.eqb c' (after c t)
      | Some z, None => negb more && Nat.eqb (after c t) n
      | None, Some _ => false end && split_moves c (S t) la' lb'
  | _, _ => false
  end.
Definition splits (A B : dfa) : bool :=
  Nat.eqb (length g) (states B) && Nat.eqb (fst (stands 0)) 0 && Nat.eqb (snd (stands 0)) 0 && Nat.ltb 0 (states B) && Nat.ltb 0 n &&
  forallb (fun b => let '(s, c) := stands b in
    Bool.eqb (final B b) (final A s && Bool.eqb more (Nat.eqb c n)) && split_moves c 0 (nth s (moves A) []) (nth b (moves B) [])) (seq 0 (states B)).
Lemma split_moves_nth c la : forall lb t0 t, split_moves c t0 la lb = true ->
  match nth t la None, nth t lb None with
  | None, None => True | Some z, Some b => stands b = (z, after c (t0 + t)) | Some z, None => more = false /\ after c (t0 + t) = n | None, Some _ => False end.
Proof.
  induction la as [|a la IH]; intros [|b lb] t0 t H; try discriminate; [destruct t; exact I|]. cbn [split_moves] in H. apply andb_prop in H. destruct H as [H1 H2]. destruct t as [|t]; cbn [nth].
  - rewrite Nat.add_0_r. destruct a as [z|]; destruct b as [b'|]; try discriminate; try exact I.
    + destruct (stands b') as [z' c']. apply andb_prop in H1. destruct H1 as [E1 E2]. apply Nat.eqb_eq in E1, E2. congruence.
    + apply andb_prop in H1. destruct H1 as [E1 E2]. apply Nat.eqb_eq in E2. destruct more; [discriminate|auto].
  - replace (t0 + S t) with (S t0 + t) by lia. apply IH, H2.
Qed.
Lemma fewer_gone A x : forall s, more = false -> accepts_from A s x && Bool.eqb more (Nat.leb n (n + copies tok x)) = false.
Proof. intros s ->. replace (Nat.leb n (n + copies tok x)) with true by (symmetry; apply Nat.leb_le; lia). simpl. apply andb_false_r. Qed.
Theorem splits_accepts A B : splits A B = true -> forall x, accepts B x = accepts A x && half tok n more x.
Proof.
  unfold splits. intros H. repeat (apply andb_prop in H; let K := fresh "K" in destruct H as [H K]). rewrite forallb_forall in K. apply Nat.eqb_eq in H, K2, K3. apply Nat.ltb_lt in K1, K0.
  assert (Kb : forall b s c, stands b = (s, c) -> c <= n -> In b (seq 0 (states B))).
  { intros b s c E Hc. apply in_seq. destruct (Nat.lt_ge_cases b (states B)); [lia|]. unfold stands in E. rewrite nth_overflow in E by lia. injection E as _ <-. lia. }
  assert (M : forall x b s c, stands b = (s, c) -> c <= n -> accepts_from B b x = accepts_from A s x && Bool.eqb more (Nat.leb n (c + copies tok x))).
  { induction x as [|t x IH]; intros b s c E Hc; pose proof (K b (Kb b s c E Hc)) as Q; rewrite E in Q; apply andb_prop in Q; destruct Q as [Q1 Q2]; cbn [accepts_from copies].
    - apply eqb_prop in Q1. rewrite Q1. rewrite Nat.add_0_r. f_equal. f_equal. destruct (Nat.eqb_spec c n); symmetry; [apply Nat.leb_le; lia|apply Nat.leb_gt; lia].
    - pose proof (split_moves_nth c _ _ 0 t Q2) as N. fold (step A s t) in N. fold (step B b t) in N. simpl in N.
      assert (C : after c t <= n /\ Nat.leb n (after c t + copies tok x) = Nat.leb n (c + ((if Nat.eqb t tok then 1 else 0) + copies tok x))).
      { unfold after. split; [lia|]. destruct (Nat.leb_spec n (c + ((if Nat.eqb t tok then 1 else 0) + copies tok x))); [apply Nat.leb_le; lia|apply Nat.leb_gt; lia]. }
      destruct C as [C1 C2]. rewrite <- C2. destruct (step A s t) as [z|]; destruct (step B b t) as [b'|]; try contradiction; [apply IH; auto| |reflexivity].
      destruct N as [N1 N2]. rewrite N2. symmetry. apply fewer_gone, N1. }
  intros x. unfold accepts. rewrite (M x 0 0 0); [|destruct (stands 0); simpl in *; congruence|lia]. reflexivity.
Qed.
End Split.
Lemma half_either tok n x : half tok n true x = negb (half tok n false x).
Proof. unfold half. destruct (Nat.leb n (copies tok x)); reflexivity. Qed.

(** ** The programme that finds such a [B]; nothing is proved about it. *)
Fixpoint position (p : nat * nat) (l : list (nat * nat)) : option nat :=
  match l with [] => None | (a, b) :: l' => if Nat.eqb a (fst p) && Nat.eqb b (snd p) then Some 0 else option_map S (position p l') end.
Section Find.
Variables (A : dfa) (tok n : nat) (more : bool).
Fixpoint followers (c t : nat) (row : list (option nat)) : list (option (nat * nat)) :=
  match row with
  | [] => []
  | o :: row' => match o with
      | Some z => let c' := after tok n c t in if more || Nat.ltb c' n then Some (z, c') else None
      | None => None end :: followers c (S t) row'
  end.
Fixpoint discover (fuel i : nat) (known : list (nat * nat)) : list (nat * nat) :=
  match fuel with
  | O => known
  | S fuel' => match nth_error known i with
      | None => known
      | Some (s, c) => discover fuel' (S i)
          (fold_left (fun k o => match o with Some p => match position p k with None => k ++ [p] | Some _ => k end | None => k end) (followers c 0 (nth s (moves A) [])) known) end
  end.
Definition found := discover (S (states A) * S (S n)) 0 [(0, 0)].
Definition build (known : list (nat * nat)) : dfa :=
  {| moves := map (fun p => map (fun o => match o with Some q => position q known | None => None end) (followers (snd p) 0 (nth (fst p) (moves A) []))) known;
     accepting := map (fun p => final A (fst p) && Bool.eqb more (Nat.eqb (snd p) n)) known |}.
Definition split_dfa : option dfa := let known := found in let B := build known in if splits tok n more known A B && closed B then Some B else None.
Theorem split_dfa_ok B : split_dfa = Some B -> closed B = true /\ forall x, accepts B x = accepts A x && half tok n more x.
Proof.
  unfold split_dfa. destruct (_ && _) eqn:E; [|discriminate]. injection 1 as <-. apply andb_prop in E. destruct E as [E1 E2]. split; [exact E2|]. apply (splits_accepts tok n more found), E1.
Qed.
End Find.
