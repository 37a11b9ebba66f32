#!/usr/bin/env bash
# Every rule of check_includes.sh catches a violation planted in a copy of the tree.
. "$(dirname "$0")/plant.sh"
lint=$(dirname "$0")/check_includes.sh

# Programs and their folders
plant ps-server/shard/planted_worker.c '#include "worker/exchange/exchange.h"' 'must not include "worker/exchange/exchange.h"'
plant worker/planted_server.c '#include "ps-server/shard/shard.h"' 'must not include "ps-server/shard/shard.h"'
plant worker/exchange/planted_server.c '#include "ps-server/shard/shard.h"' 'must not include "ps-server/shard/shard.h"'
plant deploy/command/planted_worker.c '#include "worker/train/trainer.h"' 'must not include "worker/train/trainer.h"'
plant deploy/launch/planted_server.c '#include "ps-server/server.h"' 'must not include "ps-server/server.h"'
plant common/channel/planted_up.c '#include "worker/model/model.h"' 'must not include "worker/model/model.h"'
plant common/base/planted_test.c '#include "tests/support/check.h"' 'must not include "tests/support/check.h"'
plant worker/planted_bench.c '#include "bench/bench.h"' 'must not include "bench/bench.h"'

# Rooms
plant common/base/planted_job.c '#include "common/job/job.h"' 'must not include "common/job/job.h"'
plant common/transport/planted_channel.c '#include "common/channel/wire.h"' 'must not include "common/channel/wire.h"'
plant ps-server/shard/planted_summary.c '#include "ps-server/record/summary.h"' 'must not include "ps-server/record/summary.h"'
plant worker/link/planted_trainer.c '#include "worker/train/trainer.h"' 'must not include "worker/train/trainer.h"'
plant worker/exchange/chunks/planted_group.c '#include "worker/exchange/shared/group.h"' 'must not include "worker/exchange/shared/group.h"'
plant deploy/agent/planted_command.c '#include "deploy/command/commands.h"' 'must not include "deploy/command/commands.h"'
plant deploy/sweep/planted_report.c '#include "deploy/report/table.h"' 'must not include "deploy/report/table.h"'
plant deploy/planted_hall.c '#include "deploy/system/folder.h"' 'deploy is no room'

# Parts of the worker
plant worker/exchange/planted_model.c '#include "worker/model/model.h"' 'must not include "worker/model/model.h"'
plant worker/exchange/planted_device.c '#include "worker/device/device.h"' 'must not include "worker/device/device.h"'
plant worker/exchange/planted_data.c '#include "worker/data/batches/batcher.h"' 'must not include "worker/data/batches/batcher.h"'
plant worker/model/planted_data.c '#include "worker/data/batches/batcher.h"' 'must not include "worker/data/batches/batcher.h"'
plant worker/model/planted_exchange.c '#include "worker/exchange/exchange.h"' 'must not include "worker/exchange/exchange.h"'
plant worker/data/planted_model.c '#include "worker/model/model.h"' 'must not include "worker/model/model.h"'
plant worker/device/planted_transport.c '#include "common/transport/transport.h"' 'must not include "common/transport/transport.h"'
plant worker/device/ref/planted_layout.c '#include "common/vector/layout.h"' 'must not include "common/vector/layout.h"'
plant worker/device/ref/planted_cpu.c '#include "worker/device/cpu/cpu.h"' 'must not include "worker/device/cpu/cpu.h"'
plant worker/device/cpu/planted_model.c '#include "worker/model/model.h"' 'must not include "worker/model/model.h"'
plant worker/device/cuda/kernels/planted.cu '#include "worker/device/device.h"' 'must not include "worker/device/device.h"'

# Libraries
plant ps-server/planted_zmq.c '#include <zmq.h>' 'must not include <zmq.h>'
plant common/channel/planted_zmq.c '  #  include <zmq.h>' 'must not include <zmq.h>'
plant common/channel/planted_guard.c '#include "common/transport/guard_zmq.h"' 'must not include <common/transport/guard_zmq.h>'
plant ps-server/record/planted_wire.c '#include "wire.pb-c.h"' 'must not include "wire.pb-c.h"'
plant common/transport/planted_wire.c '#include <protobuf-c/protobuf-c.h>' 'must not include <protobuf-c/'
plant worker/device/planted_dnnl.c '#include <oneapi/dnnl/dnnl.h>' 'must not include <oneapi/'
plant worker/device/cpu/planted_cuda.c '#include <cuda_runtime.h>' 'must not include <cuda_runtime.h>'
plant worker/device/ref/planted_cudnn.h '#include <cudnn.h>' 'must not include <cudnn.h>'

plant worker/device/cpu/planted_two.c 'dnnl_memory_desc_t x;' "must not know oneDNN's version"
plant worker/device/cpu/relu.c '#if DNNL_VERSION_MAJOR > 2' "must not know oneDNN's version"
plant bench/planted_three.c 'dnnl_reorder_primitive_desc_create();' "must not know oneDNN's version"

# Ways around the rules
plant ps-server/planted_relative.c '#include "../worker/trainer.h"' 'must not include "../worker/trainer.h"'
plant common/vector/planted_sibling.c '#include "layout.h"' 'must not include "layout.h"'
plant ps-server/planted_angle.c '#include <worker/device/device.h>' 'must not include "worker/device/device.h"'
plant ps-server/planted_macro.c '#include HEADER' 'cannot be checked'
plant ps-server/planted_word.c 'int layer_count;' 'must not hear of layers'

# Pure decisions
plant common/vector/layout.c '#include "common/base/log.h"' 'is pure, and must not include common/base/log.h'
plant common/job/consistency.c '#include <time.h>' 'is pure, and must not include time.h'
plant common/codec/codec_int8.c 'log_debug("x");' 'is pure, and must not call log_debug'
plant common/job/schedule.c '#include "common/base/clock.h"' 'is pure, and must not include common/base/clock.h'
plant common/channel/wire.c '#include <sys/socket.h>' 'is pure, and must not include sys/socket.h'
plant common/channel/wire.c 'transport_bind(0);' 'is pure, and must not call transport_bind'
plant ps-server/shard/shard.c '#include <pthread.h>' 'is pure, and must not include pthread.h'
plant ps-server/coordinator/coordinator.c 'fprintf(stderr, "x");' 'is pure, and must not call fprintf'
plant ps-server/results/results.c 'file = fopen(path, "r");' 'is pure, and must not call fopen'
plant worker/model/network.c 'printf("x");' 'is pure, and must not call printf'
plant common/job/consistency.c 'channel_send(channel);' 'is pure, and must not call channel_send'
plant ps-server/shard/shard.h '#include "common/base/log.h"' 'is pure, and must not include common/base/log.h'
plant ps-server/coordinator/membership.c 'log_warn("x");' 'is pure, and must not call log_warn'
plant worker/exchange/chunks/ring_plan.c 'clock_now_ns();' 'is pure, and must not call clock_now_ns'

# A cycle between rooms shows in the table itself.
expect_changed_lint_says "$lint" 's|^common/security  .*|& common/transport|' \
    'common/security:0: may not use common/transport'

expect_every_plant_caught "$lint"
