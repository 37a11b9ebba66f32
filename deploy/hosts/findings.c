/* Keeps findings, and prints them as a table. */
#include "deploy/hosts/findings.h"

#include "common/base/printable.h"

#include <string.h>

struct finding *findings_add(struct findings *findings, const char *host)
{
    if (findings->count == FINDINGS_MAX) {
        findings->left_out++;
        return NULL;
    }
    struct finding *finding = &findings->list[findings->count++];
    *finding = (struct finding){.host = ""};
    snprintf(finding->host, sizeof(finding->host), "%.63s", host);
    return finding;
}

bool findings_name(const struct findings *findings, const char *host)
{
    for (size_t i = 0; i < findings->count; i++) {
        if (strcmp(findings->list[i].host, host) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds the host of `row` to `first`, which has the same problem. Returns false if there is no
 * room. */
static bool join(struct finding *first, const struct finding *row)
{
    size_t used = strlen(first->host);
    if (strcmp(first->problem, row->problem) != 0 || strcmp(first->advice, row->advice) != 0 ||
        strcmp(first->interface, row->interface) != 0 || first->with[0] != '\0' ||
        row->with[0] != '\0' || used + strlen(row->host) + 2 >= sizeof(first->host)) {
        return false;
    }
    snprintf(first->host + used, sizeof(first->host) - used, ", %s", row->host);
    return true;
}

void findings_join(struct findings *findings)
{
    size_t kept = 0;
    for (size_t i = 0; i < findings->count; i++) {
        bool is_joined = false;
        for (size_t k = 0; k < kept && !is_joined; k++) {
            is_joined = join(&findings->list[k], &findings->list[i]);
        }
        if (!is_joined) {
            findings->list[kept++] = findings->list[i];
        }
    }
    findings->count = kept;
}

static const char *or_dash(const char *text)
{
    return text[0] != '\0' ? text : "-";
}

static void widen(int *width, const char *text)
{
    int size = (int)strlen(or_dash(text));
    *width = size > *width ? size : *width;
}

/* Makes all texts printable, because other hosts can influence them. */
static struct finding printable(const struct finding *finding)
{
    struct finding row = *finding;
    char *const texts[] = {row.host, row.with, row.interface, row.port, row.problem, row.advice};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        printable_make(texts[i], strlen(texts[i]));
    }
    return row;
}

void findings_print(const struct findings *findings, FILE *stream)
{
    int host = 4, with = 4, interface = 9, port = 4;
    for (size_t i = 0; i < findings->count; i++) {
        widen(&host, findings->list[i].host);
        widen(&with, findings->list[i].with);
        widen(&interface, findings->list[i].interface);
        widen(&port, findings->list[i].port);
    }
    fprintf(stream, "%-*s  %-*s  %-*s  %-*s  %s\n", host, "HOST", with, "WITH", interface,
            "INTERFACE", port, "PORT", "PROBLEM");
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding row = printable(&findings->list[i]);
        fprintf(stream, "%-*s  %-*s  %-*s  %-*s  %s\n", host, row.host, with, or_dash(row.with),
                interface, or_dash(row.interface), port, or_dash(row.port), row.problem);
        if (row.advice[0] != '\0') {
            fprintf(stream, "%*s-> %s\n", host + with + interface + port + 8, "", row.advice);
        }
    }
    if (findings->left_out > 0) {
        fprintf(stream, "and %zu more\n", findings->left_out);
    }
}
