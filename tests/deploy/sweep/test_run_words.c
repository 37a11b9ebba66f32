/* Tests of the words for options. */
#include "deploy/sweep/run_words.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static void options_are_said_in_words(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"mode", "ring", "ring"},
        {"mode", "ps-ssp:4", "ps-ssp with slack 4"},
        {"workers", "1", "1 worker"},
        {"workers", "4", "4 workers"},
        {"order", "seeded:constant:4", "staleness 4"},
        {"order", "seeded:uniform:0..8", "staleness 0..8"},
        {"order", "free", "updates race"},
        {"remedy", "staleness-lr", "rate divided by staleness"},
        {"remedy", "dc", "delay compensation"},
        {"lr", "0.1", "rate 0.1"},
        {"compress", "fp16", "gradients as fp16"},
        {"weight-decay", "0.5", "weight decay 0.5"},
        {"epochs", "1", "1 epoch"},
        {"data", "cifar10:/data/cifar10", "cifar10"},
        {"data", "shapes", "shapes"},
        {"limit-train", "2000", "2000 training images"},
        {"straggler", "none", "no straggler"},
        {"straggler", "rank=2,factor=6", "worker 2 slowed 6 times"},
        {"straggler", "dist=exponential:mean=20ms,share=0.1",
         "workers late by 20 ms in 10 % of steps"},
        {"straggler", "nonsense", "straggler nonsense"},
        {"switch", "none", "one mode throughout"},
        {"switch", "epoch:1=ps-ssp:4;step:2000=ring",
         "ps-ssp with slack 4 after 1 epoch, ring after 2000 steps"},
        {"fault", "none", "no faults"},
        {"fault", "rank=2,step=100,kill", "worker 2 killed at step 100"},
        {"fault", "shard=0,step=5,stop=1.5s;rank=1,step=9,partition=3s;after=step:150,join",
         "the server of shard 0 stopped for 1.5 s at step 5, worker 1 cut off for 3 s at step 9, "
         "a worker comes after step 150"},
        {"fault", "rank=2,ste...", "faults (rank=2,ste...)"},
        {"no-such-option", "100%s", "no such option 100%s"},
    };
    char words[RUN_WORDS_BYTES];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        run_words_of_option(cases[i][0], cases[i][1], words);
        assert_string_equal(words, cases[i][2]);
    }
}

static void labels_begin_with_the_mode(void **state)
{
    (void)state;
    char words[RUN_WORDS_BYTES];
    run_words_of_label("workers=4 mode=ps-async order=seeded:constant:4", NULL, words);
    assert_string_equal(words, "ps-async, 4 workers, staleness 4");
    run_words_of_label("workers=4 mode=ps-async", "workers", words);
    assert_string_equal(words, "ps-async");
    run_words_of_label("", NULL, words);
    assert_string_equal(words, "");
    run_words_of_label("mode", NULL, words);
    assert_string_equal(words, "mode");
}

static void what_is_too_long_is_cut_between_characters(void **state)
{
    (void)state;
    char value[4 * RUN_WORDS_BYTES + 1] = "", words[RUN_WORDS_BYTES];
    for (size_t i = 0; i < sizeof(value) - 2; i += 2) {
        memcpy(value + i, "\xc3\xa4", 3);
    }
    run_words_of_option("weight-decay", value, words);
    size_t size = strlen(words);
    assert_true(size < RUN_WORDS_BYTES);
    assert_string_equal(words + size - 3, "...");
    assert_string_equal(words + size - 5, "\xc3\xa4...");
    char text[] = "short";
    run_words_cut(text, sizeof(text) + 1);
    assert_string_equal(text, "short");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_said_in_words),
        cmocka_unit_test(labels_begin_with_the_mode),
        cmocka_unit_test(what_is_too_long_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
