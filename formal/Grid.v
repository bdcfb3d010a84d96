(** Lemma G (docs, section 3): harms become small integers. [D] is good for the harm [h] at a position with offset [a] (in 256ths of the step)
    and floor [fl] if [-fl <= D], and [h / step - a / 256 <= D] or [D] decides alone. *)
From Coq Require Import Reals Lra Lia List ZArith Bool Arith.
From CompactProofs Require Import Words Count Threshold.
Import ListNotations.
Local Open Scope R_scope.

Definition isum (l : list Z) : Z := fold_right Z.add 0%Z l.
Section Grid.
Variables (step : R) (floors_sum start : Z).
Hypothesis step_pos : 0 < step.
Definition good (h : R) (a fl D : Z) : Prop := (- fl <= D)%Z /\ (h / step - IZR a / 256 <= IZR D \/ (floors_sum - fl - start <= D)%Z).
(** At the last position only the entry of the query [q] matters. *)
Fixpoint gridded (h : nat -> nat -> R) (q i : nat) (rows : list row) (offsets floors : list Z) : Prop :=
  match rows, offsets, floors with
  | [], [], [] => True
  | r :: rows', a :: offsets', fl :: floors' =>
      (forall t D, nth t r None = Some D -> (rows' = [] -> t = q) -> good (h i t) a fl D) /\ gridded h q (S i) rows' offsets' floors'
  | _, _, _ => False
  end.
Lemma gridded_sum h q rows : forall i offsets floors x z, gridded h q i rows offsets floors -> along rows x = Some z -> (x <> [] -> query x = q) ->
  (- isum floors <= z)%Z /\ (sumx h i x / step - IZR (isum offsets) / 256 <= IZR z \/ (floors_sum - isum floors - start <= z)%Z).
Proof.
  induction rows as [|r rows IH]; intros i [|a offsets] [|fl floors] [|t x] z H E Hq; simpl in H, E; try contradiction; try discriminate.
  - injection E as <-. simpl. split; [lia|left; lra].
  - destruct H as [H1 H2]. destruct (nth t r None) as [D|] eqn:Et; [|discriminate]. destruct (along rows x) as [z'|] eqn:Ez; [|discriminate]. injection E as <-.
    assert (Ht : rows = [] -> t = q).
    { intros ->. destruct x; [|discriminate]. symmetry. rewrite <- Hq by discriminate. reflexivity. }
    assert (Hx : x <> [] -> query x = q). { intros Hx. rewrite <- Hq by discriminate. destruct x; [congruence|reflexivity]. }
    destruct (IH (S i) offsets floors x z' H2 Ez Hx) as [F1 F2]. destruct (H1 t D Et Ht) as [G1 G2]. cbn [isum fold_right sumx]. fold (isum offsets). fold (isum floors).
    split; [lia|]. destruct G2 as [G2|G2]; [|right; lia]. destruct F2 as [F2|F2]; [|right; lia]. left. rewrite !plus_IZR. unfold Rdiv in *. lra.
Qed.
(** If the harms add up to at least zero (or to more than zero, if [strict]), the sequence is counted. *)
Theorem lemma_G (strict : bool) h rows offsets floors x z : gridded h (query x) 0 rows offsets floors -> along rows x = Some z -> isum floors = floors_sum ->
  IZR (isum offsets) / 256 - (if strict then 1 else 0) <= IZR start -> (if strict then 0 < sumx h 0 x else 0 <= sumx h 0 x) -> (0 <= start + z)%Z.
Proof.
  intros H E Hf Hs Hx. destruct (gridded_sum h (query x) rows 0 offsets floors x z H E (fun _ => eq_refl)) as [_ [K|K]]; [|lia].
  destruct strict.
  - assert (0 < sumx h 0 x / step) by (apply Rdiv_lt_0_compat; assumption). assert (-1 < IZR (start + z)) as Q by (rewrite plus_IZR; lra). apply lt_IZR in Q. lia.
  - assert (0 <= sumx h 0 x / step) by (apply Rmult_le_pos; [assumption|left; apply Rinv_0_lt_compat, step_pos]). assert (0 <= IZR (start + z)) as Q by (rewrite plus_IZR; lra). apply le_IZR in Q. lia.
Qed.
End Grid.
