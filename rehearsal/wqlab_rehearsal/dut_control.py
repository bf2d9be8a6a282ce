"""A stand-in for `dut-control` of the Chromium OS hdctools: the client of servod, with its arguments and answers.

    dut-control [--host HOST] [--port PORT] [-o] CONTROL...

CONTROL is NAME, which is read, or NAME:VALUE, which is set. Like the real one it waits without a limit for an answer,
and without CONTROL it reads all.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from http.client import HTTPException
from xmlrpc.client import Fault, ProtocolError, ServerProxy

from .servod import DEFAULT_PORT


class ServoClientError(Exception):
    """servod refused a request; the message says why."""


def main() -> None:
    arguments = _parse(sys.argv[1:])
    try:
        print_all(arguments)
    except ServoClientError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(error.strerror or str(error))
    except (HTTPException, ProtocolError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dut-control", description="Read and set controls of servod.")
    parser.add_argument("--host", default="localhost", help="host of servod; default: %(default)s")
    parser.add_argument(
        "-p", "--port", type=int, default=os.environ.get("SERVOD_PORT", DEFAULT_PORT), help="default: %(default)s"
    )
    parser.add_argument("-i", "--info", action="store_true", help="show what the controls are")
    parser.add_argument("-o", "--value_only", action="store_true", help="show values without names")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("controls", nargs="*", metavar="CONTROL", help="NAME or NAME:VALUE")
    return parser.parse_args(words)


def print_all(arguments: argparse.Namespace) -> None:
    """Execute the requests and print the values that were read. Raises ServoClientError and OSError."""
    server = ServerProxy(f"http://{arguments.host}:{arguments.port}", allow_none=True)
    controls: list[str] = arguments.controls
    if not controls:
        print(server.get_all(arguments.verbose))
        return
    try:
        values = [server.doc(name) for name in controls] if arguments.info else server.set_get_all(controls)
    except Fault as fault:
        raise ServoClientError(f"Problem with {controls} :: {reason(fault.faultString)}") from fault
    for request, value in zip(controls, list(values) if isinstance(values, list | tuple) else [], strict=True):
        is_set = ":" in request and not arguments.info
        if arguments.verbose:
            kind = "DOC" if arguments.info else "SET" if is_set else "GET"
            print(f"{kind} {request} -> {value}")
        elif not is_set:
            print(value if arguments.value_only else f"{request}:{value}")


def reason(fault: str) -> str:
    """Return the message of an exception of servod without its type, and the names like an unknown one."""
    text = re.sub(r"^<[^>]*>:", "", fault)
    unknown = re.match(r"No control named (\w+)", text)
    if unknown is None:
        return text
    name = unknown.group(1)
    alike = [each for line in text.splitlines()[1:2] for each in line.split(",") if name in each]
    return f'No control named "{name}"\n' + (f"Consider {' '.join(alike)}" if alike else "")


if __name__ == "__main__":
    main()
