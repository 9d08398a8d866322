// Generation token by token: feeding the prompt, sampling, streaming text.
#include "tensorgrad/generate.h"

#include <algorithm>
#include <utility>

#include "support/fail.h"
#include "support/integers.h"
#include "support/utf8.h"
#include "text/listener.h"
#include "text/program.h"

namespace tensorgrad {

namespace {

struct Checked {
  TextModelConfig config;
  ForwardOptions options;
};

Checked check(const Checkpoint& checkpoint, const GeneratorOptions& options) {
  if (checkpoint.config.empty())
    user_error("Generator: the checkpoint has no config, so the kind of model is unknown");
  if (checkpoint.tokenizer.empty()) user_error("Generator: the checkpoint has no tokenizer");
  if (options.capacity < 0)
    user_error("Generator: the capacity must not be negative: {}", options.capacity);
  return {TextModelConfig::from_json(checkpoint.config),
          {.device = options.device,
           .threads = options.threads,
           .without = options.without,
           .progress = options.progress}};
}

Future<std::shared_ptr<detail::TextProgram>> program_for(const Checkpoint& checkpoint,
                                                         const GeneratorOptions& options) {
  const Checked checked = check(checkpoint, options);
  return detail::text_generation(checked.config, options.capacity, checked.options);
}

// Uploads one array after the other and frees each, so that the model is in memory only once.
void hand_over(ForwardHandle& program, NamedArrays parameters) {
  const std::vector<ParamInfo> wanted = program.parameters();
  const bool complete = wanted.size() == parameters.size() &&
                        std::all_of(wanted.begin(), wanted.end(), [&](const ParamInfo& info) {
                          return parameters.count(info.name) > 0;
                        });
  if (!complete) program.upload(parameters);  // throws: names missing or unknown parameters
  while (!parameters.empty()) {
    NamedArrays one;
    one.insert(parameters.extract(parameters.begin()));
    program.upload(one, Upload::partial);
  }
}

std::shared_ptr<detail::Listener> listener_of(std::shared_ptr<detail::TextProgram> program,
                                              Tokenizer tokenizer) {
  ForwardHandle* const next = program->next().get();
  return std::make_shared<detail::Listener>(std::move(program), *next, std::move(tokenizer));
}

}  // namespace

Generator::Generator(const Checkpoint& checkpoint, const GeneratorOptions& options) {
  auto program = program_for(checkpoint, options).take();  // first: reports what is missing
  program->next().get()->upload(checkpoint.parameters);
  own_ = listener_of(std::move(program), Tokenizer::from_json(checkpoint.tokenizer));
}

Generator::Generator(Checkpoint&& checkpoint, const GeneratorOptions& options) {
  *this = make_async(std::move(checkpoint), options).take();
}

Future<Generator> Generator::make_async(Checkpoint checkpoint, const GeneratorOptions& options) {
  checkpoint.optimizer.clear();
  const auto given = std::make_shared<Checkpoint>(std::move(checkpoint));
  return program_for(*given, options)
      .and_then([given](const std::shared_ptr<detail::TextProgram>& program) {
        hand_over(*program->next().get(), std::move(given->parameters));
        return Future<Generator>(Completion<Generator>(Generator(
                                     listener_of(program, Tokenizer::from_json(given->tokenizer)))),
                                 nullptr, "compiling");
      });
}

Generator::Generator(std::shared_ptr<detail::Listener> own) : own_(std::move(own)) {}

Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;

detail::Listener& Generator::own() const {
  if (!own_) user_error("Generator: it was moved from");
  return *own_;
}

const Tokenizer& Generator::tokenizer() const { return own().tokenizer(); }
const TextModelConfig& Generator::config() const { return own().config(); }
std::string Generator::device() const { return own().next().device(); }
int Generator::threads() const { return own().next().threads(); }

std::vector<float> Generator::listen(std::span<const std::int32_t> ids) {
  return own().listen(ids).take();
}
Future<std::vector<float>> Generator::listen_async(std::span<const std::int32_t> ids) {
  return own().listen(ids);
}
void Generator::forget() { own().forget(); }
std::span<const std::int32_t> Generator::heard() const { return own().heard(); }
NamedArrays Generator::memory() const { return own().memory(); }
void Generator::remember(const NamedArrays& memory, std::span<const std::int32_t> heard) {
  own().remember(memory, heard);
}

namespace {

// Streams text: emits only whole characters, and holds back text that may begin a stop text.
class Outlet {
 public:
  Outlet(std::vector<std::string> stop, std::function<bool(std::string_view)> on_text)
      : stop_(std::move(stop)), on_text_(std::move(on_text)) {}

  // Returns false at the end.
  bool add(std::string_view bytes) {
    pending_ += bytes;
    std::size_t stop = std::string::npos;
    for (const std::string& text : stop_) stop = std::min(stop, pending_.find(text));
    if (stop != std::string::npos) {
      pending_.resize(stop);
      flush();
      return false;
    }
    return give(pending_.size() - std::max(incomplete_tail(pending_), begun()));
  }

  // Emits the rest as it is.
  void flush() { give(pending_.size()); }

  std::string take_all() { return std::move(all_); }

 private:
  // Number of bytes at the end that may begin a stop text.
  std::size_t begun() const {
    std::size_t longest = 0;
    for (const std::string& text : stop_)
      for (std::size_t n = std::min(text.size() - 1, pending_.size()); n > longest; --n)
        if (std::string_view(pending_).substr(pending_.size() - n) ==
            std::string_view(text).substr(0, n))
          longest = n;
    return longest;
  }

  bool give(std::size_t count) {
    if (count == 0) return true;
    const std::string piece = pending_.substr(0, count);
    pending_.erase(0, count);
    all_ += piece;
    return !on_text_ || on_text_(piece);
  }

  const std::vector<std::string> stop_;
  const std::function<bool(std::string_view)> on_text_;
  std::string pending_, all_;
};

// The first token if the prompt is empty.
std::int32_t beginning_of(const Tokenizer& tokenizer) {
  const std::int32_t line = tokenizer.find("\n");
  return line >= 0 ? line : 0;
}

// Generates one text: reads the prompt, then samples and reads one token after the other.
class Generation : public std::enable_shared_from_this<Generation> {
 public:
  Generation(const std::shared_ptr<detail::Listener>& listener, const GenerateOptions& options)
      : listener_(listener),
        left_(options.tokens),
        sampler_({.temperature = options.temperature,
                  .top_k = options.top_k,
                  .top_p = options.top_p,
                  .min_p = options.min_p,
                  .repetition_penalty = options.repetition_penalty,
                  .seed = options.seed}),
        outlet_(options.stop, options.on_text),
        is_seen_(usize(listener->config().vocab)) {}

  Completion<std::string> done;

  void read(std::span<const std::int32_t> ids) {
    const std::shared_ptr<detail::Listener> listener = listener_.lock();
    if (!listener) return;  // the future of the last call has the error
    // In poll(), like any callback; without a poll between two tokens.
    listener->read(ids).then(
        [self = shared_from_this()](const Completion<std::vector<float>>& logits) {
          try {
            self->heard(logits.get());
          } catch (...) {
            self->done.set_error(std::current_exception());
          }
        });
  }

 private:
  void heard(const std::vector<float>& logits) {
    const std::shared_ptr<detail::Listener> listener = listener_.lock();
    if (!listener) detail::Listener::gone();
    if (!begun_) {
      for (const std::int32_t id : listener->heard()) see(id);
      begun_ = true;
    }
    if (stopped_ || left_ == 0) {
      if (!stopped_) outlet_.flush();
      return done.set(outlet_.take_all());
    }
    --left_;
    const std::int32_t id = sampler_.pick(logits, seen_);
    see(id);
    stopped_ = !outlet_.add(listener->tokenizer().token(id));
    // Reads the last token as well, so that a later call continues after it.
    read(std::span(&id, 1));
  }

  void see(std::int32_t id) {
    if (!is_seen_[usize(id)]) seen_.push_back(id);
    is_seen_[usize(id)] = true;
  }

  std::weak_ptr<detail::Listener> listener_;
  std::int64_t left_;  // tokens
  Sampler sampler_;
  Outlet outlet_;
  bool begun_ = false, stopped_ = false;
  // Each token seen so far, listed once, so that a long text costs no more.
  std::vector<std::int32_t> seen_;
  std::vector<bool> is_seen_;
};

}  // namespace

Future<std::string> Generator::generate_async(std::string_view prompt,
                                              const GenerateOptions& options) {
  if (options.tokens < 0) user_error("generate: tokens must not be negative: {}", options.tokens);
  for (const std::string& text : options.stop)
    if (text.empty()) user_error("generate: an empty stop text would stop at once");
  std::vector<std::int32_t> ids = tokenizer().encode(prompt);
  if (ids.empty()) ids.push_back(beginning_of(tokenizer()));
  const auto generation = std::make_shared<Generation>(own_, options);
  generation->read(ids);
  return {generation->done, own().source(), "generating"};
}

std::string generate(Generator& model, std::string_view prompt, const GenerateOptions& options) {
  return model.generate_async(prompt, options).take();
}

}  // namespace tensorgrad
