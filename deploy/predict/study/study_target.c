/* Writes times to the target. */
#include "deploy/predict/study/study_target.h"

const char *study_target_heading(const struct study *study)
{
    return study->convergence != NULL ? "  to target" : "";
}

void study_target_format(double seconds, char ret_text[STUDY_TARGET_BYTES])
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}};
    size_t unit = 0;
    while (units[unit].seconds > 1 && seconds < 2 * units[unit].seconds) {
        unit++;
    }
    snprintf(ret_text, STUDY_TARGET_BYTES, "%.3g %s", seconds / units[unit].seconds,
             units[unit].name);
}

void study_target_cell(const struct study *study, const struct study_point *point,
                       char ret_text[STUDY_TARGET_BYTES])
{
    char text[STUDY_TARGET_BYTES] = "?";
    ret_text[0] = '\0';
    if (study->convergence == NULL) {
        return;
    }
    if (point->target.seconds > 0) {
        study_target_format(point->target.seconds, text);
    }
    snprintf(ret_text, STUDY_TARGET_BYTES, "  %9s", text);
}

void study_target_print_unknown(const struct study *study, FILE *stream)
{
    bool is_any = false;
    for (size_t i = 0; study->convergence != NULL && i < study->point_count; i++) {
        const struct study_point *point = &study->points[i];
        if (point->target.seconds <= 0) {
            is_any = true;
            fprintf(stream, "\nThe time to the target of %s among %u is not known: %s.",
                    study_design_text(point->design).text, point->workers, point->target.why);
        }
    }
    if (is_any) {
        fputc('\n', stream);
    }
}

void study_target_add_json(const struct study *study, const struct study_point *point,
                           json_t *object)
{
    const struct target *target = &point->target;
    if (study->convergence == NULL) {
        return;
    }
    bool is_known = target->seconds > 0;
    json_object_set_new(object, "to_target_s", is_known ? json_real(target->seconds) : json_null());
    json_object_set_new(object, "steps_to_target",
                        is_known ? json_real(target->steps) : json_null());
    json_object_set_new(object, is_known ? "to_target_recipe" : "to_target_unknown",
                        json_string(is_known ? target->recipe : target->why));
}
