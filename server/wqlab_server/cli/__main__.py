"""Entry point of `python -m wqlab_server.cli`."""

from . import main

main()
