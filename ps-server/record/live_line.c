/* Draws with characters. */
#include "ps-server/record/live_line.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BLOCKS 8

static const char *const blocks[BLOCKS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

void live_curve_add(struct live_curve *curve, uint64_t step, uint64_t total, double loss)
{
    if (total == 0 || step == 0 || step > total || !isfinite(loss) || loss <= 0) {
        return;
    }
    curve->losses[(uint64_t)((double)(step - 1) / (double)total * LIVE_CELLS)] = loss;
}

static void append(char text[LIVE_TEXT_BYTES], const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, LIVE_TEXT_BYTES - used, "%s", more);
}

/* "[########........]" */
static void append_bar(const struct live_state *state, char text[LIVE_TEXT_BYTES])
{
    double share = state->total > 0 ? (double)state->step / (double)state->total : 0;
    unsigned done = (unsigned)(fmin(share, 1) * LIVE_CELLS);
    append(text, "[");
    for (unsigned i = 0; i < LIVE_CELLS; i++) {
        append(text, i < done ? (state->has_blocks ? "█" : "#") : (state->has_blocks ? "░" : "."));
    }
    append(text, "]  ");
}

/* A column for each part that has a loss, from the smallest to the largest of them. */
static void append_curve(const struct live_curve *curve, char text[LIVE_TEXT_BYTES])
{
    double least = (double)INFINITY, most = 0;
    for (unsigned i = 0; i < LIVE_CELLS; i++) {
        double loss = curve->losses[i];
        least = loss > 0 ? fmin(least, loss) : least;
        most = fmax(most, loss);
    }
    for (unsigned i = 0; i < LIVE_CELLS; i++) {
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

void live_line_format(const struct live_state *state, char ret_text[LIVE_TEXT_BYTES])
{
    // What each level leaves out, until the rest fits.
    for (unsigned level = 0; level < 4; level++) {
        ret_text[0] = '\0';
        if (level < 2) {
            append_bar(state, ret_text);
        }
        if (level < 1 && state->has_blocks) {
            append_curve(state->curve, ret_text);
        }
        append(ret_text, state->facts);
        if (level < 3) {
            append(ret_text, state->rest);
        }
        // The last column stays free: a character there may begin a new line.
        if (state->columns == 0 || width_of(ret_text) < state->columns) {
            return;
        }
    }
    // ASCII alone is left.
    ret_text[state->columns < LIVE_TEXT_BYTES ? state->columns - 1 : LIVE_TEXT_BYTES - 1] = '\0';
}
