/* The names of what a job can be made of. A row here and a file with its implementation add a
 * model, dataset or optimizer: --help, checks and the tables of the worker follow from the row. */
#ifndef COMMON_OPTIONS_NAMES_H
#define COMMON_OPTIONS_NAMES_H

#include "common/options/options.h"

#include <stdbool.h>

// X(identifier, "name", "summary")
#define MODEL_MAP(X)                                                                      \
    X(lenet5, "lenet5", "LeNet-5 with ReLU and max pooling; 61,706 parameters")           \
    X(cnn, "cnn", "Keras's CIFAR-10 example: four convolutions, two dense layers")        \
    X(resnet20, "resnet20", "He et al.'s 20 layers for CIFAR; 269,722 parameters")        \
    X(resnet50v2, "resnet50v2", "50 layers with pre-activation; 25.6 million parameters") \
    X(resnet152v2, "resnet152v2", "152 layers with pre-activation; 60.4 million")         \
    X(vgg16, "vgg16", "Simonyan and Zisserman's 16 layers, dense layers of 4096")

// X(identifier, "name", what of it follows: "", ":DIR", ":FILE", or in brackets what may follow,
//   "summary")
#define DATASET_MAP(X)                                                                   \
    X(shapes, "shapes", "", "drawn in the process from the seed; needs no file")         \
    X(cifar10, "cifar10", ":DIR", "CIFAR-10's binary files")                             \
    X(cifar100, "cifar100", ":DIR", "CIFAR-100's binary files")                          \
    X(mnist, "mnist", ":DIR", "MNIST's IDX files, plain or .gz")                         \
    X(fashion_mnist, "fashion-mnist", ":DIR", "Fashion-MNIST's IDX files, plain or .gz") \
    X(images, "images", ":DIR", "folders of JPEG and PNG files, in ImageNet's layout")   \
    X(pack, "pack", ":FILE", "a file that `ringside pack` has made of such folders")     \
    X(npz, "npz", ":FILE", "arrays of images and labels that numpy.savez has written")   \
    X(synthetic, "synthetic", "[:DATA]", "noise in memory, in the shape of DATA; no input")

// X(identifier, kind, "name", default learning rate, "summary")
#define OPTIMIZER_MAP(X)                                                    \
    X(sgd, SGD, "sgd", 0.05, "plain stochastic gradient descent")           \
    X(momentum, MOMENTUM, "momentum", 0.01, "SGD with Polyak's momentum")   \
    X(nesterov, NESTEROV, "nesterov", 0.01, "SGD with Nesterov's momentum") \
    X(adam, ADAM, "adam", 0.001, "Kingma and Ba 2015")                      \
    X(adamw, ADAMW, "adamw", 0.001,                                         \
      "Adam with decoupled weight decay, Loshchilov and Hutter 2019")       \
    X(adagrad, ADAGRAD, "adagrad", 0.01, "Duchi et al. 2011")               \
    X(adadelta, ADADELTA, "adadelta", 1.0, "Zeiler 2012")                   \
    X(rmsprop, RMSPROP, "rmsprop", 0.001, "Tieleman and Hinton 2012")

/* The values of --optimizer, in the order of the map. */
enum optimizer_kind {
#define X(identifier, kind, name, rate, summary) OPTIMIZER_##kind,
    OPTIMIZER_MAP(X)
#undef X
        OPTIMIZER_KIND_COUNT,
    // No rule of ours: what --optimizer auto stands for until a program of its own has said more.
    OPTIMIZER_AUTO = OPTIMIZER_KIND_COUNT
};

/* Each list ends with a row whose name is NULL. */
extern const struct option_choice names_models[];
extern const struct option_choice names_model[]; // as --model takes them: "external:NAME", too
extern const struct option_choice names_datasets[];
extern const struct option_choice names_data[];       // as --data takes them: "cifar10:DIR"
extern const struct option_choice names_optimizers[]; // by enum optimizer_kind, auto the last

/* Of --data: whether it is noise, which takes the shape of DATA in "synthetic:DATA"; and that DATA,
 * borrowed, or all of the text where it is something else. */
#define NAMES_SYNTHETIC_PREFIX "synthetic:"
bool names_is_synthetic(const char *data);
const char *names_behind_synthetic(const char *data);

#endif
