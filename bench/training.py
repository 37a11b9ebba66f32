"""bench/links --train: what of an exchange hides behind backward."""
import json
import os
import statistics

from launching import TIMEOUT_S, Failed, Processes, run_exchange, run_lines, start_job

WARMUP = 2


def job_of(arguments, folder, mode, workers):
    return ["--mode", mode, "--workers", workers, "--model", arguments.model, "--data", "synthetic",
            "--batch", arguments.batch, "--steps", arguments.steps, "--threads", 1, "--eval",
            "none", "--out", folder, *(["--security", arguments.security]
                                       if arguments.security != "none" else [])]


def read_summary(folder):
    with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
        return json.load(file)


def step_ms(summary):
    """Without the job's warm-up."""
    if summary["images_per_second"] <= 0:
        raise Failed("a job without a step after its warm-up; give more --steps")
    return 1e3 * summary["global_batch"] / summary["images_per_second"]


def worker_command(arguments):
    program = os.path.join(arguments.build, "worker", "worker")
    return lambda rank, endpoint, host: [program, "--server", endpoint, "--rank", rank, "--bind",
                                         host.address, "--local-size", arguments.workers]


def train_alone(arguments, links):
    """A step of mode local, while as many others compute: milliseconds, and the parameters."""
    with Processes(TIMEOUT_S, arguments.build, arguments.security) as processes:
        folders = [os.path.join(processes.folder.name, f"run-{i}")
                   for i in range(arguments.workers)]
        for folder, host in zip(folders, links.hosts):
            start_job(processes, arguments.build, job_of(arguments, folder, "local", 1), [host],
                      [host], worker_command(arguments))
        processes.wait()
        summaries = [read_summary(folder) for folder in folders]
    return (statistics.mean(step_ms(summary) for summary in summaries),
            summaries[0]["parameters"])


def run_together(arguments, links, system):
    """The job's summary."""
    with Processes(TIMEOUT_S, arguments.build, arguments.security) as processes:
        folder = os.path.join(processes.folder.name, "run")
        job = job_of(arguments, folder, system.mode, arguments.workers) + arguments.job
        if system.servers > 0:
            job += ["--servers", system.servers]
        start_job(processes, arguments.build, job, system.place(links.hosts, arguments.workers),
                  links.hosts[:arguments.workers], worker_command(arguments))
        processes.wait()
        return read_summary(folder)


def train_together(arguments, links, system):
    return step_ms(run_together(arguments, links, system))


def backward_share(arguments):
    """Of a step of one process."""
    command = [os.path.join(arguments.build, "bench", "bench_train"), arguments.model,
               str(arguments.batch), "1", "auto", "auto"]
    times = run_lines(command)[-1]["ms"]
    return times["backward"] / sum(times.values())


def exchange_alone(arguments, links, system, parameters):
    size = 4 * parameters
    buckets = -(-size // arguments.bucket_bytes)
    line = run_exchange(arguments.build, system.mode, size, arguments.job,
                        system.place(links.hosts, arguments.workers),
                        links.hosts[:arguments.workers], WARMUP, arguments.rounds or 20, buckets,
                        arguments.security)
    return line["us_median"] / 1e3


def figures_of(compute, step, exchange, share):
    window, exposed = share * compute, step - compute
    return {"compute_ms": compute, "step_ms": step, "exchange_ms": exchange, "window_ms": window,
            "exposed_ms": exposed, "hidden": (exchange - exposed) / min(exchange, window),
            "hidden_of_all": 1 - exposed / exchange}


def print_table(rows, arguments, rate_mbit):
    print(f"\n{arguments.model}, batch {arguments.batch}, {arguments.workers} workers of one "
          f"thread, links of {arguments.mbit} Mbit/s, {rate_mbit:.0f} measured; milliseconds per step, "
          f"medians of {arguments.repeat} repetitions; hidden: see --help")
    print(f"{'system':12} {'step':>8} {'compute':>8} {'exposed':>8} {'exchange':>8} {'window':>8} "
          f"{'hidden':>7} {'min':>6} {'max':>6} {'of all':>7}")
    for row in rows:
        print(f"{row['system']:12} {row['step_ms']:8.2f} {row['compute_ms']:8.2f} "
              f"{row['exposed_ms']:8.2f} {row['exchange_ms']:8.2f} {row['window_ms']:8.2f} "
              f"{row['hidden']:7.2f} {row['hidden_min']:6.2f} {row['hidden_max']:6.2f} "
              f"{row['hidden_of_all']:7.2f}")


def run(arguments, links, rate_mbit):
    lines = {system: [] for system in arguments.systems}
    for repetition in range(arguments.repeat):
        share = backward_share(arguments)
        for system in arguments.systems:
            compute, parameters = train_alone(arguments, links)
            line = figures_of(compute, train_together(arguments, links, system),
                              exchange_alone(arguments, links, system, parameters), share)
            print(json.dumps({"repetition": repetition, "system": system.name, **line}), flush=True)
            lines[system].append(line)
    rows = []
    for system, of in lines.items():
        row = {key: statistics.median(line[key] for line in of) for key in of[0]}
        hidden = [line["hidden"] for line in of]
        rows.append({"system": system.name, **row, "hidden_min": min(hidden),
                     "hidden_max": max(hidden)})
    print_table(rows, arguments, rate_mbit)
    return rows
