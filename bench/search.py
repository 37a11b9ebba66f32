"""Finds the best configuration of a peer: one stage of settings after the other, from the best so far."""
import argparse
import itertools
import json
import statistics
import sys

from launching import Failed

BLOCKS = 2  # of half a second or so, for each candidate
FINAL_ROUNDS = 3  # of the two best, in turn
FINAL_BLOCKS = 3


def settings_of(stages):
    """Their names and values; a stage has those that are tried in every combination."""
    settings = {}
    for stage in stages:
        for name, values in stage.items():
            settings[name] = tuple(dict.fromkeys((*settings.get(name, ()), *values)))
    return settings


def parse_try(stages):
    """For argparse: NAME=VALUE,... of a setting."""
    settings = settings_of(stages)

    def parse(text):
        name, _, values = text.partition("=")
        if name not in settings:
            raise argparse.ArgumentTypeError(f"there is no setting '{name}'; there are "
                                             f"{', '.join(settings)}")
        for value in values.split(","):
            if value not in settings[name]:
                raise argparse.ArgumentTypeError(f"{name} has no '{value}'; there are "
                                                 f"{', '.join(settings[name])}")
        return name, tuple(values.split(","))
    return parse


def check_tries(tries, stages):
    """Ends the program if one of them restricts nothing."""
    settings = settings_of(stages)
    for name, values in tries:
        if not set(values) & set(settings.get(name, ())):
            raise Failed(f"--try {name}={','.join(values)}: nothing that is measured here has it; "
                         f"there are {', '.join(settings)}")


def restrict(stages, tries, why_missing):
    """The stages without what is not to be tried, or is not installed: why_missing(name, value) says
    so. What was asked for and is missing ends the program."""
    asked = dict(tries)
    kept = [{name: tuple(value for value in values if value in asked.get(name, values))
             for name, values in stage.items()} for stage in stages]
    for stage in kept:
        for name, values in stage.items():
            whys = {value: why_missing(name, value) for value in values}
            for value, why in whys.items():
                if why is not None and name in asked:
                    raise Failed(f"--try {name}={value}: {why}")
                if why is not None:
                    print(f"{name} {value} left out: {why}", file=sys.stderr)
            stage[name] = tuple(value for value in values if whys[value] is None)
            if not stage[name]:
                raise Failed(f"--try {name}={','.join(asked[name])}: not with this peer")
    return kept


def describe(configuration):
    return ", ".join(f"{name} {value}" for name, value in configuration.items())


class Kept:
    """Searches that an earlier run wrote with --json, by cell: the values of `keys`. `same` is what the
    file has to have."""

    def __init__(self, path, same, keys):
        self.path, self.keys, self.searches = path, keys, {}
        if path is None:
            return
        try:
            with open(path, encoding="utf-8") as file:
                kept = json.load(file)
            for name, value in same.items():
                if kept.get(name) != value:
                    raise Failed(f"--reuse {path}: it has {name} {kept.get(name)}, this run {value}")
            self.searches = {self.key_of(row): row["search"] for row in kept["cells"]
                             if "search" in row}
        except OSError as error:
            raise Failed(f"--reuse {path}: {error.strerror}") from error
        except (AttributeError, ValueError, KeyError, TypeError) as error:
            raise Failed(f"--reuse {path}: not a file that this script's --json wrote") from error

    def key_of(self, cell):
        return tuple(cell[name] for name in self.keys)

    def find(self, cell, version):
        """What is kept of the cell; None if there is nothing."""
        found = self.searches.get(self.key_of(cell))
        if found is not None and found["version"] != version:
            raise Failed(f"--reuse {self.path}: {found['version']} was searched, this is {version}")
        return found


class Search:
    """measure(configuration, blocks) gives a rate for each block, or raises Failed."""

    def __init__(self, name, stages, measure):
        self.name, self.stages, self.measure = name, stages, measure
        self.rates = {}  # of each configuration, in the stage that tried it last

    def try_one(self, configuration, blocks):
        """Its rate; None, after a line, if it does not run."""
        try:
            rate = statistics.median(self.measure(configuration, blocks))
        except Failed as failed:
            lines = str(failed).splitlines()
            print(f"{self.name} left out with {describe(configuration)}: {lines[-1]}",
                  file=sys.stderr)
            return None
        print(json.dumps({"tried": self.name, **configuration, "images_per_second": rate}),
              flush=True)
        return rate

    def try_stage(self, stage, best):
        """The best of its combinations; `best` is among them, or a like one is."""
        rates = {}
        for values in itertools.product(*stage.values()):
            configuration = {**best, **dict(zip(stage, values))}
            rate = self.try_one(configuration, BLOCKS)
            if rate is not None:
                rates[tuple(configuration.items())] = rate
        if not rates:
            raise Failed(f"{self.name} runs in no configuration: see above")
        self.rates.update(rates)
        return dict(max(rates, key=rates.get))

    def decide(self, best):
        """Between it and the best of the others, in turn, longer."""
        key = tuple(best.items())
        others = [other for other in self.rates if other != key]
        finalists = [key] + sorted(others, key=self.rates.get, reverse=True)[:1]
        if len(finalists) == 1:
            return best
        rates = {finalist: [] for finalist in finalists}
        for _ in range(FINAL_ROUNDS):
            for finalist in finalists:
                rates[finalist] += self.measure(dict(finalist), FINAL_BLOCKS)
        self.rates.update({finalist: statistics.median(of) for finalist, of in rates.items()})
        return dict(max(finalists, key=self.rates.get))

    def run(self):
        """The best configuration, and the rates of all that were tried."""
        best = {name: values[0] for name, values in settings_of(self.stages).items()}
        for stage in self.stages:
            # A stage of one combination has nothing to choose from; the first one proves that it runs.
            if not self.rates or any(len(values) > 1 for values in stage.values()):
                best = self.try_stage(stage, best)
        best = self.decide(best)
        tried = [{"configuration": dict(key), "images_per_second": rate}
                 for key, rate in self.rates.items()]
        return best, tried
