/* libringside: train a model of your own in a job of Ringside, by a ring or a parameter server.
 *
 * A job is described to `ps` or `ringside`, with `--model external:NAME`; each of its N processes
 * joins it by this library, in place of the program `worker`:
 *
 *     ps --model external:mine --mode ps-async --workers 2 --steps 1000 --optimizer sgd --lr 0.1
 *     RINGSIDE_SERVER=ENDPOINT mine          (twice; ENDPOINT as `ps` prints it)
 *
 * Order of calls
 *
 *     ringside_join          the job, this process's rank
 *     ringside_describe      tensors; then ringside_params has room for the first parameters, which
 *                            the program fills, alike in every process
 *     ringside_start         waits until every process is ready
 *     while (ringside_begin_step(...) == RINGSIDE_OK) {
 *         ringside_await             before it reads a tensor's parameters
 *         ringside_begin_gradients   before it writes gradients
 *         ringside_ready             for each tensor whose gradient is complete
 *         ringside_end_step
 *     }
 *     ringside_leave         waits for the end of the job; frees the handle
 *
 * These and ringside_params, ringside_grads, ringside_job and ringside_error are all that a program
 * needs. They come first below. tests/worker/library/line.c is such a program. The others are for
 * programs that want more:
 *
 *     updates       ringside_keep_gradients, for an optimizer of the program's own;
 *                   set_optimizer, set_groups, change_groups, set_rate, for one of the job's;
 *                   set_compression
 *     collectives   all_reduce, broadcast, all_gather, barrier; all_reduce_among and its like, of
 *                   other types and operations, among some processes; send, receive
 *     losses        commit, rejoin, go_on, in jobs that go on when a process is lost
 *     the job       counters and report; fail, which says why a program gives up; offset, which is
 *                   the sum of the counts before a tensor
 *
 * The job's --steps say how many steps there are. Without them a job is open: begin_step never says
 * RINGSIDE_END, and the job ends when every process has left. In ring and ps-sync all have to make
 * the same number of steps then, in ps-ssp:S numbers that differ by S at most.
 *
 * A call out of this order does nothing, and returns RINGSIDE_MISUSE. A step that was begun has
 * each of the calls in it; only await may be left out or repeated.
 *
 * Shapes and units. Parameters and gradients are one vector of 32-bit floats each, (value_count),
 * in which tensors lie one behind the other in the order in which they are described, without gaps.
 * Counts are of floats, sizes of bytes, times of seconds.
 *
 * Updates are the job's: `--optimizer`, `--lr` and what belongs to it, or what the program says by
 * ringside_set_optimizer. A gradient is what the program has for its own part of a step; in mode
 * ring and in ps-sync the update takes the mean of all processes' gradients, in ps-ssp and ps-async
 * each gradient is an update of its own. A program that has an optimizer of its own says so by
 * ringside_keep_gradients, in ring, and in ps-sync with --server-optimizer none.
 *
 * Ownership. The handle and the two vectors are the library's, until ringside_leave; a program with
 * pointers into them that may be used later asks for options.keeps_vectors. What the program passes
 * is read during the call only.
 *
 * Threads. Any thread may call, and calls wait for each other: a call that waits for other
 * processes keeps those of other threads waiting. Only ringside_error, and the pointers, need no
 * turn. ringside_leave or ringside_fail is the last call. A process that forks goes on with the
 * handle in the parent alone. The library has a thread of its own, which communicates.
 *
 * Errors are a status, and a sentence that ringside_error returns. When the job has ended, because
 * another process is lost or for any other reason, every call says so. After an error of the job
 * (every status but RINGSIDE_MISUSE, RINGSIDE_INVALID and RINGSIDE_UNSUPPORTED) the only calls left
 * are ringside_leave and ringside_fail; after RINGSIDE_AGAIN and RINGSIDE_GROWS ringside_rejoin.
 *
 * The process is left as it is: no signal handlers, no output (unless log_level asks for it, or
 * the job has a --fault, which is told before it strikes), no core limits, except that a process
 * with keys leaves no core dumps. One handle exists at a time.
 */
#ifndef WORKER_LIBRARY_RINGSIDE_H
#define WORKER_LIBRARY_RINGSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ringside_status {
    RINGSIDE_OK = 0,
    RINGSIDE_END = 1,         // of ringside_begin_step: the job has had its steps; of ringside_join
                              // and ringside_rejoin: it is complete, and needs nobody
    RINGSIDE_MISUSE = 2,      // a call out of order
    RINGSIDE_INVALID = 3,     // an argument
    RINGSIDE_UNSUPPORTED = 4, // not in this mode
    RINGSIDE_NO_MEMORY = 5,
    RINGSIDE_MISMATCH = 6,  // processes disagree on the job
    RINGSIDE_TIMED_OUT = 7, // nobody answered in time
    RINGSIDE_LOST = 8,      // another process of the job, or the way to it, is gone
    RINGSIDE_DENIED = 9,    // no keys, or the wrong ones
    RINGSIDE_FAILED = 10,   // anything else; the sentence says what
    RINGSIDE_AGAIN = 11,    // the job goes on with other processes: see ringside_commit
    RINGSIDE_GROWS = 12,    // of ringside_commit: the same, since processes have come
};

struct ringside;

/* ---- A job and its steps: what every program calls ---- */

/* Zeroed: everything from the environment, as `worker` has it. */
struct ringside_options {
    size_t size;              // sizeof(struct ringside_options); 0 counts as that
    const char *server;       // endpoint of the coordinator; NULL: RINGSIDE_SERVER
    const char *bind;         // address to listen on in ring; NULL: RINGSIDE_BIND, or 127.0.0.1
    const char *port_range;   // "A-B", to listen in; NULL: RINGSIDE_PORT_RANGE, or any port
    const char *keys;         // file of the job's keys; NULL: RINGSIDE_KEYS, or none
    bool is_insecure;         // tcp without keys; also RINGSIDE_INSECURE=true
    bool has_rank;            // false: from the launcher's environment, as `worker` reads it (ours,
    uint32_t rank;            // torchrun, Open MPI, MPICH, Slurm ...), or the coordinator's choice
    double join_timeout;      // seconds until the coordinator's first answer; 0: 30
    uint32_t log_level;       // on standard error; 0: nothing, 1: errors, 2: warnings, 3: events
    bool keeps_vectors;       // parameters and gradients stay behind ringside_leave, for as long as
                              // the process lives
    const char *timeline_dir; // folder for this process's part of the job's timeline; NULL:
                              // RINGSIDE_TIMELINE_DIR, or none
};

/* Joins the job. `options` may be NULL. Waits. When it fails there is no handle, and
 * ringside_error(NULL) has the sentence. A second handle in the process is RINGSIDE_MISUSE. */
enum ringside_status ringside_join(const struct ringside_options *options,
                                   struct ringside **ret_ringside);

/* What the job is. */
struct ringside_job {
    uint32_t rank, size;    // this process's number, of how many
    uint64_t steps;         // of the job, in ps-ssp and ps-async of the average process; 0: open
    uint32_t batch;         // samples of a step of one process, as the job says; a hint
    uint64_t seed;          // of the job
    bool is_unsynchronised; // processes make steps independently: ps-ssp, ps-async, backups
    bool may_set_rate;      // ringside_set_rate works
    bool servers_update;    // servers make the updates; else each process does, from the mean
                            // gradient: by the job's optimizer, or, if it keeps gradients, its own
    const char *mode;       // "ring", "ps-ssp:3" ...; the library's
    const char *model;      // "external:mine"; the library's

    // The update that the job's options ask for, or ringside_set_optimizer has said. What its
    // optimizer does not use says nothing.
    const char *optimizer; // "sgd", "momentum" ...; "auto": the options leave it to the program,
                           // which has not said it; the library's
    double rate;           // of the first step; of "auto" 0, or what the options say
    bool has_schedule;     // the rate changes from step to step
    double momentum;       // momentum, nesterov
    double beta1, beta2;   // adam, adamw
    double decay, epsilon; // as torch.optim has them: alpha of rmsprop, rho of adadelta
    double weight_decay;   // L2 added to the gradient; adamw: decoupled
};
enum ringside_status ringside_job(struct ringside *ringside, struct ringside_job *ret_job);

struct ringside_tensor {
    const char *name;
    uint64_t count; // of floats; at least 1
};

#define RINGSIDE_ALL UINT32_MAX // in the place of a tensor's index

/* Describes the tensors in the order in which forward needs them; gradients are expected in the
 * reverse order, roughly. The same in every process: ringside_start refuses others, by name. A
 * program of collectives alone has none (count 0), and leaves after ringside_start. */
enum ringside_status ringside_describe(struct ringside *ringside,
                                       const struct ringside_tensor *tensors,
                                       uint32_t tensor_count);

/* (value_count) The two vectors, and where a tensor begins in them, in floats. After
 * ringside_describe; NULL, or UINT64_MAX, before it. Params are zeros at first; the program writes
 * them before ringside_start only, unless it makes the updates (ringside_keep_gradients). Where
 * servers do, what it writes later is lost when new parameters come, and then the next call of a
 * step is RINGSIDE_MISUSE once, and names the tensor. Values that are there again by then count as
 * never written. */
float *ringside_params(struct ringside *ringside);
float *ringside_grads(struct ringside *ringside);
uint64_t ringside_offset(struct ringside *ringside, uint32_t tensor);

/* Waits until every process of the job has come here with the same tensors and the same first
 * parameters. RINGSIDE_MISMATCH names who differs. */
enum ringside_status ringside_start(struct ringside *ringside);

/* Begins a step; RINGSIDE_END if there is none left: then params are those of the job's end, and
 * the same in every process. Does not wait where parameters can still come during forward. */
enum ringside_status ringside_begin_step(struct ringside *ringside);

/* Waits until the parameters of a tensor may be read in this step; with RINGSIDE_ALL those of all,
 * and until nothing reads the gradients of the last step any more. */
enum ringside_status ringside_await(struct ringside *ringside, uint32_t tensor);

/* Waits until all parameters are there, and gradients may be written. */
enum ringside_status ringside_begin_gradients(struct ringside *ringside);

/* The gradient of a tensor (or of all that were not ready, by RINGSIDE_ALL) is complete. It travels
 * from now on with its neighbours, and is not written again in this step. Once for each tensor. */
enum ringside_status ringside_ready(struct ringside *ringside, uint32_t tensor);

/* Ends the step. RINGSIDE_MISUSE if a tensor is not ready; the sentence names it. */
enum ringside_status ringside_end_step(struct ringside *ringside);

/* Leaves, and frees the handle whatever it returns. After RINGSIDE_END: waits until all processes
 * have, and returns how the job ended. In an open job, where no gradients are begun: likewise.
 * Elsewhere the job fails, and names this process. NULL does nothing. The sentence is in
 * ringside_error(NULL). */
enum ringside_status ringside_leave(struct ringside *ringside);

/* The sentence of the last call that failed, in this process; "" if none has. Valid until the next
 * call. The handle may be NULL. */
const char *ringside_error(const struct ringside *ringside);

/* ---- Who makes the updates, and how ---- */

/* The program makes the updates: ringside_end_step waits, and leaves the mean gradient of all
 * processes in the vector of gradients; nothing writes parameters but the program, alike in every
 * process, until the next ringside_begin_gradients. Between ringside_describe and ringside_start.
 * Where servers make the updates it is RINGSIDE_UNSUPPORTED. */
enum ringside_status ringside_keep_gradients(struct ringside *ringside);

/* An update that a program says. Zeros are the optimizer's defaults, as in the job's options; what
 * it does not use has to be 0. */
struct ringside_optimizer {
    const char *name; // "sgd", "momentum", "nesterov", "adam", "adamw", "adagrad", "adadelta",
                      // "rmsprop"
    double rate;      // above 0, to 1e6; with a schedule of the job that of its --lr, if there is
                      // one, takes its place
    double momentum;  // momentum, nesterov; not a default if it is 0
    double beta1, beta2; // adam, adamw; likewise
    double decay, epsilon;
    double weight_decay;
};

/* The program says which optimizer makes the updates, wherever they are made: servers have it, too.
 * Between ringside_join and ringside_start, alike in every process: ringside_start refuses others.
 * What was said before, and of groups, is dropped. RINGSIDE_UNSUPPORTED if the job's options name
 * one (ringside_job.optimizer is not "auto", though nothing was said) or the program makes the
 * updates; RINGSIDE_INVALID if the optimizer cannot have such settings, or the
 * job's --lr is another rate. A job whose options and programs say none has momentum. */
enum ringside_status ringside_set_optimizer(struct ringside *ringside,
                                            const struct ringside_optimizer *optimizer);

/* The program says how gradients are compressed on their way, as the job's --compress does: "fp16",
 * "bf16", "int8" or "topk:SHARE"; "none" takes back what was said before. Between ringside_join and
 * ringside_start, alike in every process: ringside_start refuses others. RINGSIDE_UNSUPPORTED if
 * the job has another --compress; RINGSIDE_INVALID if there is no such kind. */
enum ringside_status ringside_set_compression(struct ringside *ringside, const char *kind);

/* Settings of a group of parameters. What the optimizer does not use is ignored; an epsilon and a
 * decay of 0 are its defaults. */
struct ringside_group {
    double rate;     // from 0 to 1e6; of ringside_change_groups also -1
    double momentum; // momentum, nesterov
    double beta1, beta2;
    double decay, epsilon;
    double weight_decay;
};

/* The tensors are in groups with settings of their own, wherever the updates are made: tensor i in
 * groups[group_of_tensor[i]]. The optimizer itself is one for all. 1 to 512 groups. Between
 * ringside_describe and ringside_start, once the optimizer is known (the job's options, or
 * ringside_set_optimizer), alike in every process: ringside_start refuses others. With a schedule
 * of the job, each rate is multiplied by what that makes of the job's rate. */
enum ringside_status ringside_set_groups(struct ringside *ringside,
                                         const struct ringside_group *groups, uint32_t group_count,
                                         const uint32_t *group_of_tensor);

/* Other settings of the groups, all of them, from the gradients that are begun next, and their
 * update, on: between ringside_start and ringside_begin_gradients. Without groups there is one.
 * Rates rule over the job's schedule; -1 in all groups leaves them to it. In ring and ps-sync every
 * process has to say the same for the same step: in ps-sync the job ends, and names one that
 * differs. In ps-ssp and ps-async each gradient is applied with the settings of its own process. */
enum ringside_status ringside_change_groups(struct ringside *ringside,
                                            const struct ringside_group *groups,
                                            uint32_t group_count);

/* The learning rate of all groups, as ringside_change_groups. RINGSIDE_UNSUPPORTED where the
 * program makes the updates. */
enum ringside_status ringside_set_rate(struct ringside *ringside, double rate);

/* ---- Collectives and messages ---- */

/* Collectives: between ringside_join and ringside_leave, also before ringside_start and within a
 * step, all processes call the same one with the same sizes, at the same place among their calls of
 * this library. If they do not, the job ends, and says who calls what. If they share memory, all on
 * one host, values go from process to process; else through the coordinator, which is for settings,
 * first parameters and metrics. In ps-ssp and ps-async, they bring processes together while all of
 * them still have steps to make.
 *
 * all_reduce    the sum over all processes, in place: added in doubles in the order of ranks, then
 *               rounded: the same bits everywhere
 * broadcast     the bytes of rank `root`, in place
 * all_gather    own_bytes of each rank, in the order of ranks: ret_all (size, own_bytes)
 * barrier       waits until all have come */
enum ringside_status ringside_all_reduce(struct ringside *ringside, float *values, uint64_t count);
enum ringside_status ringside_broadcast(struct ringside *ringside, void *bytes, uint64_t size,
                                        uint32_t root);
enum ringside_status ringside_all_gather(struct ringside *ringside, const void *own,
                                         uint64_t own_bytes, void *ret_all);
enum ringside_status ringside_barrier(struct ringside *ringside);

/* The same among some processes, which are the ones that call it. NULL in the place of this: among
 * all. RINGSIDE_INVALID: the ranks are not ascending, or this process's is not among them.
 * RINGSIDE_UNSUPPORTED: some processes alone, where they do not all share memory. */
struct ringside_among {
    const uint32_t *ranks; // (count) ascending; NULL: all
    uint32_t count;
    const char *label; // the call, in words, for sentences about calls that do not match, of which
                       // 111 bytes count; NULL: the function's name
};

enum ringside_type {
    RINGSIDE_FLOAT32,
    RINGSIDE_FLOAT64,
    RINGSIDE_INT8,
    RINGSIDE_INT16,
    RINGSIDE_INT32,
    RINGSIDE_INT64,
    RINGSIDE_UINT8
};

/* In the order of ranks. Sums of float32 are added in doubles and rounded once; all else is
 * computed in its own type, where integers wrap around. A mean is the sum divided by the number of
 * processes, of integers towards 0. If a value is no number, so are the least and the greatest. */
enum ringside_operation {
    RINGSIDE_SUM,
    RINGSIDE_MEAN,
    RINGSIDE_MIN,
    RINGSIDE_MAX,
    RINGSIDE_PRODUCT
};

enum ringside_status ringside_all_reduce_among(struct ringside *ringside,
                                               const struct ringside_among *among, void *values,
                                               uint64_t count, enum ringside_type type,
                                               enum ringside_operation operation);
enum ringside_status ringside_broadcast_among(struct ringside *ringside,
                                              const struct ringside_among *among, void *bytes,
                                              uint64_t size, uint32_t root);
enum ringside_status ringside_all_gather_among(struct ringside *ringside,
                                               const struct ringside_among *among, const void *own,
                                               uint64_t own_bytes, void *ret_all);
enum ringside_status ringside_barrier_among(struct ringside *ringside,
                                            const struct ringside_among *among);

/* A message from one process to another: sizes and labels of both have to be the same, and messages
 * are received in the order in which they were sent. A send returns once the other has room for
 * what is left of the message, which it makes whenever it waits in a collective or for a message:
 * up to 1 GiB of each other process.
 * RINGSIDE_UNSUPPORTED where processes do not all share memory. */
enum ringside_status ringside_send(struct ringside *ringside, const void *bytes, uint64_t size,
                                   uint32_t to, const char *label);
enum ringside_status ringside_receive(struct ringside *ringside, void *bytes, uint64_t size,
                                      uint32_t from, const char *label);

/* ---- Going on after a loss ---- */

/* In a job with --on-loss commit, a lost process does not end the job. The program calls
 * ringside_commit now and then, and then keeps a copy of its state. When a process is lost, the
 * calls of the others return RINGSIDE_AGAIN. Each then calls
 *
 *     ringside_rejoin     waits for the others: this process's rank and the size may be others, and
 *                         the mean is over those that are there
 *     ... rank 0 gives what it has committed to all, by ringside_broadcast ...
 *     ringside_go_on      after how many steps that was
 *     ringside_start
 *
 * and makes steps from there. Tensors, the two vectors and their values stay, so the program writes
 * the parameters of its copy, before ringside_start. Ranks are in the order of before, and those of
 * newcomers come last, so rank 0 has the last commit; before the first commit each has what it
 * began with. A process that comes to the job while it is under way, or is started again, calls
 * ringside_join, ringside_describe and what is above from the broadcast on.
 *
 * ringside_commit says that the state after the steps that were ended can be gone on from. All
 * processes call it between two steps, or before ringside_start, after the same steps. It waits for
 * all; then the parameters are those of all steps, in every mode. RINGSIDE_GROWS: it counts, and
 * others have come: the program keeps its copy, and ringside_rejoin is next. After any other error
 * it does not count, and the copy of before holds. Where the job makes the updates, by servers or
 * not, the library keeps the state of its optimizer, in each process, and gives it to the job
 * again. Where a loss ends the job, ringside_commit is RINGSIDE_UNSUPPORTED.
 *
 * ringside_rejoin is RINGSIDE_MISUSE but after RINGSIDE_AGAIN and RINGSIDE_GROWS.
 *
 * ringside_go_on is called before ringside_start, alike in every process; a process that does not
 * call it goes on from its own last commit. RINGSIDE_INVALID: the job has fewer steps, or rank 0
 * has the state of the job's optimizer after other ones. */
enum ringside_status ringside_commit(struct ringside *ringside);
enum ringside_status ringside_rejoin(struct ringside *ringside);
enum ringside_status ringside_go_on(struct ringside *ringside, uint64_t step);

/* ---- What the job tells, and is told ---- */

/* What this process did since ringside_start. */
struct ringside_counters {
    uint64_t steps;                      // that were ended
    uint64_t bytes_sent, bytes_received; // with headers; memory that is shared does not count
    double wait_seconds;                 // in the calls of steps
    double wire_seconds;                 // from a step's first bucket to its last, hidden or not
    double staleness;                    // of the last gradient, in updates; 0 in ring and ps-sync
    double staleness_mean;               // of all
};
enum ringside_status ringside_counters(struct ringside *ringside,
                                       struct ringside_counters *ret_counters);

/* For the job's progress, metrics and summary. Images are of the step whose gradients were begun
 * last: they come before those of the next are begun. Test results come at any time after
 * ringside_start: those that come between the gradients of one step and of the next are one
 * evaluation, of which the last ones count. Before the gradients of a step, they end the
 * evaluation, which does not count as time of that step. Each evaluation is an entry of `epochs` in
 * the job's summary. ringside_commit ends an evaluation, too, and a loss takes back what came after
 * it. All processes may evaluate, each its part of the test, or some; the first of each belong
 * together, then the second of each. */
struct ringside_report {
    uint64_t images; // samples of this process's part of the step; 0: nothing is said
    double loss;     // their mean
    uint64_t test_images, test_correct; // of this process's part of the test; 0: nothing is said
    double test_loss;                   // their mean; NAN: not known
};
enum ringside_status ringside_report(struct ringside *ringside,
                                     const struct ringside_report *report);

/* Leaves because the program cannot go on, which ends the job with `why`: one sentence, without a
 * full stop, of at most 200 characters. Frees the handle. NULL does nothing. */
void ringside_fail(struct ringside *ringside, const char *why);

#ifdef __cplusplus
}
#endif
#endif
