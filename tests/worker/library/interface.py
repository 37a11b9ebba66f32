"""Checks of check_library that need no job: what libringside exports, and what its header says."""
import os
import re
import subprocess

SOURCE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(SOURCE, "..", "..", "..", "worker", "library")
VERSIONS = ("@@RINGSIDE_1", "@@RINGSIDE_2", "@@RINGSIDE_3")


def only_ours_is_visible(build):
    library = os.path.join(build, "worker", "library", "libringside.so")
    names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                           check=True).stdout.split("\n")
    names = [line.split()[2] for line in names if " T " in line or " D " in line or " B " in line]
    assert names and all(n.startswith("ringside_") and n.endswith(VERSIONS) for n in names), names
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True)
    assert "soname: [libringside.so.1]" in dynamic.stdout, dynamic.stdout


def read(*names):
    with open(os.path.join(*names), encoding="utf-8") as file:
        return file.read()


def the_header_says_what_there_is():
    """All that is exported, and first what a program needs, which line.c shows."""
    sections = read(LIBRARY, "ringside.h").split("/* ---- ")
    declared = [set(re.findall(r"^[a-z].*?(ringside_\w+)\(", section, re.M)) for section in sections]
    assert set(re.findall(r"ringside_\w+", read(LIBRARY, "ringside.map"))) == set.union(*declared)
    shown = set(re.findall(r"(ringside_\w+)\(", read(SOURCE, "line.c")))
    assert shown - {"ringside_report"} == declared[1] - {"ringside_offset"}, (shown, declared[1])
