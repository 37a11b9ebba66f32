#!/usr/bin/env python3
"""One process of a training in TensorFlow that several workers share.

usage: tensorflow_workers.py --strategy multiworker|parameter-server --role worker|ps|chief --index INDEX
                             --cluster ROLE=ADDRESS,ADDRESS ... --folder FOLDER MODEL BATCH
                             [--xla on|off] [--inter-op THREADS] [--steps-per-call STEPS]
                             [--warmup STEPS] [--steps STEPS] [--blocks COUNT]

BATCH is that of each worker, which computes with one thread. multiworker: all are workers,
MultiWorkerMirroredStrategy with rings of collectives between them; each prints a line of JSON for each
block of so many steps. parameter-server: the chief schedules steps onto workers, which do not wait for
each other, and prints a line for each block: the images of all workers. Then it writes a file into
FOLDER, by which the others know that they may end. Run by bench/training-peers.
"""
import argparse
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf  # noqa: E402
import tf_keras as keras  # noqa: E402

BATCHES = 4  # in memory, taken in turn


def cnn():
    layers = keras.layers
    return keras.Sequential([
        keras.Input((32, 32, 3)),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2), layers.Dropout(0.25),
        layers.Conv2D(64, 3, padding="same", activation="relu"),
        layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(2), layers.Dropout(0.25),
        layers.Flatten(), layers.Dense(512, activation="relu"), layers.Dropout(0.5),
        layers.Dense(10)])


def resnet20():
    """Shortcuts without parameters; where a convolution strides, TensorFlow pads one side only."""
    layers = keras.layers

    def convolve(x, channels, stride):
        x = layers.Conv2D(channels, 3, stride, padding="same", use_bias=False)(x)
        return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)

    pixels = keras.Input((32, 32, 3))
    x = layers.ReLU()(convolve(pixels, 16, 1))
    for channels in (16, 32, 64):
        for _ in range(3):
            before = x.shape[-1]
            stride = 2 if before != channels else 1
            shortcut = x
            if stride > 1:
                shortcut = tf.pad(x[:, ::2, ::2, :],
                                  ((0, 0), (0, 0), (0, 0), (0, channels - before)))
            x = layers.ReLU()(convolve(x, channels, stride))
            x = layers.ReLU()(convolve(x, channels, 1) + shortcut)
    return keras.Model(pixels, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


class Trainer:
    """A model, and batches for it. To be made in the scope of its strategy."""

    def __init__(self, arguments, workers):
        self.model = {"cnn": cnn, "resnet20": resnet20}[arguments.model]()
        self.optimizer = keras.optimizers.legacy.SGD(0.01, momentum=0.9)
        self.images = tf.random.uniform((BATCHES, arguments.batch, 32, 32, 3), -1, 1)
        self.labels = tf.random.uniform((BATCHES, arguments.batch), 0, 10, tf.int32)
        self.scale = 1 / (arguments.batch * workers)
        self.compute = tf.function(self.compute_gradients, jit_compile=arguments.xla == "on")

    def compute_gradients(self, images, labels):
        with tf.GradientTape() as tape:
            scores = self.model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores)
            loss = tf.reduce_sum(losses) * self.scale
        return loss, tape.gradient(loss, self.model.trainable_variables)

    def step(self, index):
        batch = index % BATCHES
        loss, gradients = self.compute(self.images[batch], self.labels[batch])
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    def parameters(self):
        return sum(variable.shape.num_elements() for variable in self.model.trainable_variables)


def report(arguments, trainer, images, seconds):
    print(json.dumps({"rank": arguments.index, "parameters": trainer.parameters(),
                      "images_per_second": images / seconds}), flush=True)


def train_mirrored(arguments, workers):
    ring = tf.distribute.experimental.CommunicationImplementation.RING
    strategy = tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(implementation=ring))
    with strategy.scope():
        trainer = Trainer(arguments, workers)

    @tf.function
    def run(count):
        for index in tf.range(count):
            strategy.run(trainer.step, args=(index,))

    run(tf.constant(arguments.warmup))
    for _ in range(arguments.blocks):
        start = time.perf_counter()
        run(tf.constant(arguments.steps))
        report(arguments, trainer, arguments.steps * arguments.batch, time.perf_counter() - start)


def train_scheduled(arguments, workers):
    """Of the chief: steps go to whichever worker is free."""
    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.TFConfigClusterResolver())
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        trainer = Trainer(arguments, 1)

    @tf.function
    def run():
        for index in tf.range(arguments.steps_per_call):
            strategy.run(trainer.step, args=(index,))

    def schedule(steps):
        """Of each worker; how many of all it came to."""
        calls = workers * max(1, round(steps / arguments.steps_per_call))
        for _ in range(calls):
            coordinator.schedule(run)
        coordinator.join()
        return calls * arguments.steps_per_call

    schedule(arguments.warmup)
    for _ in range(arguments.blocks):
        start = time.perf_counter()
        steps = schedule(arguments.steps)
        report(arguments, trainer, steps * arguments.batch, time.perf_counter() - start)


def serve(arguments, cluster):
    """Of workers and servers that a chief schedules: until it has ended."""
    server = tf.distribute.Server(cluster, job_name=arguments.role, task_index=arguments.index,
                                  protocol="grpc", start=True)
    while not os.path.exists(os.path.join(arguments.folder, "ended")):
        time.sleep(0.1)
    sys.stdout.flush()
    del server
    os._exit(0)  # its threads wait for ever


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=("cnn", "resnet20"))
    parser.add_argument("batch", type=int)
    parser.add_argument("--strategy", choices=("multiworker", "parameter-server"), required=True)
    parser.add_argument("--role", choices=("worker", "ps", "chief"), required=True)
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("--cluster", action="append", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--xla", default="off", choices=("on", "off"))
    parser.add_argument("--inter-op", type=int, default=2)
    parser.add_argument("--steps-per-call", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--blocks", type=int, default=1)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    cluster = {role: addresses.split(",") for role, addresses in
               (text.split("=") for text in arguments.cluster)}
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": cluster, "task": {"type": arguments.role, "index": arguments.index}})
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(arguments.inter_op)
    tf.random.set_seed(1 + arguments.index)
    workers = len(cluster["worker"])
    if arguments.strategy == "multiworker":
        train_mirrored(arguments, workers)
    elif arguments.role == "chief":
        train_scheduled(arguments, workers)
        with open(os.path.join(arguments.folder, "ended"), "w", encoding="utf-8"):
            pass
        sys.stdout.flush()
        os._exit(0)  # its threads wait for workers that end now
    else:
        serve(arguments, cluster)


if __name__ == "__main__":
    main()
