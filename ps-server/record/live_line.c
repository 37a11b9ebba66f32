/* Draws the bar and the columns of a terminal line with characters. */
#include "ps-server/record/live_line.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BLOCKS 8

static const char *const blocks[BLOCKS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

void live_line_add_loss(struct live_line_curve *curve, uint64_t step, uint64_t total, double loss)
{
    if (total == 0 || step == 0 || step > total || !isfinite(loss) || loss <= 0) {
        return;
    }
    curve->losses[(uint64_t)((double)(step - 1) / (double)total * LIVE_LINE_CELLS)] = loss;
}

static void append(char text[LIVE_LINE_BYTES], const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, LIVE_LINE_BYTES - used, "%s", more);
}

/* "[########........]" */
static void append_bar(const struct live_line *line, char text[LIVE_LINE_BYTES])
{
    double share = line->total > 0 ? (double)line->step / (double)line->total : 0;
    unsigned done = (unsigned)(fmin(share, 1) * LIVE_LINE_CELLS);
    append(text, "[");
    for (unsigned i = 0; i < LIVE_LINE_CELLS; i++) {
        append(text, i < done ? (line->has_blocks ? "█" : "#") : (line->has_blocks ? "░" : "."));
    }
    append(text, "]  ");
}

/* A column for each part that has a loss, from the smallest to the largest of them. */
static void append_curve(const struct live_line_curve *curve, char text[LIVE_LINE_BYTES])
{
    double least = (double)INFINITY, most = 0;
    for (unsigned i = 0; i < LIVE_LINE_CELLS; i++) {
        double loss = curve->losses[i];
        least = loss > 0 ? fmin(least, loss) : least;
        most = fmax(most, loss);
    }
    for (unsigned i = 0; i < LIVE_LINE_CELLS; i++) {
        double height = most > least ? (curve->losses[i] - least) / (most - least) : 0;
        if (curve->losses[i] > 0) {
            append(text, blocks[(unsigned)(height * (BLOCKS - 1) + 0.5)]);
        }
    }
    append(text, "  ");
}

static unsigned width_of(const char *text)
{
    unsigned width = 0;
    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return width;
}

void live_line_format(const struct live_line *line, char ret_text[LIVE_LINE_BYTES])
{
    // What each level leaves out, until the rest fits.
    for (unsigned level = 0; level < 4; level++) {
        ret_text[0] = '\0';
        if (level < 2 && line->total > 0) {
            append_bar(line, ret_text);
        }
        if (level < 1 && line->total > 0 && line->has_blocks) {
            append_curve(line->curve, ret_text);
        }
        append(ret_text, line->facts);
        if (level < 3) {
            append(ret_text, line->rest);
        }
        // The last column stays free: a character there may begin a new line.
        if (line->columns == 0 || width_of(ret_text) < line->columns) {
            return;
        }
    }
    // ASCII alone is left.
    ret_text[line->columns < LIVE_LINE_BYTES ? line->columns - 1 : LIVE_LINE_BYTES - 1] = '\0';
}
