#!/usr/bin/env bash
# Every rule of check_includes.sh catches a violation planted in a copy of the tree.
. "$(dirname "$0")/plant.sh"
lint=$(dirname "$0")/check_includes.sh

# Programs and their folders
plant ps-server/planted_worker.c '#include "worker/exchange/exchange.h"' 'must not include "worker/exchange/exchange.h"'
plant worker/planted_server.c '#include "ps-server/shard.h"' 'must not include "ps-server/shard.h"'
plant worker/exchange/planted_server.c '#include "ps-server/shard.h"' 'must not include "ps-server/shard.h"'
plant deploy/planted_worker.c '#include "worker/trainer.h"' 'must not include "worker/trainer.h"'
plant deploy/planted_server.c '#include "ps-server/server.h"' 'must not include "ps-server/server.h"'
plant common/planted_up.c '#include "worker/model/model.h"' 'must not include "worker/model/model.h"'
plant common/planted_test.c '#include "tests/support/check.h"' 'must not include "tests/support/check.h"'
plant worker/planted_bench.c '#include "bench/bench.h"' 'must not include "bench/bench.h"'

# Parts of the worker
plant worker/exchange/planted_model.c '#include "worker/model/model.h"' 'must not include "worker/model/model.h"'
plant worker/exchange/planted_device.c '#include "worker/device/device.h"' 'must not include "worker/device/device.h"'
plant worker/exchange/planted_data.c '#include "worker/data/batcher.h"' 'must not include "worker/data/batcher.h"'
plant worker/model/planted_data.c '#include "worker/data/batcher.h"' 'must not include "worker/data/batcher.h"'
plant worker/model/planted_exchange.c '#include "worker/exchange/exchange.h"' 'must not include "worker/exchange/exchange.h"'
plant worker/data/planted_model.c '#include "worker/model/model.h"' 'must not include "worker/model/model.h"'
plant worker/device/planted_transport.c '#include "common/transport.h"' 'must not include "common/transport.h"'
plant worker/device/ref/planted_layout.c '#include "common/layout.h"' 'must not include "common/layout.h"'
plant worker/device/ref/planted_cpu.c '#include "worker/device/cpu/cpu.h"' 'must not include "worker/device/cpu/cpu.h"'
plant worker/device/cpu/planted_model.c '#include "worker/model/model.h"' 'must not include "worker/model/model.h"'
plant worker/device/cuda/planted.cu '#include "worker/device/device.h"' 'must not include "worker/device/device.h"'

# Libraries
plant ps-server/planted_zmq.c '#include <zmq.h>' 'must not include <zmq.h>'
plant common/planted_zmq.c '  #  include <zmq.h>' 'must not include <zmq.h>'
plant common/planted_guard.c '#include "common/guard_zmq.h"' 'must not include <common/guard_zmq.h>'
plant ps-server/planted_wire.c '#include "wire.pb-c.h"' 'must not include "wire.pb-c.h"'
plant common/planted_wire.c '#include <protobuf-c/protobuf-c.h>' 'must not include <protobuf-c/'
plant worker/device/planted_dnnl.c '#include <oneapi/dnnl/dnnl.h>' 'must not include <oneapi/'
plant worker/device/cpu/planted_cuda.c '#include <cuda_runtime.h>' 'must not include <cuda_runtime.h>'
plant worker/device/ref/planted_cudnn.h '#include <cudnn.h>' 'must not include <cudnn.h>'

plant worker/device/cpu/planted_two.c 'dnnl_memory_desc_t x;' "must not know oneDNN's version"
plant worker/device/cpu/relu.c '#if DNNL_VERSION_MAJOR > 2' "must not know oneDNN's version"
plant bench/planted_three.c 'dnnl_reorder_primitive_desc_create();' "must not know oneDNN's version"

# Ways around the rules
plant ps-server/planted_relative.c '#include "../worker/trainer.h"' 'must not include "../worker/trainer.h"'
plant common/planted_sibling.c '#include "layout.h"' 'must not include "layout.h"'
plant ps-server/planted_angle.c '#include <worker/device/device.h>' 'must not include "worker/device/device.h"'
plant ps-server/planted_macro.c '#include HEADER' 'cannot be checked'
plant ps-server/planted_word.c 'int layer_count;' 'must not hear of layers'

# Pure decisions
plant common/layout.c '#include "common/log.h"' 'is pure, and must not include common/log.h'
plant common/consistency.c '#include <time.h>' 'is pure, and must not include time.h'
plant common/codec_int8.c 'log_debug("x");' 'is pure, and must not call log_debug'
plant common/schedule.c '#include "common/clock.h"' 'is pure, and must not include common/clock.h'
plant common/wire.c '#include <sys/socket.h>' 'is pure, and must not include sys/socket.h'
plant common/wire.c 'transport_bind(0);' 'is pure, and must not call transport_bind'
plant ps-server/shard.c '#include <pthread.h>' 'is pure, and must not include pthread.h'
plant ps-server/coordinator.c 'fprintf(stderr, "x");' 'is pure, and must not call fprintf'
plant ps-server/results.c 'file = fopen(path, "r");' 'is pure, and must not call fopen'
plant worker/model/network.c 'printf("x");' 'is pure, and must not call printf'
plant common/consistency.c 'channel_send(channel);' 'is pure, and must not call channel_send'
plant ps-server/shard.h '#include "common/log.h"' 'is pure, and must not include common/log.h'
plant ps-server/membership.c 'log_warn("x");' 'is pure, and must not call log_warn'
plant worker/exchange/ring_plan.c 'clock_now_ns();' 'is pure, and must not call clock_now_ns'

expect_every_plant_caught "$lint"
