/* Draws the numbers of runs. */
#include "common/checkpoint/run_number.h"

#include <sodium.h>

void run_number_choose(char ret_run[RUN_NUMBER_BYTES])
{
    unsigned char bytes[16];
    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2hex(ret_run, RUN_NUMBER_BYTES, bytes, sizeof(bytes));
}
