"""prestart.py PROGRAM LIBRARY COMMAND…: runs a command whose calls of `prestarted` fork a process of PROGRAM that has
loaded LibTorch (prestart.h). LIBRARY is the one of prestart.cpp."""

import os
import socket
import subprocess
import sys


class Prestart:
    """The program in front of its `main`, in this environment; `environment` is the one for its callers."""

    def __init__(self, program, library, environment):
        name = f"translution-test-{os.getpid()}"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("\0" + name)  # abstract: no file
            listener.listen(128)
            self.process = subprocess.Popen(
                [program], pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL,
                env={**environment, "LD_PRELOAD": library, "TRANSLUTION_PRESTART": str(listener.fileno())})
        self.environment = {**environment, "TRANSLUTION_PRESTARTED": name}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


if __name__ == "__main__":
    with Prestart(sys.argv[1], sys.argv[2], dict(os.environ)) as prestart:
        sys.exit(subprocess.run(sys.argv[3:], env=prestart.environment).returncode)
