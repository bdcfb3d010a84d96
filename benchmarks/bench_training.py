"""Training seeds together against training them one by one, per seed, on one thread."""

import time

from compactproofs.training import Recipe
from compactproofs.training.batched import train_group

STEPS = 150


def main():
    """Print seconds per seed, scaled to the recipe's 3000 steps."""
    for n_ctx, d_vocab in ((4, 64), (20, 64)):
        recipe = Recipe(n_ctx=n_ctx, d_vocab=d_vocab, steps=STEPS)
        train_group(recipe, [0])
        alone = None
        for size in (1, 2, 4, 8, 16):
            started = time.perf_counter()
            train_group(recipe, range(size))
            per_seed = (time.perf_counter() - started) / size * 3000 / STEPS
            alone = alone or per_seed
            print(
                f"max-of-{n_ctx}, v={d_vocab}: {size:2d} together  {per_seed:5.2f} s per seed   {alone / per_seed:5.2f} x faster than alone"
            )


if __name__ == "__main__":
    main()
