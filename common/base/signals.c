/* Catches the signals that end a program, and turns a status into an exit code. */
#include "common/base/signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static atomic_int flag;

static void raise_flag(int number)
{
    flag = number;
}

void signals_install(void)
{
    struct sigaction action = {.sa_handler = raise_flag};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
        sigaction(SIGHUP, &action, NULL); // nohup keeps its word
    }
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, NULL);
}

const atomic_int *signals_flag(void)
{
    return &flag;
}

enum exit_code exit_code(enum status verdict)
{
    if (verdict == STATUS_OK) {
        return EXIT_COMPLETED;
    }
    return verdict == STATUS_INTERRUPTED ? EXIT_INTERRUPTED : EXIT_FAILED;
}

enum exit_code exit_code_of_member(enum status verdict)
{
    bool is_lost = verdict == STATUS_UNREACHABLE || verdict == STATUS_TIMED_OUT;
    return is_lost ? EXIT_LOST : exit_code(verdict);
}
