/* A libnccl.so.2 for streams of the fake runtime: found and called as the real one is, by other
 * processes and with other results than ours. Ranks meet in a file of shared memory that the id
 * names; each writes its values there, a piece at a time, and adds up those of all.
 *
 * It adds up in the order of ranks from the last one down, of values that were divided before: the
 * bits of all ranks are equal, and not those of our own sums. Calls go on for a while after they
 * have returned, as those of a non-blocking communicator may. Two ranks on one GPU are refused.
 *
 * FAKE_NCCL may hold:
 *
 *     old        its version is 2.8.4
 *     failing    the fifth sum finds that another rank has failed
 *     absent     rank 1 never joins */
#include "worker/device/cuda/nccl/nccl.h"

#include "tests/worker/device/cuda_fake/stream.h"

#include <assert.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MAX    16
#define PIECE_FLOATS ((size_t)1 << 14)
#define NAP_NS       1000000 // then a wait looks again: an abort ends it without a wake
#define FAILING_SUM  5

/* What all ranks see. */
struct meeting {
    _Atomic uint32_t joined, arrived; // arrived: at all barriers so far
    _Atomic uint32_t gpus[RANKS_MAX]; // 1 more than the number of the GPU; 0: not joined
    float values[RANKS_MAX][PIECE_FLOATS];
};

struct nccl_comm {
    struct nccl_comm *next; // of all, which are there until the process ends
    struct meeting *meeting;
    int rank, world, gpu;
    uint32_t barriers, sums;
    bool is_joined, goes_on;
    _Atomic bool is_aborted;
};

struct sum {
    struct nccl_comm *comm;
    const float *from;
    float *to;
    size_t count;
};

static struct nccl_comm *comms;

/* The fake runtime, which the program or a module of it has. */
struct runtime {
    cudaError_t (*get_device)(int *ret_device);
    cudaError_t (*queue)(cudaStream_t stream, const struct fake_task *task);
};

int ncclGetVersion(int *ret_version);
int ncclGetUniqueId(struct nccl_id *ret_id);
int ncclCommInitRankConfig(struct nccl_comm **ret_comm, int world, struct nccl_id id, int rank,
                           const struct nccl_config *config);
int ncclAllReduce(const void *from, void *to, size_t count, int type, int reduction,
                  struct nccl_comm *comm, cudaStream_t stream);
int ncclCommGetAsyncError(struct nccl_comm *comm, int *ret_result);
int ncclCommAbort(struct nccl_comm *comm);
const char *ncclGetErrorString(int result);
const char *ncclGetLastError(const struct nccl_comm *comm);

static bool has_mode(const char *name)
{
    const char *mode = getenv("FAKE_NCCL"); // NOLINT(concurrency-mt-unsafe)
    return mode != NULL && strstr(mode, name) != NULL;
}

/* Looks into the module, whose symbols are its own. */
static int find_module(struct dl_phdr_info *info, size_t size, void *context)
{
    static const char name[] = "ringside-cuda.so";
    void **ret_handle = context;
    size_t length = strlen(info->dlpi_name);
    (void)size;
    if (length < strlen(name) || strcmp(info->dlpi_name + length - strlen(name), name) != 0) {
        return 0;
    }
    *ret_handle = dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
    return 1;
}

static const struct runtime *find_runtime(void)
{
    static struct runtime runtime;
    void *handle = RTLD_DEFAULT;
    if (runtime.queue == NULL) {
        dl_iterate_phdr(find_module, &handle);
        void *symbol = dlsym(handle, "cudaGetDevice");
        memcpy(&runtime.get_device, &symbol, sizeof(symbol));
        symbol = dlsym(handle, "fake_stream_queue");
        memcpy(&runtime.queue, &symbol, sizeof(symbol));
        assert(runtime.get_device != NULL && runtime.queue != NULL);
    }
    return &runtime;
}

static struct meeting *map(const char *name, int flags)
{
    int descriptor = shm_open(name, O_RDWR | O_CLOEXEC | flags, 0600);
    if (descriptor < 0 || ftruncate(descriptor, sizeof(struct meeting)) != 0) {
        return NULL;
    }
    void *memory =
        mmap(NULL, sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    return memory != MAP_FAILED ? memory : NULL;
}

int ncclGetVersion(int *ret_version)
{
    *ret_version = has_mode("old") ? 2804 : 22707;
    return NCCL_SUCCESS;
}

/* The newest one: when this process ends, some of its members may not have come yet. */
static struct nccl_id made;

__attribute__((destructor)) static void forget(void)
{
    if (made.bytes[0] != '\0') {
        shm_unlink(made.bytes); // it is not there any more if all have come
    }
}

int ncclGetUniqueId(struct nccl_id *ret_id)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number)) {
        return NCCL_INVALID_USAGE;
    }
    memset(ret_id, 0, sizeof(*ret_id));
    snprintf(ret_id->bytes, sizeof(ret_id->bytes), "/ringside-fake-nccl-%016llx",
             (unsigned long long)number);
    forget();
    made = *ret_id;
    struct meeting *meeting = map(ret_id->bytes, O_CREAT | O_EXCL);
    return meeting != NULL && munmap(meeting, sizeof(*meeting)) == 0 ? NCCL_SUCCESS
                                                                     : NCCL_INVALID_USAGE;
}

int ncclCommInitRankConfig(struct nccl_comm **ret_comm, int world, struct nccl_id id, int rank,
                           const struct nccl_config *config)
{
    assert(config->size == sizeof(*config) && config->magic == NCCL_CONFIG_MAGIC);
    assert(config->version == NCCL_VERSION_MIN && config->blocking == 0);
    if (world > RANKS_MAX || rank < 0 || rank >= world || id.bytes[sizeof(id.bytes) - 1] != '\0') {
        return NCCL_INVALID_ARGUMENT;
    }
    struct nccl_comm *comm = calloc(1, sizeof(*comm));
    if (comm == NULL) {
        return NCCL_INVALID_USAGE;
    }
    *comm = (struct nccl_comm){.next = comms, .rank = rank, .world = world, .goes_on = true};
    comms = comm;
    find_runtime()->get_device(&comm->gpu);
    comm->meeting = map(id.bytes, 0);
    if (comm->meeting == NULL) {
        return NCCL_REMOTE_ERROR;
    }
    *ret_comm = comm;
    if (rank == 1 && has_mode("absent")) {
        return NCCL_IN_PROGRESS;
    }
    atomic_store(&comm->meeting->gpus[rank], (uint32_t)comm->gpu + 1);
    if (atomic_fetch_add(&comm->meeting->joined, 1) + 1 == (uint32_t)world) {
        shm_unlink(id.bytes); // nobody else comes
    }
    return NCCL_IN_PROGRESS;
}

static bool shares_gpu(const struct nccl_comm *comm)
{
    bool shares = false;
    for (int rank = 0; rank < comm->world; rank++) {
        shares = shares || (rank != comm->rank &&
                            atomic_load(&comm->meeting->gpus[rank]) == (uint32_t)comm->gpu + 1);
    }
    return shares;
}

int ncclCommGetAsyncError(struct nccl_comm *comm, int *ret_result)
{
    if (!comm->is_joined) {
        comm->is_joined = atomic_load(&comm->meeting->joined) == (uint32_t)comm->world;
        *ret_result = !comm->is_joined   ? NCCL_IN_PROGRESS
                      : shares_gpu(comm) ? NCCL_INVALID_USAGE
                                         : NCCL_SUCCESS;
        comm->goes_on = false;
        return NCCL_SUCCESS;
    }
    bool has_failed = comm->sums >= FAILING_SUM && has_mode("failing");
    *ret_result = comm->goes_on ? NCCL_IN_PROGRESS : has_failed ? NCCL_REMOTE_ERROR : NCCL_SUCCESS;
    comm->goes_on = false;
    return NCCL_SUCCESS;
}

/* Waits until all ranks have come. False if that is over. */
static bool pass_barrier(struct nccl_comm *comm)
{
    static const struct timespec nap = {.tv_nsec = NAP_NS};
    _Atomic uint32_t *arrived = &comm->meeting->arrived;
    uint32_t due = ++comm->barriers * (uint32_t)comm->world, seen;
    atomic_fetch_add(arrived, 1);
    syscall(SYS_futex, arrived, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    while ((int32_t)((seen = atomic_load(arrived)) - due) < 0) {
        if (atomic_load(&comm->is_aborted)) {
            return false;
        }
        syscall(SYS_futex, arrived, FUTEX_WAIT, seen, &nap, NULL, 0);
    }
    return true;
}

static void run_sum(void *context)
{
    const struct sum *sum = context;
    struct nccl_comm *comm = sum->comm;
    float factor = 1.0f / (float)comm->world;
    for (size_t done = 0; done < sum->count; done += PIECE_FLOATS) {
        size_t rest = sum->count - done, count = rest < PIECE_FLOATS ? rest : PIECE_FLOATS;
        for (size_t i = 0; i < count; i++) {
            comm->meeting->values[comm->rank][i] = factor * sum->from[done + i];
        }
        if (!pass_barrier(comm)) {
            return;
        }
        for (size_t i = 0; i < count; i++) {
            float total = 0;
            for (int rank = comm->world; rank-- > 0;) {
                total += comm->meeting->values[rank][i];
            }
            sum->to[done + i] = total;
        }
        if (!pass_barrier(comm)) {
            return;
        }
    }
}

int ncclAllReduce(const void *from, void *to, size_t count, int type, int reduction,
                  struct nccl_comm *comm, cudaStream_t stream)
{
    assert(type == NCCL_FLOAT && reduction == NCCL_MEAN && comm->is_joined);
    const struct sum sum = {comm, from, to, count};
    const struct fake_task task = {run_sum, &sum, sizeof(sum), FAKE_LAUNCH_NS};
    comm->sums++;
    comm->goes_on = true;
    return find_runtime()->queue(stream, &task) == cudaSuccess ? NCCL_IN_PROGRESS
                                                               : NCCL_INVALID_USAGE;
}

int ncclCommAbort(struct nccl_comm *comm)
{
    atomic_store(&comm->is_aborted, true);
    return NCCL_SUCCESS;
}

const char *ncclGetErrorString(int result)
{
    return result == NCCL_REMOTE_ERROR ? "remote process exited or there was a network error"
                                       : "invalid usage";
}

const char *ncclGetLastError(const struct nccl_comm *comm)
{
    (void)comm;
    return "an error of the fake NCCL";
}
