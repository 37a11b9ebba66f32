/* What the simulated processes say: the log of all of them, as a transcript with virtual times. */
#ifndef TESTS_SIM_STORY_H
#define TESTS_SIM_STORY_H

#include <stdint.h>

/* Forgets what was said. */
void story_clear(void);

/* All that was said since, one line each: "  1.250000 worker 1: error: ...". Borrowed until
 * something is said. */
const char *story_text(void);

/* Adds a line of the process that runs; kind is "error: ", or "". */
void story_add(const char *kind, const char *line);

/* Adds a line of the test's own. */
__attribute__((format(printf, 1, 2))) void story_say(const char *format, ...);

/* Fails the test of a seed for a reason, behind all that was said: messages of cmocka are cut off.
 */
__attribute__((format(printf, 2, 3))) void story_fail(uint64_t seed, const char *format, ...);

#endif
