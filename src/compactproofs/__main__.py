"""`python -m compactproofs`: the command, wherever its script was installed."""

from compactproofs.cli.main import main

main()
