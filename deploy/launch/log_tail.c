/* Reads the last lines of a log. */
#include "deploy/launch/log_tail.h"

#include "common/base/new_file.h"
#include "common/base/printable.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAIL_BYTES 4096
#define LINES_MAX  5 // printed at most
#define PATH_BYTES 4300
#define ROOM_BYTES 4096 // more than a line

struct tail {
    char text[TAIL_BYTES];
    char *lines[LINES_MAX]; // the last ones, in their order
    size_t count;
};

static void add_line(struct tail *tail, char *line)
{
    if (tail->count == LINES_MAX) {
        memmove(tail->lines, tail->lines + 1, (LINES_MAX - 1) * sizeof(tail->lines[0]));
        tail->count--;
    }
    tail->lines[tail->count++] = line;
}

uint64_t log_tail_end(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 ? (uint64_t)found.st_size : 0;
}

static void read_tail(const struct log_part *part, struct tail *tail)
{
    tail->count = 0;
    FILE *file = fopen(part->path, "re");
    if (file == NULL) {
        return;
    }
    uint64_t end = log_tail_end(part->path);
    bool is_long = end > part->from && end - part->from > TAIL_BYTES - 1;
    uint64_t at_byte = is_long ? end - (TAIL_BYTES - 1) : part->from;
    if (fseeko(file, (off_t)at_byte, SEEK_SET) != 0) {
        fclose(file);
        return;
    }
    size_t size = fread(tail->text, 1, sizeof(tail->text) - 1, file);
    fclose(file);
    tail->text[size] = '\0';
    char *at = tail->text;
    if (is_long) {
        at += strcspn(at, "\n"); // skips the rest of a line
    }
    for (char *line = strtok_r(at, "\n", &at); line != NULL; line = strtok_r(NULL, "\n", &at)) {
        printable_make(line, strlen(line));
        add_line(tail, line);
    }
}

/* "TIME error worker 1 host=NAME: sentence": the sentence. */
static const char *sentence_of(const char *line)
{
    const char *host = strstr(line, " host=");
    const char *colon = host != NULL ? strstr(host, ": ") : NULL;
    return colon != NULL ? colon + 2 : line;
}

/* Whether its disk, or this user's share of it, is full. Then errno says which. */
static bool is_disk_full(const char *path)
{
    char room[PATH_BYTES];
    snprintf(room, sizeof(room), "%.4096s.room", path);
    if (new_file_fill(room, ROOM_BYTES) != STATUS_OK) {
        return errno == ENOSPC || errno == EDQUOT;
    }
    unlink(room);
    return false;
}

void log_tail_sentence(const struct log_part *part, char *ret_text, size_t text_size)
{
    struct tail tail;
    bool has_error = false;
    read_tail(part, &tail);
    const char *line = tail.count > 0 ? tail.lines[tail.count - 1] : "";
    for (size_t i = 0; i < tail.count; i++) {
        bool is_error = strstr(tail.lines[i], " error ") != NULL;
        has_error = has_error || is_error;
        line = is_error ? tail.lines[i] : line;
    }
    if (!has_error && is_disk_full(part->path)) {
        snprintf(ret_text, text_size, "it cannot write to its log %s: %m", part->path);
        return;
    }
    snprintf(ret_text, text_size, "%s", sentence_of(line));
}

bool log_tail_fault(const struct log_part *part, enum fault_kind kind, char *ret_fault,
                    size_t fault_size)
{
    static const char begin[] = ": --fault "; // as common/service/strike.c
    const char *end = kind == FAULT_KILL ? " kills itself" : " stands still";
    struct tail tail;
    assert(kind == FAULT_KILL || kind == FAULT_STOP);
    read_tail(part, &tail);
    for (size_t i = tail.count; i-- > 0;) {
        const char *fault = strstr(tail.lines[i], begin);
        if (fault != NULL && strstr(fault, end) != NULL) {
            fault += strlen(begin);
            snprintf(ret_fault, fault_size, "%.*s", (int)strcspn(fault, ":"), fault);
            return true;
        }
    }
    return false;
}

void log_tail_print(const struct log_part *part, const char *said, FILE *stream)
{
    struct tail tail;
    bool has_head = false;
    read_tail(part, &tail);
    for (size_t i = 0; i < tail.count; i++) {
        const char *sentence = sentence_of(tail.lines[i]);
        bool is_of_log =
            sentence != tail.lines[i]; // what others print, such as a traceback, is whole
        if (is_of_log && strstr(said, sentence) != NULL) {
            continue;
        }
        if (!has_head) {
            fprintf(stream, "the end of %s:\n", part->path);
        }
        fprintf(stream, "    %s\n", tail.lines[i]);
        has_head = true;
    }
}
