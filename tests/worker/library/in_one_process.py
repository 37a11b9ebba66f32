"""What logistic.c trains, in one process and in doubles."""
import math


def read_samples():
    """As logistic.c makes them."""
    features, labels, state = [], [], 1
    for _ in range(120):
        row = []
        for _ in range(6):
            state = (state * 1664525 + 1013904223) % 2**32
            row.append((state >> 8) / 8388608.0 - 1)
        labels.append(1.0 if sum(x * (k - 2) for k, x in enumerate(row)) > 0 else 0.0)
        features.append(row + [1.0])
    return features, labels


def expected(steps, rate):
    """Parameters after so many steps from zero, of all samples each."""
    features, labels = read_samples()
    weights = [0.0] * 7
    for _ in range(steps):
        sums = [0.0] * 7
        for row, label in zip(features, labels):
            error = 1 / (1 + math.exp(-sum(w * x for w, x in zip(weights, row)))) - label
            for k, x in enumerate(row):
                sums[k] += error * x
        weights = [w - rate * s / 120 for w, s in zip(weights, sums)]
    return weights


def loss_of(weights):
    """0.69 without training, 0.24 after 80 updates, and 0.21 after 120 of them."""
    features, labels = read_samples()
    signs = [1 - 2 * label for label in labels]
    return sum(math.log1p(math.exp(sign * sum(w * x for w, x in zip(weights, row))))
               for row, sign in zip(features, signs)) / 120
