/* Ranks from the environment of launchers. */
#include "worker/rank.h"

#include <stdio.h>
#include <string.h>

const char *const rank_variables[] = {
    "RINGSIDE_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", NULL};
const char *const local_rank_variables[] = {
    "RINGSIDE_LOCAL_RANK", "LOCAL_RANK",    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",     "SLURM_LOCALID", NULL};
const char *const local_size_variables[] = {"RINGSIDE_LOCAL_SIZE", "LOCAL_WORLD_SIZE",
                                            "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", NULL};

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
    const char *const *variables = sources->variables;
    const char *first = sources->option;
    uint32_t value = first != NULL ? sources->option_value : 0;
    for (size_t i = 0; variables[i] != NULL; i++) {
        const char *text = sources->get(variables[i]);
        uint32_t found;
        if (text == NULL) {
            continue;
        }
        if (!parse_number(text, &found)) {
            snprintf(ret_error, error_size, "%s is '%.40s', which is no number", variables[i],
                     text);
            return STATUS_INVALID;
        }
        if (first != NULL && found != value) {
            snprintf(ret_error, error_size,
                     "%s says %u but %s says %u: unset the one that does not belong to this job",
                     first, value, variables[i], found);
            return STATUS_INVALID;
        }
        if (first == NULL) {
            first = variables[i];
            value = found;
        }
    }
    *ret_has = first != NULL;
    *ret_value = value;
    return STATUS_OK;
}
