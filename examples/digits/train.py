# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the digit recogniser, with numpy alone, in well under a minute.

usage: train.py [--epochs=N] [--seed=N] [FOLDER]

Reads scikit-learn's digits (1,797 images of 8 x 8, written by hand), keeps
a fifth of them, drawn at random, from the network, trains on the others, and
writes to FOLDER, which is its own without being told:

  model.onnx       the network, for any number of images at once
  images.npy       the images that it was not trained on, as it reads them
  labels.npy       which digits they are
  expected.npy     the probabilities that numpy computes of them

Needs scikit-learn and onnx, which neither building nor testing does.

The network: 3x3 convolution to 8 channels, ReLU, 3x3 convolution to 16, ReLU,
maximum of 2 x 2, a linear layer to 10, softmax; the loss is cross-entropy, the
optimizer Adam (Kingma and Ba, 2015). Images are [batch, 1, 8, 8], dark is 16.
"""

import argparse
import pathlib

import numpy as np

CHANNELS = (8, 16)
DARKEST = 16


def images_and_labels():
    from sklearn.datasets import load_digits
    digits = load_digits()
    images = digits.images[:, None].astype(np.float64)
    order = np.random.default_rng(0).permutation(len(images))
    held, others = np.split(order, [len(order) // 5])
    return ((images[others], digits.target[others]),
            (images[held], digits.target[held]))


class Convolution:
    """3 x 3, with a border of zeros."""

    def __init__(self, rng, inputs, outputs):
        std = np.sqrt(2 / (9 * inputs))
        self.w = rng.normal(0, std, (outputs, inputs, 3, 3))
        self.b = np.zeros(outputs)

    def forward(self, x):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        self.windows = np.lib.stride_tricks.sliding_window_view(
            padded, (3, 3), (2, 3))
        return np.einsum("nchwij,ocij->nohw", self.windows, self.w,
                         optimize=True) + self.b[:, None, None]

    def backward(self, dy):
        self.dw = np.einsum("nchwij,nohw->ocij", self.windows, dy,
                            optimize=True)
        self.db = dy.sum((0, 2, 3))
        padded = np.pad(dy, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(
            padded, (3, 3), (2, 3))
        return np.einsum("nohwij,ocij->nchw", windows,
                         self.w[:, :, ::-1, ::-1], optimize=True)


class Relu:
    def forward(self, x):
        self.positive = x > 0
        return x * self.positive

    def backward(self, dy):
        return dy * self.positive


class MaxPool:
    """2 x 2; where several are largest, the gradient is shared."""

    def forward(self, x):
        n, c, h, w = x.shape
        tiles = x.reshape(n, c, h // 2, 2, w // 2, 2)
        y = tiles.max((3, 5), keepdims=True)
        self.largest = tiles == y
        return y.reshape(n, c, h // 2, w // 2)

    def backward(self, dy):
        share = self.largest / self.largest.sum((3, 5), keepdims=True)
        n, c, h, _, w, _ = share.shape
        return (share * dy.reshape(n, c, h, 1, w, 1)).reshape(
            n, c, 2 * h, 2 * w)


class Linear:
    def __init__(self, rng, inputs, outputs):
        self.w = rng.normal(0, np.sqrt(1 / inputs), (outputs, inputs))
        self.b = np.zeros(outputs)

    def forward(self, x):
        self.shape = x.shape
        self.x = x.reshape(len(x), -1)
        return self.x @ self.w.T + self.b

    def backward(self, dy):
        self.dw, self.db = dy.T @ self.x, dy.sum(0)
        return (dy @ self.w).reshape(self.shape)


class Network:
    def __init__(self, rng):
        self.first = Convolution(rng, 1, CHANNELS[0])
        self.second = Convolution(rng, *CHANNELS)
        self.last = Linear(rng, CHANNELS[1] * 4 * 4, 10)
        self.layers = [self.first, Relu(), self.second, Relu(), MaxPool(),
                       self.last]
        self.learned = [self.first, self.second, self.last]

    def probabilities(self, images):
        x = images / DARKEST
        for layer in self.layers:
            x = layer.forward(x)
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def gradients(self, images, labels):
        """Of the mean cross-entropy, into the layers."""
        dy = self.probabilities(images)
        dy[np.arange(len(labels)), labels] -= 1
        dy /= len(labels)
        for layer in reversed(self.layers):
            dy = layer.backward(dy)

    def accuracy(self, images, labels):
        return (self.probabilities(images).argmax(1) == labels).mean()


class Adam:
    def __init__(self, layers):
        self.layers, self.steps = layers, 0
        self.moments = {(layer, name): [0.0, 0.0]
                        for layer in layers for name in "wb"}

    def step(self, rate):
        self.steps += 1
        for (layer, name), moments in self.moments.items():
            gradient = getattr(layer, "d" + name)
            moments[0] = 0.9 * moments[0] + 0.1 * gradient
            moments[1] = 0.999 * moments[1] + 0.001 * gradient**2
            mean = moments[0] / (1 - 0.9**self.steps)
            square = moments[1] / (1 - 0.999**self.steps)
            value = getattr(layer, name)
            value -= rate * mean / (np.sqrt(square) + 1e-8)


def train(rng, images, labels, epochs, batch=32):
    network = Network(rng)
    optimizer = Adam(network.learned)
    for epoch in range(epochs):
        rate = 0.004 * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
        order = rng.permutation(len(images))
        for start in range(0, len(order), batch):
            chosen = order[start:start + batch]
            network.gradients(images[chosen], labels[chosen])
            optimizer.step(rate)
        print("epoch %2d: %.2f %% of what it was trained on" % (
            epoch + 1, 100 * network.accuracy(images, labels)), flush=True)
    # What is written is f32; what is computed from here on is of these.
    for layer in network.learned:
        layer.w = layer.w.astype(np.float32).astype(np.float64)
        layer.b = layer.b.astype(np.float32).astype(np.float64)
    return network


def save_model(network, path):
    from onnx import TensorProto, checker, helper, numpy_helper, save
    constants = {"darkest": np.array(DARKEST)}
    for name, layer in zip(("conv1", "conv2", "linear"), network.learned):
        constants[name + ".weight"] = layer.w
        constants[name + ".bias"] = layer.b
    same = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    node = helper.make_node
    graph = helper.make_graph([
        node("Div", ["image", "darkest"], ["scaled"]),
        node("Conv", ["scaled", "conv1.weight", "conv1.bias"], ["c1"], **same),
        node("Relu", ["c1"], ["r1"]),
        node("Conv", ["r1", "conv2.weight", "conv2.bias"], ["c2"], **same),
        node("Relu", ["c2"], ["r2"]),
        node("MaxPool", ["r2"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["m"], ["f"]),
        node("Gemm", ["f", "linear.weight", "linear.bias"], ["g"], transB=1),
        node("Softmax", ["g"], ["probability"], axis=1),
    ], "digits", [
        helper.make_tensor_value_info("image", TensorProto.FLOAT,
                                      ["batch", 1, 8, 8])
    ], [
        helper.make_tensor_value_info("probability", TensorProto.FLOAT,
                                      ["batch", 10])
    ], [
        numpy_helper.from_array(value.astype(np.float32), name)
        for name, value in constants.items()
    ])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
        producer_name="examples/digits/train.py")
    checker.check_model(model, full_check=True)
    save(model, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("folder", nargs="?", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent)
    options = parser.parse_args()
    (images, labels), (held, held_labels) = images_and_labels()
    network = train(np.random.default_rng(options.seed), images, labels,
                    options.epochs)
    print("%.2f %% of %d images that it never saw, %d parameters" % (
        100 * network.accuracy(held, held_labels), len(held),
        sum(layer.w.size + layer.b.size for layer in network.learned)))
    options.folder.mkdir(parents=True, exist_ok=True)
    save_model(network, options.folder / "model.onnx")
    np.save(options.folder / "images.npy", held.astype(np.float32))
    np.save(options.folder / "labels.npy", held_labels.astype(np.int64))
    np.save(options.folder / "expected.npy",
            network.probabilities(held).astype(np.float32))


if __name__ == "__main__":
    main()
