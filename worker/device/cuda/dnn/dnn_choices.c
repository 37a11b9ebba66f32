/* Choices of engines as lines of text. */
#include "worker/device/cuda/dnn/dnn_choices.h"

#include "worker/device/cuda/host/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IS   " = "
#define NONE "none"

const char *dnn_choices_text(const struct dnn_choices *choices)
{
    return choices->made != NULL && !choices->is_overfull ? choices->made : "";
}

enum status dnn_choices_give(struct dnn_choices *choices, const char *text)
{
    char *copy = strdup(text);
    if (copy == NULL) {
        return STATUS_NO_MEMORY;
    }
    free(choices->given);
    choices->given = copy;
    return STATUS_OK;
}

/* The answer of a line to a question; NULL if it is about another. */
static const char *answer_in(const char *line, const char *question)
{
    size_t length = strlen(question);
    bool is_about =
        strncmp(line, question, length) == 0 && strncmp(line + length, IS, strlen(IS)) == 0;
    return is_about ? line + length + strlen(IS) : NULL;
}

/* The `*turn`-th answer of a text; false, with *turn less by those that it has. */
static bool find_in(const char *text, const char *question, uint32_t *turn,
                    struct dnn_engine *ret_engine)
{
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, "\n");
        const char *answer = answer_in(text, question);
        if (answer != NULL && (*turn)-- == 0) {
            size_t bytes = length - (size_t)(answer - text);
            bool is_none = bytes == strlen(NONE) && strncmp(answer, NONE, bytes) == 0;
            snprintf(ret_engine->text, sizeof(ret_engine->text), "%.*s", is_none ? 0 : (int)bytes,
                     answer);
            return true;
        }
        text += length + (text[length] == '\n' ? 1 : 0);
    }
    return false;
}

bool dnn_choices_find(const struct dnn_choices *choices, const char *question, uint32_t turn,
                      struct dnn_engine *ret_engine)
{
    return find_in(choices->made, question, &turn, ret_engine) ||
           find_in(choices->given, question, &turn, ret_engine);
}

/* Whether the own choices have this one. */
static bool has(const struct dnn_choices *choices, const char *question, const char *engine)
{
    struct dnn_engine made;
    for (uint32_t turn = 0;; turn++) {
        uint32_t rest = turn;
        if (!find_in(choices->made, question, &rest, &made)) {
            return false;
        }
        if (strcmp(made.text, engine) == 0) {
            return true;
        }
    }
}

void dnn_choices_note(struct dnn_choices *choices, const char *question,
                      const struct dnn_engine *engine)
{
    const char *text = engine != NULL ? engine->text : "";
    if (choices->made == NULL) {
        choices->made = calloc(1, DEVICE_CHOICES_BYTES);
    }
    if (choices->made == NULL || choices->is_overfull || has(choices, question, text)) {
        return;
    }
    size_t used = strlen(choices->made), room = DEVICE_CHOICES_BYTES - used;
    int length = snprintf(choices->made + used, room, "%s" IS "%s\n", question,
                          engine != NULL ? text : NONE);
    if (length < 0 || (size_t)length >= room) {
        choices->is_overfull = true;
        report_warn("the engines of cuDNN that were chosen are too many to be handed on");
    }
}

void dnn_choices_finish(struct dnn_choices *choices)
{
    free(choices->given);
    free(choices->made);
    *choices = (struct dnn_choices){0};
}
