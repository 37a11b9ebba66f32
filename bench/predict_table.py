"""The table of bench/predict: cells, and errors of its rules."""
import json
import math
import statistics

import predict_cells

RULES = ("predicted", "linear", "alpha_beta")


def rounds_of(book, cell):
    """The keys of those rounds of a cell that were predicted and measured."""
    return [key for kind, key in book.lines if kind == "measured"
            and key.rpartition("#")[0] == cell.name and book.find("predicted", key) is not None]


def rows_of(book, cells):
    """What is known of each cell that was measured: medians of its rounds."""
    rows = []
    for cell in cells:
        keys = rounds_of(book, cell)
        rates = [book.find("measured", key)["images_per_s"] for key in keys]
        if not rates:
            continue
        measured = statistics.median(rates)
        row = {"kind": "cell", "key": cell.name, "measured_images_per_s": measured,
               "measured_min": min(rates), "measured_max": max(rates)}
        for rule in RULES:
            name = "images_per_s" if rule == "predicted" else rule
            said = statistics.median(book.find("predicted", key)[name] for key in keys)
            row[f"{rule}_images_per_s"] = said
            row[f"{rule}_error_percent"] = 100 * (said / measured - 1)
        rows.append(row)
    return rows


def quantile(values, share):
    """The least that so large a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def print_rows(rows):
    print(f"\n{'cell':44} {'measured':>10} {'predicted':>10} {'error %':>8} {'linear':>8} "
          f"{'alpha-beta':>10}")
    for row in rows:
        print(f"{row['key']:44} {row['measured_images_per_s']:10.1f} "
              f"{row['predicted_images_per_s']:10.1f} {row['predicted_error_percent']:8.1f} "
              f"{row['linear_error_percent']:8.1f} {row['alpha_beta_error_percent']:10.1f}")


def print_errors(rows, cells, book):
    """Absolute errors of each rule: all cells, and by network and model."""
    groups = [("all", lambda name: True)]
    for place, names in ((0, predict_cells.MODELS), (1, predict_cells.NETWORKS)):
        groups += [(name, lambda key, place=place, name=name: key.split("/")[place] == name)
                   for name in names]
    print(f"\n{'|error| %':12} {'cells':>5}  "
          + "  ".join(f"{rule + ': median, 9 of 10, worst':>38}" for rule in RULES))
    for name, belongs in groups:
        chosen = [row for row in rows if belongs(row["key"])]
        if not chosen:
            continue
        summary = {"kind": "errors", "key": name, "cells": len(chosen)}
        text = f"{name:12} {len(chosen):5}  "
        for rule in RULES:
            errors = [abs(row[f"{rule}_error_percent"]) for row in chosen]
            three = (statistics.median(errors), quantile(errors, 0.9), max(errors))
            summary[rule] = dict(zip(("median", "nine_of_ten", "worst"), three))
            text += "  " + " " * 8 + " ".join(f"{value:9.1f}" for value in three)
        print(text)
        if name == "all":
            errors_of_all = summary
    done = {row["key"] for row in rows}
    for cell in cells:
        line = book.find("skipped", cell.name)
        if line is not None and cell.name not in done:
            print(f"skipped {cell.name}: {line['why']}")
    if rows:
        print(json.dumps(errors_of_all))
