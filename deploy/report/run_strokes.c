/* Gives a mode its colour, and the settings of a mode their dashes. */
#include "deploy/report/run_strokes.h"

#include "common/job/mode.h"

static const size_t mode_colours[] = {
    [MODE_LOCAL] = 6, [MODE_RING] = 0, [MODE_PS_SYNC] = 1, [MODE_PS_SSP] = 2, [MODE_PS_ASYNC] = 3};
#define MODES (sizeof(mode_colours) / sizeof(mode_colours[0]))

bool run_strokes_choose(const size_t *mode_ranks, size_t count, struct run_stroke *ret_strokes)
{
    size_t of_mode[MODES] = {0};
    bool has_room = true;
    for (size_t i = 0; i < count; i++) {
        bool is_known = mode_ranks[i] < MODES;
        ret_strokes[i].dash = is_known ? of_mode[mode_ranks[i]]++ : 0;
        has_room = has_room && is_known && of_mode[mode_ranks[i]] <= RUN_DASHES;
    }
    bool is_one_mode = count > 1 && has_room && of_mode[mode_ranks[0]] == count;
    for (size_t i = 0; i < count; i++) {
        if (has_room && !is_one_mode) {
            ret_strokes[i].colour = mode_colours[mode_ranks[i]];
        } else {
            ret_strokes[i] = (struct run_stroke){i % RUN_COLOURS, i / RUN_COLOURS % RUN_DASHES};
        }
    }
    return count > 0 && has_room && !is_one_mode;
}
