/* In the place of decode_png.c, where there was no libpng: refuses PNG by name. */
#include "worker/data/images/decoder_parts.h"

#include <stdio.h>

enum status decoder_allows_png(char *ret_why, size_t why_size)
{
    snprintf(ret_why, why_size,
             "it is a PNG file, which this build cannot read: install "
             "libpng-dev and build again");
    return STATUS_UNSUPPORTED;
}

enum status decode_png_run(const struct decoder_task *task, struct square_source *ret_source)
{
    (void)ret_source;
    decoder_allows_png(task->why, task->why_size);
    return STATUS_MALFORMED;
}
