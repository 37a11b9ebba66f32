/* The number of a run: what a copy of its checkpoints is known by, whatever the folders are called.
 */
#ifndef COMMON_CHECKPOINT_RUN_NUMBER_H
#define COMMON_CHECKPOINT_RUN_NUMBER_H

#define RUN_NUMBER_BYTES 40 // as text

/* One that no other run has. */
void run_number_choose(char ret_run[RUN_NUMBER_BYTES]);

#endif
