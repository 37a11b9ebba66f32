"""Reads an OTF2 archive by otf2-print."""
import os
import re
import subprocess


def read_otf2(folder):
    """What otf2-print has of an archive: (kind, location, nanoseconds, attributes), in its order."""
    said = subprocess.run(["otf2-print", os.path.join(folder, "traces.otf2")], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    found = re.findall(r"^([A-Z_]+) +(\d+) +(\d+)  (.*)$", said, re.MULTILINE)
    return [(kind, int(location), int(time), rest) for kind, location, time, rest in found]


def slices_of_otf2(records):
    """(location, name, begin, nanoseconds) of all regions, which are left in the order of a stack."""
    is_open, slices = {}, []
    for kind, location, time, rest in records:
        if kind == "ENTER":
            is_open.setdefault(location, []).append((re.search('"(.*)"', rest).group(1), time))
        elif kind == "LEAVE":
            name, begin = is_open[location].pop()
            assert f'"{name}"' in rest, (name, rest)
            slices.append((location, name, begin, time - begin))
    assert not any(is_open.values())
    return sorted(slices)


def messages_of_otf2(records, kind):
    """The location and the time of each message's end, and the location of the other end, by its tag."""
    ends = {}
    for found, location, time, rest in records:
        if found == kind:
            other, tag = re.match(r"(?:Receiver|Sender): (\d+) .* Tag: (\d+),", rest).groups()
            assert tag not in ends, f"tag {tag} twice"
            ends[tag] = (location, time, int(other))
    return ends
