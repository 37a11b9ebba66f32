"""What the checks of `ringside predict` share: the command on the example files, and what was wrong."""
import json
import os
import subprocess
import sys

COSTS = "docs/predict/costs.json"
NETWORK = "docs/predict/network.json"

FAILURES: list[str] = []


def enter_source() -> str:
    """Go to the folder of the source, and return the path of `ringside` in the build."""
    build, source = (os.path.abspath(path) for path in sys.argv[1:3])
    os.chdir(source)
    return os.path.join(build, "deploy", "ringside")


def expect(is_right: bool, what: str) -> None:
    """Keep what is wrong."""
    if not is_right:
        FAILURES.append(what)


def finish() -> None:
    """Fail if something was wrong, and say what."""
    if FAILURES:
        sys.exit("\n".join(FAILURES))


def predict(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command on the example files, unless the arguments name others."""
    return subprocess.run([program, "predict", "--costs", COSTS, "--network", NETWORK, *arguments],
                          check=False, capture_output=True, text=True, timeout=100)


def load(path: str) -> dict:
    """The object of a file."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write_changed(folder: str, source: str, **values: object) -> str:
    """Write the object of a file with other values."""
    changed = {**load(source), **values}
    path = os.path.join(folder, os.path.basename(source))
    with open(path, "w", encoding="utf-8") as file:
        json.dump(changed, file)
    return path
