// The page of `tg plot`: style, elements for the script (plot_script.cpp) to fill, and the runs as
// JSON.
#include <cmath>

#include "plot_runs.h"

namespace tensorgrad::tool {

namespace {

constexpr const char* kHead = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tensorgrad runs</title>
<style>
  :root { color-scheme: light dark; --ground: #fff; --ink: #1c2430; --soft: #5a6675; --line: #e4e8ee; --raised: #f3f6fa;
          --mark: #fdf0d5; --bad: #c0392b; }
  @media (prefers-color-scheme: dark) {
    :root { --ground: #14181f; --ink: #e3e8ef; --soft: #98a4b3; --line: #2a323d; --raised: #1d242e; --mark: #3a3118;
            --bad: #ff8a7a; }
  }
  * { box-sizing: border-box; }
  body { font: 14px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 1400px; padding: 1rem; color: var(--ink);
         background: var(--ground); }
  h1 { font-size: 1.3rem; margin: 0 0 .3rem; }
  h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
  h3 { font-size: .95rem; margin: 0 0 .2rem; font-weight: 600; }
  .bar { position: sticky; top: 0; z-index: 2; background: var(--ground); padding: .4rem 0; display: flex;
         flex-wrap: wrap; gap: .4rem 1.2rem; align-items: center; border-bottom: 1px solid var(--line); }
  .bar label, .bar span { white-space: nowrap; }
  .legend { display: flex; flex-wrap: wrap; gap: .3rem; }
  button { font: inherit; color: inherit; background: var(--raised); border: 1px solid var(--line); border-radius: 4px;
           padding: .1rem .6rem; cursor: pointer; overflow-wrap: anywhere; text-align: left; }
  button[aria-pressed=false] { opacity: .45; text-decoration: line-through; }
  .swatch { display: inline-block; width: .75em; height: .75em; margin-right: .4em; border-radius: 2px; }
  .charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 1.2rem 1.6rem;
            margin-top: 1rem; }
  figure { margin: 0; position: relative; min-width: 0; }
  figure.wide { grid-column: 1 / -1; }
  figure > svg { display: block; width: 100%; touch-action: pan-y; }
  svg text { font-size: 11px; fill: var(--soft); }
  svg .grid { stroke: var(--line); }
  svg path { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
  svg path.raw { opacity: .3; stroke-width: 1; }
  svg circle { fill: var(--ground); stroke-width: 1.6; }
  svg .axis { font-size: 12px; }
  svg .resume { stroke-dasharray: 2 3; stroke-width: 1.4; }
  svg .base { stroke-dasharray: 6 4; stroke-width: 1.2; opacity: .8; }
  svg .bad { font-size: 14px; font-weight: bold; }
  svg .cursor { stroke: var(--soft); stroke-dasharray: 2 2; }
  svg .zoom { fill: var(--soft); opacity: .15; }
  .tip { position: absolute; pointer-events: none; z-index: 1; background: var(--raised); border: 1px solid var(--line);
         border-radius: 4px; padding: .3rem .5rem; font-size: 12px; font-variant-numeric: tabular-nums; max-width: 90%;
         overflow-wrap: anywhere; }
  .note { color: var(--soft); margin: .2rem 0; }
  .warning { color: var(--bad); margin: .2rem 0; overflow-wrap: anywhere; }
  .scroll { overflow-x: auto; }
  table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
  th, td { text-align: left; padding: .15rem .7rem .15rem 0; border-bottom: 1px solid var(--line);
           vertical-align: top; }
  td { overflow-wrap: anywhere; min-width: 5rem; }
  th { font-weight: 600; }
  tbody th { font-weight: 400; color: var(--soft); white-space: nowrap; }
  tr.differs > * { background: var(--mark); }
  .samples { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); gap: 1rem; }
  .samples > div { min-width: 0; }
  pre { font: 13px/1.4 ui-monospace, monospace; margin: .2rem 0 .8rem; padding: .5rem; background: var(--raised);
        white-space: pre-wrap; overflow-wrap: anywhere; border-radius: 4px; max-height: 28rem; overflow-y: auto; }
  details { margin: .3rem 0; }
  summary { cursor: pointer; font-weight: 600; }
  .prompt { color: var(--soft); }
  input[type=range] { vertical-align: middle; width: 9rem; }
  @media (max-width: 600px) { .bar { position: static; } }
</style>
</head>
<body>
<h1 id="title"></h1>
<div id="warnings"></div>
<div class="bar">
  <div class="legend" id="legend"></div>
  <span id="axes">along
    <label><input type="radio" name="x" value="step" checked>steps</label>
    <label><input type="radio" name="x" value="tokens">tokens</label>
    <label><input type="radio" name="x" value="seconds">time</label></span>
  <label>smoothing <input type="range" id="smooth" min="0" max="100" value="40"> <output id="smoothed"></output></label>
  <label><input type="checkbox" id="log"> logarithmic</label>
  <button id="whole" hidden>whole width</button>
</div>
<div class="charts" id="charts"></div>
<p class="note">Point at a curve for its numbers. Drag over a part to enlarge it, double-click to go back. A dashed
horizontal line is the loss of guessing by the frequency of tokens alone. A dotted vertical line is where a run was
resumed. &times; marks values that were not finite.</p>
<section id="samples" hidden><h2>Samples by step</h2>
<p class="note" id="kept"></p>
<div id="texts"></div></section>
<h2>Runs</h2>
<p id="choice" hidden><label><input type="checkbox" id="only"> only settings that differ</label></p>
<div class="scroll"><table id="settings"></table></div>
<noscript>This page draws with JavaScript.</noscript>
<script type="application/json" id="runs">
)html";

// Rounds to six digits, more than a curve shows.
double short_value(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(value))));
  return std::isfinite(scale) ? std::round(value * scale) / scale : value;
}

// JSON has no NaN.
Json or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json curve_json(const std::vector<CurvePoint>& points) {
  Json step = Json::array(), seconds = Json::array(), value = Json::array(), mean = Json::array();
  bool thinned = false;
  for (const CurvePoint& point : points) {
    step.push_back(point.step);
    seconds.push_back(rounded(point.seconds, 3));
    value.push_back(or_null(point.value));
    mean.push_back(or_null(short_value(point.mean)));
    thinned = thinned || (point.mean != point.value && std::isfinite(point.mean));
  }
  Json curve = {{"step", step}, {"seconds", seconds}, {"value", value}};
  if (thinned) curve["mean"] = mean;
  return curve;
}

}  // namespace

Json runs_json(const std::vector<Run>& runs) {
  Json list = Json::array();
  for (const Run& run : runs) {
    Json curves = Json::object(), samples = Json::array();
    for (const Curve& curve : run.curves)
      if (!curve.points.empty()) curves[curve.name] = curve_json(curve.points);
    for (const Sample& sample : run.samples)
      samples.push_back({{"step", sample.step}, {"prompt", sample.prompt}, {"text", sample.text}});
    list.push_back({{"name", run.name},
                    {"config", run.config},
                    {"start", run.start},
                    {"done", run.done},
                    {"final", run.final},
                    {"resumed", run.resumed},
                    {"steps", run.steps},
                    {"seconds", rounded(run.seconds, 3)},
                    {"not_finite", run.not_finite},
                    {"tokens_per_step", run.tokens_per_step ? Json(*run.tokens_per_step) : Json()},
                    {"curves", curves},
                    {"samples", samples},
                    {"all_samples", run.all_samples},
                    {"warnings", run.warnings}});
  }
  return list;
}

std::string plot_page(const std::vector<Run>& runs) {
  // Escapes "<", so that no text of the log can end the script or begin a comment.
  std::string data;
  for (const char c : runs_json(runs).dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<')
      data += "\\u003c";
    else
      data += c;
  }
  return std::string(kHead) + data + "\n</script>\n<script>\n" + kPlotScript +
         "</script>\n</body>\n</html>\n";
}

}  // namespace tensorgrad::tool
