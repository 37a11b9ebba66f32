#!/usr/bin/env bash
# Checks who includes whom: the absences that docs/ARCHITECTURE.md promises.
#
# usage: check_includes.sh [ROOT]
#
# Prints "FILE:LINE: what is wrong" for every violation and exits 1 if there is one. Patterns are
# extended regular expressions that must match a whole path from the root.
set -u
export LC_ALL=C

cd "${1:-$(dirname "$0")/../..}" || exit 2

# Rooms: a folder, and the rooms whose headers its files may include besides its own. A room may
# name only rooms that stand above it, so the folders of the tree have no cycle.
rooms='
common/base
common/vector           common/base
common/thread           common/base
common/trace            common/base
common/options          common/base
common/security         common/base common/options
common/checkpoint       common/base
common/transport        common/base common/vector common/security
common/codec            common/base common/vector
common/optimizer        common/base common/vector common/options
common/plan             common/base
common/job/rows
common/job              common/base common/trace common/vector common/options common/transport common/codec common/optimizer common/plan common/job/rows
common/service          common/base common/transport common/optimizer common/plan common/job
common/live             common/base common/options common/service
common/channel          common/base common/trace common/vector common/security common/transport common/optimizer common/job common/service

worker/device           common/base

ps-server/results       common/base common/job common/channel
ps-server/shard/remedy  common/job
ps-server/shard         common/base common/trace common/vector common/security common/transport common/codec common/optimizer common/plan common/job common/service common/channel worker/device ps-server/results ps-server/shard/remedy
ps-server/coordinator   common/base common/vector common/transport common/optimizer common/plan common/job common/service common/channel ps-server/results
ps-server/record        common/base common/optimizer common/job common/live common/channel ps-server/results ps-server/shard ps-server/coordinator
ps-server/record/recorder common/base common/thread common/job common/channel ps-server/coordinator ps-server/record
ps-server/live          common/base common/live common/service common/job common/channel ps-server/coordinator
ps-server/launcher      common/base common/transport common/job common/channel ps-server/coordinator
ps-server/returning     common/base common/job common/service common/channel ps-server/coordinator ps-server/launcher
ps-server/checkpoint    common/base common/thread common/checkpoint common/vector common/job common/service common/channel ps-server/coordinator
ps-server               common/base common/thread common/trace common/options common/security common/checkpoint common/transport common/job common/service common/live common/channel ps-server/shard ps-server/coordinator ps-server/record ps-server/record/recorder ps-server/live ps-server/launcher ps-server/returning ps-server/checkpoint

worker/device/ref       common/base common/vector worker/device
worker/device/cpu       common/base common/vector worker/device
worker/device/cuda/host common/base
worker/device/cuda/dnn  common/base worker/device worker/device/cuda/host
worker/device/cuda/kernels common/base common/optimizer worker/device
worker/device/cuda/memory common/base worker/device/cuda/host
worker/device/cuda/nccl common/base worker/device worker/device/cuda/host
worker/device/cuda      common/base common/vector common/optimizer worker/device worker/device/cuda/host worker/device/cuda/dnn worker/device/cuda/kernels worker/device/cuda/memory worker/device/cuda/nccl
worker/data             common/base common/vector common/options common/plan worker/device
worker/data/augment     common/base common/plan worker/device worker/data
worker/data/batches     common/base common/trace common/vector common/plan worker/device worker/data worker/data/augment
worker/data/images      common/base common/vector worker/device worker/data
worker/data/npz         common/base common/plan worker/device worker/data
worker/data/preview     common/base common/plan worker/device worker/data worker/data/batches worker/data/images
worker/data/pack        common/base common/vector worker/device worker/data worker/data/images
worker/model            common/base common/vector common/options common/optimizer worker/device
worker/exchange         common/base common/trace common/vector common/transport common/codec common/job common/channel
worker/exchange/chunks  common/base common/vector common/plan common/job common/channel worker/exchange
worker/exchange/shared  common/base common/vector common/job worker/exchange
worker/link             common/base common/trace common/vector common/options common/security common/transport common/job common/service common/channel worker/exchange worker/exchange/shared
worker/collective       common/base common/vector worker/exchange/shared
worker/disturb          common/base common/job common/service worker/exchange
worker/library          common/base common/trace common/vector common/security common/transport common/optimizer common/job common/service worker/collective worker/disturb worker/exchange worker/link
worker/train            common/base common/trace common/vector common/checkpoint common/transport common/optimizer common/job common/service common/channel worker/device worker/data worker/data/batches worker/model worker/disturb worker/exchange worker/link
worker                  common/base common/thread common/trace common/vector common/options common/security common/checkpoint common/transport common/job common/service worker/device worker/data worker/data/batches worker/data/pack worker/data/preview worker/model worker/link worker/train

deploy/system           common/base common/options common/job
deploy/agent            common/base common/options common/security common/transport common/job deploy/system
deploy/hosts            common/base common/options common/security common/transport common/job common/service common/live deploy/system deploy/agent
deploy/sweep            common/base common/options common/plan common/job deploy/system
deploy/export           common/base common/checkpoint common/plan
deploy/trace            common/base common/trace
deploy/predict/convergence common/base common/options common/job
deploy/predict/basis    common/base common/options common/vector common/job
deploy/predict/engine   common/base deploy/predict/basis
deploy/predict          common/base common/plan common/job common/transport ps-server/results worker/exchange/chunks worker/exchange/shared deploy/predict/basis deploy/predict/engine
deploy/predict/exchange common/base common/codec common/plan common/job worker/exchange/chunks worker/exchange/shared deploy/predict
deploy/predict/study    common/base common/job deploy/predict/convergence deploy/predict/basis deploy/predict
deploy/predict/faults   common/base common/plan common/job deploy/predict/basis deploy/predict/study
deploy/predict/advise   common/base common/codec common/job deploy/predict/basis deploy/predict deploy/predict/study
deploy/preflight        common/base common/job common/service deploy/system deploy/hosts deploy/sweep
deploy/launch           common/base common/trace common/security common/checkpoint common/transport common/job common/service deploy/system deploy/agent deploy/hosts deploy/trace
deploy/watch            common/base common/job common/live common/service deploy/system deploy/sweep
deploy/report           common/base common/trace common/job deploy/system deploy/sweep common/options
deploy/calibrate        common/base common/trace common/vector common/codec common/transport common/job deploy/system deploy/trace deploy/predict deploy/predict/basis deploy/report
deploy/plot             common/base common/job deploy/system deploy/sweep deploy/report deploy/predict/basis deploy/predict/study deploy/predict/advise deploy/predict/convergence
deploy/page             common/base common/job deploy/system deploy/sweep deploy/report deploy/predict/basis deploy/predict/study deploy/predict/advise deploy/predict/convergence deploy/plot
deploy/command          common/base common/thread common/trace common/vector common/options common/security common/checkpoint common/transport common/job common/live common/service deploy/system deploy/agent deploy/hosts deploy/sweep deploy/export deploy/preflight deploy/launch deploy/watch deploy/report deploy/trace deploy/predict deploy/predict/basis deploy/predict/study deploy/predict/advise deploy/predict/convergence deploy/predict/faults deploy/calibrate deploy/plot deploy/page
'

# file                          may include no more than this, of what is ours; the first that matches
narrower='
worker/device/cuda/kernels/.*   worker/device/cuda/kernels/[^/]+\.(h|inc)|common/(optimizer/optimizer_formulas|base/random)\.h|worker/device/(mixed_label|pixels)\.h
worker/device/device\.c         common/base/(status|memory|random|log)\.h|worker/device/.*\.h
worker/device/cuda/host/.*      common/base/(status|log|new_file|cache_folder)\.h|worker/device/cuda/host/[^/]+\.h
worker/device/cuda/dnn/.*       common/base/(status|clock)\.h|worker/device/device\.h|worker/device/cuda/(dnn|host)/[^/]+\.h
worker/device/cuda/memory/.*    common/base/status\.h|worker/device/cuda/(memory|host)/[^/]+\.h
worker/device/cuda/nccl/.*      common/base/status\.h|worker/device/device\.h|worker/device/cuda/(nccl|host)/[^/]+\.h
worker/device/cuda/.*           common/(base/(status|clock|memory|random|log)|vector/vector_device|optimizer/optimizer_formulas)\.h|worker/device/(cuda/((dnn|host|kernels|memory|nccl)/)?)?[^/]+\.h
worker/device/cpu/.*            common/(base/(status|memory|random|log)|vector/(variants|vector))\.h|worker/device/(cpu/)?[^/]+\.h
worker/device/ref/.*            common/base/(status|memory|random|log)\.h|worker/device/(ref/)?[^/]+\.h
deploy/predict/.*               common/(base|options|vector|codec|plan|job)/[^/]+\.h|deploy/predict/((basis|engine|exchange|study|advise|convergence|faults)/)?[^/]+\.h|ps-server/results/staleness\.h|common/transport/send_buffer\.h|worker/exchange/(chunks/ring|shared/block)_plan\.h
worker/device/.*                common/base/(status|memory|random|log)\.h|worker/device/[^/]+\.h
common/live/live_page\.[ch]      common/(base|live|service)/[^/]+\.h|live_page_text\.h
ps-server/record/tensorboard_event\.[ch] ps-server/record/[^/]+\.h|tensorboard\.pb-c\.h
ps-server/record/tensorboard_hparams\.[ch] common/job/[^/]+\.h|ps-server/record/[^/]+\.h|tensorboard_hparams\.pb-c\.h
common/trace/trace_packet\.c    common/(base|trace)/[^/]+\.h|perfetto_trace\.pb-c\.h
common/channel/wire(_packing|_groups)?\.[ch] common/(base|vector|job|transport|optimizer|channel)/[^/]+\.h|wire\.pb-c\.h
'

# header of a library, or        the only files that may include it; bench and tests may, too
# private to a part of ours
libraries='
zmq.*                           common/transport/(context|dealer|envelope|frames|guard|monitor|transport)_zmq\.c
common/transport/[a-z]+_zmq\.h   common/transport/(context|dealer|envelope|frames|guard|monitor|transport)_zmq\.[ch]
microhttpd.*                    common/service/web\.c
tensorboard\.pb-c\.h            ps-server/record/tensorboard_event\.c
tensorboard_hparams\.pb-c\.h    ps-server/record/tensorboard_hparams\.c
live_page_text\.h                common/live/live_page\.c
wire\.pb-c\.h                   common/channel/wire(\.c|_packing\.[ch])
perfetto_trace\.pb-c\.h         common/trace/trace_packet\.c
nvtx3/.*                        common/trace/trace_ranges_nvtx\.c
otf2/.*                         deploy/trace/otf2_(archive|events)\.[ch]
protobuf-c/.*                   common/(channel/wire(\.c|_packing\.[ch])|trace/trace_packet\.c)
turbojpeg\.h                    worker/data/images/(de|en)code_jpeg\.c
png\.h                          worker/data/images/(de|en)code_png\.c
(oneapi/)?dnnl.*                worker/device/cpu/.*
(cuda|cudnn|cublas|nccl).*      worker/device/cuda/.*
'

# What oneDNN 2 and 3 have different, and the only files that may know which one it is.
onednn_versions='worker/device/cpu/onednn_v[23]\.c'
onednn_words='dnnl_memory_desc[a-z_]*|dnnl_[a-z_]+_desc_(init|create)[a-z_]*|dnnl_post_ops_append_[a-z_]+|DNNL_VERSION[A-Z_]*'

our_folders='(bench|common|deploy|ps-server|tests|worker)'

# Decisions are pure: these open nothing, log nothing and read no clock. (stdio.h is allowed, for
# snprintf; what else it declares is not.) A line for each room.
pure_rooms='
common/base/(bump|crc32c|number)
common/trace/trace_(kinds|packet)
common/checkpoint/(manifest|pieces)
common/codec/codec[a-z0-9_]*
common/vector/layout
common/transport/port_range
common/security/z85
common/channel/(fetch|long_text|piece_name|report_sum|snapshot|wire)
common/live/live_(request|state)
common/plan/(augmentation|blame|halving_plan|headway|order)
common/job/(all_reduce|carriers|checkpoints|consistency|faults|job_checks|job_effects|job_resume|phases|schedule|straggler)
ps-server/coordinator/(agreement|checkpoint_ranks|checkpoint_schedule|checkpoint_vectors|checkpointing|choices|coordinator(_dispatch|_handshake|_port|_states)?|generation(_next)?|in_place|membership|newcomers|stalls|topology|tuning)
ps-server/results/(results|staleness|sums)
ps-server/shard/(credits|kept_shard|policy_[a-z]+|remedy/remedy[a-z_]*|shard(_checkpoint|_create|_marks|_on_push|_policy|_state|_views)?)
ps-server/live/live_fill
ps-server/returning/(ended(_leave)?|returning(_connection|_job|_join)?)
ps-server/record/(live_line|metrics)
deploy/export/tensors
deploy/system/advice
deploy/hosts/placement
deploy/calibrate/(fit|model_layers|observation)
deploy/trace/(drift|critical_path|flow_ends|replay|segments)
deploy/page/(answer|figure_parts)
deploy/sweep/(rule|run)_words
deploy/report/(run_strokes|scaling|statistics)
worker/data/augment/[a-z_]+
worker/data/images/(jpeg_header|photo|square)
worker/data/npz/(npy|zip)
worker/data/pack/pack_format
worker/data/preview/sheet
worker/data/(crop|scale_axis|validation)
worker/exchange/chunks/ring_plan
worker/model/(bucket_layers|description|network)
worker/train/trial
'
pure_files="($(sed '/^$/d' <<<"$pure_rooms" | paste -sd '|'))\.[ch]"
pure_never_includes='common/base/(clock|log)\.h|(time|unistd|fcntl|poll|threads|pthread|signal|netdb|ifaddrs)\.h|(sys|net|netinet|arpa)/.*'
pure_never_calls='transport_(create|open|bind|connect|send|receive|wake)|channel_[a-z]+|log_(error|warn|info|debug|write)|clock_[a-z_]+|f?(open|read|write|printf|puts|putc)|fdopen|popen|time|getenv'

violations=0

report() # FILE LINE MESSAGE
{
    printf '%s:%s: %s\n' "$1" "$2" "$3"
    violations=$((violations + 1))
}

matches() # TEXT PATTERN
{
    [[ $1 =~ ^($2)$ ]]
}

# There are thousands of includes, of few files and headers: what the tables say of one is looked for once.
narrower_files=() narrower_headers=() library_headers=() library_files=()
declare -A pure=() narrower_row=() library_rows=() # by file, by file, by header

# Splits the rows of a table into two arrays.
read_table() # TABLE RET_FIRSTS RET_SECONDS
{
    local first second
    local -n ret_firsts=$2 ret_seconds=$3
    while read -r first second; do
        if [ -n "$first" ]; then
            ret_firsts+=("$first")
            ret_seconds+=("$second")
        fi
    done <<<"$1"
}

is_pure() # FILE
{
    if [ -z "${pure[$1]-}" ]; then
        pure[$1]=no
        if matches "$1" "$pure_files"; then
            pure[$1]=yes
        fi
    fi
    [ "${pure[$1]}" = yes ]
}

# Sets narrower_row of a file to the first row for it, or "none".
find_narrower_row() # FILE
{
    local row
    if [ -z "${narrower_row[$1]-}" ]; then
        narrower_row[$1]=none
        for row in "${!narrower_files[@]}"; do
            if matches "$1" "${narrower_files[row]}"; then
                narrower_row[$1]=$row
                break
            fi
        done
    fi
}

# Sets library_rows of a header to all rows for it.
find_library_rows() # HEADER
{
    local row
    if [ -z "${library_rows[$1]-}" ]; then
        library_rows[$1]=' '
        for row in "${!library_headers[@]}"; do
            if matches "$1" "${library_headers[row]}"; then
                library_rows[$1]+="$row "
            fi
        done
    fi
}

declare -A may_use=() # by room: " ROOM ROOM ... "

# Reads the table of rooms. One that names a room below itself could close a circle.
read_rooms()
{
    local room used above=' '
    local -a uses
    while read -r room used; do
        if [ -z "$room" ]; then
            continue
        fi
        read -ra uses <<<"$used"
        for used in "${uses[@]}"; do
            [[ $above == *" $used "* ]] || report "$room" 0 "may not use $used, which does not stand above it"
        done
        may_use[$room]=" $room ${uses[*]} "
        above+="$room "
    done <<<"$rooms"
}

check_ours() # FILE LINE HEADER
{
    local row room=${1%/*}
    if [[ $1 == bench/* || $1 == tests/* ]]; then
        matches "$3" "$our_folders/.*\.(h|inc)" || report "$1" "$2" "must not include \"$3\""
        return
    fi
    find_narrower_row "$1"
    row=${narrower_row[$1]}
    if [ "$row" != none ]; then
        matches "$3" "${narrower_headers[row]}" || report "$1" "$2" "must not include \"$3\""
    elif [ -z "${may_use[$room]-}" ]; then
        report "$1" "$2" "$room is no room; the table of rooms says what a folder may include"
    elif [[ $3 != */* || ${may_use[$room]} != *" ${3%/*} "* ]]; then
        report "$1" "$2" "must not include \"$3\""
    fi
}

check_library() # FILE LINE HEADER
{
    local row
    if [[ $1 == bench/* || $1 == tests/* ]]; then
        return
    fi
    find_library_rows "$3"
    for row in ${library_rows[$3]}; do
        matches "$1" "${library_files[row]}" || report "$1" "$2" "must not include <$3>; only ${library_files[row]} may"
    done
}

check_include() # FILE LINE TEXT
{
    local header
    if [[ ! $3 =~ ^[[:space:]]*\#[[:space:]]*include[[:space:]]*([\"\<])([^\"\>]+)[\"\>] ]]; then
        report "$1" "$2" "an include that names no file cannot be checked"
        return
    fi
    header=${BASH_REMATCH[2]}
    # Ours in angle brackets are ours all the same.
    if [ "${BASH_REMATCH[1]}" = '"' ] || matches "$header" "$our_folders/.*"; then
        check_ours "$1" "$2" "$header"
    fi
    check_library "$1" "$2" "$header"
    if is_pure "$1" && matches "$header" "$pure_never_includes"; then
        report "$1" "$2" "is pure, and must not include $header"
    fi
}

check_words()
{
    local file line text
    while IFS=: read -r file line text; do
        report "$file" "$line" "the parameter server must not hear of layers"
    done < <([ ! -d ps-server ] || grep -rniE 'layer' ps-server)
    while IFS=: read -r file line text; do
        if ! matches "$file" "$onednn_versions"; then
            report "$file" "$line" "must not know oneDNN's version: $text"
        fi
    done < <(grep -rnoE "$onednn_words" --include='*.[ch]' "${folders[@]}")
    while IFS=: read -r file line text; do
        if is_pure "$file"; then
            report "$file" "$line" "is pure, and must not call ${text%%(*}"
        fi
    done < <(grep -rnoE "\<($pure_never_calls) *\(" --include='*.[ch]' "${folders[@]}")
}

folders=()
for folder in bench common deploy ps-server tests worker; do
    if [ -d "$folder" ]; then
        folders+=("$folder")
    fi
done
if [ "${#folders[@]}" -eq 0 ]; then
    echo "no source folders in $PWD" >&2
    exit 2
fi

read_rooms
read_table "$narrower" narrower_files narrower_headers
read_table "$libraries" library_headers library_files
while IFS=: read -r file line text; do
    check_include "$file" "$line" "$text"
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include' \
    --include='*.[ch]' --include='*.cu' --include='*.cuh' "${folders[@]}")
check_words

[ "$violations" -eq 0 ]
