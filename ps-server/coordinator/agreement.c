/* Compares the layouts, tensors, samples, digests and optimizers of workers. */
#include "ps-server/coordinator/agreement.h"

#include "common/base/printable.h"
#include "common/job/job_text.h"
#include "common/optimizer/groups.h"

#include <stdio.h>
#include <string.h>

/* Whether the worker and another one that is ready can go together in NCCL. */
static bool nccl_goes_with(const struct slot *slot, uint32_t rank, const struct wire_nccl *nccl,
                           char *ret_why, size_t why_size)
{
    if (slot->nccl_version != nccl->version) {
        snprintf(ret_why, why_size,
                 "it has NCCL %u.%u.%u, and worker %u has %u.%u.%u: NCCL needs the same version "
                 "everywhere",
                 nccl->version / 10000, nccl->version / 100 % 100, nccl->version % 100, rank,
                 slot->nccl_version / 10000, slot->nccl_version / 100 % 100,
                 slot->nccl_version % 100);
        return false;
    }
    if (memcmp(slot->gpu, nccl->gpu, sizeof(slot->gpu)) == 0) {
        snprintf(ret_why, why_size,
                 "it is on the same GPU as worker %u, and NCCL takes one worker for each GPU: use "
                 "fewer workers or more GPUs, or leave out --all-reduce nccl",
                 rank);
        return false;
    }
    return true;
}

static bool nccl_agrees(const struct coordinator *coordinator, const struct wire_nccl *nccl,
                        char *ret_why, size_t why_size)
{
    bool agrees = true;
    for (uint32_t i = 0; agrees && i < coordinator->membership.worker_count; i++) {
        const struct slot *slot = &coordinator->membership.workers[i];
        agrees = slot->state != SLOT_READY || nccl_goes_with(slot, i, nccl, ret_why, why_size);
    }
    return agrees;
}

/* The first line in which a text differs from another one; "" if it has ended. Returns its number,
 * from 1. */
static unsigned find_line(const char *text, const char *beside, char *ret_line, size_t line_size)
{
    size_t begin = 0;
    unsigned number = 1;
    for (size_t i = 0; text[i] != '\0' && text[i] == beside[i]; i++) {
        begin = text[i] == '\n' ? i + 1 : begin;
        number += text[i] == '\n';
    }
    snprintf(ret_line, line_size, "%.*s", (int)strcspn(text + begin, "\n"), text + begin);
    printable_make_utf8(ret_line);
    return number;
}

/* "weight of 60 values", from "60 weight". */
static void describe_tensor(const char *line, char *ret_words, size_t size)
{
    size_t digits = strspn(line, "0123456789");
    snprintf(ret_words, size, "%s of %.*s values", line + digits + (line[digits] == ' '),
             (int)digits, line);
}

/* What a model has in the place of a tensor: its list may end before its tensors do. */
static void describe_place(const char *line, unsigned number, uint64_t tensor_count,
                           char *ret_words, size_t size)
{
    if (line[0] != '\0') {
        describe_tensor(line, ret_words, size);
        return;
    }
    snprintf(ret_words, size, "%s", number <= tensor_count ? "another one" : "none");
}

/* In which tensor the models of two programs differ first, as far as their lists show it. */
static void describe_first(const char *own, uint64_t own_count, const char *others,
                           uint64_t others_count, char *ret_words, size_t size)
{
    char own_line[80], others_line[80], own_words[120], others_words[120];
    unsigned number = find_line(own, others, own_line, sizeof(own_line));
    find_line(others, own, others_line, sizeof(others_line));
    describe_place(own_line, number, own_count, own_words, sizeof(own_words));
    describe_place(others_line, number, others_count, others_words, sizeof(others_words));
    if (strcmp(own_line, others_line) != 0) {
        snprintf(ret_words, size,
                 "; the first to differ is tensor %u: it has %s, and the others have %s", number,
                 own_words, others_words);
    } else if (strcmp(own, others) != 0) {
        snprintf(ret_words, size, "; the first to differ is tensor %u, by the end of its name: %s",
                 number, own_words);
    } else {
        snprintf(ret_words, size,
                 "; they differ further on, in the name, size or order of a tensor");
    }
}

/* One of a worker and the others has no model: its program ends, while others train. */
static void describe_missing_model(const struct coordinator *coordinator,
                                   const struct message *message, char *ret_why, size_t why_size)
{
    bool has_own = message->member->parameters > 0;
    const struct layout *layout = has_own ? message->layout : &coordinator->layout;
    const char *end = "ended without training one (in PyTorch: without DistributedOptimizer and "
                      "exchange_hook)";
    unsigned long long count = (unsigned long long)layout->value_count;
    if (has_own) {
        snprintf(ret_why, why_size,
                 "its model differs: it trains one of %llu values, and the others have %s", count,
                 end);
    } else {
        snprintf(ret_why, why_size,
                 "its model differs: its program has %s, and the others train one of %llu values",
                 end, count);
    }
}

/* What differs between the models of two workers, in words. */
static void describe_model(const struct coordinator *coordinator, const struct message *message,
                           char *ret_why, size_t why_size)
{
    const struct wire_member *member = message->member;
    const struct layout *layout = message->layout, *first = &coordinator->layout;
    const char *tensors = member->tensors != NULL ? member->tensors : "";
    char words[320];
    bool has_model = member->parameters > 0, others_have = coordinator->parameters > 0;
    bool is_external = member->tensor_count > 0 && coordinator->tensor_count > 0;
    if (is_external && has_model != others_have) {
        describe_missing_model(coordinator, message, ret_why, why_size);
        return;
    }
    if (member->tensor_count == 0 || coordinator->tensor_count == 0) { // a model of ours
        snprintf(
            ret_why, why_size,
            "its model differs: it has %llu parameters (layout digest %016llx), and the others "
            "have %llu (%016llx)",
            (unsigned long long)layout->value_count, (unsigned long long)layout->digest,
            (unsigned long long)first->value_count, (unsigned long long)first->digest);
        return;
    }
    describe_first(tensors, member->tensor_count, coordinator->tensors, coordinator->tensor_count,
                   words, sizeof(words));
    snprintf(ret_why, why_size,
             "its model differs: it has %llu values in %llu tensor%s, and the others have %llu in "
             "%llu%s",
             (unsigned long long)layout->value_count, (unsigned long long)member->tensor_count,
             member->tensor_count == 1 ? "" : "s", (unsigned long long)first->value_count,
             (unsigned long long)coordinator->tensor_count, words);
}

static void describe_optimizer(const char *text, const char *other, char *ret_words, size_t size)
{
    char line[64];
    find_line(text, other, line, sizeof(line));
    snprintf(ret_words, size, "%s",
             text[0] == '\0'                        ? "the optimizer of the job's options"
             : strcmp(text, JOB_OPTIMIZER_OWN) == 0 ? "updates that the program makes itself"
             : strcmp(other, JOB_OPTIMIZER_OWN) == 0 || other[0] == '\0' || line[0] == '\0'
                 ? "an optimizer that the program has named"
                 : line);
}

/* The place of the first run that differs, in floats; UINT64_MAX: none does. */
static uint64_t find_run(const struct optimizer_groups *own, const struct optimizer_groups *others)
{
    uint64_t place = 0;
    for (uint32_t i = 0; i < own->run_count && i < others->run_count; i++) {
        if (own->run_groups[i] != others->run_groups[i]) {
            return place;
        }
        if (own->run_ends[i] != others->run_ends[i]) {
            return own->run_ends[i] < others->run_ends[i] ? own->run_ends[i] : others->run_ends[i];
        }
        place = own->run_ends[i];
    }
    return own->run_count == others->run_count ? UINT64_MAX : place;
}

/* Whether its program says the same groups of parameters as the others. */
static bool groups_agree(const struct coordinator *coordinator, const struct message *message,
                         char *ret_why, size_t why_size)
{
    const struct optimizer_groups *own = message->groups, *others = coordinator->groups;
    struct optimizer_difference differs;
    if (own == NULL || others == NULL) {
        if (own != others) {
            snprintf(ret_why, why_size,
                     "its optimizer differs: it has %u group%s of parameters, and the others have "
                     "%u",
                     own != NULL ? own->group_count : 1,
                     own != NULL && own->group_count > 1 ? "s" : "",
                     others != NULL ? others->group_count : 1);
        }
        return own == others;
    }
    const struct job *job = coordinator->job;
    if (optimizer_groups_differ((struct optimizer_side){own, job->lr},
                                (struct optimizer_side){others, job->lr}, job->optimizer, 0,
                                &differs)) {
        char where[32] = "";
        if (own->group_count == others->group_count) {
            snprintf(where, sizeof(where), "in group %u ", differs.group);
        }
        snprintf(ret_why, why_size,
                 "its optimizer differs: %sit has %s=%.9g, and the others have %s=%.9g", where,
                 differs.name, differs.value, differs.name, differs.other);
        return false;
    }
    uint64_t place = find_run(own, others);
    if (place != UINT64_MAX) {
        snprintf(ret_why, why_size,
                 "its optimizer differs: its groups have other parameters than those of the "
                 "others, from value %llu of the model on",
                 (unsigned long long)place);
    }
    return place == UINT64_MAX;
}

/* "fp16", of the line by which a program says how gradients are compressed. */
static void describe_codec(const char *line, char *ret_words, size_t size)
{
    const char *value = strchr(line, '=');
    snprintf(ret_words, size, "%.*s", value != NULL ? (int)strcspn(value + 1, "\n") : 4,
             value != NULL ? value + 1 : "none");
    printable_make_utf8(ret_words);
}

/* Whether its program says the same of the optimizer as the others, and of compression. */
static bool optimizer_agrees(const struct coordinator *coordinator, const struct message *message,
                             char *ret_why, size_t why_size)
{
    const char *text = message->text != NULL ? message->text : "", *first = coordinator->optimizer;
    const char *codec = job_text_codec(text), *first_codec = job_text_codec(first);
    char own_words[80], first_words[80], own_text[JOB_OPTIMIZER_TEXT_BYTES],
        first_text[JOB_OPTIMIZER_TEXT_BYTES];
    if (!job_is_external(coordinator->job) || strcmp(text, first) == 0) {
        return groups_agree(coordinator, message, ret_why, why_size);
    }
    snprintf(own_text, sizeof(own_text), "%.*s", (int)(codec - text), text);
    snprintf(first_text, sizeof(first_text), "%.*s", (int)(first_codec - first), first);
    if (strcmp(own_text, first_text) != 0) {
        describe_optimizer(own_text, first_text, own_words, sizeof(own_words));
        describe_optimizer(first_text, own_text, first_words, sizeof(first_words));
        snprintf(ret_why, why_size, "its optimizer differs: it has %s, and the others have %s",
                 own_words, first_words);
        return false;
    }
    describe_codec(codec, own_words, sizeof(own_words));
    describe_codec(first_codec, first_words, sizeof(first_words));
    snprintf(ret_why, why_size,
             "its compression of gradients differs: it has %s, and the others have %s", own_words,
             first_words);
    return false;
}

bool agreement_check(const struct coordinator *coordinator, const struct message *message,
                     char *ret_why, size_t why_size)
{
    const struct layout *layout = message->layout;
    const struct layout *first = &coordinator->layout;
    if (layout->digest != first->digest || layout->value_count != first->value_count ||
        layout->bucket_count != first->bucket_count ||
        memcmp(layout->buckets, first->buckets, layout->bucket_count * sizeof(struct span)) != 0) {
        describe_model(coordinator, message, ret_why, why_size);
        return false;
    }
    if (message->member->train_samples != coordinator->train_samples ||
        message->member->test_samples != coordinator->test_samples) {
        snprintf(ret_why, why_size,
                 "its data differ: %llu training and %llu test samples, the others have %llu and "
                 "%llu",
                 (unsigned long long)message->member->train_samples,
                 (unsigned long long)message->member->test_samples,
                 (unsigned long long)coordinator->train_samples,
                 (unsigned long long)coordinator->test_samples);
        return false;
    }
    if (!optimizer_agrees(coordinator, message, ret_why, why_size)) {
        return false;
    }
    if (message->member->data_digest != coordinator->data_digest) {
        snprintf(ret_why, why_size,
                 "its data differ: it has as many samples as the others, but not the same ones");
        return false;
    }
    for (uint32_t i = 0; i < coordinator->membership.worker_count; i++) {
        const struct slot *slot = &coordinator->membership.workers[i];
        if (slot->state == SLOT_READY &&
            strcmp(slot->digest, message->member->params_digest) != 0) {
            snprintf(ret_why, why_size, "its first parameters differ from those of worker %u",
                     slot->number);
            return false;
        }
    }
    return message->nccl == NULL || nccl_agrees(coordinator, message->nccl, ret_why, why_size);
}

bool agreement_check_resume(const struct coordinator *coordinator, const struct message *message,
                            char *ret_why, size_t why_size)
{
    const struct coordinator_resume *resume = coordinator->resume;
    const struct layout *layout = message->layout;
    const struct wire_member *member = message->member;
    if (resume == NULL) {
        return true;
    }
    // What others go on from after a loss is a copy in memory, of which nobody has heard.
    const char *from = coordinator->generation != NULL ? "job" : "checkpoint";
    if (layout->digest != resume->layout_digest || layout->value_count != resume->value_count) {
        snprintf(ret_why, why_size,
                 "its model is not that of the %s: layout digest %016llx with %llu "
                 "parameters, the %s has %016llx with %llu",
                 from, (unsigned long long)layout->digest, (unsigned long long)layout->value_count,
                 from, (unsigned long long)resume->layout_digest,
                 (unsigned long long)resume->value_count);
        return false;
    }
    if (member->train_samples != resume->train_samples ||
        member->test_samples != resume->test_samples ||
        member->data_digest != resume->data_digest) {
        snprintf(ret_why, why_size,
                 "its data are not those of the %s: %llu training and %llu test samples, "
                 "the %s has %llu and %llu%s",
                 from, (unsigned long long)member->train_samples,
                 (unsigned long long)member->test_samples, from,
                 (unsigned long long)resume->train_samples,
                 (unsigned long long)resume->test_samples,
                 member->train_samples == resume->train_samples ? ", but not the same" : "");
        return false;
    }
    return true;
}
