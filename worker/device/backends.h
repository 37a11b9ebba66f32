/* The backends that this tree knows, fastest first, and what each needs at build time.
 *
 * A backend is a folder, a row here and a subdir() in meson.build; its own meson.build adds it to
 * the build if what it needs is there. Meson writes the table of those that are (backends.c.in), so
 * no source asks what was found. */
#ifndef WORKER_DEVICE_BACKENDS_H
#define WORKER_DEVICE_BACKENDS_H

#include "worker/device/device.h"

// X(identifier, devices are numbered (cuda:1), "what the build needs")
#define DEVICE_BACKEND_MAP(X)                                            \
    X(cuda, true, "the CUDA toolkit, cuDNN and cuBLAS (-Dcuda=enabled)") \
    X(cpu, false, "oneDNN 2.x (-Donednn=enabled)")                       \
    X(ref, false, "nothing")

// Defined by the backend's folder, where it is part of the build.
#define X(identifier, is_numbered, needs) extern const struct device_ops device_##identifier##_ops;
DEVICE_BACKEND_MAP(X)
#undef X

/* Those of this build, in the order of the map; ends with NULL. */
extern const struct device_ops *const device_backend_table[];

#endif
