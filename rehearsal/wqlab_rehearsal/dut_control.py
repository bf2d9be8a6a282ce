"""A stand-in for `dut-control` of the Chromium OS hdctools: the client of servod.

    dut-control [--host HOST] [--port PORT] CONTROL...

CONTROL is NAME, which is read, or NAME:VALUE, which is set. Like the real one it waits without a limit for an answer.
"""

from __future__ import annotations

import argparse
import sys
from http.client import HTTPException
from xmlrpc.client import Fault, ProtocolError, ServerProxy

from .servod import DEFAULT_PORT


def main() -> None:
    parser = argparse.ArgumentParser(prog="dut-control", description="Read and set controls of servod.")
    parser.add_argument("--host", default="localhost", help="host of servod; default: %(default)s")
    parser.add_argument("-p", "--port", type=int, default=DEFAULT_PORT, help="default: %(default)s")
    parser.add_argument("controls", nargs="+", metavar="CONTROL", help="NAME or NAME:VALUE")
    arguments = parser.parse_args()
    server = ServerProxy(f"http://{arguments.host}:{arguments.port}", allow_none=True)
    try:
        for request in arguments.controls:
            name, colon, value = request.partition(":")
            if colon:
                server.set(name, value)
            else:
                print(name, server.get(name), sep=":")
    except Fault as fault:
        sys.exit(f"Problem with {arguments.controls} :: {fault.faultString}")
    except OSError as error:
        sys.exit(error.strerror or str(error))
    except (HTTPException, ProtocolError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
