"""The commands of ringside with their options, as the programs describe them themselves.

`ringside COMMAND --describe-options` prints what common/options/options.h says of a program and of each row
of its tables, as a JSON object a line.
"""
import json
import os
import subprocess
import sys


def lines_of(path, arguments):
    """What the program describes, whatever this user's environment has."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("RINGSIDE_")}
    run = subprocess.run([path, *arguments, "--describe-options"], env=environment, timeout=60,
                         check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit(f"{path} {' '.join(arguments)} --describe-options ended with status "
                 f"{run.returncode}:\n{run.stderr}")
    return [json.loads(line) for line in run.stdout.splitlines()]


class Command:
    """One command of ringside; `name` is None for ringside itself, which has `commands`."""

    def __init__(self, path, name=None, title=None):
        first, *rest = lines_of(path, [name] if name else [])
        self.name = name
        self.title = title
        self.summary = first["summary"]
        self.example = first["example"]
        # ps and worker are not on PATH: they are reached by way of ringside.
        usage = first["usage"]
        self.usage = usage if usage.startswith("ringside ") else f"ringside {usage}"
        self.options = [row for row in rest if "option" in row]
        self.commands = [(row["command"], row["summary"]) for row in rest if "command" in row]

    @property
    def full_name(self):
        """As manual pages are named: ringside-run."""
        return f"ringside-{self.name}" if self.name else "ringside"


def read(path):
    """ringside itself and its commands, from the built program at `path`."""
    main = Command(path)
    return main, [Command(path, name, title) for name, title in main.commands]
