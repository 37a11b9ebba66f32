/* Encodes and decodes the lines between the launcher and its agents. */
#include "deploy/agent/agent_message.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum field_type { FIELD_U32, FIELD_U64, FIELD_FLAG, FIELD_TEXT, FIELD_LIST };

struct field {
    const char *name;
    enum field_type type;
    size_t offset;
};

#define FIELD(type, name)                                         \
    {                                                             \
#name, FIELD_##type, offsetof(struct agent_message, name) \
    }

enum field_index {
    ID,
    PID,
    SIGNAL,
    PORT,
    TIMEOUT,
    PROTOCOL,
    CORES,
    STATUS,
    TIME,
    CLOCK,
    OFFSET,
    ANNOUNCES,
    LISTENS,
    TOLD,
    TERMINAL,
    TEXT,
    STREAM,
    ADDRESS,
    OWN,
    PEER,
    PORTS,
    PATH,
    DATA,
    INPUT,
    LOG,
    DIRECTORY,
    VERSION,
    HOST,
    HOST_ID,
    PS,
    WORKER,
    ARGV,
    ENVIRONMENT,
    INTERFACES,
    FIELD_COUNT
};

static const struct field fields[FIELD_COUNT] = {
    [ID] = FIELD(U32, id),
    [PID] = FIELD(U32, pid),
    [SIGNAL] = FIELD(U32, signal),
    [PORT] = FIELD(U32, port),
    [TIMEOUT] = FIELD(U32, timeout_ms),
    [PROTOCOL] = FIELD(U32, protocol),
    [CORES] = FIELD(U32, cores),
    [STATUS] = FIELD(U32, status),
    [TIME] = FIELD(U64, time_us),
    [CLOCK] = FIELD(U64, clock_us),
    [OFFSET] = FIELD(U64, offset),
    [ANNOUNCES] = FIELD(FLAG, announces),
    [LISTENS] = FIELD(FLAG, listens),
    [TOLD] = FIELD(FLAG, is_told),
    [TERMINAL] = FIELD(FLAG, has_terminal),
    [TEXT] = FIELD(TEXT, text),
    [STREAM] = FIELD(TEXT, stream),
    [ADDRESS] = FIELD(TEXT, address),
    [OWN] = FIELD(TEXT, own),
    [PEER] = FIELD(TEXT, peer),
    [PORTS] = FIELD(TEXT, ports),
    [PATH] = FIELD(TEXT, path),
    [DATA] = FIELD(TEXT, data),
    [INPUT] = FIELD(TEXT, input),
    [LOG] = FIELD(TEXT, log),
    [DIRECTORY] = FIELD(TEXT, directory),
    [VERSION] = FIELD(TEXT, version),
    [HOST] = FIELD(TEXT, host),
    [HOST_ID] = FIELD(TEXT, host_id),
    [PS] = FIELD(TEXT, ps),
    [WORKER] = FIELD(TEXT, worker),
    [ARGV] = FIELD(LIST, argv),
    [ENVIRONMENT] = FIELD(LIST, environment),
    [INTERFACES] = FIELD(LIST, interfaces),
};

#define BIT(index) (UINT64_C(1) << (index))

/* Which fields a kind has. */
static const struct {
    const char *name;
    uint64_t needs, may_have;
} kinds[AGENT_KIND_COUNT] = {
    [AGENT_START] = {"start", BIT(ID) | BIT(ARGV),
                     BIT(ENVIRONMENT) | BIT(INPUT) | BIT(LOG) | BIT(DIRECTORY) | BIT(ANNOUNCES) |
                         BIT(LISTENS) | BIT(TOLD) | BIT(TERMINAL)},
    [AGENT_TELL] = {"tell", BIT(ID) | BIT(TEXT), 0},
    [AGENT_SIGNAL] = {"signal", BIT(ID) | BIT(SIGNAL), 0},
    [AGENT_PING] = {"ping", BIT(TIME), 0},
    [AGENT_ROUTE] = {"route", BIT(ADDRESS), 0},
    [AGENT_LISTEN] = {"listen", BIT(ADDRESS) | BIT(PORTS), 0},
    [AGENT_CONNECT] = {"connect", BIT(ID) | BIT(ADDRESS) | BIT(PORT) | BIT(TIMEOUT), 0},
    [AGENT_CLOSE] = {"close", 0, 0},
    [AGENT_FOLDER] = {"folder", 0, 0},
    [AGENT_FETCH] = {"fetch", 0, 0},
    [AGENT_HELLO] = {"hello",
                     BIT(PROTOCOL) | BIT(VERSION) | BIT(HOST) | BIT(HOST_ID) | BIT(CORES) |
                         BIT(OWN) | BIT(PEER) | BIT(PS) | BIT(WORKER) | BIT(INTERFACES),
                     0},
    [AGENT_STARTED] = {"started", BIT(ID) | BIT(PID), 0},
    [AGENT_OUTPUT] = {"output", BIT(ID) | BIT(STREAM) | BIT(TEXT), 0},
    [AGENT_EXITED] = {"exited", BIT(ID) | BIT(STATUS), 0},
    [AGENT_STOPPED] = {"stopped", BIT(ID) | BIT(SIGNAL), 0},
    [AGENT_PONG] = {"pong", BIT(TIME) | BIT(CLOCK), 0},
    [AGENT_ROUTED] = {"routed", BIT(OWN), 0},
    [AGENT_LISTENING] = {"listening", BIT(PORT) | BIT(TEXT), 0},
    [AGENT_CONNECTED] = {"connected", BIT(ID) | BIT(TEXT), 0},
    [AGENT_MADE] = {"made", BIT(PATH) | BIT(TEXT), 0},
    [AGENT_FILE] = {"file", BIT(PATH) | BIT(OFFSET) | BIT(DATA), 0},
    [AGENT_FETCHED] = {"fetched", BIT(TEXT), 0},
    [AGENT_REFUSED] = {"refused", BIT(TEXT), 0},
};

const char *agent_kind_name(enum agent_kind kind)
{
    return kinds[kind].name;
}

static const void *at(const struct agent_message *message, const struct field *field)
{
    return (const char *)message + field->offset;
}

/* In a text that is no UTF-8, bytes beyond ASCII become question marks. */
static json_t *text_json(const char *text)
{
    json_t *value = json_string(text);
    if (value != NULL) {
        return value;
    }
    char *copy = strdup(text);
    for (char *byte = copy; copy != NULL && *byte != '\0'; byte++) {
        if ((unsigned char)*byte >= 0x80) {
            *byte = '?';
        }
    }
    value = copy != NULL ? json_string(copy) : NULL;
    free(copy);
    return value;
}

static json_t *list_json(const char *const *list)
{
    json_t *array = json_array();
    for (size_t i = 0; list[i] != NULL; i++) {
        json_array_append_new(array, text_json(list[i]));
    }
    return array;
}

/* The value of a field; NULL for a text that is not there. */
static json_t *value_json(const struct agent_message *message, const struct field *field)
{
    const char *text;
    uint32_t small;
    uint64_t large;
    bool flag;
    switch (field->type) {
    case FIELD_U32:
        memcpy(&small, at(message, field), sizeof(small));
        return json_integer((json_int_t)small);
    case FIELD_U64:
        memcpy(&large, at(message, field), sizeof(large));
        return json_integer((json_int_t)large);
    case FIELD_FLAG:
        memcpy(&flag, at(message, field), sizeof(flag));
        return json_boolean(flag);
    case FIELD_TEXT:
        memcpy(&text, at(message, field), sizeof(text));
        return text != NULL ? text_json(text) : NULL;
    case FIELD_LIST:
        return list_json((const char *const *)at(message, field));
    }
    return NULL;
}

char *agent_message_encode(const struct agent_message *message)
{
    json_t *tree = json_pack("{s:s}", "is", kinds[message->kind].name);
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        bool is_in = ((kinds[message->kind].needs | kinds[message->kind].may_have) & BIT(i)) != 0;
        json_t *value = is_in ? value_json(message, &fields[i]) : NULL;
        if (value != NULL) {
            json_object_set_new(tree, fields[i].name, value);
        }
    }
    char *line = json_dumps(tree, JSON_COMPACT);
    json_decref(tree);
    if (line != NULL && strlen(line) > AGENT_LINE_MAX) {
        free(line);
        return NULL;
    }
    return line;
}

static bool read_number(const json_t *value, uint64_t max, uint64_t *ret_number)
{
    json_int_t number = json_integer_value(value);
    *ret_number = (uint64_t)number;
    return json_is_integer(value) && number >= 0 && (uint64_t)number <= max;
}

static bool read_list(const json_t *value, const char **ret_list)
{
    size_t count = json_array_size(value);
    if (!json_is_array(value) || count > AGENT_LIST_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        ret_list[i] = json_string_value(json_array_get(value, i));
        if (ret_list[i] == NULL) {
            return false;
        }
    }
    ret_list[count] = NULL;
    return true;
}

static bool read_value(struct agent_message *message, const struct field *field,
                       const json_t *value)
{
    char *place = (char *)message + field->offset;
    const char *text = json_string_value(value);
    uint64_t large = 0;
    uint32_t small;
    bool flag = json_is_true(value);
    switch (field->type) {
    case FIELD_U32:
        if (!read_number(value, UINT32_MAX, &large)) {
            return false;
        }
        small = (uint32_t)large;
        memcpy(place, &small, sizeof(small));
        return true;
    case FIELD_U64:
        if (!read_number(value, INT64_MAX, &large)) {
            return false;
        }
        memcpy(place, &large, sizeof(large));
        return true;
    case FIELD_FLAG:
        memcpy(place, &flag, sizeof(flag));
        return json_is_boolean(value);
    case FIELD_TEXT:
        memcpy(place, &text, sizeof(text));
        return text != NULL;
    case FIELD_LIST:
        return read_list(value, (const char **)(void *)place);
    }
    return false;
}

static enum status find_kind(const json_t *tree, enum agent_kind *ret_kind, char *ret_error,
                             size_t error_size)
{
    const char *name = json_string_value(json_object_get(tree, "is"));
    for (unsigned i = 0; name != NULL && i < AGENT_KIND_COUNT; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *ret_kind = (enum agent_kind)i;
            return STATUS_OK;
        }
    }
    snprintf(ret_error, error_size, "there is no message '%.40s'", name != NULL ? name : "");
    return STATUS_MALFORMED;
}

static enum status read_fields(const json_t *tree, struct agent_message *message, char *ret_error,
                               size_t error_size)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const json_t *value = json_object_get(tree, fields[i].name);
        bool is_needed = (kinds[message->kind].needs & BIT(i)) != 0;
        bool is_in = is_needed || (kinds[message->kind].may_have & BIT(i)) != 0;
        if (!is_in || (value == NULL && !is_needed)) {
            continue;
        }
        if (value == NULL || !read_value(message, &fields[i], value)) {
            snprintf(ret_error, error_size, "%s: '%s' is %s", kinds[message->kind].name,
                     fields[i].name, value == NULL ? "missing" : "not what it has to be");
            return STATUS_MALFORMED;
        }
    }
    if (message->kind == AGENT_START && message->argv[0] == NULL) {
        snprintf(ret_error, error_size, "start: 'argv' is empty");
        return STATUS_MALFORMED;
    }
    return STATUS_OK;
}

enum status agent_message_decode(const char *line, struct agent_message *ret_message,
                                 char *ret_error, size_t error_size)
{
    json_error_t error;
    struct agent_message *message = ret_message;
    *message = (struct agent_message){.tree = json_loads(line, JSON_REJECT_DUPLICATES, &error)};
    enum status status = STATUS_MALFORMED;
    if (!json_is_object(message->tree)) {
        snprintf(ret_error, error_size, "the line is not a JSON object");
    } else {
        status = find_kind(message->tree, &message->kind, ret_error, error_size);
    }
    if (status == STATUS_OK) {
        status = read_fields(message->tree, message, ret_error, error_size);
    }
    if (status != STATUS_OK) {
        agent_message_finish(message);
    }
    return status;
}

static void wipe_and_free(void *memory)
{
    if (memory != NULL) {
        explicit_bzero(memory, malloc_usable_size(memory));
    }
    free(memory);
}

void agent_message_free_line(char *line)
{
    wipe_and_free(line);
}

void agent_message_wipe_memory(void)
{
    json_set_alloc_funcs(malloc, wipe_and_free);
}

void agent_message_finish(struct agent_message *message)
{
    json_decref(message->tree);
    message->tree = NULL;
}
