/* NVIDIA's library of collective operations (NCCL), loaded when a job asks for it: neither a build
 * nor the backend depends on it. Declared here is the little of it that is used, as its binary
 * interface has been since version 2.14: names, numbers and layouts are the library's. */
#ifndef WORKER_DEVICE_CUDA_NCCL_NCCL_H
#define WORKER_DEVICE_CUDA_NCCL_NCCL_H

#include "common/base/status.h"

#include <cuda_runtime_api.h>

#include <stddef.h>

#define NCCL_LIBRARY     "libnccl.so.2"
#define NCCL_VERSION_MIN 21400 // the first whose calls need not block
#define NCCL_FLOAT       7     // of its types of data
#define NCCL_MEAN        4     // of its reductions

enum nccl_result {
    NCCL_SUCCESS = 0,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
    NCCL_REMOTE_ERROR = 6,
    NCCL_IN_PROGRESS = 7,
};

struct nccl_id {
    char bytes[128];
};

/* Of a communicator, as version 2.14 has it. Later versions know by size and version that the rest
 * is missing. */
struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, unused;
};
#define NCCL_CONFIG_MAGIC 0xcafebeefU
#define NCCL_CONFIG_UNSET (-2147483647 - 1)

struct nccl_comm; // the library's

struct nccl_library {
    int version; // 22707 is 2.27.7
    int (*get_version)(int *ret_version);
    int (*get_id)(struct nccl_id *ret_id);
    int (*init)(struct nccl_comm **ret_comm, int rank_count, struct nccl_id id, int rank,
                struct nccl_config *config);
    int (*all_reduce)(const void *from, void *to, size_t count, int type, int reduction,
                      struct nccl_comm *comm, cudaStream_t stream);
    int (*get_state)(struct nccl_comm *comm, int *ret_result);
    int (*abort)(struct nccl_comm *comm);
    const char *(*get_error)(int result);
    const char *(*get_last_error)(struct nccl_comm *comm);
};

/* The library, which stays loaded; NULL: there is none that can be used. */
const struct nccl_library *nccl_find(void);

/* The same. STATUS_UNSUPPORTED, reported with what to do, if it is not there
 * or too old. */
enum status nccl_load(const struct nccl_library **ret_library);

#endif
