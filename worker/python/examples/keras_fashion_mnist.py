"""Trains a small Keras model on Fashion-MNIST in many processes. Keras 3 runs on PyTorch here.

    KERAS_BACKEND=torch ringside run -n 2 --mode ring -- python3 keras_fashion_mnist.py --data DIR

DIR has the IDX files, plain or .gz; without --data it is $RINGSIDE_DATA/fashion-mnist. In ps-sync,
ps-ssp:S and ps-async servers make the updates of the script's SGD.
"""

from __future__ import annotations

import argparse

import images
import keras
import numpy as np
from torch.utils.data import TensorDataset

import ringside.keras as hvd


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains a small Keras model on Fashion-MNIST.")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64, help="of each process")
    parser.add_argument("--lr", type=float, default=0.02, help="learning rate")
    parser.add_argument("--limit", type=int, default=0, help="images of each set; 0: all")
    parser.add_argument("--data", metavar="DIR", help="of Fashion-MNIST's files")
    return parser.parse_args()


def make_model() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10),
        ]
    )


def arrays(dataset: TensorDataset) -> tuple[np.ndarray, np.ndarray]:
    """This process's part, of the same size in all: pixels with the channel last, and labels."""
    own = len(dataset) // hvd.size()
    first = hvd.rank() * own
    pixels, labels = dataset[first : first + own]
    return images.to_floats(pixels).permute(0, 2, 3, 1).numpy(), labels.numpy()


def main() -> None:
    options = parse()
    hvd.init()
    keras.utils.set_random_seed(42 + hvd.rank())  # each process shuffles its part in its own way
    training = arrays(images.fashion_mnist(options.data, is_training=True, limit=options.limit))
    testing = arrays(images.fashion_mnist(options.data, is_training=False, limit=options.limit))

    model = make_model()
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(options.lr, momentum=0.9))
    model.compile(
        optimizer=optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(
        *training,
        batch_size=options.batch_size,
        epochs=options.epochs,
        validation_data=testing,
        verbose=2 if hvd.rank() == 0 else 0,
        callbacks=[
            hvd.callbacks.BroadcastGlobalVariablesCallback(0),
            hvd.callbacks.MetricAverageCallback(),
            hvd.callbacks.ReportCallback(images=len(training[0])),
        ],
    )


if __name__ == "__main__":
    main()
