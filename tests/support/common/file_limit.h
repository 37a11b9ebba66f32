/* Limits how long files of this process may become: a write beyond that fails, as on a full disk.
 */
#ifndef TESTS_SUPPORT_COMMON_FILE_LIMIT_H
#define TESTS_SUPPORT_COMMON_FILE_LIMIT_H

#include <stddef.h>

/* Asserts, as the other does. Nothing may assert in between. */
void file_limit_begin(size_t bytes);
void file_limit_end(void);

#endif
