/* Prints and writes predictions and advice. */
#include "deploy/command/predict_results.h"

#include "deploy/page/prediction_report.h"
#include "deploy/predict/advise/advice.h"
#include "deploy/predict/advise/crossover.h"
#include "deploy/predict/study/study_basis.h"

#include <jansson.h>

#include <stdio.h>

/* Takes the object. */
static enum status print_json(json_t *object)
{
    bool is_printed = object != NULL && json_dumpf(object, stdout, JSON_INDENT(2)) == 0;
    json_decref(object);
    printf("\n");
    return is_printed ? STATUS_OK : STATUS_NO_MEMORY;
}

/* NULL: no memory. The caller owns it. */
static json_t *all_json(const struct study *study, const struct crossover_list *crossovers,
                        const struct fault_study *faults)
{
    json_t *object = study_json(study), *what_ifs = json_object_get(object, "what_ifs");
    json_object_set_new(object, "crossovers", crossover_json(crossovers, NULL));
    for (size_t i = 0; i < json_array_size(what_ifs); i++) {
        json_object_set_new(json_array_get(what_ifs, i), "crossovers",
                            crossover_json(crossovers, &study->what_ifs[i]));
    }
    if (faults->study != NULL) {
        json_object_set_new(object, "with_faults", fault_study_json(faults));
    }
    return object;
}

static void print_text(const struct study *study, const struct crossover_list *crossovers,
                       const struct fault_study *faults)
{
    study_print(study, stdout);
    if (study->what_if_count > 0) {
        study_print_what_ifs(study, stdout);
    }
    crossover_print(crossovers, stdout);
    if (faults->study != NULL) {
        fault_study_print(faults, stdout);
    }
    study_print_left_out(study, stdout);
}

static enum status write_report(const struct study *study, const struct crossover_list *crossovers,
                                const struct fault_study *faults, const char *folder,
                                const char *command)
{
    json_t *object = all_json(study, crossovers, faults);
    const struct prediction_report report = {study, crossovers, object, command};
    enum status status =
        object != NULL ? prediction_report_write(folder, &report) : STATUS_NO_MEMORY;
    json_decref(object);
    if (status == STATUS_OK) {
        printf("\nreport: %s/report.html\n", folder);
    }
    return status;
}

enum status predict_results_make(struct study *study, struct fault_study *faults, bool is_json,
                                 const char *folder, const char *command)
{
    struct crossover_list crossovers = {NULL, 0};
    enum status status = study_make(study);
    if (status == STATUS_OK) {
        status = crossover_list_make(study, &crossovers);
    }
    if (status == STATUS_OK && faults->study != NULL) {
        status = fault_study_make(faults);
    }
    if (status == STATUS_OK && is_json) {
        status = print_json(all_json(study, &crossovers, faults));
    } else if (status == STATUS_OK) {
        print_text(study, &crossovers, faults);
    }
    if (status == STATUS_OK && folder[0] != '\0') {
        status = write_report(study, &crossovers, faults, folder, command);
    }
    crossover_list_finish(&crossovers);
    return status;
}

enum status predict_results_advise(struct study *study, const bool is_kept[ADVICE_AXES],
                                   bool is_json)
{
    struct advice_list advice = {NULL, 0};
    enum status status = advice_list_make(study, is_kept, &advice);
    if (status == STATUS_OK && is_json) {
        study->point_count = 0; // advice has none
        json_t *object = study_json(study);
        json_object_del(object, "points");
        json_object_del(object, "what_ifs");
        json_object_set_new(object, "advice", advice_json(study, &advice));
        status = print_json(object);
    } else if (status == STATUS_OK) {
        study_print_basis(study, stdout);
        advice_print(study, &advice, stdout);
        study_print_left_out(study, stdout);
    }
    advice_list_finish(&advice);
    return status;
}
