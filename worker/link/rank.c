/* Reads a rank from the environment of launchers. */
#include "worker/link/rank.h"

#include <stdio.h>
#include <string.h>

const struct option_choice rank_launchers[] = {
    [RANK_LAUNCHER_AUTO] = {"auto", "all of those below; they must not contradict each other"},
    [RANK_LAUNCHER_NONE] = {"none", "no launcher: the coordinator assigns ranks"},
    [RANK_LAUNCHER_TORCHRUN] = {"torchrun", "torchrun and its like: RANK, WORLD_SIZE"},
    [RANK_LAUNCHER_OPEN_MPI] = {"open-mpi", "mpirun of Open MPI"},
    [RANK_LAUNCHER_MPICH] = {"mpich", "mpiexec of MPICH (hydra), and others that speak PMI"},
    [RANK_LAUNCHER_SLURM] = {"slurm", "srun"},
    [RANK_LAUNCHER_KUBERNETES] = {"kubernetes", "an Indexed Job"},
    {NULL, NULL},
};

const struct rank_variable rank_variables[] = {
    {RANK_LAUNCHER_AUTO, "RINGSIDE_RANK"},
    {RANK_LAUNCHER_TORCHRUN, "RANK"},
    {RANK_LAUNCHER_OPEN_MPI, "OMPI_COMM_WORLD_RANK"},
    {RANK_LAUNCHER_OPEN_MPI, "PMIX_RANK"},
    {RANK_LAUNCHER_MPICH, "PMI_RANK"},
    {RANK_LAUNCHER_SLURM, "SLURM_PROCID"},
    {RANK_LAUNCHER_KUBERNETES, "JOB_COMPLETION_INDEX"},
    {.name = NULL},
};

const struct rank_variable rank_local_variables[] = {
    {RANK_LAUNCHER_AUTO, "RINGSIDE_LOCAL_RANK"},
    {RANK_LAUNCHER_TORCHRUN, "LOCAL_RANK"},
    {RANK_LAUNCHER_OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_RANK"},
    {RANK_LAUNCHER_MPICH, "MPI_LOCALRANKID"},
    {RANK_LAUNCHER_SLURM, "SLURM_LOCALID"},
    {.name = NULL},
};

const struct rank_variable rank_local_size_variables[] = {
    {RANK_LAUNCHER_AUTO, "RINGSIDE_LOCAL_SIZE"},
    {RANK_LAUNCHER_TORCHRUN, "LOCAL_WORLD_SIZE"},
    {RANK_LAUNCHER_OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {RANK_LAUNCHER_MPICH, "MPI_LOCALNRANKS"},
    {.name = NULL},
};

/* How many processes a launcher has started, beside the rank that it gave to each of them. */
struct size_variable {
    enum rank_launcher launcher;
    const char *rank, *size;
    const char *instead; // where there is no `size`; or NULL
};

static const struct size_variable size_variables[] = {
    {RANK_LAUNCHER_TORCHRUN, "RANK", "WORLD_SIZE", NULL},
    {RANK_LAUNCHER_OPEN_MPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
    {RANK_LAUNCHER_MPICH, "PMI_RANK", "PMI_SIZE", NULL},
    // The tasks of the step; in a job script, outside of srun, those of the job.
    {RANK_LAUNCHER_SLURM, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
};

/* Whether what one launcher sets counts where another is asked for. */
static bool counts(enum rank_launcher setter, enum rank_launcher asked)
{
    return setter == RANK_LAUNCHER_AUTO || asked == RANK_LAUNCHER_AUTO || setter == asked;
}

static bool parse_number(const char *text, uint32_t *ret_value)
{
    uint64_t value = 0;
    if (*text == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || value > UINT32_MAX / 10) {
            return false;
        }
        value = 10 * value + (uint64_t)(*text - '0');
    }
    if (value > UINT32_MAX) {
        return false;
    }
    *ret_value = (uint32_t)value;
    return true;
}

enum status rank_resolve(const struct rank_sources *sources, bool *ret_has, uint32_t *ret_value,
                         char *ret_error, size_t error_size)
{
    const struct rank_variable *variables = sources->variables;
    const char *first = sources->option;
    uint32_t value = first != NULL ? sources->option_value : 0;
    for (size_t i = 0; variables[i].name != NULL; i++) {
        bool is_asked = counts(variables[i].launcher, sources->launcher);
        const char *text = is_asked ? sources->get(variables[i].name) : NULL;
        uint32_t found;
        if (text == NULL) {
            continue;
        }
        if (!parse_number(text, &found)) {
            snprintf(ret_error, error_size, "%s is '%.40s', which is not a number",
                     variables[i].name, text);
            return STATUS_INVALID;
        }
        uint32_t offset = variables[i].launcher != RANK_LAUNCHER_AUTO ? sources->offset : 0;
        if (found < offset) {
            snprintf(
                ret_error, error_size,
                "%s is %u, which is before worker 0 (--rank-offset %u): start ps there, or say "
                "how many processes are not workers",
                variables[i].name, found, offset);
            return STATUS_INVALID;
        }
        found -= offset;
        if (first != NULL && found != value) {
            snprintf(ret_error, error_size,
                     "%s says %u but %s says %u: unset the one that does not belong to this job, "
                     "or name the launcher that counts (--launcher)",
                     first, value, variables[i].name, found);
            return STATUS_INVALID;
        }
        if (first == NULL) {
            first = variables[i].name;
            value = found;
        }
    }
    *ret_has = first != NULL;
    *ret_value = value;
    return STATUS_OK;
}

enum status rank_check_size(enum rank_launcher launcher, uint32_t offset, uint32_t workers,
                            char *(*get)(const char *name), char *ret_error, size_t error_size)
{
    for (size_t i = 0; i < sizeof(size_variables) / sizeof(size_variables[0]); i++) {
        const struct size_variable *row = &size_variables[i];
        if (!counts(row->launcher, launcher) || get(row->rank) == NULL) {
            continue;
        }
        const char *name =
            get(row->size) != NULL || row->instead == NULL ? row->size : row->instead;
        const char *text = get(name);
        uint32_t size;
        if (text == NULL ||
            (parse_number(text, &size) && size >= offset && size - offset == workers)) {
            continue;
        }
        char others[64] = "";
        if (offset > 0) {
            snprintf(others, sizeof(others), " and %u other process%s before them", offset,
                     offset == 1 ? "" : "es");
        }
        snprintf(
            ret_error, error_size,
            "%s is %.40s, but the job has %u worker process%s%s: start as many by one command, say "
            "how many of its processes come before worker 0 (--rank-offset), or that its "
            "environment is not about this job (--launcher none)",
            name, text, workers, workers == 1 ? "" : "es", others);
        return STATUS_MISMATCH;
    }
    return STATUS_OK;
}
