/* A peer: Gloo's all-reduces over tcp, float sum, in place.
 *
 *     gloo_allreduce FOLDER ADDRESS RANK WORLD BYTES WARMUP ROUNDS ALGORITHM[,ALGORITHM ...]
 *
 * WORLD processes meet in a folder that is empty before. ALGORITHM: ring, ring_chunked,
 * halving_doubling, bcube (the older classes), new_ring, new_bcube (gloo::allreduce). Measures as
 * mpi_allreduce.c does, and prints a line of JSON for each algorithm; one that does not exist for
 * this WORLD is left out with a line on standard error. */
extern "C" {
#include "bench/programs/pattern.h"
#include "bench/programs/rounds.h"
}

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <gloo/allreduce.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

struct Settings {
    std::string folder, address;
    int rank, world;
    size_t count; // floats
    uint64_t warmup, rounds;
};

using Call = std::function<void()>;
using Context = std::shared_ptr<gloo::rendezvous::Context>;

template <typename Algorithm> Call make_class(const Context &context, std::vector<float> &values)
{
    auto algorithm = std::make_shared<Algorithm>(context, std::vector<float *>{values.data()},
                                                 static_cast<int>(values.size()));
    return [algorithm] { algorithm->run(); };
}

void sum(void *result, const void *a, const void *b, size_t count)
{
    gloo::sum<float>(result, a, b, count);
}

Call make_function(const Context &context, std::vector<float> &values,
                   gloo::detail::AllreduceOptionsImpl::Algorithm algorithm)
{
    return [context, algorithm, &values] {
        gloo::AllreduceOptions options(context);
        options.setAlgorithm(algorithm);
        options.setReduceFunction(sum);
        options.setOutput(values.data(), values.size());
        gloo::allreduce(options);
    };
}

Call make_call(const std::string &name, const Context &context, std::vector<float> &values)
{
    if (name == "ring") {
        return make_class<gloo::AllreduceRing<float>>(context, values);
    }
    if (name == "ring_chunked") {
        return make_class<gloo::AllreduceRingChunked<float>>(context, values);
    }
    if (name == "halving_doubling") {
        return make_class<gloo::AllreduceHalvingDoubling<float>>(context, values);
    }
    if (name == "bcube") {
        return make_class<gloo::AllreduceBcube<float>>(context, values);
    }
    if (name == "new_ring") {
        return make_function(context, values, gloo::detail::AllreduceOptionsImpl::RING);
    }
    if (name == "new_bcube") {
        return make_function(context, values, gloo::detail::AllreduceOptionsImpl::BCUBE);
    }
    throw std::runtime_error("there is no algorithm " + name);
}

uint64_t now_ns()
{
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/* Values are filled before the first and the last call, and zero in between: sums of sums overflow.
 */
bool run_rounds(const Settings &settings, const Call &call, std::vector<float> &values,
                rounds &timed)
{
    bool is_right = true;
    uint64_t last = settings.warmup + settings.rounds;
    for (uint64_t round = 0; round <= last; round++) {
        bool is_filled = round == 0 || round == last;
        if (round == last) {
            rounds_end(&timed);
        }
        if (is_filled) {
            auto rank = static_cast<uint32_t>(settings.rank);
            pattern_fill(values.data(), values.size(), pattern_shift(rank, round));
        }
        if (round == settings.warmup) {
            rounds_begin(&timed);
        }
        uint64_t start_ns = now_ns();
        call();
        uint64_t ns = now_ns() - start_ns;
        if (round >= settings.warmup && round < last) {
            rounds_add(&timed, ns);
        }
        if (is_filled) {
            float right[PATTERN_PERIOD];
            pattern_sum(static_cast<uint32_t>(settings.world), round, 1, right);
            size_t wrong = pattern_find_wrong(values.data(), values.size(), right);
            is_right = is_right && wrong == values.size();
            std::fill(values.begin(), values.end(), 0.0F);
        }
    }
    return is_right;
}

bool run(const Settings &settings, const std::string &name)
{
    gloo::transport::tcp::attr attributes(settings.address.c_str());
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore files(settings.folder);
    gloo::rendezvous::PrefixStore store(name, files);
    auto context = std::make_shared<gloo::rendezvous::Context>(settings.rank, settings.world);
    context->connectFullMesh(store, device);
    std::vector<float> values(settings.count);
    rounds timed = {};
    if (rounds_init(&timed, settings.rounds) != 0) {
        throw std::bad_alloc();
    }
    bool is_right = run_rounds(settings, make_call(name, context, values), values, timed);
    gloo::BarrierOptions end(context); // who goes first must not cut off the others
    gloo::barrier(end);
    std::printf("{\"library\":\"gloo\",\"algorithm\":\"%s\",\"workers\":%d,\"rank\":%d,"
                "\"bytes\":%zu,",
                name.c_str(), settings.world, settings.rank, settings.count * sizeof(float));
    rounds_print(&timed, stdout);
    std::printf(",\"verified\":%s}\n", is_right ? "true" : "false");
    std::fflush(stdout);
    rounds_finish(&timed);
    return is_right;
}

/* What Gloo itself refuses for so many processes, it refuses by ending the process. */
bool exists(const std::string &name, int world)
{
    bool is_power = (world & (world - 1)) == 0;
    bool needs_power = name == "bcube" || name == "new_bcube";
    if (needs_power && !is_power) {
        std::cerr << "gloo_allreduce: " << name << " is left out: " << world
                  << " is no power of two\n";
        return false;
    }
    return true;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 9) {
        std::cerr << "usage: gloo_allreduce FOLDER ADDRESS RANK WORLD BYTES WARMUP ROUNDS "
                     "ALGORITHM[,ALGORITHM ...]\n";
        return 2;
    }
    try {
        Settings settings = {argv[1],
                             argv[2],
                             std::stoi(argv[3]),
                             std::stoi(argv[4]),
                             std::stoull(argv[5]) / sizeof(float),
                             std::stoull(argv[6]),
                             std::stoull(argv[7])};
        bool is_right = true;
        std::stringstream names(argv[8]);
        for (std::string name; std::getline(names, name, ',');) {
            is_right = (!exists(name, settings.world) || run(settings, name)) && is_right;
        }
        return is_right ? 0 : 1;
    } catch (const std::exception &error) {
        std::cerr << "gloo_allreduce: " << error.what() << "\n";
        return 1;
    }
}
