/* Parses the rules as a job does, and appends the words of each. */
#include "deploy/sweep/rule_words.h"

#include "common/job/straggler.h"
#include "common/job/switches.h"
#include "common/plan/fault_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WHY_BYTES  256
#define RULE_BYTES 128

static bool write_stragglers(const char *value, char ret_words[RUN_WORDS_BYTES])
{
    struct straggler straggler;
    char why[WHY_BYTES], words[RULE_BYTES];
    if (straggler_parse(value, &straggler, why, sizeof(why)) != STATUS_OK) {
        return false;
    }
    for (uint32_t i = 0; i < straggler.count; i++) {
        const struct straggler_rule *rule = &straggler.rules[i];
        char who[48] = "workers";
        if (rule->rank >= 0) {
            snprintf(who, sizeof(who), "worker %" PRId64, rule->rank);
        }
        if (rule->mean_ms > 0) {
            snprintf(words, sizeof(words), "%s late by %.4g ms in %.4g %% of steps", who,
                     rule->mean_ms, 100 * rule->share);
        } else {
            snprintf(words, sizeof(words), "%s slowed %.4g times", who, rule->factor);
        }
        run_words_append(ret_words, words);
    }
    return straggler.count > 0;
}

static bool write_switches(const char *value, char ret_words[RUN_WORDS_BYTES])
{
    struct switch_rules switches;
    char why[WHY_BYTES], words[RULE_BYTES], mode[RUN_WORDS_BYTES];
    if (switch_parse(value, &switches, why, sizeof(why)) != STATUS_OK) {
        return false;
    }
    for (uint32_t i = 0; i < switches.count; i++) {
        const struct switch_rule *rule = &switches.rules[i];
        run_words_of_option("mode", mode_text(rule->mode).text, mode);
        snprintf(words, sizeof(words), "%.64s after %" PRIu64 " %s%s", mode, rule->at,
                 rule->is_epoch ? "epoch" : "step", rule->at == 1 ? "" : "s");
        run_words_append(ret_words, words);
    }
    return switches.count > 0;
}

static void describe_fault(const struct fault *fault, char ret_words[RULE_BYTES])
{
    char who[48];
    snprintf(who, sizeof(who), "%s %" PRIu32,
             fault->place == FAULT_AT_SHARD ? "the server of shard" : "worker", fault->number);
    switch (fault->kind) {
    case FAULT_KILL:
        snprintf(ret_words, RULE_BYTES, "%s killed at step %" PRIu64, who, fault->step);
        break;
    case FAULT_STOP:
        snprintf(ret_words, RULE_BYTES, "%s stopped for %.4g s at step %" PRIu64, who,
                 fault->seconds, fault->step);
        break;
    case FAULT_PARTITION:
        snprintf(ret_words, RULE_BYTES, "%s cut off for %.4g s at step %" PRIu64, who,
                 fault->seconds, fault->step);
        break;
    case FAULT_JOIN:
        snprintf(ret_words, RULE_BYTES, "a worker comes after step %" PRIu64, fault->step);
        break;
    }
}

static bool write_faults(const char *value, char ret_words[RUN_WORDS_BYTES])
{
    struct faults faults;
    char why[WHY_BYTES], words[RULE_BYTES];
    if (faults_parse(value, &faults, why, sizeof(why)) != STATUS_OK) {
        return false;
    }
    for (uint32_t i = 0; i < faults.count; i++) {
        describe_fault(&faults.list[i], words);
        run_words_append(ret_words, words);
    }
    return faults.count > 0;
}

bool rule_words_write(const char *name, const char *value, char ret_words[RUN_WORDS_BYTES])
{
    static const struct {
        const char *name;
        bool (*say)(const char *value, char ret_words[RUN_WORDS_BYTES]);
    } rows[] = {
        {"straggler", write_stragglers}, {"switch", write_switches}, {"fault", write_faults}};
    char words[RUN_WORDS_BYTES] = "";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0 && rows[i].say(value, words)) {
            memcpy(ret_words, words, RUN_WORDS_BYTES);
            return true;
        }
    }
    return false;
}
