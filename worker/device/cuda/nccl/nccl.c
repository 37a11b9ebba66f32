/* Finds NCCL as the system finds libraries, and the functions in it. */
#include "worker/device/cuda/nccl/nccl.h"

#include "worker/device/cuda/host/report.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define REMEDY                                                                             \
    "install it (the package libnccl2 of NVIDIA's repository, or `pip install "            \
    "nvidia-nccl-cu13`, of whose folder nvidia/nccl/lib LD_LIBRARY_PATH then has to tell)" \
    ", or leave out --all-reduce nccl"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct nccl_library library;
static bool is_usable;
static char why_not[512] = NCCL_LIBRARY " does not say which version of NCCL it is";

/* A function pointer is no object pointer; POSIX has dlsym all the same. */
static bool find(void *handle, const char *name, void *ret_function)
{
    void *symbol = dlsym(handle, name);
    if (symbol == NULL) {
        snprintf(why_not, sizeof(why_not), "NCCL (%s) has no %s: it is too old, or another library",
                 NCCL_LIBRARY, name);
        return false;
    }
    memcpy(ret_function, &symbol, sizeof(symbol));
    return true;
}

/* Whether its version can be used. Its functions are looked for after that: an old one lacks some.
 */
static bool check_version(void *handle)
{
    int version = 0;
    if (!find(handle, "ncclGetVersion", &library.get_version) ||
        library.get_version(&version) != NCCL_SUCCESS) {
        return false;
    }
    library.version = version;
    if (version < NCCL_VERSION_MIN) {
        // Up to 2.8 there was a digit less for the minor version.
        int major = version < 10000 ? version / 1000 : version / 10000;
        int minor = version < 10000 ? version % 1000 / 100 : version % 10000 / 100;
        snprintf(why_not, sizeof(why_not),
                 "NCCL is too old: %s is version %d.%d.%d, and 2.14.0 is the least; " REMEDY,
                 NCCL_LIBRARY, major, minor, version % 100);
        return false;
    }
    return true;
}

static void load(void)
{
    void *handle = dlopen(NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *error = dlerror(); // NOLINT(concurrency-mt-unsafe): glibc keeps one a thread
        snprintf(why_not, sizeof(why_not), "NCCL cannot be loaded (%.160s): " REMEDY,
                 error != NULL ? error : NCCL_LIBRARY);
        return;
    }
    const struct {
        const char *name;
        void *function;
    } functions[] = {
        {"ncclGetUniqueId", &library.get_id},
        {"ncclCommInitRankConfig", &library.init},
        {"ncclAllReduce", &library.all_reduce},
        {"ncclCommGetAsyncError", &library.get_state},
        {"ncclCommAbort", &library.abort},
        {"ncclGetErrorString", &library.get_error},
        {"ncclGetLastError", &library.get_last_error},
    };
    is_usable = check_version(handle);
    for (size_t i = 0; is_usable && i < sizeof(functions) / sizeof(functions[0]); i++) {
        is_usable = find(handle, functions[i].name, functions[i].function);
    }
    if (!is_usable) {
        dlclose(handle);
    }
}

const struct nccl_library *nccl_find(void)
{
    pthread_once(&once, load);
    return is_usable ? &library : NULL;
}

enum status nccl_load(const struct nccl_library **ret_library)
{
    const struct nccl_library *found = nccl_find();
    if (found == NULL) {
        report_error("%s", why_not);
        return STATUS_UNSUPPORTED;
    }
    report_info("NCCL %d.%d.%d", found->version / 10000, found->version / 100 % 100,
                found->version % 100);
    *ret_library = found;
    return STATUS_OK;
}
