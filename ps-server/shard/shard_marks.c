/* Marks of unsynchronised workers: counts those that were passed, and keeps a copy of the
 * parameters until every worker process has pulled it. */
#include "ps-server/shard/shard_state.h"

bool shard_is_final(const struct shard *shard, const struct unit *unit)
{
    return shard_is_unsynchronised(shard) && unit->applied >= shard->gradient_total;
}

/* Gradients that the phase has had when it passes a mark. */
static uint64_t gradients_at(const struct shard *shard, uint64_t mark)
{
    const struct shard_config *config = &shard->config;
    return phases_pushes(&config->marks, config->workers, config->sync_every,
                         marks_step(&config->marks, mark));
}

void shard_pass_marks(const struct shard *shard, struct unit *unit)
{
    uint64_t count = marks_count(&shard->config.marks);
    while (unit->marks_passed < count &&
           unit->applied >= gradients_at(shard, unit->marks_passed + 1)) {
        unit->marks_passed++;
    }
}

/* Whether a mark was passed that there is to be a copy of, and is none. */
static bool lacks_copy(const struct shard *shard, const struct unit *unit)
{
    const struct mark_copy *copy = &shard->mark_copy;
    return copy->values != NULL && copy->mark != unit->marks_passed && !shard_is_final(shard, unit);
}

bool shard_mark_holds(const struct shard *shard, const struct unit *unit)
{
    return lacks_copy(shard, unit) && shard->mark_copy.readers_left > 0;
}

bool shard_keep_mark(struct shard *shard, const struct unit *unit)
{
    struct mark_copy *copy = &shard->mark_copy;
    if (!lacks_copy(shard, unit)) {
        return true;
    }
    if (shard_mark_holds(shard, unit)) {
        return false;
    }
    shard_copy(shard, copy->values, shard->params, shard->value_count);
    copy->mark = unit->marks_passed;
    copy->readers_left = shard->config.processes;
    return true;
}

/* Steps of `other` that come before what `rank`, of the same process, has asked for. */
static uint64_t steps_before(const struct unit *unit, uint32_t other, uint32_t rank)
{
    return unit->seats[rank].pull_step + (other < rank);
}

bool shard_is_quiet(const struct shard *shard, const struct unit *unit, uint32_t rank)
{
    const struct rank_block block = shard_block(shard, rank);
    for (uint32_t other = block.first; other < block.first + block.count; other++) {
        if (unit->seats[other].clock != steps_before(unit, other, rank)) {
            return false;
        }
    }
    return true;
}

bool shard_has_own_pushes(const struct shard *shard, const struct unit *unit, uint32_t rank)
{
    const struct rank_block block = shard_block(shard, rank);
    for (uint32_t other = block.first; other < block.first + block.count; other++) {
        bool is_here = unit->seats[other].part_pushes == unit->part_count;
        if (unit->seats[other].clock + is_here < steps_before(unit, other, rank)) {
            return false;
        }
    }
    return true;
}

bool shard_mark_waits_for(const struct shard *shard, const struct unit *unit, uint32_t rank)
{
    const struct mark_copy *copy = &shard->mark_copy;
    return copy->readers_left > 0 && copy->mark > shard_reader(shard, unit, rank)->marks_read;
}

struct answer shard_answer_mark(const struct shard *shard, const struct unit *unit, uint32_t rank)
{
    uint64_t mark = unit->seats[rank].pull_mark;
    bool is_kept = shard->mark_copy.mark == mark && shard->mark_copy.values != NULL;
    bool is_end = shard_is_final(shard, unit) && gradients_at(shard, mark) >= shard->gradient_total;
    if (is_end && !is_kept) {
        bool is_quiet = shard_is_quiet(shard, unit, rank);
        return (struct answer){is_quiet ? shard->params : NULL, unit->version, true};
    }
    return (struct answer){is_kept ? shard->mark_copy.values : NULL, 0, true};
}

void shard_note_mark_read(struct shard *shard, const struct unit *unit, uint32_t rank)
{
    struct mark_copy *copy = &shard->mark_copy;
    struct seat *reader = shard_reader(shard, unit, rank);
    uint64_t mark = unit->seats[rank].pull_mark;
    if (reader->marks_read < mark) {
        reader->marks_read = mark;
        copy->readers_left -= copy->mark == mark && copy->readers_left > 0;
    }
}
