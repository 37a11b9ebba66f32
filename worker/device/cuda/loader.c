/* Finds the CUDA backend when it is asked for. It lies beside the program that is installed, or
 * where it was built. */
#include "worker/device/backends.h"
#include "worker/device/cuda/module.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define WHY_BYTES  512

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct device_ops *backend; // NULL: it could not be loaded; `reason` says why
static char reason[WHY_BYTES];

static void write_line(enum log_level level, const char *sentence)
{
    log_write(level, "%s", sentence);
}

/* The module beside this program. */
static void path_beside_program(char *ret_path, size_t path_size)
{
    char program[PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    snprintf(ret_path, path_size, "%s/%s", slash != NULL ? program : ".", CUDA_MODULE_NAME);
}

static const struct device_ops *find_entry(void *library)
{
    // A function pointer is no object pointer; POSIX has dlsym all the same.
    union {
        void *symbol;
        const struct device_ops *(*entry)(void (*)(enum log_level, const char *));
    } cast = {.symbol = dlsym(library, CUDA_MODULE_ENTRY)};
    return cast.symbol != NULL ? cast.entry(write_line) : NULL;
}

static void load(void)
{
    char beside[PATH_BYTES + 64];
    path_beside_program(beside, sizeof(beside));
    const char *path = access(beside, R_OK) == 0 ? beside : CUDA_MODULE_BUILT;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *error = dlerror(); // NOLINT(concurrency-mt-unsafe): glibc keeps one a thread
        snprintf(reason, sizeof(reason), "its libraries cannot be loaded: %.400s",
                 error != NULL ? error : path);
        return;
    }
    backend = find_entry(library);
    if (backend == NULL) {
        snprintf(reason, sizeof(reason), "%.400s is not a backend of this version", path);
        dlclose(library);
    }
}

static bool is_loaded(char *ret_why, size_t why_size)
{
    pthread_once(&once, load);
    if (backend == NULL) {
        snprintf(ret_why, why_size, "%s", reason);
    }
    return backend != NULL;
}

static bool is_available(char *ret_why, size_t why_size)
{
    return is_loaded(ret_why, why_size) && backend->is_available(ret_why, why_size);
}

static bool has_precision(enum precision precision)
{
    char why[WHY_BYTES];
    return is_loaded(why, sizeof(why)) && backend->has_precision(precision);
}

static void list_devices(char *ret_text, size_t text_size)
{
    if (is_loaded(ret_text, text_size)) {
        backend->list(ret_text, text_size);
    }
}

static enum status open_loaded(const struct device_options *options, struct device **ret_device)
{
    char why[WHY_BYTES];
    if (!is_loaded(why, sizeof(why))) {
        log_error("device cuda: %s", why);
        return STATUS_UNSUPPORTED;
    }
    enum status status = backend->open(options, ret_device);
    if (status == STATUS_OK) {
        (*ret_device)->ops = &device_cuda_ops;
    }
    return status;
}

// A device exists only where the backend was loaded, so it is not checked again below.

static enum status compile(struct device *device, const struct program_options *options,
                           struct program **ret_program)
{
    return backend->compile(device, options, ret_program);
}

static void describe(const struct program *program, char *ret_text, size_t text_size)
{
    backend->describe(program, ret_text, text_size);
}

static uint64_t memory(const struct program *program)
{
    return backend->memory(program);
}

static enum status open_vectors(const struct device_options *options,
                                struct vector_device **ret_vectors)
{
    char why[WHY_BYTES];
    if (!is_loaded(why, sizeof(why))) {
        log_error("device cuda: %s", why);
        return STATUS_UNSUPPORTED;
    }
    return backend->open_vectors(options, ret_vectors);
}

static const char *list_choices(const struct device *device)
{
    return backend->list_choices(device);
}

static enum status take_choices(struct device *device, const char *text)
{
    return backend->take_choices(device, text);
}

static enum status introduce(struct device *device, bool is_first,
                             struct device_introduction *ret_introduction)
{
    return backend->introduce(device, is_first, ret_introduction);
}

static bool lock_memory(struct device *device, void *memory, size_t bytes)
{
    return backend->lock_memory(device, memory, bytes);
}

static void unlock_memory(struct device *device, void *memory)
{
    backend->unlock_memory(device, memory);
}

static void close_loaded(struct device *device)
{
    backend->close(device);
}

const struct device_ops device_cuda_ops = {
    .name = "cuda",
    .summary = "cuDNN and cuBLASLt",
    .is_available = is_available,
    .has_precision = has_precision,
    .list = list_devices,
    .open = open_loaded,
    .compile = compile,
    .describe = describe,
    .memory = memory,
    .takes_bytes = true,
    .open_vectors = open_vectors,
    .list_choices = list_choices,
    .take_choices = take_choices,
    .introduce = introduce,
    .lock_memory = lock_memory,
    .unlock_memory = unlock_memory,
    .close = close_loaded,
};
