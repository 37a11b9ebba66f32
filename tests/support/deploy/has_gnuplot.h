/* Whether plots can be made here: tests that look at them are skipped otherwise. */
#ifndef TESTS_SUPPORT_DEPLOY_HAS_GNUPLOT_H
#define TESTS_SUPPORT_DEPLOY_HAS_GNUPLOT_H

#include <stdbool.h>

bool has_gnuplot(void);

#endif
