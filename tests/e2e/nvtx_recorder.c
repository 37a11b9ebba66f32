/* What a profiler injects: writes the ranges of a process to NVTX_TEST_RANGES.PID, a line each:
 * the thread, then "+ NAME" where one begins and "-" where one ends. */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static FILE *file;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *what, const char *name)
{
    pthread_mutex_lock(&mutex);
    fprintf(file, "%ld %s%s\n", (long)gettid(), what, name);
    fflush(file); // a process that is killed has told what it did
    pthread_mutex_unlock(&mutex);
}

static int push(const char *name)
{
    say("+ ", name);
    return 0;
}

static int pop(void)
{
    say("-", "");
    return 0;
}

/* NVTX calls it once, and from then on the functions that it puts into the table. */
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table); // NOLINT: the name is NVTX's

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) // NOLINT: likewise
{
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    const char *path = getenv("NVTX_TEST_RANGES"); // NOLINT(concurrency-mt-unsafe)
    NvtxFunctionTable table;
    unsigned size;
    char own[4096];
    if (callbacks == NULL || path == NULL ||
        callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) {
        return 0;
    }
    snprintf(own, sizeof(own), "%s.%ld", path, (long)getpid());
    file = fopen(own, "we");
    if (file == NULL) {
        return 0;
    }
    *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
    return 1;
}
