// Draws the figures of a report: hover, legends that hide, zoom by dragging or by keys.
"use strict";
(() => {
    const dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3], [4, 4]]; // the last one is of ideal lines
    const dashOf = (series) => dashes[series.dash];
    const edge = 6; // pixels by which a point may reach over the edge of its plot
    const seriesWithBands = 24; // with more, bands hide each other
    const parts = ["computing", "exchange wait", "input wait"];
    const figures = JSON.parse(document.getElementById("figures").textContent);
    const drawn = [];

    let tones = {}; // of the style, read once for all figures
    const tone = (name) => tones[name];
    function readTones() {
        const style = getComputedStyle(document.documentElement);
        for (const name of ["--ink", "--paper", "--dim", "--line", ...[0, 1, 2, 3, 4, 5, 6].map((k) => "--c" + k)]) {
            tones[name] = style.getPropertyValue(name).trim();
        }
    }
    const colourOf = (series) => tone("--c" + series.colour % 7);
    const clear = (colour, alpha) => colour + alpha; // #rrggbb and two digits more
    const show = (value) => Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "unknown";

    // A label in lines of so many letters, the fourth of which is the last.
    function wrap(text, most) {
        const lines = [""];
        for (const word of text.split(" ")) {
            const last = lines[lines.length - 1], longer = last === "" ? word : last + " " + word;
            if (longer.length <= most || last === "") {
                lines[lines.length - 1] = longer;
            } else {
                lines.push(word);
            }
        }
        const cut = (line) => line.length > most ? line.slice(0, most - 1) + "…" : line;
        return lines.slice(0, 4).map((line, i) => i === 3 && lines.length > 4 ? cut(line + " …") : cut(line));
    }
    const linesOfName = (name) => wrap(name, innerWidth < 600 ? 20 : 32);

    function line(series, points, more) {
        return Object.assign({ series, data: points, parsing: false, normalized: true, borderWidth: 2, clip: edge,
            pointRadius: points.length > 40 ? 0 : 2.5, pointHoverRadius: 5, pointHitRadius: 8 }, more);
    }

    // Of one series: the band (two borders), the mean, the runs themselves, and where runs ended early. Bands that
    // are the same (designs that compute the same numbers) would add up to ink: the first one stands for all.
    function linesOf(series, index, is_few, bands) {
        const mean = series.points.map(([x, y]) => ({ x, y }));
        const all = [];
        const band = series.points.filter((point) => point.length > 2);
        const is_new = !bands.has(String(band));
        bands.add(String(band));
        if (band.length > 0 && is_few && is_new) {
            const side = (k) => line(index, band.map((point) => ({ x: point[0], y: point[k] })),
                { role: "band", borderWidth: 0, pointRadius: 0, pointHitRadius: 0, clip: 0 });
            all.push(side(2), Object.assign(side(3), { fill: "-1" }));
        }
        for (const run of series.runs) {
            all.push(line(index, run.map(([x, y]) => ({ x, y })),
                { role: "run", borderWidth: 1, pointRadius: 0, pointHitRadius: 0 }));
        }
        all.push(line(index, mean, Object.assign({ role: "mean", label: series.name }, is_few ? {} : { pointRadius: 0, borderWidth: 1 })));
        if (series.ends.length > 0) {
            all.push(line(index, series.ends.map(([x, y, why]) => ({ x, y, why })),
                { role: "end", label: series.name, showLine: false, pointStyle: "crossRot", pointRadius: 7,
                    pointBorderWidth: 3 }));
        }
        return all;
    }

    function paint(figure, config) {
        for (const set of config.data.datasets) {
            if (figure.kind === "bars") {
                set.backgroundColor = set.data.map((_, i) => tone("--c" + (figure.series.length > 1 ? set.series : figure.colours[i] % 7)));
            } else {
                const colour = colourOf(figure.series[set.series]);
                set.borderColor = set.role === "run" ? clear(colour, "80") : colour;
                set.backgroundColor = set.role === "band" ? clear(colour, "30") : colour;
                set.borderDash = dashOf(figure.series[set.series]);
            }
        }
        for (const scale of Object.values(config.options.scales)) {
            scale.grid = { color: tone("--line"), borderColor: tone("--dim") };
            scale.ticks.color = tone("--ink");
            scale.title.color = tone("--ink");
        }
        return config;
    }

    function repaint() {
        readTones();
        for (const { figure, chart } of drawn) {
            paint(figure, chart);
            chart.update("none");
        }
    }

    // The runs of a bar, on its lower half: the whisker is in the middle.
    function drawRuns(chart, set, bar, i) {
        const pen = chart.ctx;
        for (const value of set.runs ? set.runs[i] : []) {
            pen.beginPath();
            pen.arc(chart.scales.x.getPixelForValue(value), bar.y + bar.height / 4, 3, 0, 2 * Math.PI);
            pen.fillStyle = tone("--paper");
            pen.fill();
            pen.stroke();
        }
    }

    // The 95 % intervals of bars.
    const whiskers = {
        id: "whiskers",
        afterDatasetsDraw(chart, _, options) {
            const pen = chart.ctx;
            const { left, right, top, bottom } = chart.chartArea;
            pen.save();
            pen.beginPath();
            pen.rect(left, top, right - left, bottom - top);
            pen.clip();
            pen.strokeStyle = tone("--ink");
            pen.lineWidth = 1.5;
            chart.data.datasets.forEach((set, k) => {
                if (options.is_stacked || !chart.isDatasetVisible(k)) {
                    return;
                }
                chart.getDatasetMeta(k).data.forEach((bar, i) => {
                    const half = set.halves[i];
                    if (half > 0) {
                        // An interval that reaches below zero has no cap there.
                        const low = set.data[i] - half;
                        const from = chart.scales.x.getPixelForValue(Math.max(low, 0));
                        const to = chart.scales.x.getPixelForValue(set.data[i] + half);
                        pen.beginPath();
                        pen.moveTo(from, bar.y); pen.lineTo(to, bar.y);
                        if (low > 0) {
                            pen.moveTo(from, bar.y - 5); pen.lineTo(from, bar.y + 5);
                        }
                        pen.moveTo(to, bar.y - 5); pen.lineTo(to, bar.y + 5);
                        pen.stroke();
                    }
                    drawRuns(chart, set, bar, i);
                });
            });
            pen.restore();
        },
    };

    function tipOf(figure) {
        return {
            filter: (item) => item.dataset.role !== "band" && item.dataset.role !== "run",
            callbacks: {
                title: (items) => items.length === 0 ? "" : figure.kind === "bars" ? figure.names[items[0].dataIndex]
                    : figure.x + " " + show(items[0].parsed.x),
                label(item) {
                    const set = item.dataset;
                    if (figure.kind === "bars") {
                        const half = set.halves[item.dataIndex];
                        const runs = set.runs ? set.runs[item.dataIndex] : [];
                        return set.label + " " + show(set.data[item.dataIndex]) + (half > 0 ? " ± " + show(half) : "") +
                            (runs.length > 0 ? ", runs: " + runs.map(show).join(", ") : "");
                    }
                    const point = figure.series[set.series].points[item.dataIndex];
                    const half = set.role === "mean" && point.length > 2 ? " ± " + show(point[1] - point[2]) : "";
                    return set.label + ": " + show(item.parsed.y) + half + (item.raw.why ? ", " + item.raw.why : "");
                },
            },
        };
    }

    // How far an axis goes for bars and their intervals. Those of two runs may be wider than all else.
    function longestBar(figure) {
        const [series] = figure.series;
        const values = Math.max(...series.values, ...series.runs.flat());
        return Math.min(Math.max(...series.values.map((v, i) => v + series.halves[i])), 1.5 * values);
    }

    // The same for bands, which may leave the plot.
    function narrow(scale, figure) {
        if (figure.y_low !== undefined) {
            scale.min = Math.max(scale.min, figure.y_low);
            scale.max = Math.min(scale.max, figure.y_high);
        }
    }

    function configure(figure) {
        const is_bars = figure.kind === "bars";
        const is_stacked = is_bars && figure.series.length > 1;
        const title = (text) => ({ display: true, text });
        const bands = new Set();
        const datasets = is_bars
            ? figure.series.map((series, k) => ({ series: k, label: series.name || parts[k], data: series.values,
                halves: series.halves, runs: series.runs, maxBarThickness: 26 }))
            : figure.series.flatMap((series, k) => linesOf(series, k, figure.series.length <= seriesWithBands, bands));
        const scales = is_bars
            ? { x: { beginAtZero: true, stacked: is_stacked, title: title(figure.y), ticks: {},
                    suggestedMax: is_stacked ? undefined : longestBar(figure) },
                y: { stacked: is_stacked, title: { display: false }, ticks: { autoSkip: figure.names.length > 30,
                    callback: (_, i) => linesOfName(figure.names[i]) } } }
            : { x: { type: figure.x_is_log ? "logarithmic" : "linear", title: title(figure.x), min: figure.x_min, max: figure.x_max,
                    ticks: { includeBounds: false, precision: figure.x.startsWith("seconds") ? undefined : 0 } },
                y: { type: "linear", title: title(figure.y), ticks: {}, min: figure.y_min, max: figure.y_max,
                    afterDataLimits: (scale) => narrow(scale, figure) } };
        return { type: is_bars ? "bar" : "line", data: { labels: is_bars ? figure.names : undefined, datasets },
            plugins: is_bars ? [whiskers] : [],
            options: { animation: false, maintainAspectRatio: false, indexAxis: is_bars ? "y" : "x", scales,
                interaction: is_bars ? { mode: "index", axis: "y", intersect: false }
                    : { mode: "nearest", axis: figure.series.length > 8 ? "xy" : "x", intersect: false },
                plugins: { legend: { display: false }, tooltip: tipOf(figure), whiskers: { is_stacked } } } };
    }

    function zoomTo(entry, low, high) {
        const scale = entry.chart.options.scales.x;
        scale.min = low;
        scale.max = high;
        entry.reset.hidden = low === entry.figure.x_min && high === entry.figure.x_max;
        entry.chart.update("none");
    }

    function addZoom(entry, canvas) {
        const { chart, figure } = entry;
        let begin = null;
        canvas.addEventListener("pointerdown", (event) => { begin = event.offsetX; });
        canvas.addEventListener("pointerup", (event) => {
            const from = Math.min(begin, event.offsetX), to = Math.max(begin, event.offsetX);
            if (begin !== null && to - from > 12) {
                zoomTo(entry, chart.scales.x.getValueForPixel(from), chart.scales.x.getValueForPixel(to));
            }
            begin = null;
        });
        entry.reset.addEventListener("click", () => zoomTo(entry, figure.x_min, figure.x_max));
        canvas.addEventListener("dblclick", () => zoomTo(entry, figure.x_min, figure.x_max));
    }

    // Arrows go from point to point, + and - zoom, 0 shows all.
    function addKeys(entry, canvas) {
        const { chart, figure } = entry;
        let at = -1;
        canvas.addEventListener("keydown", (event) => {
            const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
            const shown = chart.data.datasets.map((set, k) => k).filter((k) => chart.isDatasetVisible(k) &&
                (figure.kind === "bars" || chart.data.datasets[k].role === "mean"));
            if (step !== undefined && shown.length > 0) {
                const last = Math.max(...shown.map((k) => chart.data.datasets[k].data.length)) - 1;
                at = Math.min(Math.max(at + step, 0), last);
                const active = shown.filter((k) => at < chart.data.datasets[k].data.length)
                    .map((datasetIndex) => ({ datasetIndex, index: at }));
                const { x, y } = chart.getDatasetMeta(active[0].datasetIndex).data[at];
                chart.setActiveElements(active);
                chart.tooltip.setActiveElements(active, { x, y });
                chart.update("none");
            } else if (figure.kind === "lines" && "+-".includes(event.key)) {
                const { min, max } = chart.scales.x, by = (max - min) * (event.key === "+" ? 0.25 : -0.5);
                zoomTo(entry, Math.max(min + by, figure.x_min), Math.min(max - by, figure.x_max));
            } else if (figure.kind === "lines" && event.key === "0") {
                zoomTo(entry, figure.x_min, figure.x_max);
            } else {
                return;
            }
            event.preventDefault();
        });
    }

    function key(figure, index) {
        const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        const stroke = document.createElementNS("http://www.w3.org/2000/svg", "line");
        const series = figure.series[index], colour = figure.kind === "bars" ? index : series.colour % 7;
        for (const [name, value] of Object.entries({ width: 22, height: 10 })) { svg.setAttribute(name, value); }
        for (const [name, value] of Object.entries({ x1: 0, x2: 22, y1: 5, y2: 5, "stroke-width": 3,
            class: "c" + colour, "stroke-dasharray": figure.kind === "bars" ? "" : dashOf(series).join(" ") })) {
            stroke.setAttribute(name, value);
        }
        svg.setAttribute("aria-hidden", "true");
        svg.append(stroke);
        return svg;
    }

    function addLegend(entry, place) {
        const { chart, figure } = entry;
        const legend = document.createElement("div");
        legend.className = "legend";
        figure.series.forEach((series, index) => {
            const button = document.createElement("button");
            button.type = "button";
            button.setAttribute("aria-pressed", "true");
            button.append(key(figure, index), series.name || parts[index]);
            button.addEventListener("click", () => {
                const on = button.getAttribute("aria-pressed") !== "true";
                button.setAttribute("aria-pressed", String(on));
                chart.data.datasets.forEach((set, k) => { if (set.series === index) { chart.setDatasetVisibility(k, on); } });
                chart.update("none");
            });
            legend.append(button);
        });
        place.append(legend);
    }

    function heightOfBars(figure) {
        const lines = Math.max(...figure.names.map((name) => linesOfName(name).length));
        return Math.min(60, 6 + (1.2 + Math.max(1, 0.9 * lines)) * figure.names.length);
    }

    function draw(figure) {
        const place = document.getElementById(figure.id);
        const frame = document.createElement("div"), canvas = document.createElement("canvas");
        const reset = document.createElement("button");
        frame.className = "frame";
        if (figure.kind === "bars") { frame.style.height = heightOfBars(figure) + "rem"; }
        canvas.tabIndex = 0;
        canvas.setAttribute("role", "img");
        canvas.setAttribute("aria-label", figure.title + ". Arrow keys show values; plus, minus and 0 zoom.");
        reset.type = "button";
        reset.className = "reset";
        reset.hidden = true;
        reset.textContent = "show all";
        frame.append(canvas);
        place.append(frame);
        const entry = { figure, reset, chart: new Chart(canvas, paint(figure, configure(figure))) };
        if (figure.series.length > 1) { addLegend(entry, place); }
        if (figure.kind === "lines") { addZoom(entry, canvas); place.append(reset); }
        addKeys(entry, canvas);
        drawn.push(entry);
    }

    const begin = performance.now();
    readTones();
    figures.forEach(draw);
    document.documentElement.dataset.drawn = String(Math.round(performance.now() - begin));
    window.ringsideFigures = drawn;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    addEventListener("beforeprint", () => {
        document.documentElement.dataset.print = "";
        drawn.forEach((entry) => entry.chart.resize());
        repaint();
    });
    addEventListener("afterprint", () => { delete document.documentElement.dataset.print; repaint(); });
})();
