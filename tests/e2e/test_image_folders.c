/* Jobs on a folder of JPEG files, made of CIFAR-10's images: bits, and broken files. */
#include "tests/support/data/image_folder.h"
#include "tests/support/data/jpeg_maker.h"
#include "tests/support/data/real_data.h"
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIDE        32
#define PLANE       ((size_t)SIDE * SIDE)
#define TRAIN_COUNT 200
#define TEST_COUNT  60

static const char *const names[10] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                      "dog",      "frog",       "horse", "ship", "truck"};

static void write_split(const char *folder, const struct dataset *dataset, const char *split,
                        uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint8_t planes[3 * PLANE], pixels[3 * PLANE];
        uint32_t label;
        char name[64];
        size_t size;
        assert_int_equal(dataset_read_bytes(dataset, i, planes, &label), STATUS_OK);
        for (size_t k = 0; k < 3 * PLANE; k++) {
            pixels[k] = planes[k % 3 * PLANE + k / 3];
        }
        uint8_t *jpeg = jpeg_maker_make(JPEG_MAKER_COLOUR, pixels, SIDE, SIDE, &size);
        snprintf(name, sizeof(name), "%s/%s/%05u.jpg", split, names[label], (unsigned)i);
        image_folder_put(folder, name, jpeg, size);
        free(jpeg);
    }
}

/* Skips the test where there is no CIFAR-10. */
static void make_folder(const struct command_test *test)
{
    struct dataset *train = real_data_open("cifar10", DATASET_TRAIN);
    struct dataset *images = real_data_open("cifar10", DATASET_TEST);
    write_split(test->folder, train, "train", TRAIN_COUNT);
    write_split(test->folder, images, "val", TEST_COUNT);
    dataset_close(images);
    dataset_close(train);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
    setenv("RINGSIDE_CACHE", test->folder, 1);
}

static void check_classes(const json_t *job)
{
    const json_t *classes = json_object_get(job, "classes");
    assert_int_equal(json_array_size(classes), 10);
    for (size_t i = 0; i < 10; i++) {
        assert_string_equal(json_string_value(json_array_get(classes, i)), names[i]);
    }
}

/* Three workers of a design make six steps on the folder. */
static void train(const char *data, const char *const *design,
                  char ret_digest[PROGRAM_DIGEST_BYTES])
{
    const char *const rest[] = {"-n",           "3",    "--model",        "cnn", "--data",  data,
                                "--image-size", "32",   "--global-batch", "24",  "--steps", "6",
                                "--augment",    "cifar"};
    const size_t count = sizeof(rest) / sizeof(rest[0]);
    const char *args[24];
    size_t used = count;
    memcpy(args, rest, sizeof(rest));
    for (; *design != NULL; design++) {
        args[used++] = *design;
    }
    args[used] = NULL;
    programs_run_digest(args, ret_digest);
}

static void both_designs_train_with_equal_bits(void **state)
{
    const struct command_test *test = *state;
    char data[PROGRAM_PATH_BYTES + 16], first[PROGRAM_DIGEST_BYTES], digest[PROGRAM_DIGEST_BYTES];
    const char *const ring[] = {"--mode", "ring", NULL};
    const char *const ps[] = {"--mode", "ps-sync", "-s", "2", NULL};
    const char *const carried[] = {"--mode", "ring", "--processes", "1", NULL};
    make_folder(test);
    snprintf(data, sizeof(data), "images:%s", test->folder);
    train(data, ring, first);
    train(data, ps, digest);
    assert_string_equal(digest, first);
    train(data, carried, digest);
    assert_string_equal(digest, first);
}

/* Of three processes, and of one that carries all ranks. */
static void check_threads(const char *data)
{
    static const char *const counts[] = {"1", "2", "4", "auto"};
    char first[PROGRAM_DIGEST_BYTES], digest[PROGRAM_DIGEST_BYTES];
    for (size_t i = 0; i < 2 * sizeof(counts) / sizeof(counts[0]); i++) {
        const char *const design[] = {
            "--mode",           "ring",        "--processes", i % 2 == 0 ? "0" : "1",
            "--loader-threads", counts[i / 2], NULL};
        train(data, design, i == 0 ? first : digest);
        if (i > 0) {
            assert_string_equal(digest, first);
        }
    }
}

static void the_number_of_threads_that_read_images_changes_no_bit(void **state)
{
    const struct command_test *test = *state;
    char data[PROGRAM_PATH_BYTES + 16];
    make_folder(test);
    snprintf(data, sizeof(data), "images:%s", test->folder);
    check_threads(data);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
    snprintf(data, sizeof(data), "cifar10:%s/cifar10", getenv("RINGSIDE_DATA"));
    check_threads(data);
}

static void check_said(const struct command_test *test, const char *text)
{
    const char *output = program_output(&test->run);
    if (strstr(output, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, output);
    }
}

/* Packs test->folder; what was written is in PATH. */
static void pack(struct command_test *test, const char *kind, const char *quality,
                 char ret_path[PROGRAM_PATH_BYTES + 16])
{
    char data[PROGRAM_PATH_BYTES + 16];
    snprintf(data, sizeof(data), "images:%s", test->folder);
    snprintf(ret_path, PROGRAM_PATH_BYTES + 16, "%s/a.rpk", test->folder);
    const char *const args[] = {"pack", data, ret_path, "--size", "32", kind, quality, NULL};
    program_start(&test->run, test->folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&test->run), 0);
    check_said(test, "200 training and 60 validation images of 10 classes, 32 x 32, ");
}

static void packs_train_with_the_bits_of_their_folder(void **state)
{
    struct command_test *test = *state;
    char data[PROGRAM_PATH_BYTES + 16], path[PROGRAM_PATH_BYTES + 16],
        packed[PROGRAM_PATH_BYTES + 32];
    char first[PROGRAM_DIGEST_BYTES], digest[PROGRAM_DIGEST_BYTES];
    const char *const ring[] = {"--mode", "ring", NULL};
    make_folder(test);
    snprintf(data, sizeof(data), "images:%s", test->folder);
    train(data, ring, first);
    pack(test, "--raw", NULL, path);
    snprintf(packed, sizeof(packed), "pack:%s", path);
    train(packed, ring, digest);
    assert_string_equal(digest, first);
    // Files that have the size already are copied, so that they are decoded as before.
    pack(test, "--jpeg", "80", path);
    check_said(test, "JPEG of quality 80 (260 copied)");
    train(packed, ring, digest);
    assert_string_equal(digest, first);
}

/* What `ringside pack` refuses, it says, and nothing is left. */
static void what_cannot_be_packed_is_refused(void **state)
{
    struct command_test *test = *state;
    char path[PROGRAM_PATH_BYTES + 16];
    snprintf(path, sizeof(path), "%s/a.rpk", test->folder);
    const struct {
        const char *args[7];
        int code;
        const char *text;
    } cases[] = {
        {{"pack", "images:/nowhere", path}, 1, "cannot read /nowhere"},
        {{"pack", "images", path}, 2, "images needs the folder of its files: images:DIR"},
        {{"pack", "shapes", path}, 1, "shapes cannot be packed: folders of images can"},
        {{"pack", "images:/nowhere"}, 2, "the images or the file to write is missing"},
        {{"pack", "images:/nowhere", path, "--raw", "--jpeg", "9"}, 2, "exclude each other"},
        {{"run", "--data", "pack"}, 2, "pack needs its file: pack:FILE"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        program_start(&test->run, test->folder, "deploy/ringside", false, cases[i].args,
                      (const char *const[2]){"RINGSIDE_DATA="});
        assert_int_equal(program_wait(&test->run), cases[i].code);
        check_said(test, cases[i].text);
        assert_int_not_equal(access(path, F_OK), 0);
    }
}

/* Runs a job on test->folder in test->out, with one more option. */
static int run_with(struct command_test *test, const char *name, const char *value)
{
    char data[PROGRAM_PATH_BYTES + 16];
    snprintf(data, sizeof(data), "images:%s", test->folder);
    const char *const args[] = {
        "run", "-n",           "2",       "--mode",  "ring", "--model",        "lenet5", "--data",
        data,  "--image-size", "32",      "--steps", "2",    "--global-batch", "8",      name,
        value, "--out",        test->out, NULL};
    program_start(&test->run, test->folder, "deploy/ringside", false, args, NULL);
    return program_wait(&test->run);
}

static int run(struct command_test *test, const char *bad_images)
{
    return run_with(test, "--bad-images", bad_images);
}

/* Whether a file of a folder has a text. */
static bool has_text(const char *folder, const char *name, const char *text)
{
    static char content[1 << 20];
    char path[2 * PROGRAM_PATH_BYTES];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(content, 1, sizeof(content) - 1, file);
    content[size] = '\0';
    fclose(file);
    return strstr(content, text) != NULL;
}

/* Reports test->out, and looks for the names of its classes. */
static void check_report(struct command_test *test)
{
    static const char said[] = ": 10 classes: airplane, automobile, bird, cat, deer, dog, frog, "
                               "horse, ship, truck";
    char folder[PROGRAM_PATH_BYTES + 8];
    snprintf(folder, sizeof(folder), "%s/report", test->folder);
    const char *const args[] = {"report", test->out, "--out", folder, NULL};
    program_start(&test->run, test->folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&test->run), 0);
    check_said(test, said);
    assert_true(has_text(folder, "table.md", said));
    assert_true(has_text(folder, "report.html", said));
}

static void a_broken_file_is_named_or_left_out(void **state)
{
    struct command_test *test = *state;
    make_folder(test);
    image_folder_put(test->folder, "train/dog/a b.jpg", "no image", 8);
    assert_int_not_equal(run(test, "fail"), 0);
    check_said(test, "train/dog/a b.jpg cannot be used: it is neither JPEG nor PNG (1 of 201 ");
    assert_int_equal(run(test, "skip"), 0);
    check_said(test, "200 training and 60 test images");
    json_t *job = programs_read_json(test->out, "job.json");
    check_classes(job);
    json_decref(job);
    check_report(test);
}

/* Both processes count, and have the same figures, or the job would be refused. */
static void figures_of_the_training_images_are_recorded(void **state)
{
    struct command_test *test = *state;
    make_folder(test);
    assert_int_equal(run_with(test, "--normalize", "dataset"), 0);
    json_t *job = programs_read_json(test->out, "job.json");
    json_t *figures = json_object_get(job, "normalization");
    for (size_t i = 0; i < 3; i++) {
        double mean = json_real_value(json_array_get(json_object_get(figures, "mean"), i));
        double deviation =
            json_real_value(json_array_get(json_object_get(figures, "deviation"), i));
        assert_true(mean > 0.01 && mean < 1 && mean != 0.485 && mean != 0.456 && mean != 0.406);
        assert_true(deviation > 0.01 && deviation < 0.6);
    }
    json_decref(job);
}

#define MANY_CLASSES 1500

/* The name of a class of many, long enough that they do not fit in one message. */
static void name_class(int class, char ret_name[128])
{
    snprintf(ret_name, 128, "%04d %0*d \xc3\xa9\t\"", class, 90, class);
}

static void the_names_of_many_classes_are_recorded(void **state)
{
    struct command_test *test = *state;
    char name[128], path[160];
    // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
    setenv("RINGSIDE_CACHE", test->folder, 1);
    for (int i = 0; i < MANY_CLASSES; i++) {
        name_class(i, name);
        snprintf(path, sizeof(path), "train/%s/1.jpg", name);
        image_folder_put_grey(test->folder, path, (uint8_t)i);
    }
    snprintf(path, sizeof(path), "val/%s/1.jpg", name);
    image_folder_put_grey(test->folder, path, 1);
    assert_int_equal(run(test, "fail"), 0);
    json_t *job = programs_read_json(test->out, "job.json");
    const json_t *classes = json_object_get(job, "classes");
    assert_int_equal(json_array_size(classes), MANY_CLASSES);
    for (int i = 0; i < MANY_CLASSES; i++) {
        name_class(i, name);
        assert_string_equal(json_string_value(json_array_get(classes, (size_t)i)), name);
    }
    json_decref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_designs_train_with_equal_bits, command_test_set_up,
                                        command_test_tear_down),
        cmocka_unit_test_setup_teardown(the_number_of_threads_that_read_images_changes_no_bit,
                                        command_test_set_up, command_test_tear_down),
        cmocka_unit_test_setup_teardown(packs_train_with_the_bits_of_their_folder,
                                        command_test_set_up, command_test_tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_packed_is_refused, command_test_set_up,
                                        command_test_tear_down),
        cmocka_unit_test_setup_teardown(a_broken_file_is_named_or_left_out, command_test_set_up,
                                        command_test_tear_down),
        cmocka_unit_test_setup_teardown(figures_of_the_training_images_are_recorded,
                                        command_test_set_up, command_test_tear_down),
        cmocka_unit_test_setup_teardown(the_names_of_many_classes_are_recorded, command_test_set_up,
                                        command_test_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
