"""Prints a line of TAP for each test, where check_python asks for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "worker" / "python"))
os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
sys.dont_write_bytecode = True


class Tap:
    """A plugin of pytest that writes results as TAP."""

    def __init__(self) -> None:
        self.number = 0

    def say(self, result: str, name: str, more: str = "") -> None:
        self.number += 1
        words = name.split("::")[-1].removeprefix("test_").replace("_", " ")
        print(f"{result} {self.number} - {words}", flush=True)
        for line in more.splitlines():
            print(f"# {line}", flush=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            self.say("ok", f"{report.nodeid} # SKIP {report.longrepr[2]}")  # type: ignore[index]
        elif report.failed:
            self.say("not ok", report.nodeid, str(report.longrepr))
        elif report.when == "call":
            self.say("ok", report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.say("not ok", report.nodeid or "collection", str(report.longrepr))

    def pytest_sessionfinish(self) -> None:
        print(f"1..{self.number}", flush=True)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config.option, "verbose"):  # without pytest's own terminal, asserts want it
        config.option.verbose = 0
    if os.environ.get("RINGSIDE_TAP"):
        config.pluginmanager.register(Tap())
