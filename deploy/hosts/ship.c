/* Copies programs to all other hosts at once, with one process for each host.
 *
 * `cat` writes each file there under a temporary name, and the file is renamed once it is whole.
 * Its size has to be checked, because `cat` also sees the end of its input if ssh is ended on the
 * way. A folder is complete if each file has its size. */
#include "deploy/hosts/ship.h"

#include "common/base/log.h"
#include "deploy/hosts/host_link.h"
#include "deploy/hosts/ssh_command.h"
#include "deploy/system/poll_list.h"
#include "deploy/system/process_run.h"
#include "deploy/system/programs.h"

#include <sodium.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES_MAX    4
#define MODULE       "ringside-cuda.so"
#define LOOK_MS      10000
#define COPY_MS      300000
#define DIGEST_BYTES 8
#define OUTPUT_BYTES 4096

enum { EXIT_OF_SSH = 255 };

struct cargo {
    const char *ssh;
    char folder[SHIP_PLACE_BYTES / 2]; // on the hosts, with $HOME
    struct {
        char path[PROGRAMS_PATH_MAX]; // here
        const char *place;            // below the folder
        uint64_t size;                // bytes
    } files[FILES_MAX];
    size_t count;
};

/* Finds the module next to the installed worker, or where it was built. Returns false if this build
 * has none. */
static bool find_module(const char *worker, char ret_path[PROGRAMS_PATH_MAX])
{
    static const char *const places[] = {MODULE, "device/cuda/" MODULE};
    const char *slash = strrchr(worker, '/');
    for (size_t i = 0; slash != NULL && i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(ret_path, PROGRAMS_PATH_MAX, "%.*s/%s", (int)(slash - worker), worker, places[i]);
        if (access(ret_path, R_OK) == 0) {
            return true;
        }
    }
    return false;
}

static enum status add_file(struct cargo *cargo, const char *path, const char *place)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        log_error("cannot read %s, to copy it: %m", path);
        return STATUS_IO;
    }
    snprintf(cargo->files[cargo->count].path, PROGRAMS_PATH_MAX, "%s", path);
    cargo->files[cargo->count].size = (uint64_t)info.st_size;
    cargo->files[cargo->count++].place = place;
    return STATUS_OK;
}

static enum status find_files(struct cargo *cargo)
{
    struct programs programs;
    char path[PROGRAMS_PATH_MAX];
    enum status status = programs_find(&programs);
    if (status != STATUS_OK) {
        return status;
    }
    status = add_file(cargo, programs.ps, "libexec/ringside/ps");
    if (status != STATUS_OK) {
        return status;
    }
    status = add_file(cargo, programs.worker, "libexec/ringside/worker");
    if (status != STATUS_OK) {
        return status;
    }
    if (find_module(programs.worker, path)) {
        status = add_file(cargo, path, "libexec/ringside/" MODULE);
    }
    return status == STATUS_OK ? add_file(cargo, "/proc/self/exe", "bin/ringside") : status;
}

static enum status add_digest(crypto_generichash_state *digest, const char *path)
{
    unsigned char bytes[1 << 16];
    FILE *file = fopen(path, "re");
    size_t got = 0;
    while (file != NULL && (got = fread(bytes, 1, sizeof(bytes), file)) > 0) {
        crypto_generichash_update(digest, bytes, got);
    }
    bool is_read = file != NULL && ferror(file) == 0;
    if (!is_read) {
        log_error("cannot read %s, to copy it: %m", path);
    }
    if (file != NULL) {
        fclose(file);
    }
    return is_read ? STATUS_OK : STATUS_IO;
}

static enum status name_folder(struct cargo *cargo)
{
    crypto_generichash_state digest;
    unsigned char bytes[crypto_generichash_BYTES];
    char hex[2 * DIGEST_BYTES + 1];
    if (sodium_init() < 0) {
        log_error("libsodium does not start");
        return STATUS_IO;
    }
    crypto_generichash_init(&digest, NULL, 0, sizeof(bytes));
    for (size_t i = 0; i < cargo->count; i++) {
        enum status status = add_digest(&digest, cargo->files[i].path);
        if (status != STATUS_OK) {
            return status;
        }
    }
    crypto_generichash_final(&digest, bytes, sizeof(bytes));
    sodium_bin2hex(hex, sizeof(hex), bytes, DIGEST_BYTES);
    snprintf(cargo->folder, sizeof(cargo->folder), "$HOME/.cache/ringside/%s-%s", RINGSIDE_VERSION,
             hex);
    return STATUS_OK;
}

/* Has the host's shell run a script, with a file as its input (-1: none). */
static enum status ask(const struct cargo *cargo, const char *host, const char *script,
                       int input_fd, char ret_output[OUTPUT_BYTES], int *ret_code)
{
    struct ssh_command command;
    char quoted[SSH_SCRIPT_BYTES];
    snprintf(quoted, sizeof(quoted), "sh -c '%s'", script);
    enum status status = ssh_command_make(&command, cargo->ssh, host, quoted);
    if (status != STATUS_OK) {
        return status;
    }
    const struct process_run_options options = {
        .argv = command.argv,
        .input = "",
        .input_fd = input_fd >= 0 ? input_fd : 0,
        .timeout_ms = input_fd >= 0 ? COPY_MS : LOOK_MS,
        .takes_errors = true,
    };
    return process_run(&options, ret_output, OUTPUT_BYTES, ret_code);
}

/* Reports a host's problem on standard output, which is the launcher's pipe. */
static void say_problem(const char *problem, const char *advice)
{
    printf("%.500s\n%.500s\n", problem, advice); // as long as a finding takes
}

/* Adds the shell's test of whether "$d/PLACE" is there with the right size. */
static int add_size_test(const struct cargo *cargo, size_t index, char *ret_text, size_t text_size)
{
    return snprintf(ret_text, text_size,
                    " && test -x \"$d/%s\" && test $(wc -c <\"$d/%s\") -eq %llu",
                    cargo->files[index].place, cargo->files[index].place,
                    (unsigned long long)cargo->files[index].size);
}

static bool has_all(const struct cargo *cargo, const char *host, bool *ret_is_reached)
{
    char script[2048], output[OUTPUT_BYTES];
    int code = EXIT_OF_SSH;
    int used = snprintf(script, sizeof(script),
                        "d=\"%s\"; mkdir -p \"$d/bin\" \"$d/libexec/ringside\"", cargo->folder);
    for (size_t i = 0; i < cargo->count; i++) {
        used += add_size_test(cargo, i, script + used, sizeof(script) - (size_t)used);
    }
    snprintf(script + used, sizeof(script) - (size_t)used, " && echo has-all");
    enum status status = ask(cargo, host, script, -1, output, &code);
    *ret_is_reached = status == STATUS_OK && code != EXIT_OF_SSH;
    return *ret_is_reached && strstr(output, "has-all") != NULL;
}

static bool copy(const struct cargo *cargo, const char *host, size_t index)
{
    char script[1024], output[OUTPUT_BYTES] = "", problem[OUTPUT_BYTES + 128];
    int code = 1, fd = open(cargo->files[index].path, O_RDONLY | O_CLOEXEC);
    const char *place = cargo->files[index].place;
    snprintf(script, sizeof(script),
             "f=\"%s/%s\"; t=\"$f.$$\"; cat >\"$t\" && chmod 755 \"$t\" && "
             "test $(wc -c <\"$t\") -eq %llu && mv \"$t\" \"$f\" || { rm -f \"$t\"; exit 1; }",
             cargo->folder, place, (unsigned long long)cargo->files[index].size);
    enum status status = fd >= 0 ? ask(cargo, host, script, fd, output, &code) : STATUS_IO;
    if (fd >= 0) {
        close(fd);
    }
    if (status == STATUS_OK && code == 0) {
        return true;
    }
    output[strcspn(output, "\n")] = '\0';
    snprintf(problem, sizeof(problem), "%s cannot be copied there: %s", place,
             output[0] != '\0' ? output : status_text(status));
    say_problem(problem, "is there room in its ~/.cache/ringside?");
    return false;
}

/* Tries whether the programs start there. Names missing libraries. */
static void try_programs(const struct cargo *cargo, const char *host)
{
    char script[1024], output[OUTPUT_BYTES] = "", problem[OUTPUT_BYTES + 128];
    int code = 1;
    snprintf(script, sizeof(script),
             "d=\"%s\"; p=\"bin/ringside libexec/ringside/ps libexec/ringside/worker\"; "
             "m=$(for f in $p; do LC_ALL=C ldd \"$d/$f\" 2>/dev/null; done | grep \"not found\" | "
             "sed \"s/^[[:space:]]*//\" | sort -u); "
             "test -z \"$m\" || { echo \"$m\"; exit 1; }; "
             "for f in $p; do \"$d/$f\" --version >/dev/null || exit 1; done",
             cargo->folder);
    enum status status = ask(cargo, host, script, -1, output, &code);
    if (status == STATUS_OK && code == 0) {
        return;
    }
    bool lacks_libraries = strstr(output, "=> not found") != NULL;
    output[strlen(output) - (output[0] != '\0')] = '\0'; // its newline
    for (char *byte = output; *byte != '\0'; byte++) {
        if (*byte == '\n' || *byte == '\t') {
            *byte = ' ';
        }
    }
    snprintf(problem, sizeof(problem), "the programs that were copied there do not start: %s",
             status == STATUS_OK ? output : status_text(status));
    say_problem(problem,
                lacks_libraries
                    ? "install the packages that deploy/install-dependencies lists there"
                    : "can this host run these programs? ~/.cache/ringside may be removed");
}

/* Ships to one host. Runs in a process of its own, and never returns. */
static void ship_to(const struct cargo *cargo, const char *host, int output_fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(output_fd, STDOUT_FILENO);
    bool is_reached, is_whole = has_all(cargo, host, &is_reached);
    bool is_copied = is_reached && !is_whole;
    for (size_t i = 0; is_copied && i < cargo->count; i++) {
        is_copied = copy(cargo, host, i);
    }
    if (is_whole || is_copied) {
        try_programs(cargo, host);
    }
    fflush(stdout);
    _exit(0);
}

/* A process that ships to one host, and what it has said so far; two lines if there is a
 * problem. */
struct shipment {
    pid_t pid;
    int fd; // non-blocking; -1: there is none, or it has ended
    char said[2 * OPTION_ERROR_BYTES + 1];
    size_t used;
};

static void start_shipment(const struct cargo *cargo, const char *host, struct shipment *shipment)
{
    int ends[2];
    *shipment = (struct shipment){.fd = -1};
    if (host_link_is_here(host, NULL) || pipe2(ends, O_CLOEXEC) != 0) {
        return;
    }
    shipment->pid = fork();
    if (shipment->pid == 0) {
        ship_to(cargo, host, ends[1]);
    }
    close(ends[1]);
    if (shipment->pid < 0) {
        close(ends[0]);
        return;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    shipment->fd = ends[0];
}

static void take_problem(const char *host, struct shipment *shipment, struct findings *findings)
{
    shipment->said[shipment->used] = '\0';
    char *end = strchr(shipment->said, '\n');
    struct finding *finding = end != NULL ? findings_add(findings, host) : NULL;
    if (finding != NULL) {
        *end = '\0';
        end[1 + strcspn(end + 1, "\n")] = '\0';
        snprintf(finding->problem, sizeof(finding->problem), "%s", shipment->said);
        snprintf(finding->advice, sizeof(finding->advice), "%s", end + 1);
    }
}

/* Takes what has come. Returns false if nothing more will. */
static bool read_shipment(struct shipment *shipment)
{
    size_t room = sizeof(shipment->said) - 1 - shipment->used;
    ssize_t got = read(shipment->fd, shipment->said + shipment->used, room);
    shipment->used += got > 0 ? (size_t)got : 0;
    return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

static void end_shipment(struct shipment *shipment)
{
    if (shipment->fd >= 0) {
        close(shipment->fd);
        waitpid(shipment->pid, NULL, 0);
        shipment->fd = -1;
    }
}

/* Whether SIGINT or SIGTERM is pending. They stay pending, because others look for them, too. */
static int open_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool is_interrupted(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
}

/* Waits until all have ended, or a signal has come. */
static void await_shipments(struct shipment *shipments, const struct hosts *hosts,
                            struct findings *findings)
{
    struct poll_list polls = {0};
    int signals = open_signals();
    for (bool has_more = true; has_more && !is_interrupted();) {
        has_more = false;
        poll_list_clear(&polls);
        poll_list_add(&polls, signals, POLLIN);
        for (size_t i = 0; i < hosts->count; i++) {
            if (shipments[i].fd >= 0 && !read_shipment(&shipments[i])) {
                take_problem(hosts->list[i].name, &shipments[i], findings);
                end_shipment(&shipments[i]);
            }
            if (shipments[i].fd >= 0) {
                poll_list_add(&polls, shipments[i].fd, POLLIN);
                has_more = true;
            }
        }
        if (has_more) {
            poll_list_wait(&polls, LOOK_MS);
        }
    }
    close(signals);
    poll_list_finish(&polls);
}

enum status ship_programs(const struct hosts *hosts, const char *ssh,
                          char ret_place[SHIP_PLACE_BYTES], struct findings *findings)
{
    struct cargo cargo = {.ssh = ssh};
    struct shipment *shipments;
    enum status status = find_files(&cargo);
    if (status == STATUS_OK) {
        status = name_folder(&cargo);
    }
    if (status != STATUS_OK) {
        return status;
    }
    shipments = calloc(hosts->count, sizeof(*shipments));
    if (shipments == NULL) {
        return STATUS_NO_MEMORY;
    }
    fflush(stdout); // so that children do not print what is in its buffer
    for (size_t i = 0; i < hosts->count; i++) {
        start_shipment(&cargo, hosts->list[i].name, &shipments[i]);
    }
    snprintf(ret_place, SHIP_PLACE_BYTES, "%s/bin/ringside", cargo.folder);
    await_shipments(shipments, hosts, findings);
    for (size_t i = 0; i < hosts->count; i++) {
        if (shipments[i].fd >= 0) {
            kill(shipments[i].pid, SIGKILL); // the kernel ends what the process has started
        }
        end_shipment(&shipments[i]);
    }
    free(shipments);
    return is_interrupted() ? STATUS_INTERRUPTED : STATUS_OK;
}
