# Builds of tests/run, which sources this file. Each kind has a folder of its own, build/test-*.

# Configures a folder; options changed since the last run take effect.
configure() # FOLDER COMPILER MESON_OPTION ...
{
    local folder=$1 compiler=$2
    shift 2
    local log=$results/${folder##*/}-build.log
    step "build by $compiler${*:+: $*}"
    set -- -Dtests=enabled -Dwerror=true "$@"
    # What stands for CUDA in tests has a file of C++: sanitizers of two compilers do not mix.
    local -A cxx=([gcc]=g++ [clang]=clang++)
    export CC=$compiler CXX=${cxx[$compiler]}
    if command -v ccache >/dev/null; then
        CC="ccache $CC" CXX="ccache $CXX"
    fi
    if command -v mold >/dev/null; then
        export CC_LD=mold
    fi
    if ! [ -f "$folder/build.ninja" ] ||
        ! meson setup --reconfigure "$folder" "$@" >"$log" 2>&1; then
        rm -rf "$folder"
        run_quietly "$log" meson setup "$folder" "$@" || return 1
    fi
}

# Builds everything, or what is named.
compile() # FOLDER [TARGET ...]
{
    local folder=$1
    shift
    run_quietly "$results/${folder##*/}-build.log" ninja -C "$folder" -j "$jobs" "$@"
}

build() # FOLDER COMPILER MESON_OPTION ...
{
    configure "$@" && compile "$1"
}

# Builds the sources and headers that are made, for what reads the others.
compile_sources() # FOLDER
{
    local sources
    mapfile -t sources < <(ninja -C "$1" -t targets rule CUSTOM_COMMAND | grep '\.[ch]$')
    compile "$1" "${sources[@]}"
}

# Builds what the tests need that are chosen (tests/support/choose_tests), and sets `chosen` to their names.
build_for_tests() # FOLDER [OPTION ...] -- MESON_TEST_OPTION ...
{
    local lines targets
    lines=$(tests/support/choose_tests "$@") || {
        echo "failed: tests/support/choose_tests $*"
        return 1
    }
    mapfile -t targets < <(sed -n 's/^target //p' <<<"$lines")
    mapfile -t chosen < <(sed -n 's/^test //p' <<<"$lines")
    if [ "${#chosen[@]}" -eq 0 ]; then
        echo "failed: no test is chosen by $*"
        return 1
    fi
    compile "$1" "${targets[@]}"
}

# ---- what the gates build, of the tests that tests/run names ----

build_clang()
{
    configure build/test-clang clang &&
        build_for_tests build/test-clang --only "$clang_computes" -- "${clang_suites[@]}"
}

# What clang-tidy reads.
build_tidy()
{
    configure build/test-clang clang && compile_sources build/test-clang
}

build_asan()
{
    configure build/test-asan clang -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=2 &&
        build_for_tests build/test-asan -- "${asan_suites[@]}"
}

# The programs of the build by gcc, if they are those of this tree, say which tests can have no data race.
build_tsan()
{
    local reference=()
    if [ -f build/test-gcc/build.ninja ] && ninja -C build/test-gcc -n 2>/dev/null | grep -q 'no work to do'; then
        reference=(--threads-in build/test-gcc)
    fi
    configure build/test-tsan clang -Db_sanitize=thread -Db_lundef=false -Doptimization=2 -Donednn=disabled &&
        build_for_tests build/test-tsan "${reference[@]}" -- "${tsan_suites[@]}"
}
