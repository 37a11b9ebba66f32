/* The choices of a job: the lists of their names. */
#ifndef COMMON_JOB_JOB_CHOICES_H
#define COMMON_JOB_JOB_CHOICES_H

#include "common/options/options.h"

/* Each list ends with a row whose name is NULL. */
extern const struct option_choice mode_choices[];
extern const struct option_choice lr_scale_choices[];
extern const struct option_choice lr_schedule_choices[];
extern const struct option_choice sample_split_choices[];
extern const struct option_choice evaluation_choices[];
extern const struct option_choice conv_choices[];
extern const struct option_choice precision_choices[];
extern const struct option_choice security_choices[];
extern const struct option_choice transport_choices[];
extern const struct option_choice all_reduce_choices[];
extern const struct option_choice remedy_choices[];
extern const struct option_choice delay_model_choices[];

#endif
