/* Processor cores. */
#ifndef COMMON_CORES_H
#define COMMON_CORES_H

#include <stdint.h>

/* Those that this process may run on: Slurm, a container or taskset may have left it a part of the
 * machine's. At least 1. */
uint32_t cores_available(void);

#endif
