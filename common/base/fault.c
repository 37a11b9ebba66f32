/* Kills or stops the calling process.
 *
 * A stopped process cannot continue itself: it forks a child that stops it, waits and continues it.
 * The child does both, so that they are in this order also where a busy machine lets it wait. It
 * dies with its parent, and between fork and exit it calls what signal handlers may call, and
 * nothing else: other threads may hold any lock. */
#include "common/base/fault.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void die(void)
{
    kill(getpid(), SIGKILL);
    _exit(128 + SIGKILL); // the first process of a container is not killed from within
}

static struct timespec duration_of(double seconds)
{
    double whole = floor(seconds);
    return (struct timespec){.tv_sec = (time_t)whole, .tv_nsec = (long)((seconds - whole) * 1e9)};
}

/* The child. */
static _Noreturn void stop_parent(pid_t parent, struct timespec left)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) { // it died before that
        _exit(0);
    }
    kill(parent, SIGSTOP);
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    kill(parent, SIGCONT);
    _exit(0);
}

static enum status stop(double seconds)
{
    const struct timespec duration = duration_of(seconds);
    pid_t parent = getpid(), child = fork();
    if (child < 0) {
        return STATUS_NO_MEMORY;
    }
    if (child == 0) {
        stop_parent(parent, duration);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    return STATUS_OK;
}

enum status fault_strike(enum fault_kind kind, double seconds)
{
    assert(kind == FAULT_KILL || kind == FAULT_STOP);
    if (kind == FAULT_KILL) {
        die();
    }
    return stop(seconds);
}
