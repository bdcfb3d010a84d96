"""Retrain the bundled models (needs the `train` extra): the paper's recipe, seed 123, one file each.

Bitwise reproducible on one machine and torch build; see docs/explanation/training.md for other machines.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import compactproofs
from compactproofs.training import Recipe, train_seeds

SEED = 123
RECIPES = {
    "max-of-4": Recipe(n_ctx=4, d_vocab=64),
    "max-of-5": Recipe(n_ctx=5, d_vocab=64),
    "max-of-10": Recipe(n_ctx=10, d_vocab=64),
    "max-of-20": Recipe(n_ctx=20, d_vocab=64),
    "max-of-10-v128": Recipe(n_ctx=10, d_vocab=128),
}


def main() -> None:
    """Train each model and put it where the package looks for it."""
    zoo = Path(compactproofs.__file__).parent / "model" / "zoo_data"
    for name, recipe in RECIPES.items():
        with TemporaryDirectory(dir=zoo) as folder:
            (model,) = train_seeds(recipe, [SEED], out=Path(folder))
            assert model.path is not None
            model.path.rename(zoo / f"{name}.safetensors")
        print(f"{name}: loss {model.loss:.5f}, {model.seconds:.1f} s, sha256 {model.weights.sha256[:16]}")


if __name__ == "__main__":
    main()
