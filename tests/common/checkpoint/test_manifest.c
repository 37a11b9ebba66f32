/* Tests of manifests: back from their text, and refused by what is wrong with them. */
#include "common/checkpoint/manifest.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

#define CHECKSUM "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"

static struct manifest_vector two_vectors[] = {
    {"params", 4096, CHECKSUM},
    {"rank-3/statistics", 0, CHECKSUM},
};

static char *encode(size_t *ret_size)
{
    char *text;
    struct manifest manifest = {.step = 100,
                                .vectors = two_vectors,
                                .vector_count = 2,
                                .job = json_pack("{s:s}", "job", "epochs = 3\n")};
    assert_int_equal(manifest_encode(&manifest, &text, ret_size), STATUS_OK);
    json_decref(manifest.job);
    return text;
}

static void what_is_encoded_comes_back(void **state)
{
    (void)state;
    struct manifest manifest;
    char error[256];
    size_t size;
    char *text = encode(&size);
    assert_int_equal(manifest_decode(text, size, &manifest, error, sizeof(error)), STATUS_OK);
    assert_int_equal(manifest.step, 100);
    assert_int_equal(manifest.vector_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct manifest_vector *found = manifest_find(&manifest, two_vectors[i].name);
        assert_non_null(found);
        assert_memory_equal(found, &two_vectors[i], sizeof(*found));
    }
    assert_null(manifest_find(&manifest, "state-1"));
    assert_string_equal(json_string_value(json_object_get(manifest.job, "job")), "epochs = 3\n");
    manifest_finish(&manifest);
    free(text);
}

static void a_manifest_that_is_cut_short_or_changed_is_refused(void **state)
{
    (void)state;
    struct manifest manifest;
    size_t size;
    char *text = encode(&size);
    for (size_t i = 0; i < size; i++) {
        char error[256] = "";
        assert_int_not_equal(manifest_decode(text, i, &manifest, error, sizeof(error)), STATUS_OK);
        assert_string_not_equal(error, "");
        for (uint32_t bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ (1 << bit));
            enum status status = manifest_decode(text, size, &manifest, error, sizeof(error));
            text[i] = (char)(text[i] ^ (1 << bit));
            assert_int_not_equal(status, STATUS_OK);
        }
    }
    free(text);
}

/* With a good checksum: what is refused is what it says. */
static enum status decode_body(const char *body, char ret_error[256])
{
    char checksum[CHECKSUM_TEXT_BYTES], text[2048];
    struct manifest manifest;
    manifest_checksum(body, strlen(body), checksum);
    int size = snprintf(text, sizeof(text),
                        "{\"format\": \"ringside-checkpoint\", \"version\": 1, \"blake2b\": \"%s\"}"
                        "\n%s\n",
                        checksum, body);
    enum status status = manifest_decode(text, (size_t)size, &manifest, ret_error, 256);
    if (status == STATUS_OK) {
        manifest_finish(&manifest);
    }
    return status;
}

#define VECTOR(name, size) \
    "{\"name\": \"" name "\", \"size\": " size ", \"blake2b\": \"" CHECKSUM "\"}"
#define BODY(step, vectors, job) \
    "{\"step\": " step ", \"vectors\": [" vectors "], \"job\": " job "}"

static void a_body_that_describes_no_checkpoint_is_refused(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        BODY("-1", VECTOR("params", "4"), "{}"),
        BODY("1.5", VECTOR("params", "4"), "{}"),
        BODY("1000000000000", VECTOR("params", "4"), "{}"),
        BODY("1", VECTOR("params", "-4"), "{}"),
        BODY("1", VECTOR("params", "1e3"), "{}"),
        BODY("1", VECTOR("params", "99999999999999999999"), "{}"),
        BODY("1", VECTOR("../params", "4"), "{}"),
        BODY("1", VECTOR("a/b/c", "4"), "{}"),
        BODY("1", VECTOR("", "4"), "{}"),
        BODY("1", VECTOR("Params", "4"), "{}"),
        BODY("1", VECTOR("a\\u0000b", "4"), "{}"),
        BODY("1", VECTOR("params", "4") ", " VECTOR("params", "4"), "{}"),
        BODY("1", "", "{}"),
        BODY("1", VECTOR("params", "4"), "[]"),
        BODY("1", VECTOR("params", "4"), "3"),
        BODY("1", "{\"name\": \"params\", \"size\": 4, \"blake2b\": \"00\"}", "{}"),
        BODY("1", "7", "{}"),
        "{\"step\": 1, \"step\": 1, \"vectors\": [], \"job\": {}}",
        "[]",
        "{",
        "",
    };
    char error[256];
    assert_int_equal(decode_body(BODY("1", VECTOR("params", "4"), "{}"), error), STATUS_OK);
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        error[0] = '\0';
        assert_int_equal(decode_body(bodies[i], error), STATUS_MALFORMED);
        assert_string_not_equal(error, "");
    }
}

static void a_newer_version_is_refused_as_such(void **state)
{
    (void)state;
    static const char text[] =
        "{\"format\": \"ringside-checkpoint\", \"version\": 2, \"new\": 1}\nx";
    struct manifest manifest;
    char error[256];
    assert_int_equal(manifest_decode(text, sizeof(text) - 1, &manifest, error, sizeof(error)),
                     STATUS_UNSUPPORTED);
    assert_non_null(strstr(error, "version 2"));
    assert_non_null(strstr(error, "newer Ringside"));
}

static void a_foreign_file_is_refused_as_such(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "\n\n",
        "PK\x03\x04",
        "{\"format\": \"other\", \"version\": 1}\n{}\n",
        "{\"version\": 1}\n{}\n",
        "[1]\n[2]\n",
        "{\"format\": \"ringside-checkpoint\"}\n{}\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct manifest manifest;
        char error[256];
        assert_int_equal(
            manifest_decode(texts[i], strlen(texts[i]), &manifest, error, sizeof(error)),
            STATUS_MALFORMED);
        assert_non_null(strstr(error, "not the manifest"));
    }
}

static void a_vector_has_a_name_that_is_good_for_a_file(void **state)
{
    (void)state;
    static const char *const good[] = {"params", "state-1", "rank-3/statistics", "9"};
    static const char *const bad[] = {
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        "a/b/c",
        ".",
        "..",
        "a.b",
        "a b",
        "A",
        "ä",
        "a\nb",
        "manifest.jsonl",
        "0123456789012345678901234567890123456789012345678901234567890123",
    };
    char file[MANIFEST_NAME_BYTES];
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(manifest_is_name(good[i]));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(manifest_is_name(bad[i]));
    }
    manifest_file_name("rank-3/statistics", file);
    assert_string_equal(file, "rank-3.statistics");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_encoded_comes_back),
        cmocka_unit_test(a_manifest_that_is_cut_short_or_changed_is_refused),
        cmocka_unit_test(a_body_that_describes_no_checkpoint_is_refused),
        cmocka_unit_test(a_newer_version_is_refused_as_such),
        cmocka_unit_test(a_foreign_file_is_refused_as_such),
        cmocka_unit_test(a_vector_has_a_name_that_is_good_for_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
