/* Parses the rules of --switch, one by one. */
#include "common/job/switches.h"

#include "common/base/number.h"

#include <stdio.h>
#include <string.h>

#define AT_MAX      UINT64_C(1000000000000000)
#define SHOWN_CHARS 60 // of a rule, in an error

/* "epoch:3" or "step:2000", of `size` characters. */
static bool parse_when(const char *text, size_t size, struct switch_rule *rule)
{
    static const char *const units[] = {"step:", "epoch:"};
    for (size_t unit = 0; unit < 2; unit++) {
        size_t prefix = strlen(units[unit]);
        if (size > prefix && strncmp(text, units[unit], prefix) == 0) {
            rule->is_epoch = unit == 1;
            return number_whole(text + prefix, size - prefix, AT_MAX, &rule->at);
        }
    }
    return false;
}

/* A mode of `size` characters that a job can switch to: any but local. */
static bool parse_target(const char *text, size_t size, struct mode *mode)
{
    char name[MODE_TEXT_BYTES];
    if (size >= sizeof(name)) {
        return false;
    }
    memcpy(name, text, size);
    name[size] = '\0';
    return mode_parse(name, mode) == STATUS_OK && mode->kind != MODE_LOCAL;
}

/* One rule of `size` characters; or what is wrong with it. */
static const char *parse_rule(const char *text, size_t size, struct switch_rule *rule)
{
    const char *equals = memchr(text, '=', size);
    size_t when_size = equals != NULL ? (size_t)(equals - text) : 0;
    *rule = (struct switch_rule){.at = 0};
    if (equals == NULL || when_size + 1 == size || !parse_when(text, when_size, rule)) {
        return "is not a switch: it must be epoch:N=MODE or step:N=MODE, such as epoch:3=ps-async";
    }
    if (rule->at == 0) {
        return "is the beginning of the job: that is --mode";
    }
    if (!parse_target(equals + 1, size - when_size - 1, &rule->mode)) {
        return "switches to no mode: wanted is ring, ps-sync, ps-ssp:S or ps-async";
    }
    return NULL;
}

enum status switch_parse(const char *text, struct switch_rules *ret_rules, char *ret_why,
                         size_t why_size)
{
    struct switch_rules rules = {.count = 0};
    if (strcmp(text, "none") == 0) {
        *ret_rules = rules;
        return STATUS_OK;
    }
    while (*text != '\0') {
        size_t size = strcspn(text, ";");
        if (rules.count == SWITCHES_MAX) {
            snprintf(ret_why, why_size, "more than %d switches", SWITCHES_MAX);
            return STATUS_INVALID;
        }
        const char *why = parse_rule(text, size, &rules.rules[rules.count++]);
        if (why != NULL) {
            snprintf(ret_why, why_size, "'%.*s' %s", (int)(size < SHOWN_CHARS ? size : SHOWN_CHARS),
                     text, why);
            return STATUS_INVALID;
        }
        text += size + (text[size] == ';');
    }
    *ret_rules = rules;
    return STATUS_OK;
}
