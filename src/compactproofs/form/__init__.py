"""The network as a sum over positions: tables, and the additive form that every proof starts from."""
