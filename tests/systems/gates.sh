# The gates `systems` and `image` of tests/run, which sources this file.
#
# They need root and a mirror of Debian. What they make is in build/test-systems and build/test-image;
# the tree of Debian 13 that they begin with is made once for all builds (make_base).

systems_suite=trixie

# The files of the working tree, as they are: what git tracks, and what it would.
copy_working_tree() # FOLDER
{
    rm -rf "$1"
    mkdir -p "$1"
    git ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' file; do
            [ -e "$file" ] && printf '%s\0' "$file"
        done |
        tar --null -T - -c | tar -x -C "$1"
}

# Sets `base` to the tar file of the tree; counts the gate as skipped where there can be none.
find_base() # GATE
{
    local status=0
    if ! git rev-parse --git-dir >/dev/null 2>&1; then
        step "skipped: this is no checkout of git, so its files are not known"
        count "$1" 0 0 1
        return 77
    fi
    step "a tree of Debian 13"
    base=$(tests/systems/make_base "$systems_suite" 2>"$results/$1-base.log") || status=$?
    if [ "$status" -eq 77 ]; then
        step "$(tail -n 1 "$results/$1-base.log")"
        count "$1" 0 0 1
    elif [ "$status" -ne 0 ]; then
        tail -n 20 "$results/$1-base.log"
    fi
    return "$status"
}

# ---- systems: Debian 13 ----

# The tree is kept from run to run, with what is installed in it.
unpack_tree() # TREE TAR_FILE
{
    if [ -e "$1/etc/os-release" ] && [ ! "$2" -nt "$1.unpacked" ]; then
        return 0
    fi
    rm -rf "$1" && mkdir -p "$1" && tar -C "$1" -xf "$2" && touch "$1.unpacked"
}

inside()
{
    tests/systems/enter "$tree" "$work" "$@"
}

install_inside()
{
    inside ONLINE sh -eu -c 'cd /checkout/source
        deploy/install-dependencies
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
            libcmocka-dev clang libomp-dev'
}

build_inside() # COMPILER
{
    inside OFFLINE sh -eu -c 'folder=/checkout/build-$1
        CC=$1 meson setup --reconfigure "$folder" /checkout/source -Dwerror=true -Dtests=enabled ||
            { rm -rf "$folder"
              CC=$1 meson setup "$folder" /checkout/source -Dwerror=true -Dtests=enabled; }
        ninja -C "$folder" -j "$2"' build "$1" "$jobs"
}

test_inside()
{
    local log=$work/build-gcc/meson-logs/testlog.json
    rm -f "$log"
    inside OFFLINE meson test -C /checkout/build-gcc --no-rebuild --num-processes "$jobs" \
        --suite common --suite worker --suite ps-server >"$results/systems-tests.log" 2>&1
    if ! [ -s "$log" ]; then
        echo "failed: no test was run"
        tail -n 40 "$results/systems-tests.log"
        return 1
    fi
    tests/support/count_results "$log" "$results/systems.counts"
}

# Both designs of one build end with the same bits.
compare_inside()
{
    rm -rf "$work/compare"
    inside OFFLINE /checkout/build-gcc/deploy/ringside compare -n 2 --modes ps-sync,ring --model lenet5 \
        --data shapes --steps 50 --out /checkout/compare
    python3 - "$work"/compare/*/summary.json <<'PYTHON'
import json, sys
digests = [json.load(open(path))["params_digest"] for path in sys.argv[1:]]
assert len(digests) == 2, f"{len(digests)} runs left a summary"
assert digests[0] == digests[1], f"ps-sync and ring end with different bits: {digests}"
PYTHON
}

gate_systems()
{
    local base="" status=0
    work=$root/build/test-systems tree=$root/build/test-systems/debian-13
    find_base systems || status=$?
    if [ "$status" -ne 0 ]; then
        [ "$status" -eq 77 ]
        return
    fi
    run_check systems "unpacked" unpack_tree "$tree" "$base" || return 1
    copy_working_tree "$work/source" || return 1
    run_check systems "deploy/install-dependencies" install_inside || return 1
    run_check systems "build by gcc" build_inside gcc || return 1
    run_check systems "build by clang" build_inside clang || status=1
    step "suites common, worker and ps-server"
    test_inside || status=1
    run_check systems "ps-sync and ring, compared" compare_inside || status=1
    return "$status"
}

# ---- image: deploy/Containerfile ----

storage()
{
    local command=$1
    shift
    # Mounts that are made below its storage end with the namespace.
    unshare --mount --propagation private --pid --fork --kill-child --mount-proc \
        buildah --storage-driver vfs --root "$work/storage" --runroot "$work/storage-run" "$command" "$@"
}

# As if it had been pulled, under the name that the Containerfile has for it.
import_base() # NAME TAR_FILE
{
    local container
    container=$(storage from scratch) &&
        storage add "$container" "$2" / &&
        storage commit "$container" "$1" &&
        storage rm "$container"
}

build_image() # NAME
{
    storage build --isolation chroot --network host --pull=never -f "$work/source/deploy/Containerfile" \
        --target cpu -t "$1" "$work/source"
}

# The image's own user, in a folder that it may write to.
train_in_image() # NAME
{
    local container
    container=$(storage from --pull=never "$1") &&
        storage run --isolation chroot "$container" -- ringside run -n 2 --mode ring --model lenet5 \
            --data shapes --steps 20 --out /tmp/run &&
        storage run --isolation chroot "$container" -- sh -c \
            '[ "$(id -u)" = 65532 ] && grep -q "\"completed\"" /tmp/run/summary.json'
}

# What Kubernetes starts is what was built.
check_image_name() # NAME
{
    local rendered
    storage inspect --type image --format '{{.FromImage}}' "$1" | grep -Fx "$1" || return 1
    if command -v kubectl >/dev/null; then
        rendered=$(kubectl kustomize deploy/kubernetes) || return 1
        echo "$rendered" | grep -F image:
        [ "$(echo "$rendered" | sed -n 's/^ *image: //p' | sort -u)" = "$1" ]
    fi
}

gate_image()
{
    local base="" name status=0
    work=$root/build/test-image
    if ! command -v buildah >/dev/null; then
        step "skipped: buildah is not installed (deploy/install-dependencies --systems)"
        count image 0 0 1
        return 0
    fi
    find_base image || status=$?
    if [ "$status" -ne 0 ]; then
        [ "$status" -eq 77 ]
        return
    fi
    trap 'rm -rf "$work"' EXIT
    copy_working_tree "$work/source" || return 1
    # The name is the one that the file itself tells users to take.
    name=$(sed -n 's/^#.*--target cpu -t \([^ `]*\).*/\1/p' deploy/Containerfile | head -n 1)
    run_check image "the base image" import_base docker.io/library/debian:13-slim "$base" || return 1
    run_check image "build of $name" build_image "$name" || return 1
    run_check image "a job of two workers in it" train_in_image "$name" || status=1
    run_check image "the name in the manifests" check_image_name "$name" || status=1
    return "$status"
}
