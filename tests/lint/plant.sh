# Plants violations in a copy of the tree, to see that a lint catches each of them. Sourced.
#
# A lint that cannot fail checks nothing, so every rule has a violation planted here. The copy is
# made of what the lints read; results are printed as TAP, one line per violation.
# shellcheck shell=bash
set -u
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd) || exit 2
copy=$(mktemp -d) || exit 2
trap 'rm -rf "$copy"' EXIT
for folder in bench common deploy docs ps-server tests worker; do
    if [ -d "$root/$folder" ]; then
        cp -R "$root/$folder" "$copy/" || exit 2
    fi
done
cp "$root"/*.md "$copy/" || exit 2

planted_files=()
planted_messages=()
failed=0

# The lint must say, of that file or folder of the copy, something that contains MESSAGE.
expect() # FILE MESSAGE
{
    planted_files+=("$1")
    planted_messages+=("$2")
}

# Appends TEXT (\n begins a line) to FILE of the copy, of which the lint must then say MESSAGE.
plant() # FILE TEXT MESSAGE
{
    mkdir -p "$copy/$(dirname "$1")"
    printf '%b\n' "$2" >>"$copy/$1"
    expect "$1" "$3"
}

# The lint, changed by an expression of sed, must say MESSAGE of the tree as it is.
expect_changed_lint_says() # LINT EXPRESSION MESSAGE
{
    local changed=$copy/changed.sh
    sed "$2" "$1" >"$changed"
    if [[ $(bash "$changed" "$root") == *"$3"* ]]; then
        echo "ok - $3"
    else
        failed=1
        echo "not ok - $3"
    fi
}

expect_every_plant_caught() # LINT
{
    local said index line is_caught
    if said=$("$1" "$copy" 2>&1); then
        echo "not ok - the lint fails"
        exit 1
    fi
    for index in "${!planted_files[@]}"; do
        is_caught=
        while IFS= read -r line; do
            if [[ $line == "${planted_files[index]}":*"${planted_messages[index]}"* ]]; then
                is_caught=yes
            fi
        done <<<"$said"
        if [ -n "$is_caught" ]; then
            echo "ok - ${planted_files[index]}: ${planted_messages[index]}"
        else
            failed=1
            echo "not ok - ${planted_files[index]}: ${planted_messages[index]}"
        fi
    done
    echo "1..${#planted_files[@]}"
    exit "$failed"
}
