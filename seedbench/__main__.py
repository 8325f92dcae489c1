"""``python -m seedbench``."""

from seedbench.cli.main import main

main()
