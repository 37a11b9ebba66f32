/* Reads options from an INI file.
 *
 * The parsing is inih's. It takes lines from a buffer of its own size (200 bytes, as Debian builds
 * it) and would cut longer ones in two, it takes an indented line for more of the value above, and
 * it tells its handler no line numbers. So it gets its lines from here: whole or not at all,
 * without indentation, and counted. */
#include "common/base/log.h"
#include "common/options/options_sources.h"

#include <ini.h>

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define FILE_BYTES_MAX (1 << 20)

struct source {
    struct option_program *program;
    const char *path;
    FILE *file;
    size_t size;    // bytes read
    int line;       // number of the one that was read last
    bool has_ended; // there is no line after it
    bool has_failed;
};

/* Logs the error of the line that was read last, and ends the reading. */
static char *refuse_line(struct source *source, const char *why)
{
    log_error("%s:%d: %s", source->path, source->line, why);
    source->has_failed = true;
    return NULL;
}

static int next_byte(struct source *source)
{
    int byte = getc(source->file);
    source->has_ended = byte == EOF;
    source->size += byte != EOF;
    return byte;
}

/* As fgets, for ini_parse_stream. */
static char *read_line(char *text, int size, void *data)
{
    struct source *source = data;
    if (source->has_failed || source->has_ended) {
        return NULL;
    }
    source->line++;
    if (source->size > FILE_BYTES_MAX) {
        return refuse_line(source, "the file is too long for a config file");
    }
    int length = 0;
    for (int byte = next_byte(source); byte != '\n' && byte != EOF; byte = next_byte(source)) {
        if (byte == '\0' || source->size > FILE_BYTES_MAX) {
            return refuse_line(source, "this is not a text file with options");
        }
        if (length == 0 && isspace(byte)) {
            continue;
        }
        if (length >= size - 2) { // a full buffer would look like half a line
            return refuse_line(source, "the line is too long for a config file; give this option "
                                       "on the command line or in the environment");
        }
        text[length++] = (char)byte;
    }
    text[length] = '\0';
    return text;
}

/* Called by inih for each line; 0 says that it is wrong. */
static int take_line(void *data, const char *section, const char *name, const char *value)
{
    struct source *source = data;
    char where[512];
    (void)section; // sections are for the reader's eye
    if (source->has_failed) {
        return 0;
    }
    snprintf(where, sizeof(where), "%.400s:%d", source->path, source->line);
    if (options_set_from(source->program, where, name, value != NULL ? value : "") != STATUS_OK) {
        source->has_failed = true;
    }
    return source->has_failed ? 0 : 1;
}

enum status options_read_file(struct option_program *program, const char *path)
{
    struct source source = {.program = program, .path = path, .file = fopen(path, "re")};
    if (source.file == NULL) {
        log_error("cannot read the config file %s: %m", path);
        return STATUS_INVALID;
    }
    errno = 0;
    int wrong_line = ini_parse_stream(read_line, &source, take_line, &source);
    bool is_read = ferror(source.file) == 0;
    if (!is_read) {
        log_error("cannot read the config file %s: %m", path);
    }
    fclose(source.file);
    if (!is_read || source.has_failed) {
        return STATUS_INVALID;
    }
    if (wrong_line != 0) {
        log_error("%s:%d: not a line of the form NAME = VALUE", path, wrong_line);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}
