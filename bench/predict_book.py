"""What bench/predict has measured and predicted: lines of JSON in a file."""
import json
import os


class Book:
    """Lines of JSON in a file, each with a `kind` and a `key`; the last one of both counts."""

    def __init__(self, path):
        self.path, self.lines = path, {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for text in file:
                    try:
                        line = json.loads(text)
                        self.lines[line["kind"], line["key"]] = line
                    except (ValueError, KeyError, TypeError):
                        pass  # a line that was cut off

    def find(self, kind, key):
        """None if it is not there."""
        return self.lines.get((kind, key))

    def add(self, kind, key, **values):
        """Prints it, too."""
        line = {"kind": kind, "key": key, **values}
        self.lines[kind, key] = line
        with open(self.path, "a+b") as file:
            file.seek(0, os.SEEK_END)
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")  # behind what was cut off
            file.write(json.dumps(line).encode() + b"\n")
        print(json.dumps(line), flush=True)
        return line
