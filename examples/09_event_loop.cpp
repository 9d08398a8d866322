// Training in a terminal program that has its own event loop: one thread, and no call of the
// library blocks. Calls that end in _async start work; tg::poll() goes on with it and runs the
// callbacks. The keys are space (pause), + and - (learning rate), r (reset) and q (quit). Without a
// terminal, it trains a fixed number of steps and prints plain lines.
#include <poll.h>
#include <tensorgrad/tensorgrad.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace tg = tensorgrad;
using Clock = std::chrono::steady_clock;

constexpr int kBatch = 512, kPlainSteps = 2000;
constexpr double kRate = 0.002;
constexpr int kInFlight = 8;  // steps: enough to keep a GPU busy, few enough to answer keys at once
constexpr std::chrono::milliseconds kFrame(16);
constexpr int kColumns = 72, kRowsPerDecade = 3, kRows = 4 * kRowsPerDecade;  // of the chart
constexpr int kMapColumns = 41, kMapRows = 17;

struct Mlp {
  tg::Linear l1{2, 64}, l2{64, 64}, l3{64, 1};
};

tg::Tensor logits(const Mlp& m, tg::Tensor x) { return m.l3(tanh(m.l2(tanh(m.l1(x))))); }

// Points of two spirals, and which of them each point is on.
void sample_points(std::mt19937& random, std::vector<float>& x, std::vector<float>& y) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float radius = std::sqrt(static_cast<float>(random()) / 4294967296.0f);
    y[i] = static_cast<float>(random() % 2);
    const float angle = (4 * radius + y[i]) * 3.14159265f;
    x[2 * i] = radius * std::cos(angle);
    x[2 * i + 1] = radius * std::sin(angle);
  }
}

// All losses on a logarithmic scale; each column is the mean of its share of the steps.
std::string chart(const std::vector<float>& losses) {
  static const char* const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static const char* const labels[] = {" 1e-4 ", "0.001 ", " 0.01 ", "  0.1 "};
  const std::size_t columns = std::min<std::size_t>(losses.size(), kColumns);
  std::vector<float> heights;  // in rows
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t first = c * losses.size() / columns, end = (c + 1) * losses.size() / columns;
    const float sum = std::accumulate(&losses[first], losses.data() + end, 0.0f);
    heights.push_back((std::log10(sum / static_cast<float>(end - first)) + 4) * kRowsPerDecade);
  }
  std::string out;
  for (int row = kRows - 1; row >= 0; --row) {
    out += row % kRowsPerDecade == 0 ? labels[row / kRowsPerDecade] : "      ";
    for (const float height : heights)
      out += eighths[std::lround(8 * std::clamp(height - static_cast<float>(row), 0.0f, 1.0f))];
    out += "\x1b[K\n";
  }
  return out;
}

// Delivers keys one by one, without echo; ctrl-C is a key, too. The destructor restores the
// terminal.
class RawTerminal {
 public:
  RawTerminal() {
    tcgetattr(STDIN_FILENO, &before_);
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    std::fputs("\x1b[?25l\x1b[?7l", stdout);  // hides the cursor, cuts long lines
  }
  ~RawTerminal() {
    std::fputs("\x1b[?7h\x1b[?25h", stdout);
    std::fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  termios before_{};
};

class Demo {
 public:
  explicit Demo(bool terminal) : terminal_(terminal) {
    compiled_.then([this](const tg::Future<tg::Training<Mlp>>& compiled) {
      compiled.get();  // throws if it failed, and the exception leaves tg::poll()
      state_ = State::training;
    });
  }

  // The event loop. A step on the CPU computes in step_async(), so the time limits steps, too.
  void run() {
    std::optional<RawTerminal> raw;
    if (terminal_) raw.emplace();
    while (state_ != State::done) {
      const auto frame_end = Clock::now() + kFrame;
      while (state_ != State::done && Clock::now() < frame_end) {
        while (wants_step() && Clock::now() < frame_end) start_step();
        tg::poll();
        const bool idle = state_ == State::paused && in_flight_ == 0;
        answer_key(wants_step() ? 0 : idle ? 16 : 1);  // waits this long, in milliseconds
      }
      if (terminal_) draw();
    }
    std::fputs(map_.c_str(), stdout);
  }

  float loss() const { return losses_.back(); }

 private:
  enum class State { compiling, training, paused, predicting, done };

  tg::Training<Mlp>& train() { return compiled_.get(); }  // not while compiling

  bool wants_step() const {
    const std::size_t started = losses_.size() + static_cast<std::size_t>(in_flight_);
    return state_ == State::training && in_flight_ < kInFlight &&
           (terminal_ || started < kPlainSteps);
  }

  void start_step() {
    sample_points(random_, x_, y_);
    const tg::Result step = train().step_async({{"x", x_}, {"y", y_}});
    ++in_flight_;
    step.then([this, attempt = attempt_](const tg::Result& done) {
      --in_flight_;
      if (attempt == attempt_) record(done);  // a step from before a reset does not count
    });
  }

  void record(const tg::Result& step) try {
    losses_.push_back(step.loss());  // there already; throws if the step failed
    if (terminal_) return;
    if (losses_.size() % 400 == 0) std::printf("step %4zu  loss %.4f\n", losses_.size(), loss());
    if (losses_.size() == kPlainSteps) predict();
  } catch (const tg::UserError& error) {  // NaN or infinity; the step has changed nothing
    if (!terminal_) throw;
    message_ = error.what();
    if (state_ == State::training) state_ = State::paused;
  }

  void answer_key(int milliseconds) {
    pollfd keyboard{terminal_ ? STDIN_FILENO : -1, POLLIN, 0};  // -1: only waits
    if (::poll(&keyboard, 1, milliseconds) <= 0) return;
    char key = 'q';  // also if there is no terminal any more
    if (read(STDIN_FILENO, &key, 1) != 1 || key == '\x03') key = 'q';
    if (state_ != State::training && state_ != State::paused) {
      if (key == 'q') state_ = State::done;
    } else if (key == 'q') {
      predict();
    } else if (key == ' ') {
      state_ = state_ == State::paused ? State::training : State::paused;
      message_.clear();
    } else if (key == '+' || key == '-') {
      train().set_lr(rate_ *= key == '+' ? 2 : 0.5);
    } else if (key == 'r') {
      train().reset();
      train().set_lr(rate_ = kRate);
      losses_.clear();
      message_.clear();
      ++attempt_;
      state_ = State::training;
    }
  }

  // Asks a second program over the same parameters for the spiral of each point of a grid.
  void predict() {
    state_ = State::predicting;
    std::vector<float> grid;
    for (int row = 0; row < kMapRows; ++row)
      for (int column = 0; column < kMapColumns; ++column) {
        grid.push_back(2.0f * static_cast<float>(column) / (kMapColumns - 1) - 1);
        grid.push_back(1 - 2.0f * static_cast<float>(row) / (kMapRows - 1));
      }
    const auto predicted = [this](const tg::Result& result) {
      for (const float logit : result.output().floats()) {
        map_ += logit > 0 ? '#' : '.';
        if (map_.size() % (kMapColumns + 1) == kMapColumns) map_ += '\n';
      }
      state_ = State::done;
    };
    train()
        .attach_async({.inputs = {{"x", {kMapRows * kMapColumns, 2}}}},
                      [](const Mlp& m, const tg::Inputs& in) { return logits(m, in["x"]); })
        .then([grid, predicted](const tg::Future<tg::Forward<Mlp>>& infer) {
          infer.get().run_async({{"x", grid}}).then(predicted);
        });
  }

  void draw() {
    static const char* const states[] = {"compiling", "training", "paused", "predicting", "done"};
    char status[100];
    std::snprintf(status, sizeof status, "step %7zu   loss %-8.3g   rate %-8.3g   %s\x1b[K\n",
                  losses_.size(), losses_.empty() ? 0 : loss(), rate_,
                  states[static_cast<int>(state_)]);
    std::string frame = drawn_ ? "\x1b[" + std::to_string(kRows + 3) + "F" : "";  // over the last
    frame += chart(losses_) + status + "space pause   + - rate   r reset   q quit\x1b[K\n";
    frame += message_.substr(0, message_.find('\n')) + "\x1b[K\n";
    std::fputs(frame.c_str(), stdout);
    std::fflush(stdout);
    drawn_ = true;
  }

  const bool terminal_;
  State state_ = State::compiling;
  tg::Future<tg::Training<Mlp>> compiled_ = tg::compile_async(
      Mlp{},
      {.inputs = {{"x", {kBatch, 2}}, {"y", {kBatch, 1}}}, .optimizer = tg::Adam{.lr = kRate}},
      [](const Mlp& m, const tg::Inputs& in) {
        return bce_with_logits(logits(m, in["x"]), in["y"]);
      });
  std::mt19937 random_{1};
  std::vector<float> x_ = std::vector<float>(2 * kBatch), y_ = std::vector<float>(kBatch);
  double rate_ = kRate;  // shown while the model is compiled, too
  int in_flight_ = 0, attempt_ = 0;
  std::vector<float> losses_;
  std::string message_, map_;
  bool drawn_ = false;
};

int main() try {
  const bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
  Demo demo(terminal);
  demo.run();
  return terminal || demo.loss() < 0.05f ? 0 : 1;
} catch (const std::exception& error) {  // the terminal is restored by now
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
