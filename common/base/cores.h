/* Says which processor cores a thread runs on, and may run on. */
#ifndef COMMON_BASE_CORES_H
#define COMMON_BASE_CORES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CORES_UNKNOWN UINT32_MAX

/* The number of cores that this process may run on: Slurm, a container or taskset may have left it
 * only some of the machine's. At least 1. */
uint32_t cores_available(void);

/* Equal for processes whose cores are those of one machine, also in containers and namespaces, and
 * different otherwise; 0: not known. */
uint64_t cores_machine(void);

/* The core that the calling thread runs on at the moment; CORES_UNKNOWN if the kernel does not say.
 */
uint32_t cores_current(void);

/* Moves the calling thread to a core that is none of these. Where it may run stays as it was, so
 * the kernel may move it again. False if there is no other one that it may run on. */
bool cores_leave(const uint32_t *cores, uint32_t count);

/* Lets a process, and what it starts from then on, run on so many of the cores that the calling
 * thread may run on; 0: on all of them. False if the kernel refuses. */
bool cores_leave_to(pid_t process, uint32_t count);

#endif
