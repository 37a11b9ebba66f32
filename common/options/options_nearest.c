/* Guesses which name was meant by one that is not known. */
#include "common/options/options.h"

#include <stdint.h>
#include <string.h>

#define NAME_LENGTH_MAX   64 // longer names are near to nothing
#define NEAR_DISTANCE_MAX 3
#define BEGINNING_MIN     3 // characters by which a beginning is told from chance

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

/* Insertions, deletions, substitutions and swaps of neighbours between a and b (optimal string
 * alignment), by its recurrence over three rows. */
static unsigned edit_distance(const char *a, const char *b)
{
    size_t a_size = strlen(a), b_size = strlen(b);
    unsigned rows[3][NAME_LENGTH_MAX + 1];
    if (a_size > NAME_LENGTH_MAX || b_size > NAME_LENGTH_MAX) {
        return UINT32_MAX;
    }
    for (size_t j = 0; j <= b_size; j++) {
        rows[0][j] = (unsigned)j;
    }
    for (size_t i = 1; i <= a_size; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *before = rows[(i + 2) % 3], *twice_before = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_size; j++) {
            row[j] = min3(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
            bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (is_swap && twice_before[j - 2] + 1 < row[j]) {
                row[j] = twice_before[j - 2] + 1;
            }
        }
    }
    return rows[a_size % 3][b_size];
}

/* One of them begins with the other. */
static bool share_a_beginning(const char *a, const char *b)
{
    size_t a_size = strlen(a), b_size = strlen(b);
    size_t size = a_size < b_size ? a_size : b_size;
    return size >= BEGINNING_MIN && strncmp(a, b, size) == 0;
}

const char *options_nearest(const char *name, const char *const *names, size_t count)
{
    // A third of the letters may be wrong.
    size_t size = strlen(name), limit = (size + 1) / 3;
    limit = limit < NEAR_DISTANCE_MAX ? limit : NEAR_DISTANCE_MAX;
    const char *nearest = NULL, *beginning = NULL;
    unsigned least = (unsigned)limit + 1;
    for (size_t i = 0; i < count; i++) {
        // Of two that are equally near, the one of the same length: letters are swapped more often
        // than they are lost.
        unsigned distance = edit_distance(name, names[i]);
        if (distance < least ||
            (distance == least && nearest != NULL && strlen(names[i]) == size)) {
            least = distance;
            nearest = names[i];
        }
        if (beginning == NULL && share_a_beginning(name, names[i])) {
            beginning = names[i];
        }
    }
    // A wrong letter is more likely than a cut: "lenet" is lenet5 both ways, "optim" only one.
    return nearest != NULL ? nearest : beginning;
}
