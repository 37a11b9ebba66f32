"""What holds for every timeline of a job: by what the formats say, not by our reader."""
import glob
import json
import os
import sys


def check_events(path):
    """Slices, arrows and order, from the JSON: by what the format says, not by our reader."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    sent = {event["id"]: event for event in events if event["ph"] == "s"}
    received = {event["id"]: event for event in events if event["ph"] == "f"}
    assert set(sent) == set(received) and len(slices) > 100
    for flow, event in sent.items():
        assert event["ts"] <= received[flow]["ts"], (event, received[flow])
    tracks = {}
    for event in slices:
        tracks.setdefault((event["pid"], event["tid"]), []).append(event)
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert set(tracks) <= named
    for track in tracks.values():
        ends = []
        for event in sorted(track, key=lambda event: (event["ts"], -event["dur"])):
            while ends and ends[-1] <= event["ts"] + 1e-3:
                ends.pop()
            assert not ends or event["ts"] + event["dur"] <= ends[-1] + 1e-3, event
            ends.append(event["ts"] + event["dur"])
    return slices, sent


def check_by_perfetto(path, has_messages=True):
    """With the definitions that Perfetto itself publishes."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    sys.path += sorted(glob.glob(os.path.join(cache, "ringside-python", "perfetto==*")))
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
    except ImportError:
        print("    (not read by Perfetto's definitions: PyPI's perfetto is not installed:"
              " deploy/install-dependencies --viewers)")
        return
    trace = perfetto.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    tracks, depth, last = {}, {}, 0
    begun, ended = set(), set()
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor.name
            continue
        event = packet.track_event
        assert packet.timestamp >= last, "packets are in the order of time"
        last = packet.timestamp
        assert tracks[event.track_uuid], "every track has a name"
        step = {perfetto.TrackEvent.TYPE_SLICE_BEGIN: 1,
                perfetto.TrackEvent.TYPE_SLICE_END: -1}.get(event.type, 0)
        depth[event.track_uuid] = depth.get(event.track_uuid, 0) + step
        assert depth[event.track_uuid] >= 0
        begun.update(event.flow_ids)
        ended.update(event.terminating_flow_ids)
    assert not any(depth.values()) and begun == ended
    assert bool(begun) == has_messages, begun


def spans_by_track(path, rank):
    """Slices of the tracks of one worker's GPU: {"GPU computing": [event, ...]}."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    names = {(event["pid"], event["tid"]): event["args"]["name"] for event in events
             if event["name"] == "thread_name"}
    tracks = {}
    for event in events:
        name = names.get((event["pid"], event.get("tid")), "")
        if event["ph"] == "X" and name.startswith("GPU ") and name.endswith(f" {rank}"):
            tracks.setdefault(name.rsplit(" ", 1)[0], []).append(event)
    return tracks


def check_streams(tracks, mode, runtime):
    assert {"GPU computing", "GPU batches in"} <= set(tracks), tracks.keys()
    for track in tracks.values():
        spans = sorted(track, key=lambda event: (event["ts"], event["dur"]))
        for before, after in zip(spans, spans[1:]):
            assert before["ts"] + before["dur"] <= after["ts"] + 1, (before, after)
    for step in (3, 4, 5, 6):
        computed = [event["cat"] for event in tracks["GPU computing"]
                    if event["args"]["step"] == step]
        assert computed.count("gpu-forward") == 1, computed
        assert "gpu-backward" in computed, computed
        batches = [event for event in tracks["GPU batches in"] if event["args"]["step"] == step]
        assert len(batches) == 1, batches
    kinds = {event["cat"] for events in tracks.values() for event in events}
    assert ("gpu-sum" in kinds) == (mode == "ring" and "ipc" in runtime), kinds
    assert ("gpu-update" in kinds) == (mode == "ring"), kinds


def check_events_of_few(path):
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    return [event for event in events if event["ph"] == "X"], None


def layers_of(events, kind):
    """Names of the layers of one step of a worker, in order; each is within a pass of its own bucket, whose layers
    do not take longer than it."""
    layers = sorted((event for event in events if event["cat"] == "layer-" + kind), key=lambda event: event["ts"])
    passes = [event for event in events if event["cat"] == kind]
    found = 0
    for around in passes:
        end = around["ts"] + around["dur"]
        within = [event for event in layers if event["ts"] >= around["ts"] and event["ts"] + event["dur"] <= end + 1e-3]
        assert all(event["args"].get("bucket") == around["args"].get("bucket") for event in within), (around, within)
        assert within and sum(event["dur"] for event in within) <= around["dur"] + 1e-3 * len(within), (around, within)
        found += len(within)
    assert passes and found == len(layers), (passes, layers)
    return [event["name"] for event in layers]
