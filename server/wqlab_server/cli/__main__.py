"""Run the command by `python -m wqlab_server.cli`."""

from . import main

main()
